"""Divide the nodes of a graph into parts with few edges between them, in little memory."""

import torch
from torch import Tensor

from argnn.kernels.partition import breadth_first, improve

#: How often all nodes are looked at, and how much larger than the mean a part may become.
_PASSES, _SLACK = 10, 1.1


def streaming_partition(start: Tensor, other: Tensor, num_parts: int) -> Tensor:
    """The part of each node, ``[N]``, by a greedy method that looks at one node after the other.

    Parts begin as runs of nodes in breadth-first order. Then each node moves to the part of most of
    its neighbours, where parts that are nearly full count less (linear deterministic greedy,
    Stanton and Kliot 2012, several times over).

    Args:
        start: Place of the first neighbour of each node, and the number of all, ``[N + 1]``.
        other: The neighbours of each node, ``[E]``.
        num_parts: Number of parts; some may stay empty.
    """
    rows = start.numpy(), other.numpy()
    num_nodes = start.numel() - 1
    part = torch.empty(num_nodes, dtype=torch.int32)
    part[torch.from_numpy(breadth_first(*rows))] = runs_of_nodes(num_nodes, num_parts)
    for _ in range(_PASSES):
        improve(*rows, num_parts, _SLACK * num_nodes / num_parts, part.numpy())
    return part


def runs_of_nodes(num_nodes: int, num_parts: int) -> Tensor:
    """Parts that are runs of nodes of about equal length, ``[N]``."""
    return (torch.arange(num_nodes) * num_parts // max(num_nodes, 1)).int()
