"""Scoring, class and sample weights, and thresholds of the classifier."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.metrics import average_precision_score, f1_score

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor
from argnn.errors import ArgnnError, ConfigError
from planted_targets import rare_classes

SMALL = {"epochs": 8, "model_options": {"hidden_channels": 4}, "device": "cpu"}


def test_scoring_chooses_the_epoch():
    graph = rare_classes()
    clf = ARGNNClassifier("gcn", scoring="average_precision", **SMALL).fit(graph)
    best = max(clf.history_, key=lambda r: (r["val_score"], -r["val_loss"]))
    assert (clf.best_epoch_, clf.val_score_) == (best["epoch"], best["val_score"])
    val = graph.val_mask.numpy()
    found = average_precision_score(graph.y.numpy()[val], clf.predict_proba(graph)[val, 1])
    assert clf.val_score_ == pytest.approx(found)


def test_links_have_their_own_scores():
    graph = rare_classes()
    lp = ARGNNLinkPredictor("gcn", scoring="average_precision", **SMALL).fit(graph)
    assert lp.val_score_ == pytest.approx(lp.scores_["val"]["auprc"])
    with pytest.raises(ConfigError, match="scoring must be one of auroc"):
        ARGNNLinkPredictor("gcn", scoring="accuracy", **SMALL).fit(graph)


def test_class_weights_are_sample_weights_by_class():
    """A weight of 2 for a class is a weight of 2 for each of its nodes."""
    graph = rare_classes()
    by_class = ARGNNClassifier("gcn", class_weight={0: 1, 1: 5}, **SMALL).fit(graph)
    sample = np.where(graph.y.numpy() == 1, 5.0, 1.0)
    by_node = ARGNNClassifier("gcn", **SMALL).fit(graph, sample_weight=sample)
    np.testing.assert_array_equal(by_class.predict_proba(graph), by_node.predict_proba(graph))
    plain = ARGNNClassifier("gcn", **SMALL).fit(graph)
    assert by_class.predict_proba(graph)[:, 1].mean() > plain.predict_proba(graph)[:, 1].mean()


def test_class_weights_are_named_by_equal_numbers():
    """scikit-learn takes 1.0 for the class 1, too: gaps in a column make floats of integers."""
    graph = rare_classes()
    first, second = (
        ARGNNClassifier("gcn", class_weight={name: 5}, **SMALL).fit(graph, graph.y.double())
        for name in (1, 1.0)
    )
    np.testing.assert_array_equal(first.predict_proba(graph), second.predict_proba(graph))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (np.zeros(400), "sample_weight is 0 for all training nodes"),
        (np.full(400, 1e300), "sample_weight must be finite"),
        (["a"] * 400, "sample_weight must hold numbers"),
    ],
)
def test_impossible_sample_weights_are_refused(weight, message):
    with pytest.raises(ArgnnError, match=message):
        ARGNNClassifier("gcn", **SMALL).fit(rare_classes(), sample_weight=weight)


@pytest.mark.filterwarnings("error")
def test_sample_weights_of_pandas_may_be_read_only():
    weight = np.ones(400)
    weight.flags.writeable = False
    ARGNNClassifier("gcn", **SMALL).fit(rare_classes(), sample_weight=weight)


def test_a_node_without_weight_is_not_learned_from():
    graph = rare_classes()
    sample = np.ones(graph.num_nodes)
    dropped = graph.train_mask.numpy() & (np.arange(graph.num_nodes) % 2 == 0)
    sample[dropped] = 0.0
    weighted = ARGNNClassifier("gcn", **SMALL).fit(graph, sample_weight=sample)
    turned = graph.clone()
    turned.y[dropped] = 1 - turned.y[dropped]
    other = ARGNNClassifier("gcn", **SMALL).fit(turned, sample_weight=sample)
    np.testing.assert_array_equal(weighted.predict_proba(graph), other.predict_proba(graph))


def test_threshold_is_the_best_on_validation_and_comes_back(tmp_path):
    graph = rare_classes(300, share=0.06)
    settings = {"scoring": "f1_macro", "threshold": "validation", **SMALL}
    clf = ARGNNClassifier("gcn", **settings).fit(graph)
    val, y = graph.val_mask.numpy(), graph.y.numpy()
    proba = clf.predict_proba(graph)[val, 1]
    best = max(
        f1_score(y[val], proba > t, average="macro", zero_division=0) for t in [0, *proba, 0.5]
    )
    found = f1_score(y[val], clf.predict(graph)[val], average="macro", zero_division=0)
    assert found == pytest.approx(best)
    assert clf.scores_["val"]["f1_macro"] == pytest.approx(best)
    clf.save(tmp_path / "model")
    loaded = argnn.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(graph), clf.predict(graph))
    assert loaded.threshold_ == clf.threshold_ != 0
    assert clf.decision_rule_["class"] == 1


def test_parameters_are_those_of_an_estimator(tmp_path):
    clf = ARGNNClassifier("gcn", scoring="auroc", class_weight={0: 1, 1: 2}, threshold=0.2, **SMALL)
    again = clone(clf)
    assert again.get_params() == clf.get_params()
    graph = rare_classes()
    clf.fit(graph).save(tmp_path / "model")
    loaded = argnn.load(tmp_path / "model").get_params()
    assert (loaded["scoring"], loaded["threshold"]) == ("auroc", 0.2)
    assert loaded["class_weight"] == {"0": 1.0, "1": 2.0}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scoring": "recall"}, "scoring must be one of accuracy, f1_macro"),
        ({"class_weight": {1: "much"}}, "class_weight must hold numbers"),
        ({"class_weight": {2: 1.0}}, "there is no class '2'"),
        ({"threshold": 2.0}, "threshold must be between 0 and 1"),
    ],
)
def test_impossible_settings_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        ARGNNClassifier("gcn", **settings, **SMALL).fit(rare_classes())
