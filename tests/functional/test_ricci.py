import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from argnn.functional import ricci as R
from argnn.functional.smoothness import smoothness_energy

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
    both_ways,
    edge_tensor,
    every_graph,
    every_situation,
    every_undirected_graph,
    fields,
)

PAIR = edge_tensor([(0, 1), (1, 0)])
OPERATIONS = {
    "ricci": lambda h, g, e: R.discrete_ricci(g, e),
    "energy": lambda h, g, e: R.ricci_energy(g, e),
    "mean energy": lambda h, g, e: R.ricci_energy(g, e, "mean"),
    "flow": lambda h, g, e: R.ricci_flow(g, e, steps=2, step_size=0.3),
}
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


class TestReference:
    @every_graph
    def test_ricci_matches_loops(self, graph):
        _, g = fields(graph)
        expected = reference.discrete_ricci(g.tolist(), graph.edges)
        assert_matches(R.discrete_ricci(g, graph.edge_index), expected)

    @every_graph
    @pytest.mark.parametrize("reduction", R.REDUCTIONS)
    def test_ricci_energy_matches_loops(self, graph, reduction):
        _, g = fields(graph)
        expected = reference.ricci_energy(g.tolist(), graph.edges, reduction)
        assert_matches(R.ricci_energy(g, graph.edge_index, reduction), expected)

    @every_graph
    @pytest.mark.parametrize(("steps", "step_size"), [(0, 0.5), (1, 1.0), (5, 0.2)])
    def test_flow_matches_loops(self, graph, steps, step_size):
        _, g = fields(graph)
        expected = reference.ricci_flow(g.tolist(), graph.edges, steps, step_size)
        assert_matches(R.ricci_flow(g, graph.edge_index, steps, step_size), expected)

    @every_undirected_graph
    def test_flow_steady_state_is_the_mean_weighted_by_degree(self, graph):
        _, g = fields(graph)
        limit = R.ricci_flow_steady_state(g, graph.edge_index, tolerance=1e-14)
        assert_matches(limit, reference.flow_limit(g.tolist(), graph.edges))


class TestRicci:
    @every_graph
    def test_ricci_constant_metric_is_flat(self, graph):
        for dtype in DTYPES:
            constant = fields(graph, dtype)[1][:1].repeat(graph.num_nodes, 1)
            assert not R.discrete_ricci(constant, graph.edge_index).any()
            assert R.ricci_energy(constant, graph.edge_index).item() == 0
            assert R.ricci_energy(constant, graph.edge_index, "mean").item() == 0
            assert torch.equal(R.ricci_flow(constant, graph.edge_index, 3, 0.5), constant)

    def test_ricci_of_an_isolated_node_is_zero(self):
        graph = GRADCHECK_GRAPH
        curvature = R.discrete_ricci(fields(graph)[1], graph.edge_index)
        assert not curvature[3:].any()

    def test_ricci_is_positive_where_the_metric_is_larger_than_around(self):
        star = UNDIRECTED[1]
        g = torch.ones(6, 1, dtype=torch.float64)
        g[0] = 3
        expected = [[1.0], *[[-1.0]] * 5]
        assert_matches(R.discrete_ricci(g, star.edge_index), expected)

    def test_ricci_is_linear_and_blind_to_constants(self):
        graph = UNDIRECTED[0]
        a, b = (fields(graph, seed=seed)[1] for seed in (0, 1))
        curvature = R.discrete_ricci(2 * a + 3 * b + 5, graph.edge_index)
        expected = 2 * R.discrete_ricci(a, graph.edge_index) + 3 * R.discrete_ricci(
            b, graph.edge_index
        )
        torch.testing.assert_close(curvature, expected)

    @every_undirected_graph
    def test_ricci_sums_to_zero_over_an_undirected_graph(self, graph):
        _, g = fields(graph)
        degree = torch.tensor([len(n) for n in reference.neighbors(graph.edges, graph.num_nodes)])
        total = (degree.unsqueeze(-1) * R.discrete_ricci(g, graph.edge_index)).sum(0)
        torch.testing.assert_close(total, torch.zeros_like(total), rtol=0, atol=1e-12)

    def test_ricci_counts_duplicates_and_ignores_self_loops(self):
        g = torch.tensor([[0.0], [9.0], [0.0]], dtype=torch.float64)
        edges = edge_tensor([(0, 2), (0, 2), (1, 2), (2, 2)])
        assert_matches(R.discrete_ricci(g, edges), [[0.0], [0.0], [-1.5]])

    @every_operation
    @given(graph=any_graph(), seed=st.integers(0, 1000))
    @FEW
    def test_ricci_follows_renamed_nodes_and_shuffled_edges(self, operation, graph, seed):
        assert_permutation_equivariant(operation, graph, seed)


