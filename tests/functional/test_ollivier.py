import itertools
import sys

import networkx
import pytest
import torch

import reference
from argnn.functional import (
    learned_ollivier_ricci,
    node_curvature,
    ollivier,
    ollivier_ricci,
    ollivier_ricci_bounds,
)
from argnn.kernels import use

from .cases import GRAPHS, UNDIRECTED, assert_matches, both_ways, edge_tensor, fields

pytest.importorskip("ot", reason="exact optimal transport needs POT")

ALPHAS = (0.0, 0.25, 0.5)
SMALL = [graph for graph in GRAPHS if graph.name != "undirected"]


@pytest.fixture(params=["plain", "fused"])
def solver(request):
    """POT, and the package's own kernel."""
    with use(request.param):
        yield request.param


def curvature_of(pairs, edge, alpha):
    """Curvature of the edge that is put first."""
    pairs = [edge, *(pair for pair in pairs if set(pair) != set(edge))]
    num_nodes = 1 + max(itertools.chain.from_iterable(pairs))
    return ollivier_ricci(edge_tensor(both_ways(pairs)), num_nodes, alpha)[0].item()


def complete(n):
    return list(itertools.combinations(range(n), 2))


def cycle(n):
    return [(a, (a + 1) % n) for a in range(n)]


def tree_edge(a, b):
    """Nodes 0 and 1 of degrees a and b, all other nodes leaves."""
    first = [(0, 2 + leaf) for leaf in range(a - 1)]
    second = [(1, 1 + a + leaf) for leaf in range(b - 1)]
    return [(0, 1), *first, *second]


def grid(side):
    table = networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(side, side))
    return list(table.edges)


BRIDGE = [(0, 5), *complete(5), *((a + 5, b + 5) for a, b in complete(5))]
PETERSEN = list(networkx.petersen_graph().edges)
CUBE = list(networkx.convert_node_labels_to_integers(networkx.hypercube_graph(3)).edges)

#: name: edges, the edge looked at, curvature at alpha = 0, 0.25 and 0.5, Lin-Lu-Yau curvature.
EXACT = {
    "K2": ([(0, 1)], (0, 1), (0, 0.5, 1), 2),
    **{
        f"K{n}": (
            complete(n),
            (0, 1),
            ((n - 2) / (n - 1), 1 - abs(0.25 - 0.75 / (n - 1)), n / (2 * (n - 1))),
            n / (n - 1),
        )
        for n in (3, 4, 5, 7)
    },
    "C4": (cycle(4), (0, 1), (0, 0.5, 0.5), 1),
    "C5": (cycle(5), (0, 1), (0, 0.25, 0.25), 0.5),
    "C6": (cycle(6), (0, 1), (0, 0, 0), 0),
    "C9": (cycle(9), (0, 1), (0, 0, 0), 0),
    "interior path edge": ([(a, a + 1) for a in range(5)], (2, 3), (0, 0, 0), 0),
    "inner grid edge": (grid(6), (14, 15), (0, 0, 0), 0),
    **{
        f"tree edge of degrees {a} and {b}": (
            tree_edge(a, b),
            (0, 1),
            (-2 * max(0, 1 - 1 / a - 1 / b), None, 1 / a + 1 / b - 1),
            2 / a + 2 / b - 2,
        )
        for a, b in ((1, 4), (2, 2), (2, 3), (3, 4), (5, 5))
    },
    **{
        f"star of {m} leaves": (
            [(0, leaf) for leaf in range(1, m + 1)],
            (0, 1),
            (0, None, 1 / m),
            2 / m,
        )
        for m in (2, 3, 6)
    },
    "bridge of two K5": (BRIDGE, (0, 5), (-1.2, -0.9, -0.6), -1.2),
    "Petersen graph": (PETERSEN, PETERSEN[0], (-1 / 3, 0, 0), 0),
    "3-cube": (CUBE, CUBE[0], (0, 0.5, 1 / 3), 2 / 3),
}


