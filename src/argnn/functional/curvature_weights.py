r"""Edge weights and drop probabilities from the Ollivier-Ricci curvature.

The curvature is that of the given edges, see :func:`~argnn.functional.ollivier.pair_curvature`, so
that in link prediction it depends on training edges only. "Closed edges" are those of the graph and
one from every node to itself, in the order of
:func:`~argnn.functional.edge_values.ordered_edges`.
"""

import torch
from torch import Tensor

from argnn.functional.edge_values import OrderedEdges, ordered_edges, sum_at_targets
from argnn.functional.neighborhood import Edges, neighborhood
from argnn.functional.ollivier import pair_curvature
from argnn.kernels.choice import plain_path

#: Largest probability with which an edge is dropped.
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
    r"""Probability with which CurvDrop drops each edge, ``[P]``.

    .. math::
        p_e = \min(0.95,\; p\, s_e / \bar s), \qquad
        s_e = \frac{\kappa_e - \kappa_{\min}}{\kappa_{\max} - \kappa_{\min}}

    The edge of lowest curvature is never dropped. If all curvatures are equal, all edges have the
    probability ``rate``.

    Args:
        curvature: One number per edge, ``[P]``.
        rate: Mean probability :math:`p` in [0, 1), if no edge reaches the limit.
        drop_negative: Whether to use :math:`1 - s_e` in place of :math:`s_e`.

    Example:
        >>> drop_chance(torch.tensor([-1.0, 0.0, 1.0]), 0.3).tolist()
        [0.0, 0.30000001192092896, 0.6000000238418579]
    """
    if curvature.numel() == 0:
        return curvature
    low, high = curvature.aminmax()
    ranked = high - curvature if drop_negative else curvature - low
    mean = ranked.mean()
    # Curvatures that should be equal may differ in their last digits.
    flat = high - low < 1e-9
    share = torch.where(flat, 1.0, ranked / torch.where(flat, 1.0, mean))
    return (rate * share).clamp_max(MAX_DROP_CHANCE)


def normalized_weight(weight: Tensor, edges: OrderedEdges) -> Tensor:
    r"""Weights of a graph convolution, ``[E] -> [E]``.

    .. math:: a_{ij} = w_{ij} / \sqrt{d_i d_j}, \qquad d_i = \sum_j w_{ij}

    Every node needs an edge to itself, of positive weight.
    """
    scale = sum_at_targets(weight, edges).rsqrt()
    return weight * scale[edges.source] * scale[edges.target]


@plain_path
def cusp_adjacency(edge_index: Edges, num_nodes: int, dtype: torch.dtype, method: str) -> Tensor:
    """Normalised :func:`cusp_weight` of closed edges, one at self-loops, ``[E + N]``; cached.

    Before it is normalised, it is multiplied by the weights of the edges.
    """
    hood = neighborhood(edge_index, num_nodes)

    def adjacency() -> Tensor:
        weight = cusp_weight(pair_curvature(edge_index, num_nodes, method=method))
        spread = _at_closed_edges(weight, hood, num_nodes)
        return normalized_weight(spread, ordered_edges(hood, num_nodes, closed=True)).to(dtype)

    return hood.kept(f"cusp adjacency, {method}, {dtype}", adjacency)


@plain_path
def kept_edges(edge_index: Edges, num_nodes: int, chance: Tensor, dtype: torch.dtype) -> Tensor:
    """Weight of each closed edge that is kept, zero for each that is dropped, ``[E + N]``.

    Both directions and all duplicates of an edge share one random number, from torch's default
    generator; self-loops are kept.

    ``chance`` is the probability with which each pair is dropped, ``[P]``.
    """
    # Random numbers are in [0, 1): a probability of zero never drops.
    stays = torch.rand(chance.numel(), device=chance.device) >= chance
    return _at_closed_edges(stays.to(dtype), edge_index, num_nodes)


def _at_closed_edges(values: Tensor, edge_index: Edges, num_nodes: int) -> Tensor:
    """Values of pairs, ``[P]``, times weights, at closed edges, ``[E + N]``; self-loops: one."""
    hood = neighborhood(edge_index, num_nodes)
    edges = ordered_edges(hood, num_nodes, closed=True)

    def pair_of_edge() -> Tensor:
        low = torch.minimum(edges.source, edges.target)
        high = torch.maximum(edges.source, edges.target)
        known = hood.pairs[0] * num_nodes + hood.pairs[1]
        place = torch.searchsorted(known, low * num_nodes + high)
        return torch.where(low == high, hood.num_pairs, place)  # the last value is for self-loops

    place = hood.kept("pair of closed edge", pair_of_edge)
    return edges.weighted(torch.cat([values, values.new_ones(1)])[place])
