"""The classifier: what it learns from, what it may not see, and what it says."""

import math
import random

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import StratifiedKFold
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier
from argnn.errors import ArgnnError, ConfigError, DataError
from argnn.nn import MODELS

from .conftest import NAMES, planted

FAST = {"model": "gcn", "epochs": 15, "train_options": {"patience": 0}, "device": "cpu"}


def fast(**changes) -> ARGNNClassifier:
    return ARGNNClassifier(**{**FAST, **changes})


def test_learns_a_planted_graph(graph):
    clf = fast(epochs=40).fit(graph)
    assert clf.val_score_ > 0.8
    assert clf.score(graph, mask=range(90)) > 0.8
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.predict(graph).shape == (90,)
    proba = clf.predict_proba(graph)
    assert proba.shape == (90, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    np.testing.assert_array_equal(clf.classes_[proba.argmax(axis=1)], clf.predict(graph))


def test_fitted_attributes(graph):
    clf = fast(epochs=7).fit(graph)
    assert clf.n_features_in_ == 3
    assert clf.n_iter_ == len(clf.history_) == 7
    assert 1 <= clf.best_epoch_ <= 7
    assert clf.history_[clf.best_epoch_ - 1]["val_score"] == clf.val_score_
    assert clf.temperature_ > 0
    assert 0 <= clf.ece_ <= 1
    assert clf.metric_field_ == []
    assert clf.embed(graph).shape == (90, 3)


def test_metric_field_of_argnn(graph):
    options = {"hidden_channels": 8}
    clf = ARGNNClassifier(trial=False, epochs=3, model_options=options, device="cpu").fit(graph)
    assert [g.shape for g in clf.metric_field_] == [(90, 8), (90, 8)]
    assert all((g > 0).all() for g in clf.metric_field_)
    for stored, computed in zip(clf.metric_field_, clf.metric_field(graph), strict=True):
        np.testing.assert_array_equal(stored, computed)
    assert clf.embed(graph).shape == (90, 8)


def test_trial_chooses_the_switches(graph, brief_trial):
    clf = ARGNNClassifier(epochs=2, model_options={"hidden_channels": 8}, device="cpu").fit(graph)
    assert "chosen on validation from" in clf.settings_.source
    assert clf.settings_.spec.options["hidden_channels"] == 8


@pytest.mark.parametrize("model", sorted(MODELS))
def test_every_model_of_the_registry(graph, model):
    pytest.importorskip("geoopt")
    pytest.importorskip("ot")
    clf = ARGNNClassifier(model, trial=False, epochs=2, device="cpu").fit(graph)
    assert clf.predict(graph).shape == (90,)


def test_string_labels(graph):
    names = NAMES[graph.y.numpy()]
    clf = fast(epochs=30).fit(graph, names)
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert set(clf.predict(graph)) <= {"ant", "bee", "cat"}
    assert clf.score(graph, names, mask=range(90)) > 0.6


@pytest.mark.parametrize("missing", [None, float("nan"), -1, ""])
def test_missing_labels_are_left_out(graph, missing):
    labels = NAMES[graph.y.numpy()] if missing in (None, "") else graph.y.numpy().astype(object)
    labels = labels.copy()
    labels[::2] = missing
    clf = fast(epochs=2).fit(graph, labels)
    assert sum(clf.counts_.values()) == 45
    assert len(clf.classes_) == 3
    known = np.arange(1, 90, 2)
    assert clf.score(graph, labels, mask=range(90)) == clf.score(graph, labels, mask=known)


def test_float_labels_with_nan_are_whole_numbers(graph):
    labels = graph.y.numpy().astype(float)
    labels[0] = np.nan
    clf = fast(epochs=2).fit(graph, labels)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.classes_.dtype.kind == "i"


def test_labels_outside_the_masks_are_never_seen(graph):
    train, val = np.arange(0, 40), np.arange(40, 60)
    other = graph.y.numpy().astype(object)
    other[60:] = "nonsense"  # of another type and a class of its own
    first = fast().fit(graph, graph.y, train_mask=train, val_mask=val)
    second = fast().fit(graph, other, train_mask=train, val_mask=val)
    assert second.classes_.tolist() == [0, 1, 2]
    assert (first.best_epoch_, first.temperature_) == (second.best_epoch_, second.temperature_)
    for name, weight in first.model_.state_dict().items():
        assert torch.equal(weight, second.model_.state_dict()[name])


def test_masks_of_the_graph_are_used(graph):
    graph.train_mask = torch.arange(90) < 30
    graph.val_mask = (torch.arange(90) >= 30) & (torch.arange(90) < 50)
    graph.test_mask = torch.arange(90) >= 50
    clf = fast(epochs=2).fit(graph)
    assert clf.counts_ == {"training nodes": 30, "validation nodes": 20}
    assert clf.split_rule_ == "masks of the graph"


def test_test_nodes_of_the_graph_are_not_learned_from(graph):
    graph.test_mask = torch.arange(90) >= 60
    clf = fast(epochs=2).fit(graph)
    assert sum(clf.counts_.values()) == 60
    graph.train_mask = torch.arange(90) < 50
    clf = fast(epochs=2).fit(graph)
    assert sum(clf.counts_.values()) == 50
    assert clf.split_rule_.startswith("masks of the graph; a stratified share")


def test_given_masks_win_over_those_of_the_graph(graph):
    graph.train_mask = graph.val_mask = graph.test_mask = torch.ones(90, dtype=torch.bool)
    mask = np.zeros(90, dtype=bool)
    mask[:50] = True
    clf = fast(epochs=2).fit(graph, train_mask=mask)
    assert sum(clf.counts_.values()) == 50


def test_drawn_validation_is_stratified_and_uses_all_labels(graph):
    clf = fast(epochs=2, val_fraction=0.2).fit(graph)
    assert clf.counts_ == {"training nodes": 72, "validation nodes": 18}


def test_only_validation_given(graph):
    clf = fast(epochs=2).fit(graph, val_mask=np.arange(20))
    assert clf.counts_ == {"training nodes": 70, "validation nodes": 20}


def test_tuple_and_npz_and_name_are_read_like_data(graph, small_npz):
    pytest.importorskip("pandas")
    assert fast(epochs=2).fit(small_npz()).predict(small_npz()).shape == (90,)
    assert fast(epochs=2).fit("mixed").predict("mixed").shape == (1648,)


def test_same_seed_same_bits_other_seed_other_bits(graph):
    first, again, other = (fast(random_state=s).fit(graph).predict_proba(graph) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_random_state_of_the_caller_stays(graph):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002 - the caller's global state is what is tested
    random.seed(5)
    before = (torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate())  # noqa: NPY002
    fast(epochs=2, random_state=None).fit(graph).predict(graph)
    assert torch.equal(before[0], torch.get_rng_state())
    np.testing.assert_array_equal(before[1], np.random.get_state()[1])  # noqa: NPY002
    assert before[2] == random.getstate()


def test_generator_as_random_state_is_advanced(graph):
    state = np.random.RandomState(0)
    clf = fast(epochs=2, random_state=state)
    assert clf.fit(graph).settings_.seed != clf.fit(graph).settings_.seed


def test_inductive_prediction_on_another_graph(graph):
    clf = fast(epochs=40).fit(graph)
    other = planted(60, seed=1)
    assert clf.score(other) > 0.7
    del other.y
    assert clf.predict(other).shape == (60,)


def test_labels_of_a_graph_to_predict_are_not_looked_at(graph):
    clf = fast(epochs=2).fit(graph)
    bare = Data(x=graph.x, edge_index=graph.edge_index)
    graph.y = torch.full((7,), -99.5)
    np.testing.assert_array_equal(clf.predict(graph), clf.predict(bare))


def test_changed_graph_changes_predictions(graph):
    clf = fast(epochs=10).fit(graph)
    before = clf.predict_proba(graph)
    graph.edge_index = graph.edge_index[:, ::2]
    assert not np.allclose(before, clf.predict_proba(graph))


def test_cross_validation_with_a_node_splitter(graph):
    y = graph.y.numpy()
    scores = []
    for train, test in StratifiedKFold(3, shuffle=True, random_state=0).split(np.zeros(90), y):
        clf = clone(fast(epochs=30)).fit(graph, y, train_mask=train)
        scores.append(clf.score(graph, y, mask=test))
    assert np.mean(scores) > 0.7


def test_without_calibration(graph):
    clf = fast(epochs=5, calibrate=False).fit(graph)
    assert (clf.temperature_, clf.ece_, clf.calibration_) == (1.0, None, None)


def test_calibration_keeps_predictions(graph):
    plain, calibrated = (fast(calibrate=flag).fit(graph) for flag in (False, True))
    np.testing.assert_array_equal(plain.predict(graph), calibrated.predict(graph))
    assert calibrated.calibration_.nll <= calibrated.calibration_.nll_uncalibrated


def test_not_fitted(graph):
    for method in ("predict", "predict_proba", "score", "embed", "metric_field"):
        with pytest.raises(NotFittedError):
            getattr(ARGNNClassifier(), method)(graph)
    with pytest.raises(NotFittedError):
        ARGNNClassifier().save("nowhere")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": "gnc"}, "unknown model 'gnc'; did you mean 'gcn'"),
        ({"preset": "paper"}, "preset 'paper' belongs to argnn"),
        ({"model_options": {"dropuot": 0.1}}, "dropuot"),
        ({"model_options": {"hidden_channels": 0}}, "hidden_channels must be a positive"),
        ({"model_options": {"dropout": 1.5}}, "dropout must be in"),
        ({"train_options": {"lrr": 0.1}}, "unknown training setting 'lrr'; did you mean 'lr'"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"val_fraction": 1.5}, "val_fraction must be between 0 and 1"),
        ({"device": "tpu"}, "device must be one of"),
        ({"random_state": "x"}, "random_state must be"),
        ({"random_state": -1}, "random_state must be"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_parameters_are_refused_by_fit(graph, changes, message):
    clf = fast(**changes)
    with pytest.raises(ConfigError, match=message):
        clf.fit(graph)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [0, 1]}, "one label for each of the 90 nodes"),
        ({"y": [[0]] * 90}, "y must be flat"),
        ({"y": [-1] * 90}, "too few labels|no node has a label"),
        ({"y": [0] * 90}, "at least two classes"),
        ({"y": [0, "a"] * 45}, "mixes texts and numbers"),
        ({"y": [0, math.inf] * 45}, "a label must be a text or a finite number .got inf at node 1"),
        ({"y": [0, b"a"] * 45}, "a label must be a text or a finite number .got b'a' at node 1"),
        ({"y": list(range(90))}, "too few labels"),
        ({"train_mask": np.ones(5, dtype=bool)}, "train_mask must have 90 entries"),
        ({"train_mask": [0, 90]}, "indices from 0 to 89"),
        ({"train_mask": np.ones(90)}, "boolean mask"),
        ({"train_mask": [0, 1, 2, 3], "val_mask": [3, 4]}, "in both train_mask and val_mask"),
        ({"y": [-1] + [0, 1] * 44 + [0], "train_mask": [0, 1, 2], "val_mask": [3]}, "no label"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_arguments_of_fit(graph, arguments, message):
    with pytest.raises(ConfigError, match=message):
        fast(epochs=1).fit(graph, **arguments)


def test_graph_without_labels(graph):
    del graph.y
    with pytest.raises(DataError, match="the graph has no labels: give y"):
        fast().fit(graph)


def test_other_number_of_features(graph):
    clf = fast(epochs=1).fit(graph)
    graph.x = graph.x[:, :2]
    with pytest.raises(ArgnnError, match="3 features"):
        clf.predict(graph)


def test_linkx_keeps_to_its_graph(graph):
    clf = ARGNNClassifier("linkx", epochs=2, device="cpu").fit(graph)
    with pytest.raises(ConfigError, match="cannot be used on a graph of another size"):
        clf.predict(planted(60))


def test_nothing_to_score(graph):
    clf = fast(epochs=1).fit(graph)
    with pytest.raises(ConfigError, match="no labelled node to score"):
        clf.score(graph, [-1] * 90)


def test_public_names():
    assert argnn.ARGNNClassifier is ARGNNClassifier
    assert {"ARGNNClassifier", "ARGNNLinkPredictor", "load"} <= set(dir(argnn))
