"""Sums over neighbours with constant weights.

:mod:`argnn.kernels.neighborhood` explains the meaning of an edge list. Its names, and
:class:`~argnn.kernels.unchanged`, can also be imported from here.
"""

from typing import Any

import torch
from torch import Tensor

from argnn.functional.precision import accumulation_dtype, in_autocast_dtype
from argnn.kernels import fused
from argnn.kernels.choice import is_fused, plain_path
from argnn.kernels.contents import ContentCache, plain_tensor, unchanged
from argnn.kernels.csr import row_starts
from argnn.kernels.neighborhood import (
    DIRECTIONS,
    NORMALIZATIONS,
    Edges,
    LinearOperator,
    Neighborhood,
    csr_tensor,
    needs_gradient,
    neighborhood,
)

__all__ = [
    "DIRECTIONS", "NORMALIZATIONS", "Edges", "LinearOperator", "Neighborhood", "aggregate",
    "bipartite_neighborhood", "csr_tensor", "edges_of", "needs_gradient",
    "neighbor_dispersion", "neighbor_mean", "neighbor_moments", "neighbor_sum", "neighborhood",
    "plain_aggregate", "plain_path", "row_starts", "unchanged",
]  # fmt: skip


def neighbor_sum(values: Tensor, hood: Neighborhood) -> Tensor:
    """Sum per-edge values ``[E', D]`` at their targets, ``[N, D]``."""
    out = values.new_zeros(hood.num_nodes, *values.shape[1:])
    return out.index_add(0, hood.target, values)


def aggregate(x: Tensor, edge_index: Edges, normalization: str = "sum") -> Tensor:
    r"""Weighted sum over neighbours with constant weights, ``[N, D] -> [N, D]``.

    .. math:: \mathbf{y}_i = \sum_{j \in \mathcal{N}(i)} w_{ij}\,\mathbf{x}_j

    Under ``torch.autocast`` float32 rows are gathered in its type, here and in all sums over edges.

    Args:
        x: Node features, ``[N, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        normalization: ``"sum"``, ``"sym"`` or ``"rw"``, see :meth:`Neighborhood.edge_weight`.
    """
    hood = neighborhood(edge_index, x.size(0))
    rows = in_autocast_dtype(x)
    fits = is_fused(rows, num_edges=hood.num_edges, learns_weight=hood.learns_weight)
    summed = fused.aggregate if fits else plain_aggregate
    return summed(rows, hood, normalization).to(x.dtype)


@plain_path
def plain_aggregate(x: Tensor, edge_index: Edges, normalization: str) -> Tensor:
    """:func:`aggregate` by torch's own operations."""
    hood = neighborhood(edge_index, x.size(0))
    dtype = accumulation_dtype(x.dtype)
    if hood.learns_weight or hood.on_cpu is not None:  # no sparse matrix will do
        weight = hood.edge_weight(normalization, dtype).unsqueeze(-1)
        return neighbor_sum(x.to(dtype).index_select(0, hood.source) * weight, hood).to(x.dtype)
    return (hood.operator(normalization, dtype) @ x.to(dtype)).to(x.dtype)


def neighbor_mean(h: Tensor, edge_index: Edges) -> Tensor:
    r"""Mean feature of the neighbours, zero at an isolated node (:eq:`neighbor_mean`).

    .. math:: \mathbf{a}_i = \frac{1}{|\mathcal{N}(i)|}\sum_{j \in \mathcal{N}(i)} \mathbf{h}_j

    Edges with weights give a weighted mean.

    Args:
        h: Node features, ``[N, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> neighbor_mean(torch.tensor([[1.0], [5.0], [3.0]]), path).squeeze().tolist()
        [5.0, 2.0, 5.0]
    """
    return aggregate(h, edge_index, "rw")


def neighbor_dispersion(h: Tensor, edge_index: Edges) -> Tensor:
    r"""Mean squared difference to the neighbours, per channel; zero at an isolated node.

    .. math::
        v_{ik} = \frac{1}{|\mathcal{N}(i)|}\sum_{j \in \mathcal{N}(i)} (h_{jk} - h_{ik})^2
    """
    return neighbor_moments(h, edge_index)[1]


def neighbor_moments(h: Tensor, edge_index: Edges) -> tuple[Tensor, Tensor]:
    r""":func:`neighbor_mean` and :func:`neighbor_dispersion`, in one pass over the edges.

    The plain path evaluates the second as
    :math:`\overline{h_j^2} - 2 h_i \overline{h_j} + h_i^2`, clamped at zero, so that no tensor
    of size ``E x D`` appears, on features shifted to mean zero, so that less cancels.
    """
    hood = neighborhood(edge_index, h.size(0))
    rows = in_autocast_dtype(h)
    fits = is_fused(rows, num_edges=hood.num_edges, learns_weight=hood.learns_weight)
    mean, dispersion = (fused.moments if fits else _plain_moments)(rows, hood)
    return mean.to(h.dtype), dispersion.to(h.dtype)


@plain_path
def _plain_moments(h: Tensor, edge_index: Edges) -> tuple[Tensor, Tensor]:
    hood = neighborhood(edge_index, h.size(0))
    dtype = accumulation_dtype(h.dtype)
    shift = h.detach().to(dtype).mean(0)
    centred = h.to(dtype) - shift
    mean, mean_square = (plain_aggregate(x, hood, "rw") for x in (centred, centred * centred))
    has_neighbors = (hood.weighted_degree > 0).unsqueeze(-1)
    own = centred if hood.has_no_isolated_node else centred * has_neighbors
    dispersion = torch.addcmul(mean_square, own, torch.sub(own, mean, alpha=2)).clamp_min(0)
    return (mean + shift * has_neighbors).to(h.dtype), dispersion.to(h.dtype)


_JOINED: ContentCache[Tensor] = ContentCache()


def bipartite_neighborhood(
    edge_index: Tensor, num_sources: int, num_targets: int, edge_weight: Tensor | None = None
) -> Neighborhood:
    """The one graph of some sources and, numbered after them, some targets.

    Args:
        edge_index: Source and target of each edge, each numbered from 0, ``[2, E]``.
        num_sources: Number of sources.
        num_targets: Number of targets.
        edge_weight: Weight of each edge, ``[E]``.
    """
    edges = plain_tensor(edge_index)

    def joined() -> Tensor:
        for place, (ends, count) in enumerate(zip(edges, (num_sources, num_targets), strict=True)):
            wrong = ends[(ends < 0) | (ends >= count)]
            if wrong.numel():
                known = f"but nodes are 0 to {count - 1}"
                raise ValueError(f"edge_index[{place}] names node {int(wrong[0])}, {known}")
        return _shifted(edges, num_sources)

    if torch.compiler.is_compiling():
        both = _shifted(edges, num_sources)
    else:
        both = _JOINED.of(edges, joined, key=(num_sources, num_targets))
    return neighborhood(both, num_sources + num_targets, edge_weight)


def _shifted(edge_index: Tensor, num_sources: int) -> Tensor:
    return torch.stack([edge_index[0], edge_index[1] + num_sources])


def edges_of(graph: Any) -> Edges:
    """The edges of a graph as models take them: prepared with their weights, if it has some.

    Args:
        graph: A PyG ``Data``, or anything else with ``x``, ``edge_index`` and perhaps
            ``edge_weight``.
    """
    weight = getattr(graph, "edge_weight", None)
    if weight is None:
        return graph.edge_index
    return neighborhood(graph.edge_index, graph.x.size(0), weight)
