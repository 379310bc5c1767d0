"""The statistics of the training graph: fitted once, stored, restored, and used on other graphs."""

import copy

import pytest
import torch

from argnn.functional.structure import (
    NUM_DESCRIPTORS,
    column_statistics,
    standardized,
    structural_descriptor,
)
from argnn.nn import ARGNN, ARConv, LinkModel, MetricNet
from argnn.nn.graph_statistics import GraphStatistics
from argnn.nn.models.cusp import CUSP

from .cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

CHANNELS = 4
X, EDGE_INDEX = features(NUM_NODES, CHANNELS), edge_tensor(EDGES)
OTHER_X = features(6, CHANNELS, seed=3)
OTHER = edge_tensor([(0, 1), (1, 0), (1, 2), (2, 0), (3, 4)])

NEEDED = {
    "structure": {"inputs": "structure"},
    "both": {"inputs": "both"},
    "degree": {"inputs": "features", "init": "degree"},
    "all": {"inputs": "both", "init": "degree"},
}
every_need = pytest.mark.parametrize("options", NEEDED.values(), ids=NEEDED)


def net_of(**options) -> MetricNet:
    torch.manual_seed(0)
    return perturbed(MetricNet(CHANNELS, 3, **options).double())


def stored(module) -> dict[str, torch.Tensor]:
    return {k: v.clone() for k, v in module.state_dict().items() if "statistics." in k}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert torch.equal(found[name], value), name


# -- the numbers ----------------------------------------------------------------------------------


def test_start_is_neutral_and_reset_goes_back_to_it():
    statistics = GraphStatistics(mean=(0.0, (2,)), scale=(1.0, ()))
    neutral = copy.deepcopy(statistics.state_dict())
    assert statistics.mean.dtype == torch.float64
    assert not statistics.is_fitted
    statistics.store(mean=torch.tensor([1.0, 2.0]), scale=torch.tensor(3.0))
    assert (statistics.is_fitted, statistics.mean.tolist(), float(statistics.scale)) == (
        True,
        [1.0, 2.0],
        3.0,
    )
    statistics.reset_parameters()
    assert not statistics.is_fitted
    assert_equal(statistics.state_dict(), neutral)


def test_state_brings_back_whether_a_graph_was_seen():
    first, second = (GraphStatistics(mean=(0.0, (2,))) for _ in range(2))
    first.store(mean=torch.tensor([1.0, 2.0]))
    second.load_state_dict(first.state_dict())
    assert second.is_fitted
    assert second.mean.tolist() == [1.0, 2.0]
    second.load_state_dict(GraphStatistics(mean=(0.0, (2,))).state_dict())
    assert not second.is_fitted


def test_copies_are_their_own():
    first = GraphStatistics(mean=(0.0, ()))
    second = copy.deepcopy(first)
    second.store(mean=torch.tensor(5.0))
    assert not first.is_fitted
    assert float(first.mean) == 0


# -- metric networks ------------------------------------------------------------------------------


@every_need
def test_first_training_call_fits_and_later_graphs_change_nothing(options):
    net = net_of(**options)
    net.eval()(X, EDGE_INDEX)
    assert not net.statistics.is_fitted, "evaluation never fits"
    net.train()(X, EDGE_INDEX)
    assert net.statistics.is_fitted
    before = stored(net)
    net(OTHER_X, OTHER)
    net.eval()(OTHER_X, OTHER)
    assert_equal(stored(net), before)


@every_need
def test_fitting_by_hand_is_what_the_first_training_call_does(options):
    by_call, by_hand = net_of(**options), net_of(**options)
    by_call(X, EDGE_INDEX)
    by_hand.fit_to_graph(EDGE_INDEX, NUM_NODES)
    assert_equal(stored(by_hand), stored(by_call))
    by_hand.fit_to_graph(OTHER, 6)
    assert not torch.equal(by_hand(X, EDGE_INDEX), by_call(X, EDGE_INDEX)), "a call fits again"


@every_need
def test_reset_forgets_the_graph(options):
    net = net_of(**options)
    neutral = stored(net)
    net(X, EDGE_INDEX)
    net.reset_parameters()
    assert not net.statistics.is_fitted
    assert_equal(stored(net), neutral)


def test_another_graph_is_standardised_by_the_training_graph():
    net = net_of(inputs="structure", num_layers=1)
    net.fit_to_graph(EDGE_INDEX, NUM_NODES)
    s = structural_descriptor(EDGE_INDEX, NUM_NODES)
    other = (structural_descriptor(OTHER, 6) - s.mean(0)) / s.std(0, correction=0)
    raw = other @ net.lins[0].weight.t() + net.lins[0].bias
    expected = torch.nn.functional.softplus(raw) + net.floor
    torch.testing.assert_close(net.eval()(OTHER_X, OTHER), expected, rtol=1e-10, atol=1e-10)


