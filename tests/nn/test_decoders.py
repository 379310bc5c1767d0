"""Decoders against their formulas, and every model of the registry as their encoder."""

import copy
import math

import pytest
import torch

import reference
from argnn.errors import ConfigError
from argnn.nn import ARGNN, DECODERS, GCN, MLP, MODELS, LinkModel
from argnn.train import LinkPrediction, TrainConfig, fit

from .cases import features, metrics, perturbed

WIDTH, IN, NODES = 8, 4, 12

every_decoder = pytest.mark.parametrize("decoder", DECODERS)
every_model = pytest.mark.parametrize("name", MODELS)


def toy(dtype=torch.float64):
    """Features, edges of a random undirected graph, and its pairs; the last node is isolated."""
    generator = torch.Generator().manual_seed(0)
    ends = torch.randint(0, NODES - 1, (2, 24), generator=generator)
    pairs = torch.unique(ends.sort(dim=0).values[:, ends[0] != ends[1]], dim=1)
    return features(NODES, IN, dtype=dtype), torch.cat([pairs, pairs.flip(0)], dim=1), pairs


def encoder(name="gcn", **options):
    return MODELS[name](
        in_channels=IN, hidden_channels=WIDTH, out_channels=WIDTH, num_layers=2, **options
    )


def link_model(name, decoder, seed=0, **options):
    torch.manual_seed(seed)
    return LinkModel(encoder(name, **options), decoder)


def has_metric(name):
    x, edge_index, _ = toy(torch.float32)
    return bool(encoder(name).eval().forward_with_metric(x, edge_index)[1])


def build(decoder):
    """A decoder in float64 with parameters away from where they start."""
    torch.manual_seed(0)
    return perturbed(DECODERS[decoder](encoder()).double())


def points(count=6):
    return features(count, WIDTH, 1), features(count, WIDTH, 2), metrics(count, WIDTH)


# -- formulas -------------------------------------------------------------------------------------


def fermi_dirac(decoder, squared):
    part = decoder.fermi_dirac
    return (part.radius.item() - squared) / math.exp(part.log_temperature.item())


def dot(a, b):
    return sum(u * v for u, v in zip(a, b, strict=True))


def slow_dot(decoder, a, b, g):
    return dot(a, b)


def slow_cosine(decoder, a, b, g):
    return decoder.scale.item() * dot(a, b) / math.sqrt(dot(a, a) * dot(b, b))


def slow_distance(decoder, a, b, g):
    return fermi_dirac(decoder, sum((u - v) ** 2 for u, v in zip(a, b, strict=True)))


def slow_metric(decoder, a, b, g):
    return fermi_dirac(decoder, reference.geodesic_distance(a, b, g) ** 2 / len(a))


def slow_mlp(decoder, a, b, g):
    first, last = ((lin.weight.tolist(), lin.bias.tolist()) for lin in decoder.net.lins)
    hidden = [u * v for u, v in zip(a, b, strict=True)]
    hidden = [max(dot(row, hidden) + bias, 0.0) for row, bias in zip(*first, strict=True)]
    return dot(last[0][0], hidden) + last[1][0]


SLOW = {
    "dot": slow_dot,
    "cosine": slow_cosine,
    "distance": slow_distance,
    "metric": slow_metric,
    "mlp": slow_mlp,
}


@every_decoder
def test_decoder_is_its_formula(decoder):
    module, (a, b, g) = build(decoder), points()
    found = module(a, b, g)
    rows = zip(a.tolist(), b.tolist(), g.tolist(), strict=True)
    expected = [SLOW[decoder](module, *row) for row in rows]
    assert found.shape == (6,)
    torch.testing.assert_close(
        found, torch.tensor(expected, dtype=torch.float64), rtol=1e-10, atol=1e-10
    )


@every_decoder
def test_decoder_does_not_care_about_the_order_of_a_pair(decoder):
    module, (a, b, g) = build(decoder), points()
    assert torch.equal(module(a, b, g), module(b, a, g))


