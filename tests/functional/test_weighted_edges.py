"""Weights of edges: a whole number is a number of equal edges, one is nothing, zero is no edge."""

import pytest
import torch

from argnn import functional as AF
from argnn.functional import curvature_flow, edge_values, ollivier, self_loops, structure
from argnn.functional.neighborhood import edges_of, neighborhood
from argnn.kernels import use
from functional.cases import GRADCHECK_GRAPH, GRAPHS, fields

CHOSEN = [graph for graph in GRAPHS if graph.name not in ("star", "path", "complete", "one node")]
every_graph = pytest.mark.parametrize("graph", CHOSEN[::2] + CHOSEN[1:2], ids=lambda g: g.name)
MODES = pytest.mark.parametrize("mode", ["plain", "fused"])


def per_edge_sum(h, edges):
    ordered = edge_values.ordered_edges(edges, h.size(0))
    return edge_values.mean_at_targets(edge_values.at_sources(h, ordered), ordered)


def softmax_sum(h, edges):
    ordered = edge_values.ordered_edges(edges, h.size(0), closed=True)
    weight = edge_values.softmax_at_targets(edge_values.at_sources(h[:, :1], ordered), ordered)
    return edge_values.weighted_aggregate(h, weight.squeeze(-1), ordered)


def pulled(h, edges):
    ordered = edge_values.ordered_edges(edges, h.size(0))
    curvature = edge_values.at_sources(h, ordered)
    return curvature_flow.curvature_pull(curvature_flow.unit_rows(h), curvature, ordered)


#: Functions of features, metric and edges for which a weight of two is an edge listed twice.
SUMS = {
    "sum": lambda h, g, e: AF.aggregate(h, e, "sum"),
    "sym": lambda h, g, e: AF.aggregate(h, e, "sym"),
    "rw": lambda h, g, e: AF.aggregate(h, e, "rw"),
    "moments": lambda h, g, e: torch.cat(AF.neighbor_moments(h, e)),
    "ricci": lambda h, g, e: AF.discrete_ricci(g, e),
    "ricci energy": lambda h, g, e: AF.ricci_energy(g, e, "mean"),
    "propagate": lambda h, g, e: AF.propagate(h, g, h, e, 0.1, normalization="sym"),
    "propagate sum": lambda h, g, e: AF.propagate(h, g, h, e, neighbor_norm="target"),
    "closed sym": lambda h, g, e: self_loops.closed_aggregate(h, e),
    "closed rw": lambda h, g, e: self_loops.closed_aggregate(h, e, "rw"),
    "mean over edges": lambda h, g, e: per_edge_sum(h, e),
    "softmax": lambda h, g, e: softmax_sum(h, e),
    "pull": lambda h, g, e: pulled(h, e),
}
#: Those that join the two directions of a pair.
PAIRS = {
    "smoothness": lambda h, g, e: AF.smoothness_energy(g, e, "mean"),
    "energies": lambda h, g, e: torch.stack(AF.metric_energies([g], e, "mean")),
    "descriptor": lambda h, g, e: AF.structural_descriptor(e, h.size(0)),
    "curvature": lambda h, g, e: ollivier.node_curvature(e, h.size(0)),
    "learned curvature": lambda h, g, e: ollivier.learned_ollivier_ricci(h, g, e).nan_to_num(),
}
every_sum = pytest.mark.parametrize("name", SUMS)
everything = pytest.mark.parametrize("name", SUMS | PAIRS)


def whole_weights(graph):
    generator = torch.Generator().manual_seed(3)
    return torch.randint(4, (len(graph.edges),), generator=generator)


def random_weights(graph, seed=4):
    generator = torch.Generator().manual_seed(seed)
    return 0.2 + 3 * torch.rand(len(graph.edges), generator=generator, dtype=torch.float64)


def value(name, graph, edges):
    h, g = fields(graph)
    return (SUMS | PAIRS)[name](h, g, edges)


@MODES
@every_graph
@every_sum
def test_a_whole_weight_is_an_edge_listed_that_often(name, graph, mode):
    weight = whole_weights(graph)
    repeated = graph.edge_index.repeat_interleave(weight, dim=1)
    with use(mode):
        actual = value(name, graph, neighborhood(graph.edge_index, graph.num_nodes, weight))
        expected = value(name, graph, repeated)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


