"""Polynomials of the normalised adjacency."""

import itertools

import pytest
import torch
from torch_geometric.nn import APPNP

from argnn.functional.pagerank import pagerank_coefficients, polynomial_aggregate

from .cases import GRADCHECK_GRAPH, both_ways, edge_tensor, every_graph, fields


def dense_normalized(graph):
    """The adjacency with one self-loop each, divided by the roots of in-degrees."""
    matrix = torch.eye(graph.num_nodes, dtype=torch.float64)
    for j, i in graph.edges:
        if i != j:
            matrix[i, j] += 1
    root = matrix.sum(1).rsqrt()
    return root.unsqueeze(1) * matrix * root


@pytest.mark.parametrize("teleport", [0.0, 0.1, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("hops", [0, 1, 10])
def test_coefficients_sum_to_one(teleport, hops):
    gamma = pagerank_coefficients(teleport, hops)
    assert len(gamma) == hops + 1
    assert sum(gamma) == pytest.approx(1, abs=1e-14)


def test_coefficients_at_the_ends_are_the_first_or_the_last_power():
    assert pagerank_coefficients(1.0, 10) == [1.0] + [0.0] * 10
    assert pagerank_coefficients(0.0, 10) == [0.0] * 10 + [1.0]


@pytest.mark.parametrize("teleport", [-0.1, 1.1])
def test_teleport_outside_of_probabilities_is_refused(teleport):
    with pytest.raises(ValueError, match="teleport must be in"):
        pagerank_coefficients(teleport, 3)


@every_graph
def test_polynomial_matches_dense_powers(graph):
    x, _ = fields(graph)
    gamma = torch.tensor([0.3, -2.0, 0.5, 1.5], dtype=torch.float64)
    matrix = dense_normalized(graph)
    expected = sum(c * torch.linalg.matrix_power(matrix, k) @ x for k, c in enumerate(gamma))
    actual = polynomial_aggregate(x, gamma, graph.edge_index)
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)


def test_powers_on_a_complete_graph_are_the_mean_of_all_nodes():
    edge_index = edge_tensor(both_ways(itertools.combinations(range(6), 2)))
    x = torch.randn(6, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for hops in (1, 2, 7):
        gamma = torch.zeros(hops + 1, dtype=torch.float64)
        gamma[-1] = 1
        out = polynomial_aggregate(x, gamma, edge_index)
        torch.testing.assert_close(out, x.mean(0).expand_as(x), rtol=1e-12, atol=1e-12)


def test_pagerank_coefficients_give_appnp():
    edge_index = edge_tensor(both_ways([(0, 1), (1, 2), (2, 0), (2, 3)]))
    x = torch.randn(5, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    gamma = torch.tensor(pagerank_coefficients(0.2, 10), dtype=torch.float64)
    torch.testing.assert_close(
        polynomial_aggregate(x, gamma, edge_index), APPNP(10, 0.2)(x, edge_index)
    )


def test_polynomial_gradcheck():
    x, _ = fields(GRADCHECK_GRAPH)
    gamma = torch.tensor([0.3, -2.0, 0.5], dtype=torch.float64, requires_grad=True)
    edge_index = GRADCHECK_GRAPH.edge_index
    assert torch.autograd.gradcheck(
        lambda x, gamma: polynomial_aggregate(x, gamma, edge_index), (x.requires_grad_(), gamma)
    )
