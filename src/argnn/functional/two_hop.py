"""Pairs of nodes that are two steps apart."""

import torch
from torch import Tensor

from argnn.functional.neighborhood import Edges, Neighborhood, csr_tensor, neighborhood


def two_hop(edge_index: Edges, num_nodes: int) -> Neighborhood:
    """The graph that joins nodes at distance exactly two, prepared once.

    Directions, duplicates and weights do not matter: the distance is the number of hops in the
    undirected graph.

    Example:
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> two_hop(path, 3).edge_index.tolist()
        [[2, 0], [0, 2]]
    """
    hood = neighborhood(edge_index, num_nodes)
    return hood.kept(
        "two_hop",
        lambda: Neighborhood(_pairs_two_apart(hood.relation("undirected")), num_nodes),
    )


def _pairs_two_apart(both: Neighborhood) -> Tensor:
    """Both directions of every pair that has a common neighbour and no edge, ``[2, E]``."""
    n, device = both.num_nodes, both.source.device
    csr = both.csr
    size = (n, n)
    # On a CPU, where the product of two sparse matrices has the same order in every run.
    start, column = csr.rowptr.cpu(), csr.column.cpu().long()
    ones = torch.ones(column.numel())
    adjacency = csr_tensor(start, column, ones, size)
    with torch.autocast("cpu", enabled=False):  # there is no sparse product in bfloat16
        walks = torch.sparse.mm(adjacency, adjacency)
    target = torch.repeat_interleave(walks.crow_indices().diff())
    source = walks.col_indices()
    known = torch.repeat_interleave(start.diff()) * n + column
    key = torch.sort(target * n + source).values
    apart = (key // max(n, 1) != key % max(n, 1)) & ~_is_in(key, known)
    key = key[apart]
    return torch.stack([key % max(n, 1), key // max(n, 1)]).to(device)


def _is_in(key: Tensor, known: Tensor) -> Tensor:
    """Whether each key is among the known ones, which are sorted."""
    if known.numel() == 0:
        return torch.zeros_like(key, dtype=torch.bool)
    place = torch.searchsorted(known, key).clamp_max(known.numel() - 1)
    return known[place] == key