@pytest.mark.parametrize(
    ("pairs", "edge", "expected", "alpha"),
    [
        pytest.param(pairs, edge, value, alpha, id=f"{name} at {alpha}")
        for name, (pairs, edge, values, _) in EXACT.items()
        for alpha, value in zip(ALPHAS, values, strict=True)
        if value is not None
    ],
)
@pytest.mark.usefixtures("solver")
def test_ollivier_of_known_edges_is_exact(pairs, edge, expected, alpha):
    assert curvature_of(pairs, edge, alpha) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("pairs", "edge", "limit"),
    [pytest.param(row[0], row[1], row[3], id=name) for name, row in EXACT.items()],
)
@pytest.mark.usefixtures("solver")
def test_ollivier_of_lazy_measures_is_that_of_lin_lu_yau(pairs, edge, limit):
    for alpha in (0.5, 0.8):
        found = curvature_of(pairs, edge, alpha)
        assert found == pytest.approx((1 - alpha) * limit, abs=1e-12)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.usefixtures("solver")
def test_ollivier_matches_linear_programming(graph, alpha):
    found = ollivier_ricci(graph.edge_index, graph.num_nodes, alpha)
    assert_matches(found, reference.ollivier_ricci(graph.edges, graph.num_nodes, alpha))


@pytest.mark.parametrize("graph", SMALL, ids=lambda graph: graph.name)
@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_learned_ollivier_matches_linear_programming(graph, alpha):
    h, g = fields(graph)
    found = learned_ollivier_ricci(h, g, graph.edge_index, alpha)
    expected = reference.learned_ollivier_ricci(h.tolist(), g.tolist(), graph.edges, alpha)
    assert_matches(found, expected)


def test_ollivier_default_is_half_lazy():
    graph = UNDIRECTED[0]
    h, g = fields(graph)
    assert torch.equal(
        ollivier_ricci(graph.edge_index, 10), ollivier_ricci(graph.edge_index, 10, 0.5)
    )
    assert torch.equal(
        learned_ollivier_ricci(h, g, graph.edge_index),
        learned_ollivier_ricci(h, g, graph.edge_index, 0.5),
    )


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.usefixtures("solver")
def test_ollivier_of_random_graphs_matches_linear_programming(seed, alpha):
    pairs = list(networkx.gnp_random_graph(14, (0.15, 0.3, 0.5, 0.8)[seed], seed=seed).edges)
    found = ollivier_ricci(edge_tensor(pairs), 14, alpha)
    assert_matches(found, reference.ollivier_ricci(pairs, 14, alpha))


@pytest.mark.usefixtures("solver")
def test_ollivier_ignores_direction_and_duplicates():
    pairs = [(0, 1), (1, 2), (2, 0), (2, 3)]
    once = ollivier_ricci(edge_tensor(pairs), 4)
    many = ollivier_ricci(edge_tensor([*both_ways(pairs), *pairs]), 4)
    torch.testing.assert_close(many[0:8:2], once)
    torch.testing.assert_close(many[1:8:2], once)
    torch.testing.assert_close(many[8:], once)


@pytest.mark.usefixtures("solver")
def test_ollivier_of_a_self_loop_is_not_defined():
    edges = edge_tensor([(0, 1), (1, 1), (1, 0)])
    assert ollivier_ricci(edges, 2).isnan().tolist() == [False, True, False]
    h, g = fields(UNDIRECTED[2])
    assert learned_ollivier_ricci(h, g, edges).isnan().tolist() == [False, True, False]


@pytest.mark.usefixtures("solver")
def test_ollivier_of_no_edges_is_empty():
    assert ollivier_ricci(edge_tensor([]), 3).shape == (0,)
    h, g = fields(GRAPHS[-1])
    assert learned_ollivier_ricci(h, g, edge_tensor([])).shape == (0,)


def test_ollivier_is_at_most_one():
    for graph in GRAPHS:
        found = ollivier_ricci(graph.edge_index, graph.num_nodes, 0.3)
        assert (found[~found.isnan()] <= 1 + 1e-12).all()


def test_learned_ollivier_of_equal_features_is_not_defined():
    graph = UNDIRECTED[2]
    h, g = fields(graph)
    h[1] = h[0]
    found = learned_ollivier_ricci(h, g, graph.edge_index)
    assert found.isnan().tolist() == [{j, i} == {0, 1} for j, i in graph.edges]


