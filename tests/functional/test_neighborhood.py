import gc
import weakref

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from argnn import functional as AF
from argnn.functional import neighborhood as NB
from argnn.functional.neighborhood import Neighborhood, neighborhood
from argnn.kernels import neighborhood as PREPARED

from .cases import (
    DTYPES,
    FEW,
    GRADCHECK_GRAPH,
    GRAPHS,
    UNDIRECTED,
    any_graph,
    assert_finite_with_gradients,
    assert_half_is_near_single,
    assert_matches,
    assert_permutation_equivariant,
    edge_tensor,
    every_graph,
    every_situation,
    fields,
)

DIRECTED = GRAPHS[0]
OPERATIONS = {
    "sum": lambda h, g, e: NB.aggregate(h, e),
    "sym": lambda h, g, e: NB.aggregate(h, e, "sym"),
    "neighbour mean": lambda h, g, e: NB.neighbor_mean(h, e),
    "dispersion": lambda h, g, e: NB.neighbor_dispersion(h, e),
}
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


class TestReference:
    @every_graph
    def test_neighbor_mean_matches_loops(self, graph):
        h, _ = fields(graph)
        expected = reference.neighbor_mean(h.tolist(), graph.edges)
        assert_matches(NB.neighbor_mean(h, graph.edge_index), expected)

    @every_graph
    def test_dispersion_matches_loops(self, graph):
        h, _ = fields(graph)
        expected = reference.neighbor_dispersion(h.tolist(), graph.edges)
        assert_matches(NB.neighbor_dispersion(h, graph.edge_index), expected)

    @every_graph
    @pytest.mark.parametrize("normalization", NB.NORMALIZATIONS)
    def test_aggregate_matches_loops(self, graph, normalization):
        h, _ = fields(graph)
        expected = reference.aggregate(h.tolist(), graph.edges, normalization)
        assert_matches(NB.aggregate(h, graph.edge_index, normalization), expected)

    @every_graph
    @pytest.mark.parametrize("normalization", NB.NORMALIZATIONS)
    def test_edge_weight_matches_loops(self, graph, normalization):
        weights = reference.edge_weight(graph.edges, graph.num_nodes, normalization)
        expected = [weight for (j, i), weight in zip(graph.edges, weights, strict=True) if j != i]
        hood = neighborhood(graph.edge_index, graph.num_nodes)
        assert_matches(hood.edge_weight(normalization, torch.float64), expected)

    @every_graph
    def test_pairs_and_degrees_match_loops(self, graph):
        hood = neighborhood(graph.edge_index, graph.num_nodes)
        proper = [(j, i) for j, i in graph.edges if j != i]
        assert hood.pairs.t().tolist() == [list(p) for p in reference.unordered_pairs(graph.edges)]
        assert hood.edge_index.t().tolist() == [list(edge) for edge in proper]
        assert hood.is_neighbor.tolist() == [j != i for j, i in graph.edges]
        nodes = range(graph.num_nodes)
        assert hood.degree.tolist() == [sum(i == node for _, i in proper) for node in nodes]
        assert hood.out_degree.tolist() == [sum(j == node for j, _ in proper) for node in nodes]
        assert hood.is_undirected == all((i, j) in proper for j, i in proper)


