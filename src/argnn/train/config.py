"""Settings of the training, and what they tell an optimiser of the parameters."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from torch import nn
from torch.optim import Adam, AdamW, Optimizer

from argnn.checked import check_fields
from argnn.errors import ConfigError, require
from argnn.functional.ricci import REDUCTIONS
from argnn.nn import AbstractNodeModel
from argnn.registry import canonical_name, resolve, suggestion
from argnn.train.devices import PRECISIONS
from argnn.train.riemannian import riemannian_adam
from argnn.train.selection import SELECTION_NAMES

#: Every optimiser by its name in ``TrainConfig.optimizer``. The value is called with parameter
#: groups and the keywords ``fused`` and ``capturable``. For every parameter, the optimiser keeps a
#: state of tensors, which checkpoints store.
OPTIMIZERS: dict[str, Callable[..., Optimizer]] = {
    "adam": Adam,
    "adamw": AdamW,
    "riemannian-adam": riemannian_adam,
}
#: Those whose steps can be a part of a CUDA graph.
RECORDABLE_OPTIMIZERS = ("adam", "adamw")


_CHOICES = {
    "schedule": ("constant", "step", "cosine"),
    "precision": PRECISIONS,
    "penalty_weights": ("fixed", "theory", "theorem"),
    "penalty_reduction": REDUCTIONS,
    "batching": ("whole", "clusters"),
    "partition": ("auto", "metis", "streaming"),
}
#: Settings that were added after results had been stored, with the value that changes nothing. At
#: that value records leave them out, so that the fingerprints of finished runs stay the same.
_ADDED_LATER: Mapping[str, Any] = {
    "optimizer": "adam",
    **dict.fromkeys(f"{group}_weight_decay" for group in ("metric", "layers", "encoder_head")),
    **dict.fromkeys(("select", "class_weight", "threshold", "clusters_per_batch")),
    **{"batching": "whole", "parts": 256, "halo": 0, "partition": "auto"},
}


@dataclass(frozen=True)
class TrainConfig:
    """All settings of `fit`.

    Attributes:
        epochs: Largest number of epochs.
        lr: Learning rate of the weights.
        metric_lr: Learning rate of the metric networks; None takes ``lr``.
        penalty_lr: Learning rate of adaptive penalty weights; None takes ``lr``.
        optimizer: A name in ``argnn.train.config.OPTIMIZERS``: ``"adam"``, where weight decay
            is a part of the gradient; ``"adamw"``, where it is not; or ``"riemannian-adam"``, which
            moves free metrics along geodesics and all else as ``"adam"``.
        weight_decay: Weight decay of all parameters of the model.
        metric_weight_decay: Weight decay of the metric networks or learned curvatures, if it
            differs from ``weight_decay``; see ``AbstractNodeModel.parameter_groups``.
        layers_weight_decay: The same for the layers between encoder and head.
        encoder_head_weight_decay: The same for encoder and head.
        clip_norm: Largest norm of the gradient; larger ones are scaled down.
        schedule: ``"constant"``, ``"step"`` (``step_factor`` every ``step_size`` epochs) or
            ``"cosine"`` (to zero over ``epochs``).
        step_size: Epochs between two steps of the step schedule.
        step_factor: Factor on the learning rates at each step.
        patience: Stop after this many epochs without a better validation score; 0 never stops.
        tolerance: Stop when the norm of the gradient is smaller; 0 never stops.
        evaluate_every: Epochs between two validations. Between them nothing waits for the device.
        checkpoint_every: Epochs between two checkpoints; 0 writes none.
        record: On a GPU, record the training step as a CUDA graph and replay it, if the model
            allows it. Small graphs train several times as fast.
        seed: Seed of dropout, and of the weights if a command or estimator builds the model.
        precision: ``"float32"``; ``"tf32"``, which allows a GPU to compute dense products in TF32
            and changes nothing on a CPU; or ``"bfloat16"`` for products, and the rows that
            neighbours read, in bfloat16. In training and validation; weights, optimiser, sums,
            losses and energies stay float32.
        ricci_weight: Weight of the Ricci energy, if ``penalty_weights`` is ``"fixed"``.
        smoothness_weight: The same for the smoothness energy.
        magnitude_weight: Weight of the squared metric, which only the paper's code has.
        penalty_weights: ``"fixed"`` takes the weights above. ``"theory"`` and ``"theorem"`` compute
            the first two by the paper's formulas from the homophily of the training labels.
        penalty_adaptive: Whether these weights are learned.
        penalty_reduction: ``"sum"`` as in the paper, or ``"mean"``.
        select: The validation score that chooses the epoch, see ``argnn.train.SELECTIONS``; None
            takes the usual one of the task.
        class_weight: Weight of each class in the training loss, by its name, or ``"balanced"`` for
            weights that make up for the sizes of the classes; a class that is not named has 1.
        threshold: Probability from which a node is of the rarer of two classes. ``"validation"``
            chooses it on validation nodes; None takes the more probable class.
        batching: What a training step sees: the ``"whole"`` graph, or some ``"clusters"`` of it.
        parts: Number of clusters into which the graph is divided.
        clusters_per_batch: Clusters of each batch, chosen anew in every epoch; a quarter of all if
            not given.
        halo: How many hops around its clusters a batch sees. With 0, edges that lead out of a
            batch are left out; with 1, sums over the neighbours of its nodes are complete.
        partition: How clusters are found: ``"metis"``, ``"streaming"`` or ``"auto"``.
    """

    epochs: int = 200
    lr: float = 5e-3
    metric_lr: float | None = None
    penalty_lr: float | None = None
    optimizer: str = "adam"
    weight_decay: float = 1e-3
    metric_weight_decay: float | None = None
    layers_weight_decay: float | None = None
    encoder_head_weight_decay: float | None = None
    clip_norm: float | None = None
    schedule: str = "constant"
    step_size: int = 50
    step_factor: float = 0.1
    patience: int = 0
    tolerance: float = 0.0
    evaluate_every: int = 1
    checkpoint_every: int = 0
    record: bool = True
    seed: int = 0
    precision: str = "float32"
    ricci_weight: float = 0.0
    smoothness_weight: float = 0.0
    magnitude_weight: float = 0.0
    penalty_weights: str = "fixed"
    penalty_adaptive: bool = False
    penalty_reduction: str = "mean"
    select: str | None = None
    class_weight: str | dict[str, float] | None = None
    threshold: str | float | None = None
    batching: str = "whole"
    parts: int = 256
    clusters_per_batch: int | None = None
    halo: int = 0
    partition: str = "auto"

    def __post_init__(self) -> None:
        check_fields(self)
        for name in ("epochs", "step_size", "evaluate_every", "parts", "clusters_per_batch"):
            value = getattr(self, name)
            require(value is None or value >= 1, name, "at least 1", value)
        for name in ("lr", "metric_lr", "penalty_lr", "clip_norm", "step_factor"):
            value = getattr(self, name)
            positive = value is None or (value > 0 and math.isfinite(value))
            require(positive, name, "positive", value)
        decays = [field.name for field in fields(self) if field.name.endswith("weight_decay")]
        counts = ("patience", "tolerance", "checkpoint_every", "seed", "halo")
        for name in (*decays, *counts, "ricci_weight", "smoothness_weight", "magnitude_weight"):
            value = getattr(self, name)
            fits = value is None or (value >= 0 and math.isfinite(value))
            require(fits, name, "finite and not negative", value)
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            require(value in choices, name, f"one of {', '.join(choices)}", repr(value))
        self._check_judging()
        weights = (self.ricci_weight, self.smoothness_weight, self.magnitude_weight)
        if self.penalty_adaptive and self.penalty_weights == "fixed" and not any(weights):
            raise ConfigError("penalty_adaptive needs a penalty weight above 0 to start from")
        self._check_batching(any(weights[:2]) or self.penalty_weights != "fixed")
        name = canonical_name(self.optimizer, OPTIMIZERS, "optimizer")
        object.__setattr__(self, "optimizer", name)

    def _check_batching(self, penalized: bool) -> None:
        """Raise where clusters cannot give what the settings ask for."""
        if self.batching == "whole":
            return
        if self.batch_size > self.parts:
            raise ConfigError(
                f"clusters_per_batch must be at most parts, {self.parts} "
                f"(got {self.clusters_per_batch})"
            )
        if penalized and self.halo == 0:
            raise ConfigError(
                "Ricci and smoothness penalties compare a node with all its neighbours: "
                "batches need a halo of at least 1"
            )

    def _check_judging(self) -> None:
        """Raise unless score, weights and threshold are possible for some task."""
        select, weight, threshold = self.select, self.class_weight, self.threshold
        known = select is None or select in SELECTION_NAMES
        require(known, "select", f"one of {', '.join(SELECTION_NAMES)}", repr(select))
        if isinstance(weight, str):
            words = "balanced, or a mapping of classes to weights"
            require(weight == "balanced", "class_weight", words, repr(weight))
        for name, value in (weight or {}).items() if isinstance(weight, dict) else ():
            fits = value > 0 and math.isfinite(value)
            require(fits, f"class_weight of {name}", "positive", value)
        if isinstance(threshold, str):
            words = "validation or a number"
            require(threshold == "validation", "threshold", words, repr(threshold))
        elif threshold is not None:
            require(0 < threshold < 1, "threshold", "between 0 and 1", threshold)

    @property
    def batch_size(self) -> int:
        """Clusters of each batch."""
        return self.clusters_per_batch or -(-self.parts // 4)

    @property
    def has_penalties(self) -> bool:
        """Whether the loss has a penalty on metrics."""
        weights = (self.ricci_weight, self.smoothness_weight, self.magnitude_weight)
        return any(weights) or self.penalty_weights != "fixed"

    def group_weight_decay(self, group: str) -> float:
        """Weight decay of one of the groups of ``AbstractNodeModel.parameter_groups``."""
        own: float | None = getattr(self, f"{group}_weight_decay")
        return self.weight_decay if own is None else own

    def to_json(self) -> dict[str, Any]:
        """The settings for a record, without later additions that change nothing."""
        return {
            name: value
            for name, value in asdict(self).items()
            if name not in _ADDED_LATER or value != _ADDED_LATER[name]
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> "TrainConfig":
        """Rebuild what :meth:`to_json` gave."""
        return cls(**completed_record(record))


def completed_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record with what :meth:`TrainConfig.to_json` left out: defaults may have changed since."""
    return {**_ADDED_LATER, **record}