@MODES
@every_graph
@everything
def test_weights_of_one_change_no_bit(name, graph, mode):
    ones = torch.ones(len(graph.edges))
    with use(mode):
        weighted = value(name, graph, neighborhood(graph.edge_index, graph.num_nodes, ones))
        assert torch.equal(weighted, value(name, graph, graph.edge_index))


@MODES
@every_graph
@everything
def test_a_weight_of_zero_is_no_edge(name, graph, mode):
    weight = random_weights(graph)
    weight[::3] = 0
    left = graph.edge_index[:, weight > 0], graph.num_nodes, weight[weight > 0]
    with use(mode):
        whole = value(name, graph, neighborhood(graph.edge_index, graph.num_nodes, weight))
        part = value(name, graph, neighborhood(*left))
    if name == "learned curvature":  # one number per edge
        whole = whole[weight > 0]
    assert torch.equal(whole, part)


@every_graph
@everything
def test_fused_equals_plain(name, graph):
    edges = graph.edge_index, graph.num_nodes, random_weights(graph)
    found = []
    for mode in ("fused", "plain"):
        with use(mode):
            found.append(value(name, graph, neighborhood(*edges)))
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["sum", "sym", "rw", "moments", "ricci energy", "propagate"])
@every_graph
def test_gradients_of_kernels_are_those_of_plain_operations(name, graph):
    edges, found = neighborhood(graph.edge_index, graph.num_nodes, random_weights(graph)), []
    for mode in ("fused", "plain"):
        leaves = [field.requires_grad_() for field in fields(graph)]
        with use(mode):
            total = SUMS[name](*leaves, edges).square().sum()
        found.append(torch.autograd.grad(total, leaves, allow_unused=True))
    for fused, plain in zip(*found, strict=True):
        if plain is not None:
            torch.testing.assert_close(fused, plain, rtol=1e-8, atol=1e-10)


@every_graph
def test_rw_does_not_depend_on_the_scale_of_a_target(graph):
    weight = random_weights(graph)
    scale = 0.5 + torch.arange(graph.num_nodes, dtype=torch.float64)
    scaled = weight * scale[graph.edge_index[1]]
    found = [
        value(name, graph, neighborhood(graph.edge_index, graph.num_nodes, w))
        for name in ("rw", "moments")
        for w in (weight, scaled)
    ]
    torch.testing.assert_close(found[::2], found[1::2])


@pytest.mark.parametrize(
    "name", [name for name in SUMS | PAIRS if "curvature" not in name and name != "pull"]
)
def test_gradients_of_weights_are_right(name):
    graph = GRADCHECK_GRAPH
    weight = random_weights(graph).requires_grad_()

    def function(weight):
        return value(name, graph, neighborhood(graph.edge_index, graph.num_nodes, weight))

    assert torch.autograd.gradcheck(function, (weight,))


def test_a_weight_of_zero_that_is_learned_has_a_gradient():
    weight = torch.zeros(1, requires_grad=True)
    hood = neighborhood(torch.tensor([[0], [1]]), 2, weight)
    total = AF.aggregate(torch.tensor([[3.0], [1.0]]), hood)
    assert total.tolist() == [[0.0], [0.0]]
    assert torch.autograd.grad(total.sum(), weight)[0].tolist() == [3.0]


def test_kernels_are_refused_for_gradients_of_weights():
    weight = torch.ones(1, requires_grad=True)
    hood = neighborhood(torch.tensor([[0], [1]]), 2, weight)
    with use("fused"), pytest.raises(RuntimeError, match="gradients of edge weights"):
        AF.aggregate(torch.ones(2, 1), hood)


@pytest.mark.parametrize("wrong", [-0.5, float("nan"), float("inf")])
def test_a_wrong_weight_is_named(wrong):
    weight = torch.tensor([1.0, wrong])
    with pytest.raises(ValueError, match=r"edge_weight\[1\] must be finite and not negative"):
        neighborhood(torch.tensor([[0, 1], [1, 0]]), 2, weight)


def test_weights_of_another_number_are_refused():
    with pytest.raises(ValueError, match=r"one number per edge, \[2\] \(got \[2, 1\]\)"):
        neighborhood(torch.tensor([[0, 1], [1, 0]]), 2, torch.ones(2, 1))


