import pytest
import torch
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.functional.edge_values import ordered_edges
from argnn.nn.conv import curvature_field
from argnn.nn.conv.curvature_field import CurvatureField
from argnn.nn.models import GNRF

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)
per_channel_or_scalar = pytest.mark.parametrize("channel_curvature", [True, False])


def field_of(**options):
    return perturbed(CurvatureField(4, **options).double()).eval()


def model_of(**options):
    torch.manual_seed(0)
    return perturbed(GNRF(4, 5, 3, **options).double()).eval()


def slow_mlp(mlp, first, second):
    both = torch.cat([mlp.lin_target.weight, mlp.lin_source.weight], dim=1)
    hidden = (both @ torch.cat([first, second]) + mlp.lin_target.bias).relu()
    return mlp.lin_out.weight @ hidden + mlp.lin_out.bias


def slow_field(field, h):
    """The method's formula with a loop over edges, and its small numbers in denominators."""
    edges = [(j, i) for j, i in EDGES if i != j]
    h = h / (h.norm(dim=1, keepdim=True) + 1e-8)
    u = torch.zeros_like(h)
    for j, i in edges:
        u[i] = u[i] + slow_mlp(field.mlp_node, h[i], h[j]).relu()
    g, count = torch.zeros_like(h), torch.zeros(len(h), 1)
    for j, i in edges:
        kappa = slow_mlp(field.mlp_edge, u[i], u[j])
        g[i] = g[i] + kappa * (h[j] - (h[i] @ h[j]) * h[i])
        count[i] += 1
    g = g / count.clamp_min(1)
    return g / (g.norm(dim=1, keepdim=True) + 1e-8)


@per_channel_or_scalar
def test_field_is_the_formula_of_the_method(channel_curvature):
    field, h = field_of(channel_curvature=channel_curvature), features(NUM_NODES, 4)
    torch.testing.assert_close(field(h, GRAPH), slow_field(field, h), rtol=1e-5, atol=1e-6)


@per_channel_or_scalar
def test_field_has_unit_speed_where_a_node_has_neighbors(channel_curvature):
    speed = field_of(channel_curvature=channel_curvature)(features(NUM_NODES, 4), GRAPH)
    targets = {i for j, i in EDGES if i != j}
    expected = torch.tensor([float(i in targets) for i in range(NUM_NODES)], dtype=torch.float64)
    assert 0 < expected.sum() < NUM_NODES
    torch.testing.assert_close(speed.norm(dim=-1), expected, rtol=1e-12, atol=1e-12)


def test_field_of_scalar_curvatures_is_tangent_to_the_direction():
    h = features(NUM_NODES, 4)
    along = (field_of(channel_curvature=False)(h, GRAPH) * h).sum(-1)
    torch.testing.assert_close(along, torch.zeros_like(along), rtol=0, atol=1e-12)
    along = (field_of()(h, GRAPH) * h).sum(-1)
    assert along.abs().max() > 0.01, "one curvature per channel turns it away"


@per_channel_or_scalar
def test_equal_features_do_not_move(channel_curvature):
    model = model_of(channel_curvature=channel_curvature)
    h = features(1, 5).expand(NUM_NODES, 5)
    assert torch.equal(model.flow(h, GRAPH), h)


def test_zero_curvature_does_not_move():
    model, h = model_of(), features(NUM_NODES, 5)
    with torch.no_grad():
        model.field.mlp_edge.lin_out.weight.zero_()
        model.field.mlp_edge.lin_out.bias.zero_()
    assert torch.equal(model.flow(h, GRAPH), h)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("time", [0.1, 5.0])
def test_no_node_moves_farther_than_the_time(time, num_layers):
    model, h = model_of(time=time, num_layers=num_layers), features(NUM_NODES, 5)
    moved = (model.flow(h, GRAPH) - h).norm(dim=-1)
    assert (moved <= time + 1e-12).all()
    assert moved[:8].max() > 0.1 * time


