import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from argnn.functional import smoothness as S

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
    edge_tensor,
    every_graph,
    every_situation,
    fields,
)

OPERATIONS = {
    "energy": lambda h, g, e: S.smoothness_energy(g, e),
    "mean energy": lambda h, g, e: S.smoothness_energy(g, e, "mean"),
    "nrmd": lambda h, g, e: S.nrmd(g, e),
}
every_operation = pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS.keys())


@every_graph
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_smoothness_matches_loops(graph, reduction):
    _, g = fields(graph)
    expected = reference.smoothness_energy(g.tolist(), graph.edges, reduction)
    assert_matches(S.smoothness_energy(g, graph.edge_index, reduction), expected)


@every_graph
def test_nrmd_matches_loops(graph):
    _, g = fields(graph)
    assert_matches(S.nrmd(g, graph.edge_index), reference.nrmd(g.tolist(), graph.edges))


@every_operation
@every_graph
def test_smoothness_constant_metric_is_smooth(operation, graph):
    for dtype in DTYPES:
        constant = fields(graph, dtype)[1][:1].repeat(graph.num_nodes, 1)
        assert operation(None, constant, graph.edge_index).item() == 0


@every_operation
def test_smoothness_counts_each_pair_once(operation):
    graph = UNDIRECTED[0]
    _, g = fields(graph)
    one_way = [(j, i) for j, i in graph.edges if j < i]
    other_way = [(i, j) for j, i in one_way]
    many = [*graph.edges, *one_way, *one_way, (2, 2), (3, 3)]
    expected = operation(None, g, graph.edge_index)
    for edges in (one_way, other_way, many):
        assert operation(None, g, edge_tensor(edges)).item() == expected.item()


def test_smoothness_is_quadratic_and_blind_to_constants():
    graph = UNDIRECTED[0]
    _, g = fields(graph)
    energy = S.smoothness_energy(g, graph.edge_index)
    torch.testing.assert_close(S.smoothness_energy(3 * g + 2, graph.edge_index), 9 * energy)


@every_graph
def test_nrmd_ignores_the_scale_and_is_at_most_two(graph):
    _, g = fields(graph)
    dispersion = S.nrmd(g, graph.edge_index)
    assert 0 <= dispersion <= 2
    torch.testing.assert_close(S.nrmd(7 * g, graph.edge_index), dispersion, rtol=0, atol=1e-10)


def test_nrmd_of_a_pair_by_hand():
    g = torch.tensor([[3.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
    assert_matches(S.nrmd(g, edge_tensor([(0, 1)])), 2.0)
    g = torch.tensor([[1.0], [3.0]], dtype=torch.float64)
    assert_matches(S.nrmd(g, edge_tensor([(0, 1)])), 1.0)


@every_operation
@given(graph=any_graph(), seed=st.integers(0, 1000))
@FEW
def test_smoothness_ignores_names_and_order(operation, graph, seed):
    assert_permutation_equivariant(operation, graph, seed)


@every_operation
def test_smoothness_gradcheck(operation):
    g = fields(GRADCHECK_GRAPH, channels=2)[1].requires_grad_()
    edges = GRADCHECK_GRAPH.edge_index
    assert torch.autograd.gradcheck(lambda g: operation(None, g, edges), (g,))


@every_operation
@every_situation
def test_smoothness_is_finite_with_gradients(operation, situation):
    assert_finite_with_gradients(operation, situation)


def test_nrmd_gradient_of_a_constant_metric_is_finite():
    g = torch.full((10, 3), 0.7, requires_grad=True)
    S.nrmd(g, UNDIRECTED[0].edge_index).backward()
    assert g.grad.isfinite().all()


@every_operation
@pytest.mark.parametrize("dtype", DTYPES[2:])
def test_smoothness_in_half_is_near_single(operation, dtype):
    assert_half_is_near_single(operation, dtype)


def test_smoothness_names_the_reductions():
    with pytest.raises(ValueError, match=r"one of \('sum', 'mean'\) \(got 'max'\)"):
        S.smoothness_energy(torch.ones(10, 1), UNDIRECTED[0].edge_index, "max")


@every_operation
def test_smoothness_checks_its_arguments(operation):
    with pytest.raises(ValueError, match="edge_index names node 9, but nodes are 0 to 4"):
        operation(None, torch.ones(5, 1), edge_tensor([(0, 9)]))
    with pytest.raises(ValueError, match=r"floating point tensor \(got torch.int64\)"):
        operation(None, torch.ones(5, 1, dtype=torch.int64), edge_tensor([(0, 1)]))