class TestNeighborMean:
    def test_neighbor_mean_of_an_isolated_node_is_zero(self):
        h, _ = fields(GRADCHECK_GRAPH)
        mean = NB.neighbor_mean(h, GRADCHECK_GRAPH.edge_index)
        assert not mean[3].any()  # only a self-loop
        assert not mean[4].any()

    def test_neighbor_mean_of_a_constant_is_the_constant(self):
        h = torch.full((10, 2), 0.7, dtype=torch.float64)
        assert_matches(NB.neighbor_mean(h, UNDIRECTED[0].edge_index), h.tolist())

    def test_neighbor_mean_counts_duplicates(self):
        h = torch.tensor([[3.0], [9.0], [0.0]])
        edges = edge_tensor([(0, 2), (0, 2), (1, 2)])
        assert NB.neighbor_mean(h, edges)[2].item() == pytest.approx(5.0)
        assert NB.aggregate(h, edges)[2].item() == 15.0

    @every_operation
    def test_sums_over_neighbours_ignore_self_loops(self, operation):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        with_loops = edge_tensor([(2, 2), *graph.edges, (0, 0), (0, 0)])
        torch.testing.assert_close(
            operation(h, g, with_loops), operation(h, g, graph.edge_index), rtol=0, atol=0
        )

    def test_sums_over_neighbours_flow_from_source_to_target(self):
        h = torch.tensor([[2.0], [5.0]])
        assert NB.aggregate(h, edge_tensor([(0, 1)])).tolist() == [[0.0], [2.0]]

    def test_dispersion_is_not_negative_and_zero_for_equal_features(self):
        h, _ = fields(UNDIRECTED[0])
        edges = UNDIRECTED[0].edge_index
        assert (NB.neighbor_dispersion(h, edges) >= 0).all()
        equal = h[:1].repeat(10, 1)
        assert_matches(NB.neighbor_dispersion(equal, edges), torch.zeros(10, 3).tolist())

    def test_dispersion_does_not_depend_on_the_origin(self):
        h, _ = fields(UNDIRECTED[0])
        edges = UNDIRECTED[0].edge_index
        expected = NB.neighbor_dispersion(h, edges)
        torch.testing.assert_close(
            NB.neighbor_dispersion(h + 100, edges), expected, rtol=0, atol=1e-8
        )

    @every_operation
    @given(graph=any_graph(), seed=st.integers(0, 1000))
    @FEW
    def test_sums_follow_renamed_nodes_and_shuffled_edges(self, operation, graph, seed):
        assert_permutation_equivariant(operation, graph, seed)


class TestGradients:
    @pytest.mark.parametrize("name", OPERATIONS)
    def test_sums_gradcheck(self, name):
        h = fields(GRADCHECK_GRAPH, channels=2)[0].requires_grad_()
        edges = GRADCHECK_GRAPH.edge_index
        assert torch.autograd.gradcheck(lambda h: OPERATIONS[name](h, None, edges), (h,))

    @pytest.mark.parametrize("normalization", NB.NORMALIZATIONS)
    def test_aggregate_gradgradcheck(self, normalization):
        h = fields(GRADCHECK_GRAPH, channels=1)[0].requires_grad_()
        edges = GRADCHECK_GRAPH.edge_index
        # The cube gives the linear map a second derivative.
        assert torch.autograd.gradgradcheck(
            lambda h: NB.aggregate(h, edges, normalization) ** 3, (h,)
        )

    def test_neighbor_mean_gradgradcheck(self):
        h = fields(GRADCHECK_GRAPH, channels=1)[0].requires_grad_()
        edges = GRADCHECK_GRAPH.edge_index
        assert torch.autograd.gradgradcheck(lambda h: NB.neighbor_mean(h, edges) ** 3, (h,))

    def test_aggregate_backward_is_the_transpose(self):
        x, y = (fields(DIRECTED, seed=seed)[0] for seed in (0, 1))
        x.requires_grad_()
        (NB.aggregate(x, DIRECTED.edge_index, "sym") * y).sum().backward()
        transposed = [(i, j) for j, i in DIRECTED.edges]
        expected = reference.aggregate(y.tolist(), transposed, "sym")
        assert_matches(x.grad, expected)


class TestRobustness:
    @every_operation
    @every_situation
    def test_sums_are_finite_with_gradients(self, operation, situation):
        assert_finite_with_gradients(operation, situation)

    @every_operation
    @pytest.mark.parametrize("dtype", DTYPES[2:])
    def test_sums_in_half_are_near_single(self, operation, dtype):
        assert_half_is_near_single(operation, dtype)

    @pytest.mark.parametrize("dtype", DTYPES)
    def test_dispersion_of_large_features_is_right(self, dtype):
        # All values here are exact in every dtype, their squares are not.
        h = torch.tensor([[300.0], [302.0], [304.0]], dtype=dtype)
        dispersion = NB.neighbor_dispersion(h, edge_tensor([(0, 1), (1, 0), (1, 2), (2, 1)]))
        assert dispersion.flatten().tolist() == pytest.approx([4.0, 4.0, 4.0], rel=0.05)

    def test_aggregate_of_no_nodes_is_empty(self):
        assert NB.aggregate(torch.zeros(0, 3), edge_tensor([])).shape == (0, 3)


