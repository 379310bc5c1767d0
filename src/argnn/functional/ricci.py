"""Discrete Ricci curvature of a metric field, its energy and its flow."""

import torch
from torch import Tensor

from argnn.errors import require
from argnn.functional.factored import PIECE, in_pieces, is_factored, matrix_rows
from argnn.functional.graph_part import GraphPart, own_rows, whole_size
from argnn.functional.neighborhood import Edges, neighbor_sum, neighborhood
from argnn.functional.precision import accumulation_dtype
from argnn.kernels import fused
from argnn.kernels.choice import is_fused, plain_path

REDUCTIONS = ("sum", "mean")


def discrete_ricci(g: Tensor, edge_index: Edges) -> Tensor:
    r"""Coordinate-wise discrete Ricci curvature, ``[N, D]`` (:eq:`ricci`).

    .. math::
        \mathrm{Ric}_{ik} = \frac{1}{2\,|\mathcal{N}(i)|}
        \sum_{j \in \mathcal{N}(i)} (g_{ik} - g_{jk})

    Exactly zero for a constant metric and at isolated nodes. Edges with weights give a weighted
    mean of the differences.

    Args:
        g: Metric diagonals, ``[N, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.

    Example:
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> discrete_ricci(torch.tensor([[1.0], [3.0]]), pair).squeeze().tolist()
        [-1.0, 1.0]
    """
    hood = neighborhood(edge_index, g.size(0))
    if is_fused(g, num_edges=hood.num_edges, learns_weight=hood.learns_weight):
        return fused.discrete_ricci(g, hood)
    return _plain_ricci(g, hood)


@plain_path
def _plain_ricci(g: Tensor, edge_index: Edges) -> Tensor:
    hood = neighborhood(edge_index, g.size(0))
    g_ = g.to(accumulation_dtype(g.dtype))
    difference = g_.index_select(0, hood.target) - g_.index_select(0, hood.source)
    if hood.weight is not None:
        difference = difference * hood.weight.to(g_.dtype).unsqueeze(-1)
        share = hood.inverse_degree(g_.dtype).unsqueeze(-1)
        return (0.5 * neighbor_sum(difference, hood) * share).to(g.dtype)
    degree = hood.degree.clamp_min(1).to(g_.dtype).unsqueeze(-1)
    return (0.5 * neighbor_sum(difference, hood) / degree).to(g.dtype)


def ricci_energy(g: Tensor, edge_index: Edges, reduction: str = "sum") -> Tensor:
    r"""Squared Ricci curvature of the field, a scalar (:eq:`ricci_energy`).

    .. math:: \mathcal{L}_{\mathrm{Ricci}} = \sum_i \sum_k \mathrm{Ric}_{ik}^2

    Of a factored field it is the sum over all entries of the matrices.

    Args:
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        reduction: ``"sum"`` as above, or ``"mean"`` over nodes and channels.
    """
    hood = neighborhood(edge_index, g.size(0))
    g_ = g.to(accumulation_dtype(g.dtype))
    if is_factored(g):
        squares = ricci_squares(g_, hood).unsqueeze(-1)
        return node_energy(squares, hood, reduction, g.size(-1)).to(g.dtype)
    if isinstance(hood, GraphPart):
        return node_energy(discrete_ricci(g_, hood).square(), hood, reduction).to(g.dtype)
    if is_fused(g_, num_edges=hood.num_edges, learns_weight=hood.learns_weight) and hood.is_simple:
        total = fused.energies([g_], hood, [(1.0, 0.0)])[0]
        return reduced_sum(total, g.numel(), reduction).to(g.dtype)
    return reduce_energy(discrete_ricci(g_, hood).square(), reduction).to(g.dtype)


