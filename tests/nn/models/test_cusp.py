"""The parts of CUSP against their formulas, written out with the maps of the product."""

import math

import pytest
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from argnn.errors import ConfigError
from argnn.functional import node_curvature
from argnn.functional.curvature_weights import normalized_weight
from argnn.functional.edge_values import ordered_edges
from argnn.nn import LinkModel
from argnn.nn.manifolds import StereographicProduct
from argnn.nn.models import cusp
from argnn.nn.models.cusp import CUSP, CurvatureCode, CuspPooling

NODES = 9


def cycle(n=NODES):
    edges = torch.tensor([(a, (a + 1) % n) for a in range(n)]).t()
    return torch.cat([edges, edges.flip(0)], 1)


def build(**options):
    torch.manual_seed(0)
    return CUSP(4, 8, 3, **{"dropout": 0.0, "hops": 3, **options}).double()


def normal(*shape, seed=1):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_flat_filters_on_an_unweighted_graph_are_powers_of_the_adjacency(monkeypatch):
    def unweighted(edge_index, nodes, dtype, method):
        edges = ordered_edges(edge_index, nodes, closed=True)
        return normalized_weight(torch.ones(edges.num_edges, dtype=dtype), edges)

    monkeypatch.setattr(cusp, "cusp_adjacency", unweighted)
    edges = cycle()
    index, norm = gcn_norm(edges, None, NODES, dtype=torch.float64)
    adjacency = torch.zeros(NODES, NODES, dtype=torch.float64).index_put((index[1], index[0]), norm)
    u = 100 * normal(NODES, 8)
    expected = torch.stack([torch.linalg.matrix_power(adjacency, k) @ u for k in range(4)])
    torch.testing.assert_close(build(signature="ee").filter_bank(u, edges), expected)


def test_filters_on_a_cycle_have_one_weight():
    w = math.exp(-1) / (1 + 2 * math.exp(-1))
    u = normal(NODES, 8)
    found = build(signature="ee", hops=1).filter_bank(u, cycle())
    expected = u / (1 + 2 * math.exp(-1)) + w * (u.roll(1, 0) + u.roll(-1, 0))
    torch.testing.assert_close(found, torch.stack([u, expected]))


def test_filters_are_sums_in_the_tangent_space_of_points():
    # The maps between two hops cancel.
    model = build(signature="hs")
    u, edges = 0.3 * normal(NODES, 8), cycle()
    closed = ordered_edges(edges, NODES, closed=True)
    weight = cusp.cusp_adjacency(edges, NODES, torch.float64, "exact")
    dense = torch.zeros(NODES, NODES, dtype=torch.float64)
    dense = dense.index_put((closed.target, closed.source), weight)
    points = [model.product.expmap0(u)]
    for _ in range(3):
        points.append(model.product.expmap0(dense @ model.product.logmap0(points[-1])))
    expected = torch.stack([model.product.logmap0(x) for x in points])
    torch.testing.assert_close(model.filter_bank(u, edges), expected, rtol=1e-7, atol=1e-7)


def slow_pooling(pooling, space, hops):
    """As in the paper, hop by hop and factor by factor."""
    total = 0
    mix = pooling.epsilon.softmax(0)
    for level, u in enumerate(hops):
        inputs = space.split(u).unbind(1)
        mapped = [v @ pooling.weight[q] for q, v in enumerate(inputs)]
        points = space.expmap0(torch.cat(mapped, -1) + pooling.bias)
        logs = space.split(space.logmap0(points))
        gap = logs - logs.mean(0)
        attention = torch.stack(
            [torch.sigmoid(gap[:, q] @ pooling.theta[q]) for q in range(len(inputs))], -1
        )
        scaled = space.expmap0(space.join(attention.softmax(-1).unsqueeze(-1) * logs))
        total = total + mix[level] * scaled
    return total


@pytest.mark.parametrize("signs", [(-0.7,), (0.0, 0.0), (-1.0, 0.5), (-1.0, -0.3, 0.9, 0.0)])
@pytest.mark.parametrize("size", [0.5, 30.0])
def test_pooling_is_attention_over_factors_and_hops(signs, size):
    torch.manual_seed(0)
    space = StereographicProduct(signs)
    pooling = CuspPooling(space, 8, hops=2).double()
    hops = size * normal(3, NODES, 8)
    expected = slow_pooling(pooling, space.double(), hops)
    torch.testing.assert_close(pooling(pooling.mapped(hops)), expected, rtol=1e-7, atol=1e-7)


def test_maps_of_factors_and_hops_commute():
    model = build(signature="hs")
    u, edges = normal(NODES, 8), cycle()
    first = model.filter_bank(model.pooling.mapped(u), edges)
    torch.testing.assert_close(first, model.pooling.mapped(model.filter_bank(u, edges)))


