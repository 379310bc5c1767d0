r"""Weights and chances of edges that follow from their Ollivier-Ricci curvature.

The curvature is that of the edges a function is given, see
:func:`~argnn.functional.ollivier.pair_curvature`, so that in link prediction it sees training edges
only. What is said of closed edges, those of the graph and one from every node to itself, is in the
order of :func:`~argnn.functional.edge_values.ordered_edges`.
"""

import torch
from torch import Tensor

from argnn.functional.edge_values import OrderedEdges, ordered_edges, sum_at_targets
from argnn.functional.neighborhood import neighborhood
from argnn.functional.ollivier import pair_curvature
from argnn.kernels.choice import plain_path

#: No edge is dropped more often than this.
MAX_DROP_CHANCE = 0.95


def cusp_weight(curvature: Tensor) -> Tensor:
    r"""Weight of edges in CUSP's Laplacian, larger for negative curvature; any shape.

    .. math:: w = e^{-1 / (1 - \kappa)}, \qquad w = 0 \text{ where } \kappa = 1

    Example:
        >>> curvature = torch.tensor([-0.6, 0.0, 0.5, 1.0], dtype=torch.float64)
        >>> cusp_weight(curvature).round(decimals=3).tolist()
        [0.535, 0.368, 0.135, 0.0]
    """
    return torch.exp(-1 / (1 - curvature).clamp_min(0))


def drop_chance(curvature: Tensor, rate: float, drop_negative: bool = False) -> Tensor:
    r"""How likely CurvDrop drops each edge, ``[P]``.

    .. math::
        p_e = \min(0.95,\; p\, s_e / \bar s), \qquad
        s_e = \frac{\kappa_e - \kappa_{\min}}{\kappa_{\max} - \kappa_{\min}}

    The edge of lowest curvature is never dropped. Where all curvatures are equal, all edges have
    the chance ``rate``.

    Args:
        curvature: One number per edge, ``[P]``.
        rate: Mean chance :math:`p`, in [0, 1), but for edges that reach the limit.
        drop_negative: Whether :math:`1 - s_e` takes the place of :math:`s_e`.

    Example:
        >>> drop_chance(torch.tensor([-1.0, 0.0, 1.0]), 0.3).tolist()
        [0.0, 0.30000001192092896, 0.6000000238418579]
    """
    if curvature.numel() == 0:
        return curvature
    low, high = curvature.aminmax()
    ranked = high - curvature if drop_negative else curvature - low
    mean = ranked.mean()
    # Curvatures of symmetric edges differ in the last digits only.
    flat = high - low < 1e-9
    share = torch.where(flat, 1.0, ranked / torch.where(flat, 1.0, mean))
    return (rate * share).clamp_max(MAX_DROP_CHANCE)


def normalized_weight(weight: Tensor, edges: OrderedEdges) -> Tensor:
    r"""Weights of a graph convolution, ``[E] -> [E]``.

    .. math:: a_{ij} = w_{ij} / \sqrt{d_i d_j}, \qquad d_i = \sum_j w_{ij}

    Args:
        weight: Weight of each edge, ``[E]``; those of self-loops are positive.
        edges: The edges, every node with one to itself.
    """
    scale = sum_at_targets(weight, edges).rsqrt()
    return weight * scale[edges.source] * scale[edges.target]


@plain_path
def cusp_adjacency(edge_index: Tensor, num_nodes: int, dtype: torch.dtype, method: str) -> Tensor:
    """Normalised :func:`cusp_weight` of all edges and, with weight one, of self-loops; kept.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        dtype: Of the result.
        method: How curvatures are found.

    Returns:
        One number per closed edge, ``[E + N]``.
    """
    hood = neighborhood(edge_index, num_nodes)
    key = f"cusp adjacency, {method}, {dtype}"
    if key not in hood.derived:
        with torch.inference_mode(False):
            weight = cusp_weight(pair_curvature(edge_index, num_nodes, method=method))
            spread = _at_closed_edges(weight, edge_index, num_nodes)
            edges = ordered_edges(hood, num_nodes, closed=True)
            hood.derived[key] = normalized_weight(spread, edges).to(dtype)
    return hood.derived[key]


@plain_path
def kept_edges(edge_index: Tensor, num_nodes: int, chance: Tensor, dtype: torch.dtype) -> Tensor:
    """One for every edge that stays, zero for those that were drawn to be dropped.

    Both directions and all duplicates of an edge share one draw, from torch's own generator;
    self-loops stay.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        chance: How likely each pair is dropped, ``[P]``.
        dtype: Of the result.

    Returns:
        One number per closed edge, ``[E + N]``.
    """
    # Draws are in [0, 1): a chance of zero never drops.
    stays = torch.rand(chance.numel(), device=chance.device) >= chance
    return _at_closed_edges(stays.to(dtype), edge_index, num_nodes)


def _at_closed_edges(values: Tensor, edge_index: Tensor, num_nodes: int) -> Tensor:
    """Values of pairs, ``[P]``, at the closed edges, ``[E + N]``; one at self-loops."""
    hood = neighborhood(edge_index, num_nodes)
    key = "pair of closed edge"
    if key not in hood.derived:
        with torch.inference_mode(False):
            edges = ordered_edges(hood, num_nodes, closed=True)
            low = torch.minimum(edges.source, edges.target)
            high = torch.maximum(edges.source, edges.target)
            known = hood.pairs[0] * num_nodes + hood.pairs[1]
            place = torch.searchsorted(known, low * num_nodes + high)
            # After all pairs, a value for the loops.
            hood.derived[key] = torch.where(low == high, hood.num_pairs, place)
    return torch.cat([values, values.new_ones(1)])[hood.derived[key]]