def test_learned_ollivier_of_an_isometric_embedding_is_that_of_the_graph():
    # One-hot points under g = 1/2 are all at distance one, as the nodes of a complete graph.
    h = torch.eye(5, dtype=torch.float64)
    edges = UNDIRECTED[3].edge_index
    for alpha in ALPHAS:
        found = learned_ollivier_ricci(h, torch.full_like(h, 0.5), edges, alpha)
        torch.testing.assert_close(found, ollivier_ricci(edges, 5, alpha))


def test_learned_ollivier_ignores_the_scale_of_features_and_metrics():
    graph = UNDIRECTED[4]
    h, g = fields(graph)
    expected = learned_ollivier_ricci(h, g, graph.edge_index)
    torch.testing.assert_close(learned_ollivier_ricci(8 * h, g, graph.edge_index), expected)
    torch.testing.assert_close(learned_ollivier_ricci(h, 100 * g, graph.edge_index), expected)


def test_learned_ollivier_measures_in_the_metric_of_the_target():
    graph = UNDIRECTED[2]
    h, g = fields(graph)
    other = g.clone()
    other[0] = 2.5
    edges = edge_tensor([(0, 1), (1, 0), (1, 2)])
    before, after = (learned_ollivier_ricci(h, metric, edges) for metric in (g, other))
    assert before[0] == after[0]
    assert before[1] != after[1]


def test_ollivier_carries_no_gradient_and_is_double():
    graph = UNDIRECTED[4]
    h, g = fields(graph, torch.float32)
    found = learned_ollivier_ricci(h.requires_grad_(), g.requires_grad_(), graph.edge_index)
    assert not found.requires_grad
    assert found.dtype == torch.float64
    assert ollivier_ricci(graph.edge_index, 6).dtype == torch.float64


@pytest.mark.parametrize("alpha", [-0.1, 1.0, 2.0])
def test_ollivier_refuses_an_impossible_laziness(alpha):
    graph = UNDIRECTED[2]
    h, g = fields(graph)
    with pytest.raises(ValueError, match=rf"alpha must be in \[0, 1\) \(got {alpha}\)"):
        ollivier_ricci(graph.edge_index, 5, alpha)
    with pytest.raises(ValueError, match=rf"alpha must be in \[0, 1\) \(got {alpha}\)"):
        learned_ollivier_ricci(h, g, graph.edge_index, alpha)


def test_ollivier_checks_the_edges():
    with pytest.raises(ValueError, match="edge_index names node 7, but nodes are 0 to 1"):
        ollivier_ricci(edge_tensor([(0, 7)]), 2)


def test_ollivier_without_pot_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    graph = UNDIRECTED[2]
    h, g = fields(graph)
    message = r"needs POT: pip install argnn\[baselines\]"
    with use("plain"), pytest.raises(ImportError, match=message):
        ollivier_ricci(graph.edge_index, 5)
    with pytest.raises(ImportError, match=message):
        learned_ollivier_ricci(h, g, graph.edge_index)
    # On the graph there is another way.
    assert ollivier_ricci(graph.edge_index, 5).tolist() == [0.5, 0.5, 0.0, 0.0, 0.0, 0.0, 0.5, 0.5]


def test_ollivier_of_small_graphs_compiles_nothing_and_that_of_large_ones_needs_no_pot(monkeypatch):
    edges = edge_tensor(networkx.gnp_random_graph(90, 0.5, seed=0).edges)
    monkeypatch.setitem(sys.modules, "argnn.kernels.transport", None)
    ollivier_ricci(UNDIRECTED[0].edge_index, 10)
    with pytest.raises(ImportError, match="transport"):
        ollivier_ricci(edges, 90)
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "ot", None)
    ollivier_ricci(edges, 90)


def test_ollivier_is_computed_once_per_edge_index(monkeypatch):
    edges = UNDIRECTED[0].edge_index
    first = ollivier_ricci(edges, 10)
    with monkeypatch.context() as patch:
        patch.setattr(ollivier, "_pair_curvature", None)
        again = ollivier_ricci(edges, 10)
        again.zero_()  # a copy: what is kept does not change
        assert torch.equal(ollivier_ricci(edges, 10), first)
        with pytest.raises(TypeError):
            ollivier_ricci(edges, 10, 0.25)
    edges[:, 0] = edges[:, 2]  # changed in place: another graph
    assert ollivier_ricci(edges, 10).shape == first.shape