class TestFlow:
    @every_graph
    @pytest.mark.parametrize("step_size", [0.1, 0.5, 1.0])
    def test_flow_keeps_the_metric_positive_and_inside_its_range(self, graph, step_size):
        _, g = fields(graph)
        flowed = R.ricci_flow(g, graph.edge_index, 10, step_size)
        assert (flowed > 0).all()
        assert (flowed >= g.min(0).values - 1e-12).all()
        assert (flowed <= g.max(0).values + 1e-12).all()

    @pytest.mark.parametrize("dtype", DTYPES[:3])
    @pytest.mark.parametrize("step_size", [0.1, 0.5, 0.9, 1.0])
    def test_flow_keeps_extreme_metrics_positive(self, dtype, step_size):
        g = torch.tensor([[1e6, 1e-6], [1e-6, 1e6]], dtype=dtype)
        flowed = R.ricci_flow(g, PAIR, 1, step_size)
        assert (flowed > 0).all()
        assert flowed.isfinite().all()

    @every_undirected_graph
    @pytest.mark.parametrize("step_size", [0.05, 0.25, 0.5])
    def test_flow_does_not_increase_the_smoothness_energy(self, graph, step_size):
        _, g = fields(graph)
        energy = smoothness_energy(g, graph.edge_index)
        for _ in range(8):
            g = R.ricci_flow(g, graph.edge_index, 1, step_size)
            following = smoothness_energy(g, graph.edge_index)
            assert following <= energy + 1e-12
            energy = following

    @every_undirected_graph
    @pytest.mark.parametrize("step_size", [0.05, 0.25, 0.5])
    def test_flow_does_not_increase_the_ricci_energy_weighted_by_degree(self, graph, step_size):
        _, g = fields(graph)
        degree = torch.tensor([len(n) for n in reference.neighbors(graph.edges, graph.num_nodes)])

        def energy(g):
            return (degree.unsqueeze(-1) * R.discrete_ricci(g, graph.edge_index).square()).sum()

        before = energy(g)
        for _ in range(8):
            g = R.ricci_flow(g, graph.edge_index, 1, step_size)
            after = energy(g)
            assert after <= before + 1e-12
            before = after

    @pytest.mark.parametrize("n", [2, 5, 8])
    @pytest.mark.parametrize("step_size", [0.05, 0.5])
    def test_flow_does_not_increase_the_ricci_energy_of_a_regular_graph(self, n, step_size):
        cycle = edge_tensor(both_ways((a, (a + 1) % n) for a in range(n)))
        g = 0.1 + torch.rand(n, 3, generator=torch.Generator().manual_seed(n)).double()
        energy = R.ricci_energy(g, cycle)
        for _ in range(8):
            g = R.ricci_flow(g, cycle, 1, step_size)
            following = R.ricci_energy(g, cycle)
            assert following <= energy + 1e-12
            energy = following

    def test_flow_can_increase_the_ricci_energy_of_an_irregular_graph(self):
        # Against the paper's proof of convergence: its Lyapunov function is the plain sum over
        # nodes, but a curved hub passes its curvature on to every leaf. Two joined stars.
        leaves = 10
        first, second = range(2, 2 + leaves), range(2 + leaves, 2 + 2 * leaves)
        pairs = [(0, 1), *((0, leaf) for leaf in first), *((1, leaf) for leaf in second)]
        graph = edge_tensor(both_ways(pairs))
        # A metric whose curvature is c at one hub, -c at the other, and none at the leaves.
        g = torch.ones(2 + 2 * leaves, 1, dtype=torch.float64)
        g[[0, *first]] = 2.0
        before = R.ricci_energy(g, graph)
        after = R.ricci_energy(R.ricci_flow(g, graph, 1, 0.5), graph)
        assert after > 1.5 * before

    def test_flow_limit_is_flat(self):
        graph = UNDIRECTED[0]
        limit = R.ricci_flow_steady_state(fields(graph)[1], graph.edge_index, tolerance=1e-14)
        assert R.ricci_energy(limit, graph.edge_index).item() < 1e-20

    def test_flow_limit_of_no_edges_is_the_start(self):
        _, g = fields(GRAPHS[-1])
        assert torch.equal(R.ricci_flow_steady_state(g, GRAPHS[-1].edge_index), g)

    def test_flow_limit_carries_no_gradient(self):
        g = torch.tensor([[1.0], [3.0]], requires_grad=True)
        limit = R.ricci_flow_steady_state(g, PAIR)
        assert not limit.requires_grad
        assert limit.flatten().tolist() == [2.0, 2.0]

    def test_full_steps_swap_the_sides_of_a_bipartite_graph_for_ever(self):
        g = torch.tensor([[1.0], [3.0]])
        assert R.ricci_flow(g, PAIR, 1, 1.0).flatten().tolist() == [3.0, 1.0]
        with pytest.raises(RuntimeError, match="more than 1e-09 after 50 steps"):
            R.ricci_flow_steady_state(g, PAIR, step_size=1.0, max_steps=50)

    def test_flow_leaves_its_argument_alone(self):
        g = torch.tensor([[1.0], [3.0]])
        R.ricci_flow(g, PAIR, 2, 0.5)
        assert g.flatten().tolist() == [1.0, 3.0]