def test_a_column_that_training_could_not_learn_from_stays_zero():
    ring = edge_tensor([(a, (a + d) % 8) for a in range(8) for d in (1, -1)])
    s = structural_descriptor(ring, 8)
    other = standardized(structural_descriptor(OTHER, 6), *column_statistics(s))
    assert not other.any()


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-300, -1e300])
def test_no_deviation_in_a_file_gives_numbers_that_are_not_finite(value):
    net = net_of(inputs="both")
    net.fit_to_graph(EDGE_INDEX, NUM_NODES)
    net.load_state_dict(
        {
            **net.state_dict(),
            "statistics.deviation": torch.full((NUM_DESCRIPTORS,), value, dtype=torch.float64),
        }
    )
    assert net.eval()(X, EDGE_INDEX).isfinite().all()


def test_an_empty_training_graph_is_not_fitted_to():
    net = net_of(inputs="both")
    net.fit_to_graph(edge_tensor([]), 0)
    assert not net.statistics.is_fitted


def test_metrics_from_features_alone_store_nothing():
    net = net_of(inputs="features")
    net.fit_to_graph(EDGE_INDEX, NUM_NODES)
    assert net.statistics is None
    assert stored(net) == {}


# -- models ---------------------------------------------------------------------------------------


def model_of(**options) -> ARGNN:
    torch.manual_seed(0)
    return perturbed(ARGNN(CHANNELS, 8, 8, num_layers=2, **options).double())


def test_models_hand_the_graph_on_to_every_metric():
    for model in (model_of(), LinkModel(model_of(), "metric")):
        model.fit_to_graph(EDGE_INDEX, NUM_NODES)
        assert all(m.is_fitted for m in model.modules() if isinstance(m, GraphStatistics))
    model_of(metric="fixed").fit_to_graph(EDGE_INDEX, NUM_NODES)


def test_state_of_a_model_is_used_on_another_graph():
    model, fresh = model_of(), model_of()
    model.fit_to_graph(EDGE_INDEX, NUM_NODES)
    fresh.load_state_dict(model.state_dict())
    copied = copy.deepcopy(model)
    expected = model.eval()(OTHER_X, OTHER)
    for other in (fresh.train(), copied.train()):
        other(OTHER_X, OTHER)  # would fit, had it not been
        assert torch.equal(other.eval()(OTHER_X, OTHER), expected)


@pytest.mark.parametrize("build", [model_of, lambda: CUSP(CHANNELS, 8, 3)], ids=["argnn", "cusp"])
def test_state_from_before_these_numbers_is_refused(build):
    model = build()
    old = {k: v for k, v in model.state_dict().items() if "statistics." not in k}
    with pytest.raises(ValueError, match="made before models stored .*; train the model again$"):
        model.load_state_dict(old)
    missing, _ = model.load_state_dict(old, strict=False)
    assert all("statistics." in name for name in missing)


@pytest.mark.parametrize("options", [{"metric": "both"}, {"metric_options": {"init": "degree"}}])
def test_compiled_convolution_fits_in_its_first_training_call(options):
    torch.compiler.reset()
    torch.manual_seed(0)
    conv = perturbed(ARConv(CHANNELS, 3, **options))
    eager = copy.deepcopy(conv)
    compiled = torch.compile(conv, fullgraph=True, backend="aot_eager")
    for x, edges in ((X.float(), EDGE_INDEX), (OTHER_X.float(), OTHER)):
        torch.testing.assert_close(compiled(x, edges), eager(x, edges), rtol=1e-4, atol=1e-5)
        assert conv.metric_net.statistics.is_fitted
    for name, value in stored(eager).items():
        torch.testing.assert_close(stored(conv)[name], value)
    torch.compiler.reset()


# -- CUSP -----------------------------------------------------------------------------------------


def test_cusp_keeps_the_mean_of_its_first_evaluation_after_training():
    torch.manual_seed(0)
    model = CUSP(CHANNELS, 8, 3, hops=2, dropout=0.0).double()
    model(X, EDGE_INDEX)
    assert not model.pooling.statistics.is_fitted
    first = model.eval()(X, EDGE_INDEX)
    center = stored(model)
    model(OTHER_X, OTHER)
    assert_equal(stored(model), center)
    assert torch.equal(model(X, EDGE_INDEX), first)
    model.train()(X, EDGE_INDEX)
    assert not model.pooling.statistics.is_fitted, "training makes it another mean"
