"""Small graphs on which claims are measured, and their matrices."""

import torch
from scipy.sparse.csgraph import laplacian
from torch import Tensor
from torch_geometric.utils import to_dense_adj, to_undirected

from argnn.data.synthetic import clique, cycle, grid, tree

EdgesAndNodes = tuple[Tensor, int]


def joined_stars(leaves: int) -> Tensor:
    """Edges of two stars whose centres, nodes 0 and 1, are joined, each once, ``[2, 2L + 1]``."""
    own = [(centre, 2 + 2 * n + centre) for n in range(leaves) for centre in (0, 1)]
    return torch.tensor([(0, 1), *own]).T


def random_graph(num_nodes: int, num_edges: int, generator: torch.Generator) -> Tensor:
    """Edges of a ring with random chords, ``[2, E]``: connected, in both directions, no loops."""
    chords = torch.randint(num_nodes, (2, num_edges), generator=generator)
    joined = torch.cat([cycle(num_nodes), chords[:, chords[0] != chords[1]]], dim=1)
    both: Tensor = to_undirected(joined, num_nodes=num_nodes)
    return both


def small_graphs(size: int, generator: torch.Generator) -> dict[str, EdgesAndNodes]:
    """Connected graphs of about ``size`` nodes, by name: edges in both directions, and nodes."""
    side = max(round(size**0.5), 2)
    once: dict[str, EdgesAndNodes] = {
        "ring": (cycle(size), size),
        "clique": (clique(side), side),
        "tree": (tree(size), size),
        "grid": (grid(side, side), side * side),
        "joined stars": (joined_stars(size // 2), 2 + 2 * (size // 2)),
        "random": (random_graph(size, 2 * size, generator), size),
    }
    return {name: (to_undirected(edges), nodes) for name, (edges, nodes) in once.items()}


def adjacency(edge_index: Tensor, num_nodes: int) -> Tensor:
    """The matrix of a graph in float64, ``[N, N]``."""
    dense: Tensor = to_dense_adj(edge_index, max_num_nodes=num_nodes)[0].double()
    return dense


def laplacian_matrix(edge_index: Tensor, num_nodes: int, *, normalized: bool) -> Tensor:
    """Its Laplacian, or the symmetrically normalised one, in float64, ``[N, N]``."""
    matrix = adjacency(edge_index, num_nodes).numpy()
    return torch.from_numpy(laplacian(matrix, normed=normalized))
