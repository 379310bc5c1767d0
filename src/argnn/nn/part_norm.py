"""Batch normalisation of a part of a graph."""

import torch
from torch import Tensor, nn

from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import Edges


def normalized(norm: nn.Module, h: Tensor, edge_index: Edges) -> Tensor:
    """The result of a normalisation layer, ``[N, D]``.

    In training, batch normalisation takes mean and variance over the own nodes of a part: rows of
    the halo belong to other parts. Over several processes these are mean and variance of the whole
    graph. All other layers treat each row by itself.
    """
    is_part = isinstance(edge_index, GraphPart) and edge_index.place is not None
    if not (is_part and isinstance(norm, nn.BatchNorm1d) and norm.training):
        return norm(h)
    assert isinstance(edge_index, GraphPart)
    own = h[: edge_index.num_own]
    count = edge_index.total(own.new_tensor(float(len(own))))
    mean = edge_index.total(own.sum(0)) / count
    variance = edge_index.total((own - mean).square().sum(0)) / count
    _remember(norm, mean, variance * count / (count - 1).clamp_min(1))
    scale = norm.weight * (variance + norm.eps).rsqrt()
    return (h - mean) * scale + norm.bias


@torch.no_grad()
def _remember(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor) -> None:
    """Update the running statistics, as PyTorch does."""
    norm.get_buffer("num_batches_tracked").add_(1)
    for name, value in (("running_mean", mean), ("running_var", variance)):
        kept = norm.get_buffer(name)
        kept.lerp_(value.to(kept), norm.momentum or 0.0)
