"""Small graphs and random fields on them, and slow forms of what the analysis computes."""

import itertools
import math

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis import Layer

#: Number of nodes and edges, (source, target) each.
GRAPHS = {
    "random": (9, [p for p in itertools.combinations(range(9), 2) if sum(p) % 3]),
    "directed, duplicates, loops": (5, [(0, 1), (0, 1), (1, 0), (2, 1), (3, 3), (2, 3)]),
    "star and an isolated node": (6, [(0, leaf) for leaf in range(1, 5)]),
    "one pair": (2, [(0, 1)]),
    "no edges": (4, []),
    "one node": (1, []),
}


def edge_tensor(edges) -> Tensor:
    return torch.tensor(list(edges), dtype=torch.int64).reshape(-1, 2).t().contiguous()


def field(num_nodes: int, channels: int = 4, seed: int = 0) -> Tensor:
    """Metrics between e^-2 and e^2."""
    generator = torch.Generator().manual_seed(seed)
    shape = (num_nodes, channels)
    return (4 * torch.rand(shape, generator=generator, dtype=torch.float64) - 2).exp()


def points(num_nodes: int, channels: int = 4, seed: int = 1) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(num_nodes, channels, generator=generator, dtype=torch.float64)


def layer(num_nodes: int, seed: int = 0) -> Layer:
    return Layer(points(num_nodes, seed=seed + 100), field(num_nodes, seed=seed))


def labelled(name: str) -> Data:
    """One of the graphs with labels, one of which is unknown."""
    num_nodes, edges = GRAPHS[name]
    y = torch.arange(num_nodes) % 2
    y[num_nodes // 2] = -1
    return Data(edge_index=edge_tensor(edges), y=y, num_nodes=num_nodes)


def neighbor_sets(num_nodes: int, edges) -> list[set[int]]:
    near = [set() for _ in range(num_nodes)]
    for a, b in edges:
        if a != b:
            near[a].add(b)
            near[b].add(a)
    return near


def slow_statistics(g: list[list[float]], edges) -> dict[str, list[float]]:
    """Everything but the main variation, by loops over nodes, neighbours and axes."""
    near, size = neighbor_sets(len(g), edges), len(g[0])
    found = {"kappa": [], "inverse_metric": [], "anisotropy": [], "effective_rank": []}
    found |= {"log_volume": [], "ricci_norm": [], "dispersion": []}
    for i, row in enumerate(g):
        found["kappa"].append(sum(abs(math.log(1 / value)) for value in row) / size)
        found["inverse_metric"].append(sum(1 / value for value in row) / size)
        found["anisotropy"].append(math.log(max(row) / min(row)))
        shares = [value / sum(row) for value in row]
        found["effective_rank"].append(math.prod(share**-share for share in shares))
        found["log_volume"].append(math.log(math.sqrt(math.prod(row))))
        count = len(near[i])
        ricci = [sum(row[k] - g[j][k] for j in near[i]) / 2 for k in range(size)]
        found["ricci_norm"].append(math.hypot(*ricci) / count if count else math.nan)
        terms = [2 * math.dist(row, g[j]) / (math.hypot(*row) + math.hypot(*g[j])) for j in near[i]]
        found["dispersion"].append(sum(terms) / count if count else math.nan)
    return found
