"""Normalisation of hidden states, also of a part of a graph."""

import torch
from torch import Tensor, nn

from argnn.functional.dropout import dropout, norm_relu_dropout
from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import accumulation_dtype, in_autocast_dtype


def normalized(norm: nn.Module, h: Tensor, edge_index: Edges) -> Tensor:
    """The result of a normalisation layer, ``[N, D]``.

    In training, batch normalisation takes mean and variance over the own nodes of a part: rows of
    the halo belong to other parts. Over several processes these are mean and variance of the whole
    graph. All other layers treat each row by itself.

    Under ``torch.autocast``, which normalises in float32, the result has the type of its products:
    they and the sums over neighbours read it, and it is kept for the gradient.
    """
    is_part = isinstance(edge_index, GraphPart) and edge_index.place is not None
    if not (is_part and isinstance(norm, nn.BatchNorm1d) and norm.training):
        return in_autocast_dtype(norm(h))
    assert isinstance(edge_index, GraphPart)
    of_result, h = h.dtype, h.to(accumulation_dtype(h.dtype))
    own = h[: edge_index.num_own]
    count = edge_index.total(own.new_tensor(float(len(own))))
    mean = edge_index.total(own.sum(0)) / count
    variance = edge_index.total((own - mean).square().sum(0)) / count
    _remember(norm, mean, variance * count / (count - 1).clamp_min(1))
    scale = norm.weight * (variance + norm.eps).rsqrt()
    return in_autocast_dtype(((h - mean) * scale + norm.bias).to(of_result))


def activated(norm: nn.Module, h: Tensor, edge_index: Edges, p: float, training: bool) -> Tensor:
    """Dropout of the positive parts of :func:`normalized`, ``[N, D]``."""
    if isinstance(norm, nn.LayerNorm):
        h = in_autocast_dtype(h)
        return in_autocast_dtype(
            norm_relu_dropout(h, norm.weight, norm.bias, norm.eps, p, training)
        )
    return dropout(normalized(norm, h, edge_index).relu_(), p, training)


@torch.no_grad()
def _remember(norm: nn.BatchNorm1d, mean: Tensor, variance: Tensor) -> None:
    """Update the running statistics, as PyTorch does."""
    norm.get_buffer("num_batches_tracked").add_(1)
    for name, value in (("running_mean", mean), ("running_var", variance)):
        kept = norm.get_buffer(name)
        kept.lerp_(value.to(kept), norm.momentum or 0.0)