def test_weights_of_factors_sum_to_one():
    pooling = CuspPooling(StereographicProduct([-1.0, 0.0, 1.0]), 6, hops=2).double()
    weights = pooling.factor_weights(normal(3, NODES, 3))
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, NODES, dtype=torch.float64))
    assert (weights > 0).all()


def test_pooling_has_the_right_gradient():
    torch.manual_seed(0)
    pooling = CuspPooling(StereographicProduct([-1.0, 0.0, 0.5]), 6, hops=1).double()
    space = pooling._space[0].double()
    hops = normal(2, 4, 6).requires_grad_()
    values = [*pooling.parameters(), space.curvature.raw]
    assert torch.autograd.gradcheck(lambda *_: pooling(pooling.mapped(hops)), (hops, *values))


def test_code_is_that_of_the_formula():
    torch.manual_seed(0)
    space = StereographicProduct([-1.0, 0.5])
    code = CurvatureCode(space, 8, 5).double().eval()
    space.double()
    curvature = normal(NODES)
    f = code.frequencies
    first, second, third = code.lins
    omega = third(second(first(f).relu()) + f)
    for i, value in enumerate(curvature):
        waves = torch.cat([(value * omega).sin(), (value * omega).cos()]) / math.sqrt(5)
        expected = code.lin_out(space.expmap0(code.lin_in(waves)))
        torch.testing.assert_close(code(curvature)[i], expected)


def test_frequencies_are_between_a_tenth_and_one_stored_and_fixed_in_evaluation():
    model = build()
    frequencies = model.state_dict()["code.frequencies"]
    assert frequencies.shape == (16,)
    assert ((frequencies >= 0.1) & (frequencies <= 1)).all()
    curvature = normal(NODES)
    model.eval()
    assert torch.equal(model.code(curvature), model.code(curvature))
    model.train()
    torch.manual_seed(0)
    first, second = model.code(curvature), model.code(curvature)
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    assert torch.equal(model.code(curvature), first)


def test_curvatures_start_below_one_with_the_signs_of_the_signature():
    k = build(signature="HseH").product.curvatures()
    assert k.sign().tolist() == [-1, 1, 0, -1]
    assert (k.abs() < 1).all()
    others = build(signature="HseH")
    torch.manual_seed(5)
    others.reset_parameters()
    assert not torch.equal(others.product.curvatures(), k)
    assert [id(p) for p in others.metric_parameters()] == [id(others.product.curvature.raw)]


def test_rows_have_length_one_before_the_last_map():
    model = build().eval()
    seen = []
    model.head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    model(normal(NODES, 4), cycle())
    torch.testing.assert_close(seen[0].norm(dim=-1), torch.ones(NODES, dtype=torch.float64))


def test_isolated_nodes_have_curvature_zero_and_only_themselves():
    edges = cycle(6)
    assert node_curvature(edges, NODES)[6:].tolist() == [0.0] * 3
    u = normal(NODES, 8)
    bank = build(signature="ee").filter_bank(u, edges)
    torch.testing.assert_close(bank[:, 6:], u[6:].expand(4, 3, 8))


def test_curvature_is_that_of_the_edges_that_are_given():
    model = build().eval()
    seen = []
    model.code.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    message = cycle()[:, 1:]
    message = message[:, ~((message[0] == 1) & (message[1] == 0))]
    model(normal(NODES, 4), message)
    torch.testing.assert_close(seen[0], node_curvature(message, NODES))
    assert not torch.equal(seen[0], node_curvature(cycle(), NODES))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("signature", ["hhse", "s", "h"])
def test_single_precision_stays_finite(signature, size):
    model = build(signature=signature, hops=10).float().train()
    x = (size * normal(NODES, 4)).float()
    x[0] = 0
    scores = model(x, cycle(7))
    scores.square().sum().backward()
    assert scores.isfinite().all()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_gives_embeddings_for_links():
    torch.manual_seed(0)
    model = LinkModel(CUSP(4, 8, 8, **CUSP.link_options), CUSP.link_decoder)
    embedding = model(normal(NODES, 4).float(), cycle())
    assert model.pair_scores(embedding, torch.tensor([[0, 1], [5, 2]])).isfinite().all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"signature": ""}, "signature must be letters of h, e and s"),
        ({"signature": "hx"}, "signature must be letters of h, e and s .*'hx'"),
        ({"signature": "hse"}, r"multiple of the 3 factors \(got 8\)"),
        ({"hops": -1}, "hops must be at least 0"),
        ({"ricci": "fast"}, "ricci must be one of"),
    ],
)
def test_refuses_impossible_options(options, message):
    with pytest.raises(ConfigError, match=message):
        CUSP(4, 8, 3, **options)