class TestRelations:
    def test_relation_in_keeps_the_edges(self):
        hood = neighborhood(DIRECTED.edge_index, 9)
        assert hood.relation("in") is hood

    def test_relation_out_reverses_the_edges(self):
        hood = neighborhood(DIRECTED.edge_index, 9)
        assert torch.equal(hood.relation("out").edge_index, hood.edge_index.flip(0))
        assert hood.relation("out") is hood.relation("out")

    def test_relation_undirected_lists_each_pair_once_in_both_directions(self):
        both = neighborhood(DIRECTED.edge_index, 9).relation("undirected")
        listed = [tuple(edge) for edge in both.edge_index.t().tolist()]
        pairs = reference.unordered_pairs(DIRECTED.edges)
        assert sorted(listed) == sorted(pairs + [(b, a) for a, b in pairs])
        assert both.is_undirected

    def test_relation_refuses_other_directions(self):
        hood = neighborhood(DIRECTED.edge_index, 9)
        message = r"direction must be 'undirected', 'out' or 'in' \(got 'both'\)"
        with pytest.raises(ValueError, match=message):
            hood.relation("both")


class TestErrors:
    @pytest.mark.parametrize(
        ("edge_index", "num_nodes", "message"),
        [
            (torch.zeros(4, dtype=torch.int64), 3, r"shape \[2, E\] \(got \[4\]\)"),
            (torch.zeros(3, 2, dtype=torch.int64), 3, r"shape \[2, E\] \(got \[3, 2\]\)"),
            (torch.zeros(2, 2, dtype=torch.int32), 3, r"must be int64 \(got torch.int32\)"),
            (torch.zeros(2, 2), 3, r"must be int64 \(got torch.float32\)"),
            (torch.tensor([[0], [3]]), 3, "names node 3, but nodes are 0 to 2"),
            (torch.tensor([[-1], [0]]), 3, "names node -1, but nodes are 0 to 2"),
        ],
    )
    def test_edges_are_checked(self, edge_index, num_nodes, message):
        with pytest.raises(ValueError, match=message):
            neighborhood(edge_index, num_nodes)

    @pytest.mark.parametrize(
        "function",
        [NB.aggregate, lambda x, e, n: neighborhood(e, x.size(0)).edge_weight(n, x.dtype)],
        ids=["aggregate", "edge_weight"],
    )
    def test_normalization_is_checked(self, function):
        with pytest.raises(ValueError, match=r"must be one of \('sum', 'sym', 'rw'\) \(got 'max'"):
            function(torch.zeros(9, 1), DIRECTED.edge_index, "max")


class TestCache:
    def test_same_tensor_gives_the_same_neighborhood(self):
        edge_index = DIRECTED.edge_index
        assert neighborhood(edge_index, 9) is neighborhood(edge_index, 9)

    def test_equal_tensor_gives_another_neighborhood(self):
        edge_index = DIRECTED.edge_index
        assert neighborhood(edge_index, 9) is not neighborhood(edge_index.clone(), 9)

    def test_prepared_neighborhood_is_returned_as_it_is(self):
        hood = neighborhood(DIRECTED.edge_index, 9)
        assert neighborhood(hood, 9) is hood
        h, _ = fields(DIRECTED)
        expected = reference.neighbor_mean(h.tolist(), DIRECTED.edges)
        assert_matches(NB.neighbor_mean(h, hood), expected)

    def test_change_in_place_gives_a_new_neighborhood(self):
        edge_index = edge_tensor([(0, 1), (1, 0)])
        before = neighborhood(edge_index, 3)
        h = torch.tensor([[1.0], [2.0], [4.0]])
        assert NB.aggregate(h, edge_index).flatten().tolist() == [2.0, 1.0, 0.0]
        edge_index[0, 0] = 2
        assert neighborhood(edge_index, 3) is not before
        assert NB.aggregate(h, edge_index).flatten().tolist() == [2.0, 4.0, 0.0]

    def test_a_neighborhood_does_not_change_with_its_edges(self):
        edge_index = edge_tensor([(0, 1), (1, 0)])
        hood = neighborhood(edge_index, 3)
        edge_index.fill_(2)
        assert hood.edge_index.tolist() == [[0, 1], [1, 0]]

    def test_different_numbers_of_nodes_coexist(self):
        edge_index = edge_tensor([(0, 1), (1, 0)])
        small, large = neighborhood(edge_index, 2), neighborhood(edge_index, 5)
        assert (small.num_nodes, large.num_nodes) == (2, 5)
        assert neighborhood(edge_index, 2) is small
        assert neighborhood(edge_index, 5) is large

    def test_an_entry_dies_with_its_tensor(self):
        gc.collect()
        before = len(PREPARED._CACHE)
        edge_index = DIRECTED.edge_index
        h, g = fields(DIRECTED)
        NB.neighbor_mean(h, edge_index)  # fills every part of the entry
        AF.smoothness_energy(g, edge_index)
        AF.structural_descriptor(edge_index, 9)
        known = weakref.ref(neighborhood(edge_index, 9))
        assert len(PREPARED._CACHE) == before + 1
        del edge_index
        gc.collect()
        assert known() is None
        assert len(PREPARED._CACHE) == before

    def test_a_neighborhood_outlives_its_tensor_where_it_is_held(self):
        hood = neighborhood(DIRECTED.edge_index, 9)
        gc.collect()
        assert hood.degree.sum().item() == sum(j != i for j, i in DIRECTED.edges)


