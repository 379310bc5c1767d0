"""A fitted estimator says the same about a graph, whatever else stands beside it."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor
from argnn.data import mixed
from argnn.errors import ConfigError, RunError
from argnn.files import read_tensors
from argnn.functional.structure import column_statistics, structural_descriptor
from argnn.nn.graph_statistics import GraphStatistics
from argnn.store.model_folder import WEIGHTS

from .conftest import planted

OPTIONS = {"device": "cpu", "model_options": {"hidden_channels": 16, "num_layers": 2}}


def beside_isolated_nodes(graph: Data, count: int = 2000) -> Data:
    generator = torch.Generator().manual_seed(0)
    strangers = torch.randn(count, graph.x.size(1), generator=generator)
    return Data(x=torch.cat([graph.x, strangers]), edge_index=graph.edge_index)


def bare(graph: Data) -> Data:
    return Data(x=graph.x, edge_index=graph.edge_index)


@pytest.fixture(scope="module")
def classifier():
    return ARGNNClassifier(trial=False, epochs=30, **OPTIONS).fit(mixed(0))


@pytest.fixture(scope="module")
def predictor():
    return ARGNNLinkPredictor(epochs=10, **OPTIONS).fit(planted())


def test_predictions_for_another_graph_do_not_depend_on_isolated_nodes(classifier, tmp_path):
    graph = mixed(1)
    alone = classifier.predict_proba(bare(graph))
    # A larger graph may be summed in another order: equal but for rounding.
    beside = classifier.predict_proba(beside_isolated_nodes(graph))[: len(alone)]
    np.testing.assert_allclose(beside, alone, atol=1e-5)
    assert len(np.unique(alone.argmax(axis=1))) > 1
    classifier.save(tmp_path / "m")
    loaded = argnn.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.predict_proba(bare(graph)), alone)
    metrics = zip(loaded.metric_field(graph), classifier.metric_field(graph), strict=True)
    assert all(np.array_equal(a, b) for a, b in metrics)


def test_link_scores_in_another_graph_do_not_depend_on_isolated_nodes(predictor):
    graph, pairs = planted(seed=4), [(0, 1), (5, 9), (30, 60), (2, 88)]
    alone = predictor.decision_function(pairs, graph=bare(graph))
    beside = predictor.decision_function(pairs, graph=beside_isolated_nodes(graph))
    np.testing.assert_allclose(beside, alone, atol=1e-5)
    assert np.ptp(alone) > 1e-3


def test_statistics_of_a_link_predictor_are_those_of_its_training_edges(predictor):
    split, nodes = predictor.split_, planted().num_nodes
    found = [m for m in predictor.model_.modules() if isinstance(m, GraphStatistics)]
    assert len(found) == 2
    seen = column_statistics(structural_descriptor(split.edge_index, nodes))
    hidden = torch.cat([split.edge_index, split.val, split.test], dim=1)
    everything = column_statistics(structural_descriptor(hidden, nodes))
    for statistics in found:
        assert torch.equal(statistics.mean, seen[0])
        assert torch.equal(statistics.deviation, seen[1])
        assert not torch.allclose(statistics.mean, everything[0])


def test_linkx_refuses_another_graph():
    clf = ARGNNClassifier("linkx", epochs=1, device="cpu").fit(planted())
    with pytest.raises(ConfigError, match="cannot be used on a graph of another size"):
        clf.predict(beside_isolated_nodes(planted()))


# -- files ----------------------------------------------------------------------------------------


def save_changed(classifier, path, change) -> None:
    """Save a model with another state, checksums and all."""
    kept, state = classifier.model_, change(dict(classifier.model_.state_dict()))

    class Stub(torch.nn.Module):
        def state_dict(self):
            return state

    classifier.model_ = Stub()
    try:
        classifier.save(path)
    finally:
        classifier.model_ = kept


@pytest.mark.parametrize("model", ["argnn", "cusp"])
def test_folder_from_before_these_statistics_is_refused(tmp_path, model):
    clf = ARGNNClassifier(model, trial=False, epochs=1, device="cpu").fit(planted())
    save_changed(
        clf, tmp_path / "m", lambda s: {k: v for k, v in s.items() if "statistics." not in k}
    )
    with pytest.raises(RunError) as caught:
        argnn.load(tmp_path / "m")
    assert str(caught.value) == (
        f"{tmp_path / 'm' / WEIGHTS}: was made before models stored the statistics of their "
        "training graph; train the model again"
    )


def test_folder_that_lost_one_of_them_is_damaged(classifier, tmp_path):
    name = "convs.0.metric_net.statistics.mean"
    save_changed(classifier, tmp_path / "m", lambda s: {k: v for k, v in s.items() if k != name})
    with pytest.raises(RunError, match=f"lacks weight '{name}'"):
        argnn.load(tmp_path / "m")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("name", ["mean", "deviation"])
def test_numbers_that_are_not_finite_are_refused(classifier, tmp_path, name, number):
    key = f"convs.1.metric_net.statistics.{name}"
    save_changed(classifier, tmp_path / "m", lambda s: {**s, key: torch.full_like(s[key], number)})
    with pytest.raises(RunError, match="not finite"):
        argnn.load(tmp_path / "m")


@pytest.mark.parametrize("number", [0.0, -1.0, 1e-30, 1e-9])
def test_hostile_deviations_do_no_harm(classifier, tmp_path, number):
    key = "convs.1.metric_net.statistics.deviation"
    save_changed(classifier, tmp_path / "m", lambda s: {**s, key: torch.full_like(s[key], number)})
    assert key in read_tensors(tmp_path / "m" / WEIGHTS)[0]
    proba = argnn.load(tmp_path / "m").predict_proba(bare(mixed(1)))
    np.testing.assert_allclose(proba.sum(axis=1), 1)
