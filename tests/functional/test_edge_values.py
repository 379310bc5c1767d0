"""Numbers on edges, against loops over the edges."""

import gc
import weakref

import pytest
import torch

from argnn.functional import edge_values as EV
from argnn.functional.neighborhood import neighborhood

from .cases import GRADCHECK_GRAPH, GRAPHS, every_graph, fields

open_and_closed = pytest.mark.parametrize("closed", [False, True])


def edges_of(graph, closed=False):
    return EV.ordered_edges(graph.edge_index, graph.num_nodes, closed=closed)


def drawn(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def listed(edges):
    return list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))


@every_graph
@open_and_closed
def test_edges_are_the_graph_without_self_loops_in_order(graph, closed):
    edges = edges_of(graph, closed)
    expected = [(j, i) for j, i in graph.edges if i != j]
    expected += [(i, i) for i in range(graph.num_nodes)] if closed else []
    assert sorted(listed(edges)) == sorted(expected)
    assert edges.target.tolist() == sorted(edges.target.tolist())
    assert edges.num_nodes == graph.num_nodes
    assert edges.num_edges == len(expected)
    assert edges.degree.tolist() == [
        sum(i == node for _, i in expected) for node in range(graph.num_nodes)
    ]


def test_edges_are_prepared_once_and_again_after_a_change():
    edge_index = GRAPHS[0].edge_index
    first = EV.ordered_edges(edge_index, 9)
    assert EV.ordered_edges(edge_index, 9) is first
    assert EV.ordered_edges(edge_index, 9, closed=True) is not first
    assert EV.ordered_edges(neighborhood(edge_index, 9), 9) is first
    edge_index[0, 0] = (edge_index[0, 0] + 1) % 9
    assert EV.ordered_edges(edge_index, 9) is not first


def test_cache_does_not_keep_a_graph_alive():
    edge_index = GRAPHS[0].edge_index
    kept = weakref.ref(EV.ordered_edges(edge_index, 9))
    del edge_index
    gc.collect()
    assert kept() is None


@every_graph
@open_and_closed
def test_gathers_and_sums_match_loops(graph, closed):
    edges = edges_of(graph, closed)
    x, values = drawn(graph.num_nodes, 3), drawn(edges.num_edges, 3, seed=1)
    assert torch.equal(EV.at_sources(x, edges), x[edges.source])
    assert torch.equal(EV.at_targets(x, edges), x[edges.target])
    total = torch.zeros_like(x)
    for value, (_, i) in zip(values, listed(edges), strict=True):
        total[i] += value
    torch.testing.assert_close(EV.sum_at_targets(values, edges), total)
    mean = total / edges.degree.clamp_min(1).unsqueeze(-1)
    torch.testing.assert_close(EV.mean_at_targets(values, edges), mean)


@every_graph
@open_and_closed
def test_weighted_aggregate_matches_a_dense_matrix(graph, closed):
    edges = edges_of(graph, closed)
    x, weight = drawn(graph.num_nodes, 3), drawn(edges.num_edges, seed=1)
    matrix = torch.zeros(graph.num_nodes, graph.num_nodes, dtype=torch.float64)
    for value, (j, i) in zip(weight, listed(edges), strict=True):
        matrix[i, j] += value
    torch.testing.assert_close(EV.weighted_aggregate(x, weight, edges), matrix @ x)


@every_graph
def test_heads_are_separate_aggregates(graph):
    edges = edges_of(graph, closed=True)
    x, weight = drawn(graph.num_nodes, 2, 3), drawn(edges.num_edges, 2, seed=1)
    heads = EV.weighted_aggregate(x, weight, edges)
    for head in range(2):
        one = EV.weighted_aggregate(x[:, head], weight[:, head], edges)
        torch.testing.assert_close(heads[:, head], one)


@every_graph
def test_weighted_aggregate_is_the_sum_of_messages(graph):
    """The form that is used where there is no sparse product."""
    edges = edges_of(graph, closed=True)
    x, weight = drawn(graph.num_nodes, 2, 3), drawn(edges.num_edges, 2, seed=1)
    messages = weight.unsqueeze(-1) * EV.at_sources(x, edges)
    torch.testing.assert_close(
        EV.weighted_aggregate(x, weight, edges), EV.sum_at_targets(messages, edges)
    )


@every_graph
@pytest.mark.parametrize("shuffled", [False, True])
def test_both_forms_of_a_sum_agree(graph, shuffled):
    """Sparse products on a CPU, reduced segments elsewhere."""
    edges = edges_of(graph)
    rows = drawn(edges.num_edges, 3)
    places, start = (edges.by_source, edges.start_by_source) if shuffled else (None, edges.start)
    torch.testing.assert_close(
        EV._sparse_product(rows, places, start), EV._reduced_segments(rows, places, start)
    )


@every_graph
def test_softmax_sums_to_one_and_does_not_mind_large_scores(graph):
    edges = edges_of(graph, closed=True)
    scores = 1e3 * drawn(edges.num_edges, 2, dtype=torch.float32)
    weight = EV.softmax_at_targets(scores, edges)
    assert weight.isfinite().all()
    torch.testing.assert_close(EV.sum_at_targets(weight, edges), torch.ones(graph.num_nodes, 2))
    for node in range(graph.num_nodes):
        into = edges.target == node
        torch.testing.assert_close(weight[into], scores[into].softmax(0))


@open_and_closed
def test_gradcheck(closed):
    edges = edges_of(GRADCHECK_GRAPH, closed)
    x = drawn(5, 2).requires_grad_()
    weight = drawn(edges.num_edges, seed=1).requires_grad_()
    values = drawn(edges.num_edges, 2, seed=2).requires_grad_()
    check = torch.autograd.gradcheck
    assert check(lambda x: EV.at_sources(x, edges), (x,))
    assert check(lambda x: EV.at_targets(x, edges), (x,))
    assert check(lambda v: EV.sum_at_targets(v, edges), (values,))
    assert check(lambda v: EV.softmax_at_targets(v, edges), (values,))
    assert check(lambda x, w: EV.weighted_aggregate(x, w, edges), (x, weight))


def test_no_edges_have_zero_sums_and_gradients():
    edges = EV.ordered_edges(torch.empty(2, 0, dtype=torch.int64), 3)
    x, weight = drawn(3, 2).requires_grad_(), drawn(0).requires_grad_()
    total = EV.weighted_aggregate(x, weight, edges)
    total.sum().backward()
    assert torch.equal(total, torch.zeros(3, 2, dtype=torch.float64))
    assert torch.equal(x.grad, torch.zeros_like(x))
    assert torch.equal(EV.sum_at_targets(drawn(0, 2), edges), torch.zeros_like(x))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_types_are_summed_in_float32(dtype):
    graph = GRAPHS[0]
    edges = edges_of(graph)
    x, _ = fields(graph, dtype)
    weight = drawn(edges.num_edges, dtype=dtype)
    actual = EV.weighted_aggregate(x, weight, edges)
    expected = EV.weighted_aggregate(x.float(), weight.float(), edges)
    assert actual.dtype == dtype
    assert torch.equal(actual, expected.to(dtype))
    assert EV.sum_at_targets(weight, edges).dtype == dtype
