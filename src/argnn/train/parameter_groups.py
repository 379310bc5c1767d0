"""What an optimiser is told of the parameters of a run."""

from typing import Any

from torch import nn

from argnn.nn import AbstractNodeModel
from argnn.train.config import TrainConfig


def optimizer_groups(
    model: AbstractNodeModel, penalties: nn.Module, config: TrainConfig
) -> list[dict[str, Any]]:
    """Weights, metric and penalty weights, each with its learning rate (alg. 3).

    Parameters of one learning rate, weight decay and geometry are one group, in the order of the
    model: checkpoints number the parameters in this order. The entry ``positive`` tells a
    Riemannian optimiser which parameters are positive numbers.
    """
    weights: dict[tuple[float, bool], dict[str, Any]] = {}
    metric: dict[tuple[float, bool], dict[str, Any]] = {}
    positive = {id(parameter) for parameter in model.positive_parameters()}
    for name, group in model.parameter_groups().items():
        found, rate = (metric, config.metric_lr) if group == "metric" else (weights, config.lr)
        parameter = model.get_parameter(name)
        kind = config.group_weight_decay(group), id(parameter) in positive
        found.setdefault(kind, _group(rate or config.lr, *kind))["params"].append(parameter)
    learned = _group(config.penalty_lr or config.lr, 0.0, False)
    learned["params"] = list(penalties.parameters())
    return [*weights.values(), *metric.values(), *([learned] if learned["params"] else [])]


def _group(lr: float, weight_decay: float, positive: bool) -> dict[str, Any]:
    return {"params": [], "lr": lr, "weight_decay": weight_decay, "positive": positive}
