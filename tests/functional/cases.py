"""Graphs, node fields and the shared checks that every function of the core has to pass."""

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)

#: A function of node features, metric diagonals and edges.
Operation = Callable[[Tensor, Tensor, Tensor], Tensor]

#: For property tests of many cases.
FEW = settings(max_examples=20)


@dataclass(frozen=True)
class Graph:
    name: str
    num_nodes: int
    edges: tuple[tuple[int, int], ...]  # (source, target)

    @property
    def edge_index(self) -> Tensor:
        """A new tensor at every call."""
        return edge_tensor(self.edges)


def edge_tensor(edges) -> Tensor:
    return torch.tensor(list(edges), dtype=torch.int64).reshape(-1, 2).t().contiguous()


def both_ways(pairs) -> tuple[tuple[int, int], ...]:
    return tuple(edge for a, b in pairs for edge in ((a, b), (b, a)))


def _random_directed() -> Graph:
    draw = random.Random(1)
    edges = [(draw.randrange(9), draw.randrange(9)) for _ in range(26)]
    edges += [edges[0], edges[0], edges[5], (3, 3), (3, 3), (7, 7)]
    return Graph("directed with duplicates and self-loops", 9, tuple(edges))


def _random_undirected() -> Graph:
    draw = random.Random(2)
    pairs = [pair for pair in itertools.combinations(range(10), 2) if draw.random() < 0.35]
    return Graph("undirected", 10, both_ways(pairs))


UNDIRECTED = (
    _random_undirected(),
    Graph("star", 6, both_ways((0, leaf) for leaf in range(1, 6))),
    Graph("path", 5, both_ways((a, a + 1) for a in range(4))),
    Graph("complete", 5, both_ways(itertools.combinations(range(5), 2))),
    Graph("triangle and isolated nodes", 6, both_ways([(1, 2), (2, 4), (1, 4)])),
    Graph("two components", 7, both_ways([(0, 1), (1, 2), (3, 4), (4, 5), (5, 6), (6, 3), (3, 5)])),
)

GRAPHS = (
    _random_directed(),
    *UNDIRECTED,
    Graph("directed cycle", 4, ((0, 1), (1, 2), (2, 3), (3, 0))),
    Graph("hub that only sends", 5, ((0, 1), (0, 2), (0, 3), (0, 4))),
    Graph("one pair listed three times", 2, ((0, 1), (0, 1), (1, 0))),
    Graph("only self-loops", 3, ((0, 0), (1, 1), (1, 1))),
    Graph("one node", 1, ()),
    Graph("one node with a self-loop", 1, ((0, 0),)),
    Graph("no edges", 4, ()),
)

every_graph = pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
every_undirected_graph = pytest.mark.parametrize("graph", UNDIRECTED, ids=lambda graph: graph.name)

#: Small enough for a numeric Jacobian; a duplicate, a self-loop, an isolated node.
GRADCHECK_GRAPH = Graph("gradcheck", 5, ((0, 1), (1, 0), (1, 2), (2, 1), (0, 2), (0, 2), (3, 3)))


