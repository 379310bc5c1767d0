"""Numbers that describe a learned metric field."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.nn import AbstractNodeModel


@torch.no_grad()
def learned_metrics(model: AbstractNodeModel, graph: Data) -> list[Tensor]:
    """Metric diagonals of every layer, ``[N, D]`` each; empty for a model without a metric."""
    training = model.training
    metrics = model.eval().forward_with_metric(graph.x, graph.edge_index)[1]
    model.train(training)
    return metrics


@dataclass(frozen=True)
class MetricStatistics:
    r"""What the metric of one layer looks like at each node.

    Attributes:
        main_variation: Coordinate of the node along the direction in which :math:`\log\mathbf{g}`
            varies most over the nodes (first principal component, centred; larger means larger
            metrics on the whole).
        log_scale: Mean of :math:`\log g_{ik}` over the axes: the logarithm of the volume,
            per axis. Negative where space is contracted.
        anisotropy: Standard deviation of :math:`\log g_{ik}` over the axes; 0 for a metric
            that stretches all of them alike.
        ricci_norm: Length of the node's discrete Ricci curvature: how much its metric
            differs from its neighbours'.
        nrmd: Neighbour-relative metric dispersion of the whole field.
    """

    main_variation: Tensor
    log_scale: Tensor
    anisotropy: Tensor
    ricci_norm: Tensor
    nrmd: float


def metric_statistics(g: Tensor, edge_index: Tensor) -> MetricStatistics:
    """Describe a metric field ``[N, D]``."""
    log_g = g.double().log()
    return MetricStatistics(
        main_variation=_first_component(log_g),
        log_scale=AF.log_determinant(g.double()) / g.size(-1),
        anisotropy=log_g.std(dim=-1, unbiased=False),
        ricci_norm=AF.discrete_ricci(g.double(), edge_index).norm(dim=-1),
        nrmd=float(AF.nrmd(g, edge_index)),
    )


def _first_component(values: Tensor) -> Tensor:
    centred = values - values.mean(0)
    direction = torch.linalg.eigh(centred.t() @ centred).eigenvectors[:, -1]
    # A principal component has no sign of its own.
    coordinate: Tensor = centred @ (direction if direction.sum() >= 0 else -direction)
    return coordinate
