"""Changes of a metric field along the edges."""

from collections.abc import Sequence

import torch
from torch import Tensor

from argnn.functional.factored import frobenius_gaps, frobenius_squares, is_factored
from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import Edges, Neighborhood, neighborhood
from argnn.functional.precision import accumulation_dtype, safe_sqrt
from argnn.functional.ricci import check_reduction, reduce_energy, reduced_sum, ricci_energy
from argnn.kernels import fused
from argnn.kernels.choice import is_fused, plain_path


def smoothness_energy(g: Tensor, edge_index: Edges, reduction: str = "sum") -> Tensor:
    r"""Squared metric differences over the edges, a scalar (:eq:`smoothness_energy`).

    .. math::
        \mathcal{L}_{\mathrm{smooth}} =
        \sum_{\{i,j\} \in \mathcal{E}} \|\mathbf{g}_i - \mathbf{g}_j\|^2

    Each unordered pair counts once, times its weight if edges have weights. Of a factored field it
    is the sum over all entries of the matrices, :math:`\|\mathbf{G}_i - \mathbf{G}_j\|_F^2`.

    Args:
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        reduction: ``"sum"`` as above, or ``"mean"`` over pairs and channels.

    Example:
        >>> import torch
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> smoothness_energy(torch.tensor([[1.0], [3.0]]), pair).item()
        4.0
    """
    hood = neighborhood(edge_index, g.size(0))
    g_ = g.to(accumulation_dtype(g.dtype))
    if isinstance(hood, GraphPart):
        total = smoothness_energy(g_, hood.own_pairs)
        return reduced_sum(total, hood.pair_total * g.size(-1), reduction).to(g.dtype)
    if is_factored(g):
        total = _weighted_pairs(frobenius_gaps(g_, *hood.pairs), hood)
        return reduced_sum(total, hood.pair_total * g.size(-1), reduction).to(g.dtype)
    if is_fused(g_, num_edges=hood.num_edges, learns_weight=hood.learns_weight):
        both = hood.relation("undirected")
        total = fused.energies([g_], both, [(0.0, 0.5)])[1]
        return reduced_sum(total, both.pair_total * g.size(1), reduction).to(g.dtype)
    return _plain_smoothness(g_, hood, reduction).to(g.dtype)


@plain_path
def _plain_smoothness(g: Tensor, edge_index: Edges, reduction: str) -> Tensor:
    hood = neighborhood(edge_index, g.size(0))
    low, high = hood.pairs
    squares = (g.index_select(0, low) - g.index_select(0, high)).square()
    if hood.pair_weight is None:
        return reduce_energy(squares, reduction)
    total = (squares * hood.pair_weight.to(squares.dtype).unsqueeze(-1)).sum()
    return reduced_sum(total, hood.pair_total * g.size(1), reduction)


def _weighted_pairs(pieces: Sequence[Tensor], hood: Neighborhood) -> Tensor:
    """Sum over pairs of their terms, each times the weight of its pair."""
    terms = torch.cat([*pieces, hood.source.new_zeros(0, dtype=torch.float32)])
    return (terms if hood.pair_weight is None else terms * hood.pair_weight.to(terms.dtype)).sum()


def metric_energies(
    metrics: Sequence[Tensor], edge_index: Edges, reduction: str = "sum"
) -> tuple[Tensor, Tensor]:
    """Ricci and smoothness energy of the undirected graph, summed over layers.

    The same as adding up :func:`ricci_energy` and :func:`smoothness_energy` of each layer, but
    the two share one pass over the edges.

    Args:
        metrics: Metrics of each layer, ``[N, D]`` or factored; at least one.
        edge_index: Source and target of each edge, ``[2, E]``; directions do not matter.
        reduction: See :func:`ricci_energy` and :func:`smoothness_energy`.
    """
    both = neighborhood(edge_index, metrics[0].size(0)).relation("undirected")
    diagonal = not any(is_factored(g) for g in metrics)
    one_pass = diagonal and is_fused(
        *metrics, num_edges=both.num_edges, learns_weight=both.learns_weight
    )
    if torch.compiler.is_compiling() or isinstance(both, GraphPart) or not one_pass:
        ricci = [ricci_energy(g, both, reduction) for g in metrics]
        smooth = [smoothness_energy(g, both, reduction) for g in metrics]
        return torch.stack(ricci).sum(), torch.stack(smooth).sum()
    wide = [g.to(accumulation_dtype(g.dtype)) for g in metrics]
    total = fused.energies(wide, both, [_factors(g, both, reduction) for g in metrics])
    total = total.to(metrics[0].dtype)
    return total[0], total[1]


def _factors(g: Tensor, both: Neighborhood, reduction: str) -> tuple[float, float]:
    check_reduction(reduction)
    if reduction == "sum":
        return 1.0, 0.5
    return 1 / max(g.numel(), 1), 0.5 / (float(both.pair_total * g.size(1)) or 1.0)


def nrmd(g: Tensor, edge_index: Edges) -> Tensor:
    r"""Neighbour-relative metric dispersion, a scalar (:eq:`nrmd`).

    .. math::
        \frac{1}{|\mathcal{E}|} \sum_{\{i,j\}}
        \frac{\|\mathbf{g}_i - \mathbf{g}_j\|}{\frac{1}{2}(\|\mathbf{g}_i\| + \|\mathbf{g}_j\|)}

    Zero where there are no edges. Each unordered pair counts once; weights of edges do not matter.
    Of a factored field the norms are Frobenius norms of the matrices.
    """
    low, high = neighborhood(edge_index, g.size(0)).pairs
    return reduce_energy(relative_gaps(g, low, high), "mean").to(g.dtype)


def relative_gaps(g: Tensor, first: Tensor, second: Tensor) -> Tensor:
    """The terms of :func:`nrmd`, of the metrics of some pairs of nodes, ``[P]`` in float64."""
    # In float64, since the squares of metrics of 1e30 overflow in float32.
    wide = g.to(accumulation_dtype(g.dtype)).double()
    if is_factored(g):
        length = frobenius_squares(wide).sqrt()
        gap = torch.cat([wide.new_zeros(0), *frobenius_gaps(wide, first, second)])
        gap = safe_sqrt(gap.clamp_min(0))
    else:
        length = wide.norm(dim=-1)
        gap = (wide.index_select(0, first) - wide.index_select(0, second)).norm(dim=-1)
    return gap / (0.5 * (length.index_select(0, first) + length.index_select(0, second)))
