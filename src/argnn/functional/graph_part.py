"""A part of a graph whose nodes keep the degrees that they have in the whole graph."""

import torch
from torch import Tensor

from argnn.functional.neighborhood import Neighborhood


@torch.inference_mode(False)
def part_neighborhood(
    edge_index: Tensor, degree: Tensor, out_degree: Tensor, neighbors: Tensor
) -> Neighborhood:
    """The edges of a part, for layers that are to weigh them as in the whole graph.

    A node at the border lacks some of its edges, and yet counts all of them.

    Args:
        edge_index: Source and target of each edge in the part, ``[2, E]``.
        degree: Edges into each node in the whole graph, ``[N]``.
        out_degree: Edges out of each node in the whole graph, ``[N]``.
        neighbors: Neighbours of each node in the whole graph, in any direction, ``[N]``.
    """
    hood = _with_degrees(edge_index, degree, out_degree)
    # Directions may be missing in the whole graph, or only by chance in this part of it.
    no_directions = torch.equal(degree, neighbors) and torch.equal(out_degree, neighbors)
    hood.is_simple = hood.is_simple and no_directions
    if not hood.is_simple:
        both = torch.cat([hood.pairs, hood.pairs.flip(0)], dim=1)
        hood.relations = {
            "undirected": _with_degrees(both, neighbors, neighbors),
            "out": _with_degrees(edge_index.flip(0), out_degree, degree),
        }
    return hood


def _with_degrees(edge_index: Tensor, degree: Tensor, out_degree: Tensor) -> Neighborhood:
    hood = Neighborhood(edge_index, degree.numel())
    hood.degree, hood.out_degree = degree, out_degree
    return hood
