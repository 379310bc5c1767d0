import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.functional import pseudo_hyperboloid
from argnn.functional.self_loops import closed_aggregate
from argnn.nn import LinkModel
from argnn.nn.conv.qgcn_conv import QGCNConv
from argnn.nn.models import QGCN

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)
WIDTH = 6
each_time = pytest.mark.parametrize("time", [1, 3, WIDTH])


def b_of(beta) -> Tensor:
    return torch.tensor(beta, dtype=torch.float64)


def form(x: Tensor, time: int) -> Tensor:
    return x[:, time:].square().sum(-1) - x[:, :time].square().sum(-1)


@each_time
def test_without_bias_the_convolution_is_the_mean_of_unit_rows(time):
    conv, x = QGCNConv(4, WIDTH, time).double().eval(), features(NUM_NODES, 4)
    rows = x @ conv.weight.t()
    # A sphere has no space-like part, and its rows keep their length, short of a quarter turn.
    rows = F.normalize(rows, dim=-1) if time < WIDTH else 0.1 * rows
    x = x if time < WIDTH else 0.1 * x
    rows[:, 0] = 0
    expected = closed_aggregate(rows, GRAPH, "rw")
    torch.testing.assert_close(conv(x, GRAPH, b_of(-1.0)), expected, rtol=1e-9, atol=1e-9)


@each_time
def test_bias_is_transported_and_not_just_added(time):
    conv = perturbed(QGCNConv(4, WIDTH, time).double()).eval()
    none = torch.empty(2, 0, dtype=torch.int64)
    x, b = 0.3 * features(NUM_NODES, 4), b_of(-1.5)
    bias = conv.bias.detach().clone()
    with torch.no_grad():
        conv.bias.zero_()
        plain = conv(x, none, b)
        conv.bias.copy_(bias)
    points = pseudo_hyperboloid.expmap0(plain, b, time)
    moved = pseudo_hyperboloid.expmap(
        points, pseudo_hyperboloid.transport0(points, bias, b, time), b, time
    )
    found = conv(x, none, b)
    torch.testing.assert_close(pseudo_hyperboloid.expmap0(found, b, time), moved)
    free = bias.clone()
    free[0] = 0
    assert (found - plain - free).abs().max() > 1e-3


@each_time
def test_points_lie_on_the_manifold_and_pairs_are_scored_by_their_distance(time):
    model = perturbed(QGCN(4, WIDTH, WIDTH, head="points", time=time).double()).eval()
    points = model(features(NUM_NODES, 4), GRAPH)
    beta = model.curvature()[-1]
    torch.testing.assert_close(form(points, time), beta.expand(NUM_NODES))
    pairs = torch.tensor([[0, 1], [3, 4]])
    link = LinkModel(model, "distance").eval()
    expected = 2 - pseudo_hyperboloid.squared_distance(points[:2], points[3:5], beta, time)
    torch.testing.assert_close(link.pair_scores(points, pairs), expected)


@each_time
def test_learned_radii_matter_for_classes(time):
    """A bias that were added in the tangent space would leave them without effect."""
    model = perturbed(QGCN(4, WIDTH, 3, time=time)).eval()
    model(features(NUM_NODES, 4, dtype=torch.float32), GRAPH).square().sum().backward()
    [parameter] = model.metric_parameters()
    assert parameter.shape == (3,)
    assert (parameter.grad[:2] != 0).all()


def test_scale_of_the_features_does_not_matter():
    model, x = perturbed(QGCN(4, WIDTH, 3, num_layers=1).double()).eval(), features(NUM_NODES, 4)
    torch.testing.assert_close(model(100 * x, GRAPH), model(x, GRAPH))


@each_time
def test_zero_rows_have_finite_gradients(time):
    model = perturbed(QGCN(4, WIDTH, 3, time=time))
    model(torch.zeros(NUM_NODES, 4), GRAPH).square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_time_like_coordinates_of_a_narrow_last_layer():
    """With points of two channels there cannot be five time-like ones."""
    model = perturbed(QGCN(4, WIDTH, 2, head="points", time=5).double()).eval()
    points = model(features(NUM_NODES, 4), GRAPH)
    torch.testing.assert_close(form(points, 2), model.curvature()[-1].expand(NUM_NODES))


@pytest.mark.parametrize("time", [0, WIDTH + 1])
def test_impossible_number_of_time_like_coordinates_is_refused(time):
    with pytest.raises(ConfigError, match=f"time must be from 1 to {WIDTH}"):
        QGCN(4, WIDTH, 3, time=time)