#: The optimiser settings that belong to each preset of the model.
TRAIN_PRESETS: Mapping[str, TrainConfig] = {
    "paper": TrainConfig(weight_decay=1e-4, penalty_weights="theory", penalty_reduction="sum"),
    "reference": TrainConfig(
        weight_decay=5e-4,
        clip_norm=1.0,
        schedule="step",
        smoothness_weight=1e-3,
        magnitude_weight=1e-2,
    ),
    "default": TrainConfig(),
}


def train_config(preset: str, overrides: Mapping[str, Any]) -> TrainConfig:
    """A preset with some settings changed; an unknown setting is an error."""
    known = {field.name for field in fields(TrainConfig)}
    for name in overrides:
        if name not in known:
            raise ConfigError(f"unknown training setting '{name}'; {suggestion(name, known)}")
    return replace(resolve(preset, TRAIN_PRESETS, "preset"), **overrides)


def learning_rate_factor(config: TrainConfig, epoch: int) -> float:
    """Factor of the schedule on the learning rates in an epoch, counted from 1.

    It depends on the epoch alone, so that checkpoints need no state of a scheduler.
    """
    if config.schedule == "step":
        return config.step_factor ** ((epoch - 1) // config.step_size)
    if config.schedule == "cosine":
        return 0.5 * (1 + math.cos(math.pi * (epoch - 1) / config.epochs))
    return 1.0


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