def test_one_step_is_the_3_8_rule():
    model, h = model_of(time=0.7), features(NUM_NODES, 5)

    def f(place):
        return model.field(place, GRAPH)

    k1 = f(h)
    k2 = f(h + 0.7 * k1 / 3)
    k3 = f(h + 0.7 * (k2 - k1 / 3))
    k4 = f(h + 0.7 * (k1 - k2 + k3))
    expected = h + 0.7 * (k1 + 3 * k2 + 3 * k3 + k4) / 8
    torch.testing.assert_close(model.flow(h, GRAPH), expected, rtol=1e-12, atol=1e-12)


def test_more_steps_converge():
    h = features(NUM_NODES, 5)
    ends = [model_of(time=0.2, num_layers=n).flow(h, GRAPH) for n in (1, 8, 16)]
    coarse, fine = ((end - ends[2]).norm() for end in ends[:2])
    assert fine < 0.5 * coarse


def test_network_is_encoder_flow_and_head():
    model, x = model_of(batch_norm=False, normalize_input=False), features(NUM_NODES, 4)
    h = F.linear(x, model.encoder.weight, model.encoder.bias).relu()
    expected = model.head(model.flow(h, GRAPH).relu())
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


def test_time_zero_is_a_perceptron():
    model, x = model_of(time=0.0, batch_norm=False), features(NUM_NODES, 4)
    none = torch.empty(2, 0, dtype=torch.int64)
    assert torch.equal(model(x, GRAPH), model(x, none))


def test_negative_time_is_refused():
    with pytest.raises(ConfigError, match="time must be not negative"):
        GNRF(4, 5, 3, time=-1.0)


def test_isolated_last_nodes_keep_their_place():
    """The method's own code breaks where the last nodes have no edge."""
    model, h = model_of(), features(6, 5)
    pair = torch.tensor([[0, 1], [1, 0]])
    moved = model.flow(h, pair)
    assert torch.equal(moved[2:], h[2:])
    assert not torch.equal(moved[:2], h[:2])


def test_field_computed_again_gives_the_same_gradients(monkeypatch):
    model, x = model_of(dropout=0.5).train(), features(NUM_NODES, 4)

    def gradients():
        model.zero_grad()
        torch.manual_seed(0)
        loss = model(x, GRAPH).square().sum()
        loss.backward()
        return [loss.detach(), *(parameter.grad for parameter in model.parameters())]

    kept = gradients()
    monkeypatch.setattr(curvature_field, "MAX_KEPT_NUMBERS", 0)
    for again, expected in zip(gradients(), kept, strict=True):
        torch.testing.assert_close(again, expected, rtol=1e-12, atol=1e-12)


def test_weights_start_as_those_of_a_map_of_both_ends():
    torch.manual_seed(0)
    mlp = CurvatureField(64).mlp_node
    bound = 128**-0.5
    for weight in (mlp.lin_target.weight, mlp.lin_source.weight):
        assert 0.95 * bound < weight.abs().max() <= bound
    assert mlp.lin_target.bias.abs().max() <= bound


@pytest.mark.parametrize("scale", [0.0, 1e-20, 1e-6, 1.0, 1e6])
def test_gradients_are_finite_in_float32_at_any_scale(scale):
    torch.manual_seed(0)
    model = GNRF(4, 5, 3, batch_norm=False, normalize_input=False, dropout=0.0)
    x = scale * features(NUM_NODES, 4, dtype=torch.float32)
    x[1] = x[0]
    model(x, GRAPH).square().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad.isfinite().all(), name


def test_curvatures_have_the_order_of_the_edges():
    field, h = field_of(), features(NUM_NODES, 4)
    edges = ordered_edges(GRAPH, NUM_NODES)
    assert field.curvature(h, edges).shape == (edges.num_edges, 4)
    assert field_of(channel_curvature=False).curvature(h, edges).shape == (edges.num_edges, 1)
