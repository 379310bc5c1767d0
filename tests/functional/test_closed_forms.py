"""Derivatives in closed form, beside autograd and beside loops that follow the formulas."""

import pytest
import torch

from argnn import functional as AF
from argnn.functional import closed_forms

#: Float64, sums of a dozen terms of size one.
TOLERANCE = {"rtol": 1e-12, "atol": 1e-12}


@pytest.fixture
def graph():
    """A triangle with a tail and a leaf: degrees 1, 2 and 3."""
    once = torch.tensor([[0, 0, 1, 2, 3], [1, 2, 2, 3, 4]])
    return torch.cat([once, once.flip(0)], dim=1)


@pytest.fixture
def fields():
    return 0.5 + torch.rand(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)


def autograd(function, g):
    leaf = g.clone().requires_grad_()
    return torch.autograd.grad(function(leaf), leaf)[0]


def test_energies(graph, fields):
    g, _ = fields
    found = closed_forms.ricci_energy_gradient(g, graph)
    torch.testing.assert_close(found, autograd(lambda f: AF.ricci_energy(f, graph), g), **TOLERANCE)
    found = closed_forms.smoothness_energy_gradient(g, graph)
    torch.testing.assert_close(
        found, autograd(lambda f: AF.smoothness_energy(f, graph), g), **TOLERANCE
    )


def test_ricci_gradient_beside_a_loop(graph, fields):
    g, _ = fields
    neighbors = [graph[0, graph[1] == i].tolist() for i in range(5)]
    ricci = [0.5 * sum(g[i] - g[j] for j in neighbors[i]) / len(neighbors[i]) for i in range(5)]
    expected = [
        ricci[i] - sum(ricci[j] / len(neighbors[j]) for j in neighbors[i]) for i in range(5)
    ]
    found = closed_forms.ricci_energy_gradient(g, graph)
    torch.testing.assert_close(found, torch.stack(expected), **TOLERANCE)


def test_hessian(graph, fields):
    g, _ = fields
    expected = torch.autograd.functional.hessian(
        lambda one: AF.ricci_energy(one.unsqueeze(-1), graph), g[:, 0]
    )
    found = closed_forms.ricci_energy_hessian(graph, 5)
    torch.testing.assert_close(found, expected, **TOLERANCE)
    # Nodes 1 and 3 are two hops apart, and a constant metric costs nothing.
    assert found[1, 3] > 0
    torch.testing.assert_close(found @ torch.ones(5).double(), torch.zeros(5).double(), **TOLERANCE)


def test_edges(graph, fields):
    g, h = fields
    source, target = graph
    direction = h[source] - h[target]
    direction = direction / direction.norm(dim=-1, keepdim=True)
    by_tau = closed_forms.modulation_gradient(direction, g[target])
    by_target, by_source = closed_forms.attention_gradient(
        h[target], h[source], g[target], g[source]
    )
    for edge in range(graph.size(1)):
        one = graph[:, edge : edge + 1]
        tau = autograd(lambda f, one=one: AF.edge_modulation(h, f, one, eps=0).sum(), g)
        torch.testing.assert_close(by_tau[edge], tau[one[1, 0]], **TOLERANCE)
        alpha = autograd(lambda f, one=one: AF.edge_attention(h, f, one, eps=0).sum(), g)
        torch.testing.assert_close(by_target[edge], alpha[one[1, 0]], **TOLERANCE)
        torch.testing.assert_close(by_source[edge], alpha[one[0, 0]], **TOLERANCE)