@every_decoder
def test_decoder_gradient(decoder):
    module, inputs = build(decoder), [tensor.requires_grad_() for tensor in points(4)]
    names = [name for name, _ in module.named_parameters()]
    values = [parameter.detach().clone().requires_grad_() for parameter in module.parameters()]

    def score(a, b, g, *parameters):
        changed = dict(zip(names, parameters, strict=True))
        return torch.func.functional_call(module, changed, (a, b, g))

    assert torch.autograd.gradcheck(score, (*inputs, *values))


@every_decoder
def test_decoder_is_finite_where_points_meet_or_vanish(decoder):
    module, (a, _, g) = build(decoder), points()
    for u, v in ((a, a), (0 * a, a), (0 * a, 0 * a), (1e4 * a, -1e4 * a)):
        ends = [u.clone().requires_grad_(), v.clone().requires_grad_()]
        scores = module(*ends, g)
        assert scores.isfinite().all()
        scores.sum().backward()
        assert all(end.grad is None or end.grad.isfinite().all() for end in ends)


def test_fermi_dirac_decoders_start_from_the_values_of_hgcn():
    a, b, g = points()
    distance, metric = (DECODERS[name](encoder()) for name in ("distance", "metric"))
    squared = (a - b).square().sum(-1)
    torch.testing.assert_close(distance(a, b, None), 2 - squared)
    torch.testing.assert_close(metric(a, b, torch.ones_like(g)), 2 - squared / WIDTH)


def test_start_of_the_metric_decoder_does_not_depend_on_the_width():
    module = DECODERS["metric"](encoder())
    a, b, g = points()
    wide = [tensor.repeat(1, 3) for tensor in (a, b, g)]
    torch.testing.assert_close(module(*wide), module(a, b, g))


def test_distance_is_that_of_the_encoders_own_space():
    class Stretched(GCN):
        def squared_distance(self, a, b):
            return 7 * (a - b).square().sum(-1)

    a, b, _ = points()
    own = DECODERS["distance"](Stretched(IN, WIDTH, WIDTH))
    usual = DECODERS["distance"](encoder())
    torch.testing.assert_close(2 - own(a, b, None), 7 * (2 - usual(a, b, None)))


# -- the metric decoder is particular -------------------------------------------------------------


def test_metric_decoder_refuses_a_model_without_metric():
    x, edge_index, pairs = toy(torch.float32)
    model = link_model("gcn", "metric")
    with pytest.raises(ValueError, match="'metric' needs a model that learns a metric"):
        model.pair_scores(model(x, edge_index), pairs)


def test_metric_decoder_refuses_a_metric_of_another_width():
    x, edge_index, pairs = toy(torch.float32)
    model = LinkModel(ARGNN(IN, WIDTH, WIDTH + 2), "metric")
    with pytest.raises(ValueError, match=f"as wide as the metric, {WIDTH} \\(got {WIDTH + 2}\\)"):
        model.pair_scores(model(x, edge_index), pairs)


def test_metric_of_a_pair_is_the_mean_of_both_ends():
    x, edge_index, pairs = toy()
    model = perturbed(link_model("argnn", "metric").double()).eval()
    embedding, found = model.forward_with_metric(x, edge_index)
    torch.testing.assert_close(embedding[:, WIDTH:], found[-1])
    assert found[-1].std(0).min() > 1e-3, "else any metric would do"
    scores = model.pair_scores(embedding, pairs)
    for score, (i, j) in zip(scores.tolist(), pairs.t().tolist(), strict=True):
        g = ((found[-1][i] + found[-1][j]) / 2).tolist()
        ends = embedding[i, :WIDTH].tolist(), embedding[j, :WIDTH].tolist()
        assert score == pytest.approx(slow_metric(model.decoder, *ends, g), rel=1e-10)


def test_other_decoders_do_not_read_the_metric():
    x, edge_index, pairs = toy(torch.float32)
    for decoder in DECODERS.keys() - {"metric"}:
        model = link_model("argnn", decoder).eval()
        embedding = model(x, edge_index)
        changed = embedding.clone()
        changed[:, WIDTH:] *= -3
        expected = model.pair_scores(embedding, pairs)
        assert torch.equal(model.pair_scores(changed, pairs), expected), decoder


# -- encoder and decoder together -----------------------------------------------------------------


