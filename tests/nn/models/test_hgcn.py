import pytest
import torch
from torch import Tensor

from argnn.errors import ConfigError
from argnn.functional import stereographic
from argnn.functional.row_normalization import normalized_rows
from argnn.functional.self_loops import closed_aggregate
from argnn.nn import LinkModel
from argnn.nn.conv.hgcn_conv import HGCNConv
from argnn.nn.hyperbolic_linear import HyperbolicLinear
from argnn.nn.models import HGCN

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)


def k_of(kappa) -> Tensor:
    return torch.tensor(kappa, dtype=torch.float64)


def conv_of(**options) -> HGCNConv:
    return perturbed(HGCNConv(4, 3, **options).double()).eval()


def mean(x: Tensor) -> Tensor:
    return closed_aggregate(x, GRAPH, "rw")


def test_flat_limit_is_a_euclidean_convolution_and_errors_are_linear_in_the_curvature():
    conv, x = conv_of(), 0.3 * features(NUM_NODES, 4)
    expected = mean(x @ conv.lin.weight.t() + conv.lin.bias)
    errors = [(conv(x, GRAPH, k_of(-c)) - expected).abs().max().item() for c in (1e-2, 1e-4, 1e-6)]
    assert 1e-6 < errors[0] < 0.1
    assert errors[1] == pytest.approx(errors[0] / 100, rel=0.1)
    assert errors[2] == pytest.approx(errors[1] / 100, rel=0.01)


@pytest.mark.parametrize("c", [1e-3, 1.0, 4.0])
def test_without_bias_the_convolution_is_euclidean_at_any_curvature(c):
    conv, x = conv_of(), 0.1 * features(NUM_NODES, 4)
    with torch.no_grad():
        conv.lin.bias.zero_()
    expected = mean(x @ conv.lin.weight.t())
    torch.testing.assert_close(conv(x, GRAPH, k_of(-c)), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_network_is_the_authors_chain_of_maps(scale):
    """Every exponential, logarithm and projection written out, with geoopt's functions."""
    reference = pytest.importorskip("geoopt.manifolds.stereographic.math")
    model = HGCN(4, 5, 3, num_layers=2, normalize_input=False)
    model = perturbed(model.double(), scale=0.5).eval()
    x = scale * features(NUM_NODES, 4)
    ks = model.curvature()
    assert len(set(ks.tolist())) == 3

    def projected(h, k):
        return reference.project(h, k=k)

    # Of the input only, the norm is not cut off.
    h, wide = reference.expmap0(x, k=ks[0]), True
    for conv, k, next_k in zip(model.convs, ks, ks[1:], strict=False):
        tangent = x if wide else reference.logmap0(h, k=k)
        wide = False
        z = projected(reference.expmap0(tangent @ conv.lin.weight.t(), k=k), k)
        bias = projected(reference.expmap0(conv.lin.bias, k=k), k)
        z = projected(reference.mobius_add(z, bias, k=k), k)
        s = projected(reference.expmap0(mean(reference.logmap0(z, k=k)), k=k), k)
        active = torch.relu(reference.logmap0(s, k=k))
        h = projected(reference.expmap0(active, k=next_k), next_k)
    expected = model.classifier(reference.logmap0(h, k=ks[-1]))
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-5, atol=1e-6)


def test_attention_multiplies_each_term_by_a_gate():
    conv, k = conv_of(attention=True), k_of(-1.0)
    x = features(NUM_NODES, 4)
    v = conv.lin(x, k)
    found = conv(x, GRAPH, k)
    for i in range(NUM_NODES):
        around = [j for j, target in EDGES if target == i and j != i] + [i]
        gates = [
            torch.sigmoid(conv.gate_target(v[i]) + conv.gate_source(v[j])) * v[j] for j in around
        ]
        expected = stereographic.clip_tangent(sum(gates) / len(around), k)
        torch.testing.assert_close(found[i], expected)


def test_dropout_acts_on_the_weights():
    torch.manual_seed(0)
    linear = HyperbolicLinear(6, 400, dropout=0.5, bias=False).double()
    u, k = torch.eye(6, dtype=torch.float64), k_of(-1e-6)
    dropped = linear(u, k) == 0
    assert 0.4 < dropped.double().mean() < 0.6
    assert not (linear.eval()(u, k) == 0).any()


def test_layers_have_curvatures_of_their_own_with_a_learning_rate_of_their_own():
    model = HGCN(4, 5, 3, num_layers=3, curvature=0.5)
    assert model.curvature().tolist() == pytest.approx([-0.5] * 4)
    assert [p.shape for p in model.metric_parameters()] == [(4,)]
    assert HGCN(4, 5, 3, learnable_curvature=False).metric_parameters() == []


def test_rows_of_the_input_are_scaled_unless_told_otherwise():
    x = features(NUM_NODES, 4).abs().float()
    model = perturbed(HGCN(4, 5, 3)).eval()
    torch.testing.assert_close(model(3 * x, GRAPH), model(x, GRAPH))
    raw = HGCN(4, 5, 3, normalize_input=False).eval()
    raw.load_state_dict(model.state_dict())
    torch.testing.assert_close(model(3 * x, GRAPH), raw(normalized_rows(3 * x), GRAPH))
    assert not torch.allclose(raw(3 * x, GRAPH), raw(x, GRAPH))


def test_points_are_in_the_ball_and_pairs_are_scored_by_their_distance():
    geoopt = pytest.importorskip("geoopt")
    model = perturbed(HGCN(4, 5, 5, head="points", curvature=2.0).double()).eval()
    points = model(10 * features(NUM_NODES, 4), GRAPH)
    k = model.curvature()[-1]
    assert (points.norm(dim=-1) < (-k).rsqrt()).all()
    ball = geoopt.PoincareBall(c=-k.detach())
    pairs = torch.tensor([[0, 1, 2], [3, 4, 2]])
    link = LinkModel(model, "distance").eval()
    expected = 2 - ball.dist(points[pairs[0]], points[pairs[1]]) ** 2
    torch.testing.assert_close(link.pair_scores(points, pairs), expected, rtol=1e-5, atol=1e-6)


def test_scores_of_classes_are_euclidean_embeddings():
    a, b = features(3, 5), features(3, 5, seed=1)
    model = HGCN(4, 5, 5).double()
    assert torch.equal(model.squared_distance(a, b), (a - b).square().sum(-1))


def test_unknown_head_is_refused():
    with pytest.raises(ConfigError, match="head must be 'linear' or 'points'"):
        HGCN(4, 5, 3, head="hyperplanes")