def test_kept_curvature_is_what_comes_back():
    edges = UNDIRECTED[0].edge_index
    values = torch.linspace(-1, 1, edges.size(1) // 2, dtype=torch.float64)
    ollivier.keep_pair_curvature(edges, 10, values)
    assert torch.equal(ollivier.pair_curvature(edges, 10), values)
    assert not torch.equal(ollivier.pair_curvature(edges, 10, 0.25), values)
    with pytest.raises(ValueError, match=r"values must be one per pair, \d+ \(got 1\)"):
        ollivier.keep_pair_curvature(edges, 10, values[:1])


def test_node_curvature_is_the_mean_over_neighbours():
    for graph in GRAPHS:
        edge = dict(
            zip(graph.edges, ollivier_ricci(graph.edge_index, graph.num_nodes), strict=True)
        )
        near = reference.undirected_sets(graph.edges, graph.num_nodes)
        expected = [
            sum(float(edge.get((i, j), edge.get((j, i)))) for j in near[i]) / max(len(near[i]), 1)
            for i in range(graph.num_nodes)
        ]
        assert_matches(node_curvature(graph.edge_index, graph.num_nodes), expected)


RANDOM = [
    networkx.gnp_random_graph(20, 0.1, seed=0),
    networkx.gnp_random_graph(20, 0.4, seed=1),
    networkx.barabasi_albert_graph(30, 2, seed=2),
    networkx.connected_caveman_graph(4, 5),
    networkx.random_labeled_tree(20, seed=3),
]


@pytest.mark.parametrize("alpha", [0.0, 0.2, 0.4, 0.5, 0.7])
@pytest.mark.parametrize("number", range(len(RANDOM)))
def test_bounds_enclose_the_curvature(number, alpha):
    edges = edge_tensor(RANDOM[number].edges)
    exact = ollivier_ricci(edges, 30, alpha)
    lower, upper = ollivier_ricci_bounds(edges, 30, alpha)
    assert (lower <= exact + 1e-12).all()
    assert (exact <= upper + 1e-12).all()


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_bounds_are_met_by_trees_and_complete_graphs(alpha):
    tree = edge_tensor(RANDOM[-1].edges)
    lower, _ = ollivier_ricci_bounds(tree, 20, alpha)
    torch.testing.assert_close(lower, ollivier_ricci(tree, 20, alpha))
    for n in (3, 6):
        whole = edge_tensor(complete(n))
        for bound in ollivier_ricci_bounds(whole, n, alpha):
            torch.testing.assert_close(bound, ollivier_ricci(whole, n, alpha))


def test_bounds_of_the_petersen_graph():
    lower, upper = ollivier_ricci_bounds(edge_tensor(PETERSEN), 10, 0.0)
    torch.testing.assert_close(lower, torch.full_like(lower, -2 / 3))
    assert upper.tolist() == [0.0] * 15


def test_bounds_of_a_self_loop_are_not_defined():
    for bound in ollivier_ricci_bounds(edge_tensor([(0, 1), (1, 1)]), 2):
        assert bound.isnan().tolist() == [False, True]


def test_method_bounds_is_their_middle_and_auto_switches_by_size(monkeypatch):
    edges = edge_tensor(RANDOM[2].edges)
    exact, middle = ollivier_ricci(edges, 30), sum(ollivier_ricci_bounds(edges, 30)) / 2
    torch.testing.assert_close(ollivier_ricci(edges, 30, method="bounds"), middle)
    assert torch.equal(ollivier_ricci(edges, 30, method="auto"), exact)
    assert not ollivier.is_estimated(edges, 30, "auto").any()
    assert ollivier.is_estimated(edges, 30, "bounds").all()

    monkeypatch.setattr(ollivier, "MAX_CELLS", 30)
    edges = edges.clone()
    degree = torch.bincount(edges.flatten())
    large = (degree[edges] + 1).prod(0) > 30
    assert 0 < large.sum() < large.numel()
    found = ollivier_ricci(edges, 30, method="auto")
    torch.testing.assert_close(found, torch.where(large, middle, exact))
    assert int(ollivier.is_estimated(edges, 30, "auto").sum()) == int(large.sum())


def test_ollivier_refuses_an_unknown_method():
    with pytest.raises(ValueError, match=r"method must be one of .* \(got 'sinkhorn'\)"):
        ollivier_ricci(UNDIRECTED[0].edge_index, 10, method="sinkhorn")
