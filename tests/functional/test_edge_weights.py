import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from argnn.functional import edge_weights as EW

from .cases import (
    DTYPES,
    FEW,
    GRADCHECK_GRAPH,
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
    fields,
)

PAIR = edge_tensor([(0, 1), (1, 0)])
OPERATIONS = {
    "modulation": EW.edge_modulation,
    "modulation with baseline": lambda h, g, e: EW.edge_modulation(h, g, e, 0.1),
    "attention": EW.edge_attention,
    "attention of the public code": lambda h, g, e: EW.edge_attention(
        h, g, e, neighbor_norm="target"
    ),
    "message": lambda h, g, e: EW.propagate(h, g, h, e),
    "message with baseline": lambda h, g, e: EW.propagate(h, g, h, e, 0.1, normalization="sym"),
    "message without attention": lambda h, g, e: EW.propagate(h, g, h, e, attention=False),
    "channel modulation": lambda h, g, e: EW.channel_modulation(g),
}
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


def messages_of(graph, channels=2):
    return fields(graph, channels=channels, seed=7)[0]


class TestReference:
    @every_graph
    @pytest.mark.parametrize("eps0", [0.0, 0.1, 1.0])
    def test_modulation_matches_loops(self, graph, eps0):
        h, g = fields(graph)
        expected = reference.edge_modulation(h.tolist(), g.tolist(), graph.edges, eps0)
        assert_matches(EW.edge_modulation(h, g, graph.edge_index, eps0), expected)
        assert_matches(
            EW.channel_modulation(g, eps0), reference.channel_modulation(g.tolist(), eps0)
        )

    @every_graph
    @pytest.mark.parametrize("neighbor_norm", EW.NEIGHBOR_NORMS)
    def test_attention_matches_loops(self, graph, neighbor_norm):
        h, g = fields(graph)
        expected = reference.edge_attention(h.tolist(), g.tolist(), graph.edges, neighbor_norm)
        actual = EW.edge_attention(h, g, graph.edge_index, neighbor_norm=neighbor_norm)
        assert_matches(actual, expected)

    @every_graph
    @pytest.mark.parametrize(
        ("eps0", "options"),
        [
            (0.0, {}),
            (0.1, {}),
            (0.0, {"attention": False}),
            (0.2, {"neighbor_norm": "target"}),
            (0.0, {"normalization": "rw"}),
            (0.3, {"normalization": "sym", "attention": False}),
        ],
        ids=str,
    )
    def test_message_sum_matches_loops(self, graph, eps0, options):
        h, g = fields(graph)
        messages = messages_of(graph)
        expected = reference.propagate(
            h.tolist(), g.tolist(), messages.tolist(), graph.edges, eps0, **options
        )
        assert_matches(EW.propagate(h, g, messages, graph.edge_index, eps0, **options), expected)

    def test_message_sum_takes_tensors_that_are_not_contiguous(self):
        graph = UNDIRECTED[0]
        h, g = (field.t().contiguous().t() for field in fields(graph))
        edge_index = torch.tensor(graph.edges).t()
        assert not edge_index.is_contiguous()
        expected = reference.propagate(h.tolist(), g.tolist(), h.tolist(), graph.edges)
        assert_matches(EW.propagate(h, g, h, edge_index), expected)


