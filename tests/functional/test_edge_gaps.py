import pytest
import torch
from torch.autograd import gradcheck

from argnn.functional.edge_gaps import edge_gaps
from argnn.functional.edge_values import ordered_edges

EDGES = torch.tensor([[0, 1, 1, 2, 0, 3, 3, 4, 0], [1, 0, 2, 1, 2, 3, 4, 4, 1]])
NODES, HEADS, WIDTH = 6, 2, 3


def points(dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    return torch.randn(NODES, HEADS, WIDTH, generator=generator, dtype=torch.float64).to(dtype)


def exact(x, edges):
    return (x[edges.target] - x[edges.source]).square().sum(-1)


@pytest.mark.parametrize("closed", [False, True])
def test_gaps_and_gradients(closed):
    edges, x = ordered_edges(EDGES, NODES, closed=closed), points().requires_grad_()
    torch.testing.assert_close(edge_gaps(x, edges), exact(x, edges))
    assert gradcheck(lambda x: edge_gaps(x, edges), x)


def test_float32_keeps_the_digits_of_close_points():
    """Distances of 1e-4 between points of length about 1, and the gradient of their roots."""
    edges = ordered_edges(EDGES, NODES)
    shift = 1e-4 * points()
    x = (points()[:1] + shift).float()
    single, double = x.clone().requires_grad_(), x.double().requires_grad_()
    edge_gaps(single, edges).sqrt().sum().backward()
    exact(double, edges).sqrt().sum().backward()
    torch.testing.assert_close(edge_gaps(single, edges).double(), exact(double, edges))
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=1e-4, atol=1e-4)


def test_equal_points_and_nodes_themselves_are_no_distance_apart():
    edges = ordered_edges(EDGES, NODES, closed=True)
    x = points(torch.float32).requires_grad_()
    gaps = edge_gaps(x, edges)
    loops = edges.source == edges.target
    assert torch.equal(gaps[loops], torch.zeros(NODES, HEADS))
    assert (gaps[~loops] > 0).all()
    same = x[:1].expand(NODES, -1, -1)
    assert edge_gaps(same, edges).abs().max() < 1e-12


def test_no_edges():
    edges = ordered_edges(torch.empty(2, 0, dtype=torch.int64), NODES)
    x = points().requires_grad_()
    gaps = edge_gaps(x, edges)
    assert gaps.shape == (0, HEADS)
    gaps.sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