def fields(
    graph: Graph, dtype: torch.dtype = torch.float64, channels: int = 3, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Random node features and metric diagonals in [0.1, 3], each ``[N, channels]``."""
    generator = torch.Generator().manual_seed(seed)
    shape = (graph.num_nodes, channels)
    h = torch.randn(shape, generator=generator, dtype=torch.float64)
    g = 0.1 + 2.9 * torch.rand(shape, generator=generator, dtype=torch.float64)
    return h.to(dtype), g.to(dtype)


def assert_matches(actual: Tensor, expected: object, tolerance: float = 1e-10) -> None:
    """Equality with the loops of ``reference.py``, shape and dtype included."""
    torch.testing.assert_close(
        actual,
        torch.tensor(expected, dtype=torch.float64),
        rtol=tolerance,
        atol=tolerance,
        equal_nan=True,
    )


# -- situations in which values and gradients have to stay finite ---------------------------------


def _extreme(value: float | None) -> Callable[[torch.dtype], tuple[Tensor, Tensor, Tensor]]:
    def build(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        # Every pair of entries from the three scales meets every other one along an edge.
        rows = list(itertools.product((1e-6, 1.0, 1e6), repeat=2))
        graph = Graph("complete", 9, both_ways(itertools.combinations(range(9), 2)))
        h = fields(graph, dtype, channels=2)[0]
        g = torch.tensor(rows) if value is None else torch.full((9, 2), value)
        return h, g.to(dtype), graph.edge_index

    return build


def _of_graph(name: str) -> Callable[[torch.dtype], tuple[Tensor, Tensor, Tensor]]:
    def build(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        (graph,) = [graph for graph in GRAPHS if graph.name == name]
        return *fields(graph, dtype), graph.edge_index

    return build


def _features(change: Callable[[Tensor], Tensor]):
    def build(dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
        h, g = fields(UNDIRECTED[0], dtype)
        return change(h), g, UNDIRECTED[0].edge_index

    return build


def _zero_first(h: Tensor) -> Tensor:
    return torch.cat([torch.zeros_like(h[:1]), h[1:]])


_WIDE = DTYPES[:3]  # neither 1e-30 nor 1e6 is a float16
_SITUATIONS = {
    "isolated nodes": (_of_graph("triangle and isolated nodes"), DTYPES),
    "self-loops": (_of_graph("directed with duplicates and self-loops"), DTYPES),
    "no edges": (_of_graph("no edges"), DTYPES),
    "one node": (_of_graph("one node"), DTYPES),
    "equal features": (_features(lambda h: h[:1].repeat(h.size(0), 1)), DTYPES),
    "zero features": (_features(torch.zeros_like), DTYPES),
    # The floor of 1e-8 makes the gradient at such a node larger than a float16.
    "one zero node": (_features(_zero_first), _WIDE),
    "metrics from 1e-6 to 1e6": (_extreme(None), _WIDE),
    "metrics of 1e-30": (_extreme(1e-30), _WIDE),
    "metrics of 1e30": (_extreme(1e30), _WIDE),
}

every_situation = pytest.mark.parametrize("situation", _SITUATIONS.values(), ids=_SITUATIONS.keys())


def assert_finite_with_gradients(operation: Operation, situation) -> None:
    """Value and gradients are finite, and the value has the dtype of the input."""
    build, dtypes = situation
    for dtype in dtypes:
        h, g, edges = build(dtype)
        h, g = h.requires_grad_(), g.requires_grad_()
        value = operation(h, g, edges)
        assert value.dtype == dtype
        assert value.isfinite().all(), f"value in {dtype}"
        value.sum().backward()
        for name, leaf in (("h", h), ("g", g)):
            assert leaf.grad is None or leaf.grad.isfinite().all(), f"gradient of {name} in {dtype}"


def assert_half_is_near_single(operation: Operation, dtype: torch.dtype) -> None:
    """A half-precision result is the float32 one up to a few roundings."""
    graph = UNDIRECTED[0]
    h, g = fields(graph, dtype)
    expected = operation(h.float(), g.float(), graph.edge_index)
    actual = operation(h, g, graph.edge_index)
    assert actual.dtype == dtype
    slack = 4 * torch.finfo(dtype).eps * max(1.0, float(expected.abs().max()))
    torch.testing.assert_close(actual.float(), expected, rtol=0, atol=slack)


# -- symmetries -----------------------------------------------------------------------------------


@st.composite
def any_graph(draw) -> Graph:
    """Directed multigraphs with self-loops and isolated nodes."""
    n = draw(st.integers(1, 7))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=16))
    return Graph("drawn", n, tuple(edges))


def assert_permutation_equivariant(
    operation: Operation, graph: Graph, seed: int, tolerance: float = 1e-10
) -> None:
    """Renaming the nodes and shuffling the edges renames the rows of the result."""
    h, g = fields(graph, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(graph.num_nodes, generator=generator)  # new node p was order[p]
    renamed = torch.argsort(order)[graph.edge_index]
    shuffle = torch.randperm(len(graph.edges), generator=generator)
    expected = operation(h, g, graph.edge_index)
    actual = operation(h[order], g[order], renamed[:, shuffle])
    if expected.dim() > 0:
        expected = expected[order]
    torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)