class TestModulation:
    def test_modulation_of_an_axis_is_rational_in_the_metric(self):
        g = torch.logspace(-6, 6, 101, dtype=torch.float64)
        expected = (1 - g**2) / (1 + g**2)
        torch.testing.assert_close(EW.channel_modulation(g), expected, rtol=1e-10, atol=1e-10)

    @pytest.mark.parametrize("c", [1e-3, 0.5, 1.0, 2.0, 30.0])
    def test_modulation_of_an_isotropic_metric_is_the_same_in_every_direction(self, c):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        tau = EW.edge_modulation(h, torch.full_like(g, c), graph.edge_index)
        expected = torch.full_like(tau, math.tanh(-math.log(c)))
        torch.testing.assert_close(tau, expected, rtol=1e-10, atol=1e-10)

    def test_modulation_along_an_axis_is_that_of_the_axis(self):
        h = torch.tensor([[0.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
        g = torch.tensor([[9.0, 0.25], [9.0, 3.0]], dtype=torch.float64)
        expected = [-0.8, 15 / 17]  # (1 - g^2) / (1 + g^2) of the target's second entry
        assert_matches(EW.edge_modulation(h, g, PAIR), expected)

    @every_graph
    @pytest.mark.parametrize("spread", [1.0, 20.0])
    def test_modulation_is_between_minus_one_and_one(self, graph, spread):
        h, g = fields(graph)
        tau = EW.edge_modulation(h, (spread * (g - 1.5)).exp(), graph.edge_index)
        assert (tau.abs() <= 1 + 1e-12).all()

    def test_modulation_changes_sign_with_the_inverse_metric(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        tau = EW.edge_modulation(h, g, graph.edge_index)
        opposite = EW.edge_modulation(h, g.reciprocal(), graph.edge_index)
        torch.testing.assert_close(opposite, -tau, rtol=1e-10, atol=1e-10)

    def test_modulation_ignores_the_length_of_the_edge(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        torch.testing.assert_close(
            EW.edge_modulation(1000 * h + 3, g, graph.edge_index),
            EW.edge_modulation(h, g, graph.edge_index),
            rtol=1e-9,
            atol=1e-9,
        )

    def test_modulation_uses_the_metric_of_the_target(self):
        h, g = fields(UNDIRECTED[2])
        other = g.clone()
        other[0] = 2.9
        edge = edge_tensor([(0, 1)])
        assert torch.equal(EW.edge_modulation(h, g, edge), EW.edge_modulation(h, other, edge))

    def test_modulation_without_a_direction_is_zero(self):
        h, g = fields(UNDIRECTED[2])
        h[1] = h[0]
        edges = edge_tensor([(0, 1), (2, 2)])
        assert EW.edge_modulation(h, g, edges).tolist() == [0.0, 0.0]
        assert EW.edge_modulation(h, g, edges, 0.25).tolist() == [0.25, 0.25]

    def test_modulation_floor_can_be_named(self):
        h = torch.tensor([[0.0], [1.0]], dtype=torch.float64)
        g = torch.full_like(h, 0.5)
        assert_matches(EW.edge_modulation(h, g, PAIR, eps=1.0), [0.15, 0.15])


class TestAttention:
    @every_graph
    @pytest.mark.parametrize("neighbor_norm", EW.NEIGHBOR_NORMS)
    def test_attention_under_one_metric_is_a_cosine(self, graph, neighbor_norm):
        h, g = fields(graph)
        shared = g[:1].expand_as(g)
        alpha = EW.edge_attention(h, shared, graph.edge_index, neighbor_norm=neighbor_norm)
        assert (alpha.abs() <= 1 + 1e-12).all()

    @every_graph
    def test_attention_of_the_public_code_is_always_a_cosine(self, graph):
        h, g = fields(graph)
        alpha = EW.edge_attention(h, g, graph.edge_index, neighbor_norm="target")
        assert (alpha.abs() <= 1 + 1e-12).all()

    def test_attention_under_the_unit_metric_is_the_cosine_similarity(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        source, target = graph.edge_index
        expected = torch.cosine_similarity(h[source], h[target])
        alpha = EW.edge_attention(h, torch.ones_like(g), graph.edge_index)
        torch.testing.assert_close(alpha, expected, rtol=1e-10, atol=1e-10)

    def test_attention_under_two_metrics_has_no_bound(self):
        h = torch.tensor([[1.0, 0.0], [2.0, 0.0]], dtype=torch.float64)
        edge = edge_tensor([(1, 0)])
        for scale, expected in ((4.0, 2.0), (1e4, 100.0)):
            g = torch.tensor([[scale, 1.0], [1.0, 1.0]], dtype=torch.float64)
            assert_matches(EW.edge_attention(h, g, edge), [expected])
            assert_matches(EW.edge_attention(h, g, edge, neighbor_norm="target"), [1.0])

    def test_attention_does_not_depend_on_the_scale_of_all_metrics(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        torch.testing.assert_close(
            EW.edge_attention(h, 50 * g, graph.edge_index),
            EW.edge_attention(h, g, graph.edge_index),
            rtol=1e-9,
            atol=1e-9,
        )

    def test_attention_of_a_self_loop_is_one(self):
        h, g = fields(UNDIRECTED[2])
        assert_matches(EW.edge_attention(h, g, edge_tensor([(2, 2)])), [1.0])

    def test_attention_of_zero_features_is_zero(self):
        h, g = fields(UNDIRECTED[2])
        h[0] = 0
        assert not EW.edge_attention(h, g, PAIR).any()

    def test_attention_floor_can_be_named(self):
        h = torch.tensor([[1.0], [1.0]], dtype=torch.float64)
        assert_matches(EW.edge_attention(h, torch.ones_like(h), PAIR, eps=1.0), [0.5, 0.5])


class TestMessage:
    @every_graph
    def test_message_sum_of_the_unit_metric_is_zero(self, graph):
        h, g = fields(graph)
        assert not EW.propagate(h, torch.ones_like(g), h, graph.edge_index).any()

    def test_message_sum_of_the_unit_metric_is_repaired_by_the_baseline(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        flat, messages = torch.ones_like(g), messages_of(graph)
        out = EW.propagate(h, flat, messages, graph.edge_index, eps0=0.1)
        assert out.any()
        alpha = reference.edge_attention(h.tolist(), flat.tolist(), graph.edges)
        expected = [[0.0, 0.0] for _ in range(graph.num_nodes)]
        for (j, i), value in zip(graph.edges, alpha, strict=True):
            for k in range(2):
                expected[i][k] += 0.1 * reference.sigmoid(value) * messages[j, k].item()
        assert_matches(out, expected)

    def test_message_sum_with_full_baseline_is_plain_aggregation(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        out = EW.propagate(h, g, h, graph.edge_index, eps0=1.0, attention=False)
        assert_matches(out, reference.aggregate(h.tolist(), graph.edges, "sum"))

    def test_message_sum_ignores_self_loops_even_with_a_baseline(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        with_loops = edge_tensor([*graph.edges, (0, 0), (4, 4), (4, 4)])
        for normalization in ("sum", "rw", "sym"):
            options = {"eps0": 0.3, "normalization": normalization}
            torch.testing.assert_close(
                EW.propagate(h, g, h, with_loops, **options),
                EW.propagate(h, g, h, graph.edge_index, **options),
            )

    def test_message_sum_counts_duplicates(self):
        h, g = fields(UNDIRECTED[2])
        once = EW.propagate(h, g, h, edge_tensor([(0, 1)]))
        thrice = EW.propagate(h, g, h, edge_tensor([(0, 1)] * 3))
        torch.testing.assert_close(thrice, 3 * once)

    def test_message_goes_from_source_to_target(self):
        h, g = fields(UNDIRECTED[2])
        out = EW.propagate(h, g, h, edge_tensor([(0, 1)]))
        assert out[1].all()
        assert not out[0].any()

    def test_message_sum_is_linear_in_the_messages(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        a, b = messages_of(graph), messages_of(graph).flip(0)
        torch.testing.assert_close(
            EW.propagate(h, g, 2 * a - b, graph.edge_index),
            2 * EW.propagate(h, g, a, graph.edge_index) - EW.propagate(h, g, b, graph.edge_index),
        )

    @pytest.mark.parametrize("name", ["message", "message with baseline"])
    @given(graph=any_graph(), seed=st.integers(0, 1000))
    @FEW
    def test_message_sum_follows_renamed_nodes_and_shuffled_edges(self, name, graph, seed):
        assert_permutation_equivariant(OPERATIONS[name], graph, seed)

    def test_edge_weights_follow_the_order_of_the_edges(self):
        graph = UNDIRECTED[0]
        h, g = fields(graph)
        order = torch.randperm(len(graph.edges), generator=torch.Generator().manual_seed(0))
        for function in (EW.edge_modulation, EW.edge_attention):
            shuffled = function(h, g, graph.edge_index[:, order])
            assert torch.equal(shuffled, function(h, g, graph.edge_index)[order])


class TestGradients:
    edges = GRADCHECK_GRAPH.edge_index

    def leaves(self):
        h, g = fields(GRADCHECK_GRAPH, channels=2)
        return h.requires_grad_(), g.requires_grad_()

    def test_modulation_gradcheck(self):
        eps0 = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
        h, g = self.leaves()
        assert torch.autograd.gradcheck(
            lambda h, g, eps0: EW.edge_modulation(h, g, self.edges, eps0), (h, g, eps0)
        )
        assert torch.autograd.gradcheck(EW.channel_modulation, (g, eps0))

    def test_modulation_gradient_is_that_of_the_paper(self):
        h, g = self.leaves()
        edge = edge_tensor([(1, 0)])
        EW.edge_modulation(h, g, edge).sum().backward()
        u = (h[1] - h[0]).detach()
        d = u / u.norm()
        sech = 1 / torch.cosh(-g[0].detach().log())
        torch.testing.assert_close(g.grad[0], -(d**2) * sech**2 / g[0].detach())

    @pytest.mark.parametrize("neighbor_norm", EW.NEIGHBOR_NORMS)
    def test_attention_gradcheck(self, neighbor_norm):
        assert torch.autograd.gradcheck(
            lambda h, g: EW.edge_attention(h, g, self.edges, neighbor_norm=neighbor_norm),
            self.leaves(),
        )

    @pytest.mark.parametrize("normalization", ["sum", "sym"])
    def test_message_sum_gradcheck(self, normalization):
        messages = messages_of(GRADCHECK_GRAPH).requires_grad_()
        eps0 = torch.tensor(0.2, dtype=torch.float64, requires_grad=True)
        assert torch.autograd.gradcheck(
            lambda h, g, m, eps0: EW.propagate(
                h, g, m, self.edges, eps0, normalization=normalization
            ),
            (*self.leaves(), messages, eps0),
        )


class TestRobustness:
    @every_operation
    @every_situation
    def test_edge_weights_are_finite_with_gradients(self, operation, situation):
        assert_finite_with_gradients(operation, situation)

    @every_operation
    @pytest.mark.parametrize("dtype", DTYPES[2:])
    def test_edge_weights_in_half_are_near_single(self, operation, dtype):
        assert_half_is_near_single(operation, dtype)

    def test_modulation_of_large_half_features_is_right(self):
        # Squares of these overflow a float16.
        h = torch.tensor([[0.0, 0.0], [3000.0, 4000.0]], dtype=torch.float16)
        g = torch.full_like(h, 0.5)
        expected = torch.full((2,), 0.6)
        tau = EW.edge_modulation(h, g, PAIR)
        torch.testing.assert_close(tau.float(), expected, rtol=2e-3, atol=0)

    def test_extreme_metrics_saturate_the_modulation(self):
        h = fields(UNDIRECTED[2])[0]
        edges = edge_tensor(both_ways([(0, 1), (2, 3)]))
        for value, expected in ((1e-30, 1.0), (1e30, -1.0)):
            tau = EW.edge_modulation(h, torch.full_like(h, value), edges)
            torch.testing.assert_close(tau, torch.full_like(tau, expected))


class TestErrors:
    def test_attention_names_the_norms(self):
        h, g = fields(UNDIRECTED[2])
        message = r"neighbor_norm must be one of \('own', 'target'\) \(got 'mine'\)"
        with pytest.raises(ValueError, match=message):
            EW.edge_attention(h, g, PAIR, neighbor_norm="mine")
        with pytest.raises(ValueError, match=message):
            EW.propagate(h, g, h, PAIR, neighbor_norm="mine")

    def test_message_sum_names_the_normalizations(self):
        h, g = fields(UNDIRECTED[2])
        with pytest.raises(ValueError, match=r"normalization must be one of .* \(got 'mean'\)"):
            EW.propagate(h, g, h, PAIR, normalization="mean")

    def test_message_sum_checks_the_edges(self):
        h, g = fields(UNDIRECTED[2])
        with pytest.raises(ValueError, match="edge_index names node 9, but nodes are 0 to 4"):
            EW.propagate(h, g, h, edge_tensor([(0, 9)]))

    def test_integer_fields_are_refused(self):
        h = torch.ones(5, 2, dtype=torch.int64)
        with pytest.raises(ValueError, match=r"floating point tensor \(got torch.int64\)"):
            EW.edge_modulation(h, h, PAIR)
