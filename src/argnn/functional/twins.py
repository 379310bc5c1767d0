"""Twins: nodes with the same neighbours."""

import torch
from torch import Tensor

from argnn.functional.neighborhood import Edges, neighborhood


def twin_groups(edge_index: Edges, num_nodes: int) -> Tensor:
    """Groups of nodes with the same neighbours.

    The neighbours of a node are the targets of its edges; in an undirected graph, where every edge
    is listed in both directions, these are all its neighbours. Self-loops and duplicates do not
    count. The result is exact: nothing is hashed. It takes a few sorts of the edges and memory
    linear in their number.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.

    Returns:
        The smallest node with the same neighbours, ``[N]``; -1 for a node without neighbours.

    Example:
        >>> star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
        >>> twin_groups(star, 5).tolist()
        [0, 1, 1, 1, -1]
    """
    hood = neighborhood(edge_index, num_nodes)
    key = torch.unique(hood.source * num_nodes + hood.target)
    owner, name = key // max(num_nodes, 1), key % max(num_nodes, 1)
    follows = owner[1:] == owner[:-1]
    while follows.any():
        owner, name = _halved(owner, name, follows)
        follows = owner[1:] == owner[:-1]
    smallest = torch.full_like(hood.degree, num_nodes).scatter_reduce(0, name, owner, "amin")
    groups = torch.full_like(hood.degree, -1)
    groups[owner] = smallest[name]
    return groups


def _halved(owner: Tensor, name: Tensor, follows: Tensor) -> tuple[Tensor, Tensor]:
    """Lists of half the length: two entries become one, and equal pairs get equal names.

    Two lists are equal before if and only if they are equal after.

    ``owner`` is the node of each entry, sorted; ``follows`` says if the next entry has the same.
    """
    size = torch.bincount(owner)
    place = torch.arange(owner.numel(), device=owner.device) - (size.cumsum(0) - size)[owner]
    is_first = place % 2 == 0
    # The last entry of a list of odd length is paired with 0; all other partners are positive.
    second = torch.zeros_like(name)
    second[:-1] = torch.where(follows, name[1:] + 1, 0)
    pair = (name * (name.max() + 2) + second)[is_first]
    return owner[is_first], torch.unique(pair, return_inverse=True)[1]


def twin_counts(groups: Tensor, among: Tensor) -> Tensor:
    """How many other nodes of a set have the same neighbours as each node, ``[N]``.

    Args:
        groups: What :func:`twin_groups` returns, ``[N]``.
        among: The set, as a mask ``[N]``.

    Example:
        >>> groups = torch.tensor([0, 1, 1, 1, -1])
        >>> twin_counts(groups, torch.tensor([True, True, False, True, True])).tolist()
        [0, 1, 2, 1, 0]
    """
    member = among & (groups >= 0)
    count = torch.bincount(groups[member], minlength=groups.numel())
    return torch.where(groups >= 0, count[groups] - member.long(), 0)
