"""The penalties of a run, with weights from the settings or from the paper's formulas."""

from torch import Tensor, nn

from argnn import functional as AF
from argnn.functional.neighborhood import Edges, neighborhood
from argnn.nn import MagnitudeRegularizer, Regularizer, RicciRegularizer, SmoothnessRegularizer
from argnn.train.config import TrainConfig
from argnn.train.tasks import Task


def build_penalties(
    config: TrainConfig,
    edge_index: Edges,
    num_nodes: int,
    metrics: list[Tensor],
    hidden_channels: int,
    task: Task,
) -> nn.ModuleList:
    """One regulariser per positive weight; none if the model has no metric.

    Only the number of the metrics matters; the task tells the homophily.
    """
    if not metrics:
        return nn.ModuleList()
    ricci, smoothness = config.ricci_weight, config.smoothness_weight
    if config.penalty_weights != "fixed":
        hood = neighborhood(edge_index, num_nodes)
        ricci, smoothness = AF.theory_weights(
            homophily=task.homophily(hood),
            num_nodes=num_nodes,
            num_edges=hood.pairs.size(1),
            num_layers=len(metrics),
            hidden_channels=hidden_channels,
            form="main" if config.penalty_weights == "theory" else "theorem",
        )
    kinds: list[tuple[type[Regularizer], float]] = [
        (RicciRegularizer, ricci),
        (SmoothnessRegularizer, smoothness),
        (MagnitudeRegularizer, config.magnitude_weight),
    ]
    return nn.ModuleList(
        kind(weight, reduction=config.penalty_reduction, learnable=config.penalty_adaptive)
        for kind, weight in kinds
        if weight > 0
    )