class TestGradients:
    @every_operation
    def test_ricci_gradcheck(self, operation):
        g = fields(GRADCHECK_GRAPH, channels=2)[1].requires_grad_()
        edges = GRADCHECK_GRAPH.edge_index
        assert torch.autograd.gradcheck(lambda g: operation(None, g, edges), (g,))

    def test_ricci_energy_gradgradcheck(self):
        g = fields(GRADCHECK_GRAPH, channels=2)[1].requires_grad_()
        edges = GRADCHECK_GRAPH.edge_index
        assert torch.autograd.gradgradcheck(lambda g: R.ricci_energy(g, edges), (g,))


class TestRobustness:
    @every_operation
    @every_situation
    def test_ricci_is_finite_with_gradients(self, operation, situation):
        assert_finite_with_gradients(operation, situation)

    @every_operation
    @pytest.mark.parametrize("dtype", DTYPES[2:])
    def test_ricci_in_half_is_near_single(self, operation, dtype):
        assert_half_is_near_single(operation, dtype)

    def test_energies_of_no_nodes_are_zero(self):
        nothing = torch.zeros(0, 3)
        assert R.ricci_energy(nothing, edge_tensor([]), "mean").item() == 0


class TestErrors:
    def test_ricci_energy_names_the_reductions(self):
        with pytest.raises(ValueError, match=r"one of \('sum', 'mean'\) \(got 'none'\)"):
            R.ricci_energy(torch.ones(2, 1), PAIR, "none")

    def test_flow_refuses_negative_steps(self):
        with pytest.raises(ValueError, match=r"steps must not be negative \(got -1\)"):
            R.ricci_flow(torch.ones(2, 1), PAIR, -1, 0.5)

    @pytest.mark.parametrize("step_size", [0.0, -0.5, 1.01, float("nan")])
    def test_flow_refuses_steps_that_lose_positivity(self, step_size):
        with pytest.raises(ValueError, match=r"step_size must be in \(0, 1\] .* \(got "):
            R.ricci_flow(torch.ones(2, 1), PAIR, 1, step_size)

    def test_ricci_checks_the_edges(self):
        with pytest.raises(ValueError, match="edge_index names node 1, but nodes are 0 to 0"):
            R.discrete_ricci(torch.ones(1, 1), PAIR)

    def test_ricci_refuses_integers(self):
        with pytest.raises(ValueError, match=r"floating point tensor \(got torch.int64\)"):
            R.discrete_ricci(torch.ones(2, 1, dtype=torch.int64), PAIR)
