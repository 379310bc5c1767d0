import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GATConv

from argnn.errors import ConfigError
from argnn.functional import stereographic
from argnn.functional.edge_values import ordered_edges, sum_at_targets
from argnn.nn.conv.hgat_conv import HGATConv
from argnn.nn.models import HGAT

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)
CLOSED = ordered_edges(GRAPH, NUM_NODES, closed=True)
each_attention = pytest.mark.parametrize("attention", ["distance", "learned"])


def k_of(kappa) -> Tensor:
    return torch.tensor(kappa, dtype=torch.float64)


def conv_of(heads=2, **options) -> HGATConv:
    return perturbed(HGATConv(4, 3, heads, **options).double()).eval()


def heads_of(num_nodes=NUM_NODES, heads=2, scale=0.5) -> Tensor:
    return scale * features(num_nodes, heads * 3).view(num_nodes, heads, 3)


@each_attention
def test_weights_sum_to_one(attention):
    weights = conv_of(attention=attention).edge_weights(heads_of(), CLOSED, k_of(-1.0))
    assert weights.shape == (CLOSED.num_edges, 2)
    torch.testing.assert_close(
        sum_at_targets(weights, CLOSED), torch.ones(NUM_NODES, 2, dtype=torch.float64)
    )


@each_attention
def test_equal_points_have_equal_weights(attention):
    v = heads_of(1).expand(NUM_NODES, 2, 3)
    weights = conv_of(attention=attention).edge_weights(v, CLOSED, k_of(-1.0))
    share = (1 / CLOSED.degree.double())[CLOSED.target].unsqueeze(-1).expand(-1, 2)
    torch.testing.assert_close(weights, share)


def test_distance_attention_is_the_softmax_of_minus_the_distance():
    reference = pytest.importorskip("geoopt.manifolds.stereographic.math")
    conv, k, x = conv_of(concat=True), k_of(-1.3), features(NUM_NODES, 4)
    v = (x @ conv.weight.t()).view(NUM_NODES, 2, 3)
    v = stereographic.clip_tangent(v, k)
    points = reference.expmap0(v, k=k)
    found = conv(x, GRAPH, k).view(NUM_NODES, 2, 3)
    for i in range(NUM_NODES):
        around = torch.tensor([j for j, target in EDGES if target == i and j != i] + [i])
        distance = reference.dist(points[i].expand(len(around), 2, 3), points[around], k=k)
        distance[-1] = 0
        weights = torch.softmax(-distance, dim=0)
        expected = (weights.unsqueeze(-1) * v[around]).sum(0)
        torch.testing.assert_close(found[i], expected, rtol=1e-5, atol=1e-6)


def test_distance_attention_does_not_see_rotations():
    conv, k, v = conv_of(), k_of(-1.0), heads_of()
    rotation = torch.linalg.qr(features(3, 3))[0]
    weights = conv.edge_weights(v, CLOSED, k)
    torch.testing.assert_close(conv.edge_weights(v @ rotation, CLOSED, k), weights)
    assert weights.std() > 0.01


def test_learned_attention_in_the_flat_limit_is_that_of_gat():
    conv, x = conv_of(attention="learned"), 0.5 * features(NUM_NODES, 4)
    with torch.no_grad():
        conv.point_bias.zero_()
        gat = GATConv(4, 3, heads=2).double()
        gat.lin.weight.copy_(conv.weight)
        gat.att_src.copy_(conv.score_source.unsqueeze(0))
        gat.att_dst.copy_(conv.score_target.unsqueeze(0))
        gat.bias.copy_(conv.bias)
    expected = gat(x, GRAPH)
    torch.testing.assert_close(conv(x, GRAPH, k_of(-1e-12)), expected)
    with torch.no_grad():
        conv.point_bias.add_(0.1)
    assert not torch.allclose(conv(x, GRAPH, k_of(-1e-12)), expected, rtol=1e-2)


@each_attention
def test_heads_are_concatenated_or_averaged(attention):
    x, k = features(NUM_NODES, 4), k_of(-1.0)
    wide = conv_of(attention=attention)
    narrow = HGATConv(4, 3, 2, attention=attention, concat=False).double().eval()
    with torch.no_grad():
        for name, parameter in narrow.named_parameters():
            parameter.copy_(getattr(wide, name) if name != "bias" else torch.zeros(3))
        if wide.bias is not None:
            wide.bias.zero_()
    both = wide(x, GRAPH, k).view(NUM_NODES, 2, 3)
    torch.testing.assert_close(narrow(x, GRAPH, k), both.mean(1))


@each_attention
def test_isolated_node_hears_itself(attention):
    conv, k = conv_of(attention=attention), k_of(-1.0)
    none = torch.empty(2, 0, dtype=torch.int64)
    x = features(NUM_NODES, 4)
    torch.testing.assert_close(conv(x, GRAPH, k)[8], conv(x, none, k)[8])


@each_attention
def test_nodes_with_equal_features_have_finite_gradients(attention):
    model = perturbed(HGAT(4, 6, 3, heads=2, attention=attention))
    for x in (torch.zeros(NUM_NODES, 4), torch.ones(NUM_NODES, 4)):
        model.zero_grad()
        model(x, GRAPH).square().sum().backward()
        assert all(p.grad.isfinite().all() for p in model.parameters())


def test_heads_that_do_not_divide_the_width_are_a_little_wider():
    model = HGAT(4, 10, 3, heads=4, num_layers=2)
    assert [conv.out_channels for conv in model.convs] == [3, 3]
    assert model(torch.ones(NUM_NODES, 4), GRAPH).shape == (NUM_NODES, 3)


def test_points_are_in_the_ball_and_as_wide_as_asked_for():
    model = perturbed(HGAT(4, 6, 6, heads=2, head="points", curvature=2.0).double()).eval()
    points = model(features(NUM_NODES, 4), GRAPH)
    assert points.shape == (NUM_NODES, 6)
    assert (points.norm(dim=-1) < 2**-0.5).all()
    distance = model.squared_distance(points[:3], points[3:6])
    expected = stereographic.squared_distance(points[:3], points[3:6], model.curvature())
    assert torch.equal(distance, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"attention": "dot"}, "attention must be one of"), ({"heads": 0}, "heads must be positive")],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        HGAT(4, 6, 3, **options)