class TestInferenceMode:
    """Scoring under ``torch.inference_mode`` must not spoil the edges for training."""

    operations = {
        "neighbor_mean": lambda g, e: NB.neighbor_mean(g, e),
        "neighbor_dispersion": lambda g, e: NB.neighbor_dispersion(g, e),
        "discrete_ricci": lambda g, e: AF.discrete_ricci(g, e),
        "ricci_energy": lambda g, e: AF.ricci_energy(g, e),
        "smoothness_energy": lambda g, e: AF.smoothness_energy(g, e),
        "nrmd": lambda g, e: AF.nrmd(g, e),
        "propagate": lambda g, e: AF.propagate(g, g, g, e, normalization="sym"),
        "structural_descriptor": lambda g, e: (
            g.sum(-1, keepdim=True) * AF.structural_descriptor(e, g.size(0))
        ),
    }
    every = pytest.mark.parametrize("name", operations)

    @every
    def test_edges_made_in_inference_mode_work(self, name):
        _, g = fields(UNDIRECTED[0])
        expected = self.operations[name](g, UNDIRECTED[0].edge_index)
        with torch.inference_mode():
            edge_index = UNDIRECTED[0].edge_index
            assert edge_index.is_inference()
            torch.testing.assert_close(self.operations[name](g, edge_index), expected)

    @every
    def test_edges_first_met_in_inference_mode_can_be_trained_on(self, name):
        edge_index = UNDIRECTED[0].edge_index
        _, g = fields(UNDIRECTED[0])
        with torch.inference_mode():
            expected = self.operations[name](g, edge_index)
        g.requires_grad_()
        value = self.operations[name](g, edge_index)
        value.sum().backward()
        torch.testing.assert_close(value.detach(), expected.clone())
        assert g.grad.isfinite().all()

    @every
    def test_edges_prepared_before_inference_mode_can_be_trained_on(self, name):
        edge_index = UNDIRECTED[0].edge_index
        _, g = fields(UNDIRECTED[0])
        neighborhood(edge_index, 10)
        with torch.inference_mode():
            self.operations[name](g, edge_index)
        self.operations[name](g.requires_grad_(), edge_index).sum().backward()
        assert g.grad.isfinite().all()

    def test_edges_changed_in_inference_mode_are_noticed(self):
        edge_index = edge_tensor([(0, 1), (1, 0)])
        h = torch.tensor([[1.0], [2.0], [4.0]])
        NB.aggregate(h, edge_index)
        with torch.inference_mode():
            edge_index[0, 0] = 2
            assert NB.aggregate(h, edge_index).flatten().tolist() == [2.0, 4.0, 0.0]

    def test_edges_made_and_changed_in_inference_mode_are_noticed(self):
        h = torch.tensor([[1.0], [2.0], [4.0]])
        with torch.inference_mode():
            edge_index = edge_tensor([(0, 1), (1, 0)])
            NB.aggregate(h, edge_index)
            edge_index[0, 0] = 2
            assert NB.aggregate(h, edge_index).flatten().tolist() == [2.0, 4.0, 0.0]


def test_neighborhood_is_a_plain_class():
    hood = Neighborhood(edge_tensor([(0, 1), (1, 1)]), 2)
    assert hood.edge_index.tolist() == [[0], [1]]
