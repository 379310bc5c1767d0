"""Homophily: how often neighbours have the same label."""

import torch
from torch import Tensor

from argnn.functional.neighborhood import Edges, neighborhood
from argnn.functional.precision import widened


def edge_homophily(edge_index: Edges, y: Tensor) -> float:
    r"""Share of edges whose ends have the same label (:eq:`homophily`).

    Each unordered pair counts once; self-loops, and pairs with an unlabelled end (a negative
    label), do not count. Weights of edges do not matter.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        y: Label of each node, ``[N]``; negative where unknown.

    Returns:
        The share, or NaN if no pair has two labels.

    Example:
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> edge_homophily(path, torch.tensor([0, 0, 1]))
        0.5
    """
    low, high = neighborhood(edge_index, y.numel()).pairs
    known = (y[low] >= 0) & (y[high] >= 0)
    return widened((y[low] == y[high])[known]).mean().item()


def node_homophily(edge_index: Edges, y: Tensor) -> float:
    r"""Mean over nodes of the share of neighbours with the node's label (:eq:`homophily`).

    Nodes without a labelled neighbour have no such share and are left out; PyG counts them
    as 0.

    Returns:
        The mean, or NaN if no labelled node has a labelled neighbour.
    """
    hood = neighborhood(edge_index, y.numel())
    known = (y[hood.source] >= 0) & (y[hood.target] >= 0)
    source, target = hood.source[known], hood.target[known]
    same = (y[source] == y[target]).cpu().double()
    agree = torch.zeros(y.numel(), dtype=torch.float64).index_add_(0, target.cpu(), same)
    count = torch.bincount(target.cpu(), minlength=y.numel())
    return (agree / count)[count > 0].mean().item()
