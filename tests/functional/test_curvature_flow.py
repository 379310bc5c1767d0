"""The pull of neighbours on directions, and the step of its integration."""

import math

import pytest
import torch

from argnn.functional.curvature_flow import curvature_pull, three_eighths_step, unit_rows
from argnn.functional.edge_values import ordered_edges

from .cases import GRADCHECK_GRAPH, GRAPHS, every_graph, fields

per_channel_or_scalar = pytest.mark.parametrize("width", [1, 3])


def setting(graph, width, seed=1, dtype=torch.float64):
    h, _ = fields(graph, dtype)
    edges = ordered_edges(graph.edge_index, graph.num_nodes)
    generator = torch.Generator().manual_seed(seed)
    curvature = torch.randn(edges.num_edges, width, generator=generator, dtype=torch.float64)
    return unit_rows(h), curvature.to(dtype), edges


def slow_pull(h, curvature, edges):
    out = torch.zeros_like(h)
    count = [0] * len(h)
    for kappa, j, i in zip(curvature, edges.source, edges.target, strict=True):
        out[i] += kappa * (h[j] - (h[i] @ h[j]) * h[i])
        count[i] += 1
    return out / torch.tensor(count).clamp_min(1).unsqueeze(-1)


@every_graph
@per_channel_or_scalar
def test_pull_matches_loops(graph, width):
    h, curvature, edges = setting(graph, width)
    expected = slow_pull(h, curvature, edges)
    torch.testing.assert_close(
        curvature_pull(h, curvature, edges), expected, rtol=1e-10, atol=1e-10
    )


@per_channel_or_scalar
def test_pull_matches_loops_where_a_direction_is_missing(width):
    h, curvature, edges = setting(GRAPHS[0], width)
    h = torch.cat([torch.zeros_like(h[:2]), h[2:]])
    expected = slow_pull(h, curvature, edges)
    assert expected[:2].abs().max() > 0
    torch.testing.assert_close(
        curvature_pull(h, curvature, edges), expected, rtol=1e-10, atol=1e-10
    )


@every_graph
def test_pull_of_scalar_curvatures_is_tangent(graph):
    h, curvature, edges = setting(graph, 1)
    along = (curvature_pull(h, curvature, edges) * h).sum(-1)
    torch.testing.assert_close(along, torch.zeros_like(along), rtol=0, atol=1e-13)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_equal_directions_do_not_pull_at_all(dtype):
    h, curvature, edges = setting(GRAPHS[0], 3, dtype=dtype)
    pull = curvature_pull(h[:1].expand_as(h), curvature, edges)
    assert torch.equal(pull, torch.zeros_like(pull))


@per_channel_or_scalar
def test_pull_gradcheck(width):
    h, curvature, edges = setting(GRADCHECK_GRAPH, width)
    inputs = (h.detach().requires_grad_(), curvature.requires_grad_())

    def pull(h, curvature):  # in the directions, as only these are defined
        return curvature_pull(unit_rows(h), curvature, edges)

    assert torch.autograd.gradcheck(pull, inputs)


def test_unit_rows_have_length_one_or_zero():
    x = torch.tensor([[3.0, 4.0], [1e-3, 0.0], [1e-7, 0.0], [0.0, 0.0]], requires_grad=True)
    rows = unit_rows(x)
    torch.testing.assert_close(rows.norm(dim=-1), torch.tensor([1.0, 1.0, 0.0, 0.0]))
    (rows * torch.tensor([1.0, 2.0])).sum().backward()
    assert x.grad.isfinite().all()
    assert torch.equal(x.grad[2:], torch.zeros(2, 2))


def test_step_is_of_order_four():
    def error(steps):
        h = torch.tensor(1.0, dtype=torch.float64)
        for _ in range(steps):
            h = three_eighths_step(lambda h: torch.cos(h) * h, h, 1 / steps)
        return h.item()

    exact = error(2048)
    coarse, fine = (abs(error(steps) - exact) for steps in (8, 16))
    assert math.log2(coarse / fine) == pytest.approx(4, abs=0.3)


def test_step_follows_a_straight_line_exactly():
    speed = torch.tensor([1.0, -2.0], dtype=torch.float64)
    out = three_eighths_step(lambda h: speed, torch.zeros(2, dtype=torch.float64), 0.7)
    torch.testing.assert_close(out, 0.7 * speed)


def test_step_is_the_3_8_rule():
    """On y' = y one step is the Taylor polynomial of degree four, whatever the rule."""
    out = three_eighths_step(lambda h: h, torch.tensor(1.0, dtype=torch.float64), 0.5)
    assert out.item() == pytest.approx(sum(0.5**k / math.factorial(k) for k in range(5)), abs=1e-14)
    # The places it looks at are those of the 3/8 rule.
    seen = []

    def field(h):
        seen.append(h.item())
        return torch.tensor(1.0, dtype=torch.float64)

    three_eighths_step(field, torch.tensor(0.0, dtype=torch.float64), 3.0)
    assert seen == pytest.approx([0, 1, 2, 3])