def test_prepared_edges_take_no_weights():
    edges = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="have their weights already"):
        neighborhood(neighborhood(edges, 2), 2, torch.ones(2))


def test_what_is_prepared_follows_the_weights():
    edges, weight = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2.0, 3.0])
    first = neighborhood(edges, 2, weight)
    assert neighborhood(edges, 2, weight) is first
    weight.numpy()[0] = 5.0  # nothing that torch counts
    assert neighborhood(edges, 2, weight).weighted_degree.tolist() == [3.0, 5.0]
    assert neighborhood(edges, 2).weight is None
    edges.copy_(edges.flip(0))
    assert neighborhood(edges, 2, weight).weighted_degree.tolist() == [5.0, 3.0]


def test_a_pair_has_the_largest_of_its_weights():
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    hood = neighborhood(edges, 3, torch.tensor([1.0, 4.0, 2.0, 0.0]))
    assert not hood.is_simple
    both = hood.relation("undirected")
    assert both.weighted_degree.tolist() == [4.0, 6.0, 2.0]
    assert hood.relation("out").weighted_degree.tolist() == [1.0, 6.0, 0.0]
    assert hood.pair_total == 6


def test_symmetric_weights_need_no_second_graph():
    graph = GRAPHS[1]
    source, target = graph.edge_index
    hood = neighborhood(graph.edge_index, graph.num_nodes, 1.0 + source * target)
    assert hood.relation("undirected") is hood
    assert hood.relation("out") is hood


def test_energies_weigh_pairs():
    graph = GRAPHS[0]
    h, g = fields(graph)
    hood = neighborhood(graph.edge_index, graph.num_nodes, weight := random_weights(graph))
    largest = {}
    for (j, i), w in zip(graph.edges, weight.tolist(), strict=True):
        if i != j:
            largest[min(i, j), max(i, j)] = max(w, largest.get((min(i, j), max(i, j)), 0.0))
    total = sum(w * float((g[i] - g[j]).square().sum()) for (i, j), w in largest.items())
    for mode in ("plain", "fused"):
        with use(mode):
            assert float(AF.smoothness_energy(g, hood)) == pytest.approx(total, rel=1e-12)
            mean = float(AF.smoothness_energy(g, hood, "mean"))
            assert mean == pytest.approx(total / sum(largest.values()) / 3, rel=1e-12)


@MODES
def test_walks_of_curvature_follow_the_weights(mode):
    star = torch.tensor([[0, 0, 0], [1, 2, 3]])
    hood = neighborhood(star, 4, torch.tensor([1.0, 2.0, 5.0]))
    with use(mode):
        found = ollivier.ollivier_ricci(hood, 4)
    # Leaf: 1/2 at itself, 1/2 at the center. Center: 1/2 at itself, (1, 2, 5)/16 at the leaves.
    # The surplus of (8 - w)/16 at the leaf moves two hops, to the other leaves.
    expected = [1 - 2 * (8 - w) / 16 for w in (1, 2, 5)]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_there_are_no_bounds_of_weighted_curvature():
    hood = neighborhood(torch.tensor([[0, 1], [1, 2]]), 3, torch.tensor([1.0, 2.0]))
    with pytest.raises(ValueError, match="have no bounds"):
        ollivier.ollivier_ricci(hood, 3, method="bounds")


def test_a_hub_of_many_weights_has_a_curvature_near_that_of_pot():
    generator = torch.Generator().manual_seed(5)
    pairs = torch.randint(40, (2, 260), generator=generator)
    pairs[0, :35] = 0
    weight = 0.1 + torch.rand(260, generator=generator)
    found = []
    for mode in ("fused", "plain"):
        with use(mode):
            found.append(ollivier.pair_curvature(neighborhood(pairs, 40, weight), 40))
    torch.testing.assert_close(*found, rtol=0, atol=1e-9)


def test_clustering_counts_edges():
    square = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    weighted = neighborhood(square, 4, torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0]))
    expected = structure.clustering_coefficient(square, 4)
    assert torch.equal(structure.clustering_coefficient(weighted, 4), expected)


def test_edges_of_a_graph_have_its_weights():
    from torch_geometric.data import Data

    graph = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    assert edges_of(graph) is graph.edge_index
    graph.edge_weight = torch.tensor([2.0])
    assert edges_of(graph).weight.tolist() == [2.0]