@every_model
@every_decoder
def test_every_model_is_an_encoder_for_every_decoder_that_fits(name, decoder):
    x, edge_index, pairs = toy(torch.float32)
    model = link_model(name, decoder)
    if decoder == "metric" and not has_metric(name):
        with pytest.raises(ValueError, match="needs a model that learns a metric"):
            model.pair_scores(model(x, edge_index), pairs)
        return
    before = copy.deepcopy(model.state_dict())
    task = LinkPrediction(pairs[:, 3:], pairs[:, :3], torch.tensor([[0, 1, 2], [11] * 3]), NODES)
    graph = type("Graph", (), {"x": x, "edge_index": edge_index})
    result = fit(model, graph, task, TrainConfig(epochs=2, lr=0.01))
    assert all(math.isfinite(record.loss) for record in result.history)
    changed = {n for n, t in model.state_dict().items() if not torch.equal(t, before[n])}
    assert any(n.startswith("encoder.") for n in changed)
    assert {n for n, _ in model.decoder.named_parameters(prefix="decoder")} <= changed

    scores = model.pair_scores(model(x, edge_index), pairs)
    assert scores.shape == (pairs.size(1),)
    assert scores.isfinite().all()
    turned = model.pair_scores(model(x, edge_index), pairs.flip(0))
    torch.testing.assert_close(turned, scores)


@every_model
def test_decoder_that_a_model_names_fits_it(name):
    x, edge_index, pairs = toy(torch.float32)
    kind = MODELS[name]
    model = link_model(name, kind.link_decoder, **kind.link_options).eval()
    assert model.pair_scores(model(x, edge_index), pairs).isfinite().all()


@every_decoder
def test_parameters_are_those_of_encoder_and_decoder_each_once(decoder):
    model = link_model("argnn", decoder)
    own = [*model.encoder.parameters(), *model.decoder.parameters()]
    assert [id(p) for p in model.parameters()] == [id(p) for p in own]
    assert len({id(p) for p in own}) == len(own)
    assert {key.split(".")[0] for key in model.state_dict()} <= {"encoder", "decoder"}
    assert [id(p) for p in model.metric_parameters()] == [
        id(p) for p in model.encoder.metric_parameters()
    ]
    assert model.metric_parameters()


@every_decoder
def test_link_model_state_dict_round_trip(decoder):
    x, edge_index, pairs = toy(torch.float32)
    first = perturbed(link_model("argnn", decoder)).eval()
    second = link_model("argnn", decoder, seed=1).eval()
    expected = first.pair_scores(first(x, edge_index), pairs)
    assert not torch.equal(second.pair_scores(second(x, edge_index), pairs), expected)
    second.load_state_dict(first.state_dict())
    assert torch.equal(second.pair_scores(second(x, edge_index), pairs), expected)


@every_decoder
def test_reset_draws_encoder_and_decoder_anew(decoder):
    model = link_model("argnn", decoder)
    start = copy.deepcopy(model.state_dict())
    perturbed(model)
    assert all(not torch.equal(p, start[n]) for n, p in model.named_parameters())
    torch.manual_seed(7)
    model.reset_parameters()
    first = copy.deepcopy(model.state_dict())
    perturbed(model)
    torch.manual_seed(7)
    model.reset_parameters()
    assert all(torch.equal(t, first[n]) for n, t in model.state_dict().items())


def test_copy_measures_distances_in_its_own_encoder():
    model = copy.deepcopy(link_model("gcn", "distance"))
    assert model.decoder._encoder[0] is model.encoder


def test_link_model_passes_on_what_the_encoder_is():
    for kind in (ARGNN, GCN, MLP):
        inner = kind(IN, 7, WIDTH)
        model = LinkModel(inner, "dot")
        assert (model.in_channels, model.hidden_channels, model.out_channels) == (IN, 7, WIDTH)
        assert model.recordable == inner.recordable


def test_decoder_name_is_folded_and_a_wrong_one_gets_a_suggestion():
    assert isinstance(LinkModel(encoder(), "DOT").decoder, DECODERS["dot"])
    with pytest.raises(ConfigError, match="unknown decoder 'metrc'; did you mean 'metric'"):
        LinkModel(encoder(), "metrc")
