import pytest
import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.nn import GCNConv

from argnn.errors import ConfigError
from argnn.functional.self_loops import closed_aggregate
from argnn.nn.conv.kappa_gcn_conv import KappaGCNConv
from argnn.nn.manifolds import StereographicProduct
from argnn.nn.models import KappaGCN

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor([edge for edge in EDGES if edge[0] != edge[1]])


def space_of(*kappas) -> StereographicProduct:
    return StereographicProduct(kappas, learnable=False).double()


def conv_of() -> KappaGCNConv:
    torch.manual_seed(0)
    return KappaGCNConv(4, 6).double().eval()


def with_curvature(model: KappaGCN, kappa: float) -> KappaGCN:
    with torch.no_grad():
        for space in model.spaces:
            space.curvature.raw.fill_(kappa).atanh_()
    return model


def model_of(**options) -> KappaGCN:
    torch.manual_seed(0)
    return KappaGCN(4, 6, 3, normalize_input=False, **options).double().eval()


def gcn_scores(model: KappaGCN, x: Tensor) -> Tensor:
    """What a GCN with the same weights gives, its last bias from the points of the hyperplanes."""
    h = x
    for conv in model.convs:
        gcn = GCNConv(conv.in_channels, conv.out_channels, bias=False).double()
        gcn.lin.weight = conv.lin.weight
        h = F.relu(gcn(h, GRAPH))
    head = model.classifier
    bias = (head.point * head.normal).sum(-1)
    return closed_aggregate(h @ head.normal.t() - bias, GRAPH)


@pytest.mark.parametrize("factors", [1, 2, 3])
@pytest.mark.parametrize("num_layers", [2, 3])
def test_flat_network_is_four_times_a_gcn(factors, num_layers):
    model = perturbed(model_of(factors=factors, num_layers=num_layers))
    with_curvature(model, 0.0)
    x = features(NUM_NODES, 4)
    torch.testing.assert_close(model(x, GRAPH), 4 * gcn_scores(model, x))


@pytest.mark.parametrize("sign", [-1, 1])
def test_scores_depend_linearly_on_a_small_curvature_of_either_sign(sign):
    model, x = perturbed(model_of()), 0.3 * features(NUM_NODES, 4)
    flat = with_curvature(model, 0.0)(x, GRAPH)
    coarse, fine = (
        (with_curvature(model, sign * size)(x, GRAPH) - flat).abs().max().item()
        for size in (1e-4, 1e-6)
    )
    assert 1e-8 < fine < 1e-4
    assert coarse == pytest.approx(100 * fine, rel=0.05)


@pytest.mark.parametrize("kappa", [-0.9, -0.2])
def test_convolution_is_the_scaled_midpoint_of_geoopt(kappa):
    reference = pytest.importorskip("geoopt.manifolds.stereographic.math")
    conv, space = conv_of(), space_of(kappa)
    x = 0.4 * features(NUM_NODES, 4)
    k = space.curvatures().squeeze()
    points = reference.expmap0(x @ conv.lin.weight.t(), k=k)
    weights = closed_aggregate(torch.eye(NUM_NODES, dtype=torch.float64), GRAPH)
    middle = reference.weighted_midpoint(
        points.unsqueeze(0), k=k, weights=weights, reducedim=[1], lincomb=True
    )
    found = space.expmap0(conv(x, GRAPH, space))
    assert (found - middle).abs().max() < 1e-8  # geoopt keeps denominators from zero by 1e-10


def test_flat_convolution_is_that_of_gcn():
    conv, x = conv_of(), features(NUM_NODES, 4)
    expected = closed_aggregate(x @ conv.lin.weight.t(), GRAPH)
    assert (conv(x, GRAPH, space_of(0.0)) - expected).abs().max() < 1e-13


def test_factors_do_not_mix():
    conv, x = conv_of(), features(NUM_NODES, 4)
    found = conv(x, GRAPH, space_of(-0.9, 0.5))
    for kappa, columns in ((-0.9, slice(0, 3)), (0.5, slice(3, 6))):
        part = KappaGCNConv(4, 3).double().eval()
        part.lin.weight = torch.nn.Parameter(conv.lin.weight[columns])
        torch.testing.assert_close(found[:, columns], part(x, GRAPH, space_of(kappa)))


@pytest.mark.parametrize("curvature", [-0.3, 0.3])
def test_training_takes_curvatures_through_zero(curvature):
    """The loss asks for a curvature of the other sign; nothing else is trained."""
    model = model_of(num_layers=2, curvature=curvature).float()
    x = 0.3 * features(NUM_NODES, 4, dtype=torch.float32)
    wanted = with_curvature(model, -curvature)(x, GRAPH).detach()
    with_curvature(model, curvature)
    optimizer = torch.optim.Adam(model.metric_parameters(), lr=0.02)
    assert len(model.metric_parameters()) == 2
    seen = []
    for _ in range(200):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x, GRAPH), wanted)
        loss.backward()
        optimizer.step()
        seen.append(model.spaces[0].curvatures().item())
        assert all(p.grad.isfinite().all() for p in model.parameters())
    assert seen[0] * curvature > 0
    assert seen[-1] * curvature < 0


@pytest.mark.parametrize("kappa", [-0.9999, 0.9999])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_large_features_are_kept_inside_at_the_largest_curvatures(kappa, scale):
    x = scale * features(NUM_NODES, 4, dtype=torch.float32)
    for head in ("hyperplanes", "points"):
        model = with_curvature(perturbed(KappaGCN(4, 6, 6, head=head)), kappa).eval()
        model.normalize_input = False
        out = model(x, GRAPH)
        assert out.isfinite().all()
        loss = out.square().sum() + model.squared_distance(out, out.flip(0)).sum()
        loss.backward()
        assert all(p.grad.isfinite().all() for p in model.parameters())
        if head == "points":
            assert (out.norm(dim=-1) < abs(kappa) ** -0.5).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"factors": 4}, "multiple of factors"),
        ({"factors": 0}, "multiple of factors"),
        ({"curvature": 1.0}, "between -1 and 1"),
        ({"head": "linear"}, "head must be 'hyperplanes' or 'points'"),
    ],
)
def test_impossible_options_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        KappaGCN(4, 6, 3, **options)