def ricci_squares(g: Tensor, edge_index: Edges) -> Tensor:
    r""":math:`\|\mathrm{Ric}_i\|^2` of each node, ``[N]``: over all entries of its metric.

    Of a factored field the curvature is a matrix, the mean of
    :math:`\frac{1}{2}(\mathbf{G}_i - \mathbf{G}_j)`. A mean over neighbours has no low rank: the
    time is :math:`O(E D^2)`, but only some rows of the matrices are in memory at a time.

    Args:
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
    """
    if not is_factored(g):
        return discrete_ricci(g, edge_index).square().sum(-1)

    def squares(begin: int, end: int) -> Tensor:
        rows = matrix_rows(g, begin, end).flatten(1)
        return discrete_ricci(rows, edge_index).square().sum(-1)

    size = max(PIECE // max(g.size(0) * g.size(-1), 1), 1)
    return torch.stack(in_pieces(squares, g.size(-1), size)).sum(0)


def node_energy(
    terms: Tensor, edge_index: Edges, reduction: str, channels: int | None = None
) -> Tensor:
    """Sum or mean of energy terms of nodes, ``[N, D]``; of a part, the share of its own nodes.

    The mean is over nodes and ``channels``, by default the columns.
    """
    hood = neighborhood(edge_index, terms.size(0))
    count = whole_size(hood) * (terms.size(1) if channels is None else channels)
    return reduced_sum(own_rows(terms, hood).sum(), count, reduction)


def reduce_energy(terms: Tensor, reduction: str) -> Tensor:
    """Sum or mean of energy terms; the mean of none is zero."""
    return reduced_sum(terms.sum(), terms.numel(), reduction)


def reduced_sum(total: Tensor, count: float | Tensor, reduction: str) -> Tensor:
    """The sum of ``count`` terms, or their mean."""
    check_reduction(reduction)
    if reduction == "sum":
        return total
    if isinstance(count, Tensor):  # perhaps a sum of weights
        return total / torch.where(count > 0, count, 1).to(total.dtype)
    return total / max(count, 1)


def check_reduction(reduction: str) -> None:
    """Raise unless the reduction is a sum or a mean."""
    require(reduction in REDUCTIONS, "reduction", f"one of {REDUCTIONS}", repr(reduction))


def ricci_flow(g: Tensor, edge_index: Edges, steps: int, step_size: float) -> Tensor:
    r"""Explicit Euler steps of :math:`\partial_t \mathbf{g} = -2\,\mathrm{Ric}` (:eq:`flow`).

    One step is :math:`g_i \leftarrow (1-s)\,g_i + s\,\overline{g_j}`: with :math:`s \in (0, 1]`
    the metric stays positive and inside its initial range.

    Args:
        g: Metric diagonals, ``[N, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        steps: How many steps to take.
        step_size: :math:`s`, in (0, 1].
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative (got {steps})")
    require(0 < step_size <= 1, "step_size", "in (0, 1] for a positive metric", step_size)
    if g.numel() == 0:
        return g
    lowest, highest = g.detach().amin(0), g.detach().amax(0)
    for _ in range(steps):
        # A step is a mean of values in the range; the clamp removes rounding errors.
        g = (g - 2 * step_size * discrete_ricci(g, edge_index)).clamp(lowest, highest)
    return g


@torch.no_grad()
def ricci_flow_steady_state(
    g: Tensor,
    edge_index: Edges,
    *,
    step_size: float = 0.5,
    tolerance: float = 1e-9,
    max_steps: int = 100_000,
) -> Tensor:
    r"""Run :func:`ricci_flow` until no entry moves by more than ``tolerance`` in a step.

    On an undirected graph the limit is constant on each connected component: the mean of
    the initial metric weighted by degree. Steps of at most one half reach it on every graph. Full
    steps do not: on a bipartite graph they swap the two sides for ever.

    Raises:
        RuntimeError: The flow still moved after ``max_steps``.
    """
    for _ in range(max_steps):
        following = ricci_flow(g, edge_index, steps=1, step_size=step_size)
        if torch.equal(following, g) or (following - g).abs().max() <= tolerance:
            return following
        g = following
    raise RuntimeError(f"the flow still moved by more than {tolerance} after {max_steps} steps")
