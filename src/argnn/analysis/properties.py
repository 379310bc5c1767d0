"""Properties of each node that follow from the graph and its labels, without a metric.

The graph is taken as undirected and simple. A property that is not defined at a node is NaN.
"""

from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.functional.neighborhood import Edges, neighborhood


def labels_of(graph: Data) -> Tensor:
    """Label of each node on the CPU, negative where there is none, ``[N]``."""
    y = graph.get("y")
    return torch.full((graph.num_nodes,), -1) if y is None else y.cpu()


def class_names(graph: Data) -> list[str]:
    """Names of the classes in the order of the labels, or their numbers."""
    given = graph.get("class_names")
    if given is not None:
        return [str(name) for name in given]
    known = graph.get("class_count")
    count = int(labels_of(graph).max()) + 1 if known is None else known
    return [str(number) for number in range(count)]


def node_names(graph: Data, nodes: Iterable[int]) -> list[str]:
    """The ids of some nodes, or their numbers."""
    ids = graph.get("node_ids")
    return [str(node if ids is None else ids[node]) for node in nodes]


def feature_names(graph: Data) -> list[str]:
    """Names of the input features, or their numbers in words."""
    given = graph.get("feature_names")
    if given is None:
        return [f"feature {number}" for number in range(graph.num_features)]
    return [str(name) for name in given]


def degree(edge_index: Edges, num_nodes: int) -> Tensor:
    """Number of neighbours, ``[N]``."""
    return neighborhood(edge_index, num_nodes).relation("undirected").degree


def local_homophily(edge_index: Edges, y: Tensor) -> Tensor:
    """Share of a node's labelled neighbours with its own label, ``[N]``.

    NaN at nodes without a label (negative) or without a labelled neighbour. The mean is
    :func:`argnn.functional.node_homophily`.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> local_homophily(path, torch.tensor([0, 0, 1, -1])).tolist()
        [1.0, 0.5, 0.0, nan]
    """
    both = neighborhood(edge_index, y.numel()).relation("undirected")
    known = (y[both.source] >= 0) & (y[both.target] >= 0)
    source, target = both.source[known], both.target[known]
    same = (y[source] == y[target]).double()
    return mean_at_nodes(same, target, y.numel())


def mean_at_nodes(values: Tensor, node: Tensor, num_nodes: int) -> Tensor:
    """Mean of the values that belong to each node, NaN where there are none, ``[N]``."""
    total = values.new_zeros(num_nodes).index_add_(0, node, values)
    count = torch.bincount(node, minlength=num_nodes)
    return torch.where(count > 0, total / count.clamp_min(1), torch.nan)


def clustering(edge_index: Edges, num_nodes: int) -> Tensor:
    """Clustering coefficient, NaN at nodes with fewer than two neighbours, ``[N]``."""
    found = AF.clustering_coefficient(edge_index, num_nodes)
    return torch.where(degree(edge_index, num_nodes) > 1, found, torch.nan)


def graph_curvature(edge_index: Edges, num_nodes: int) -> Tensor:
    """Mean Ollivier-Ricci curvature of the edges at each node, NaN where there is none, ``[N]``.

    By hop distances, without any metric: see :func:`argnn.functional.node_curvature`.
    """
    found = AF.node_curvature(edge_index, num_nodes, method="auto")
    return torch.where(degree(edge_index, num_nodes) > 0, found, torch.nan)
