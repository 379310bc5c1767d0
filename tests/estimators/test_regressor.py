"""Numbers and several labels with the estimators."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone, is_regressor
from sklearn.metrics import r2_score

import argnn
from argnn import ARGNNClassifier, ARGNNRegressor
from argnn.data import load
from argnn.errors import ConfigError, DataError
from planted_targets import parts, planted_values

SMALL = {
    "epochs": 60,
    "model_options": {"hidden_channels": 16, "dropout": 0.0},
    "train_options": {"lr": 0.02},
    "device": "cpu",
}


@pytest.fixture(scope="module")
def planted():
    graph, values = planted_values(300)
    return graph, values, parts(300)


def test_one_number_is_learned(planted):
    graph, values, masks = planted
    reg = ARGNNRegressor("graphsage", **SMALL)
    y = 50 + 10 * values[:, 0].numpy()
    reg.fit(graph, y, masks["train_mask"], masks["val_mask"])
    predicted, test = reg.predict(graph), masks["test_mask"].numpy()
    assert predicted.shape == (300,)
    assert reg.score(graph, y, test) == pytest.approx(r2_score(y[test], predicted[test]))
    assert reg.score(graph, y, test) > 0.5
    assert is_regressor(reg)
    val = masks["val_mask"].numpy()
    assert reg.scores_["val"]["r2"] == pytest.approx(r2_score(y[val], predicted[val]), rel=1e-4)
    assert reg.val_score_ == pytest.approx(reg.scores_["val"]["r2"], rel=1e-4)


def test_units_do_not_matter(planted):
    """Targets are standardised: other units give the same predictions in those units."""
    graph, values, masks = planted
    fitted = [
        ARGNNRegressor("gcn", **SMALL).fit(
            graph, factor * values[:, 0].double() + shift, masks["train_mask"], masks["val_mask"]
        )
        for factor, shift in ((1.0, 0.0), (1024.0, 0.0))
    ]
    first, second = (reg.predict(graph) for reg in fitted)
    np.testing.assert_allclose(second, 1024 * first, rtol=1e-4, atol=1e-2)


def test_several_numbers_come_back_from_a_folder(planted, tmp_path):
    graph, values, masks = planted
    y = pd.DataFrame(values.numpy(), columns=["price", "size"])
    reg = ARGNNRegressor("argnn", trial=False, **SMALL)
    reg.fit(graph, y, masks["train_mask"], masks["val_mask"])
    assert reg.predict(graph).shape == (300, 2)
    assert reg.target_.names == ["price", "size"]
    reg.save(tmp_path / "model")
    loaded = argnn.load(tmp_path / "model")
    assert isinstance(loaded, ARGNNRegressor)
    np.testing.assert_array_equal(loaded.predict(graph), reg.predict(graph))
    assert loaded.target_ == reg.target_
    assert clone(reg).get_params() == reg.get_params()
    assert "Predictor of numbers" in (tmp_path / "model" / "README.md").read_text()


def test_trial_chooses_by_the_numbers(planted, brief_trial):
    graph, values, masks = planted
    reg = ARGNNRegressor(epochs=3).fit(graph, values, masks["train_mask"], masks["val_mask"])
    assert len(reg.settings_.trial["runs"]) > 1


def test_targets_outside_the_masks_are_not_read(planted):
    graph, values, masks = planted
    hidden = values.clone()
    hidden[masks["test_mask"]] = torch.nan
    first, second = (
        ARGNNRegressor("gcn", **SMALL)
        .fit(graph, y, masks["train_mask"], masks["val_mask"])
        .predict(graph)
        for y in (values, hidden)
    )
    np.testing.assert_array_equal(first, second)


def test_unknown_targets_are_left_out_and_masks_are_drawn(planted):
    graph, values, _ = planted
    y = values[:, 0].clone()
    y[::3] = torch.nan
    reg = ARGNNRegressor("gcn", **SMALL).fit(graph, y)
    assert sum(reg.counts_.values()) == 200
    assert np.isfinite(reg.predict(graph)).all()


def test_graph_brings_its_targets(planted):
    graph, values, masks = planted
    whole = load(argnn.data.load((graph.x, graph.edge_index)))
    assert whole.get("targets") is None
    graph = graph.clone()
    graph.y = values[:, 0]
    for name, mask in masks.items():
        graph[name] = mask
    reg = ARGNNRegressor("gcn", **SMALL).fit(graph)
    assert reg.score(graph) == reg.score(graph, values[:, 0])
    loaded = load(graph, task="regression")
    again = ARGNNRegressor("gcn", **SMALL).fit(loaded)
    np.testing.assert_array_equal(reg.predict(graph), again.predict(loaded))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["cheap"] * 300, "y must hold numbers"),
        (np.ones(299), "y must have 300 rows"),
        (np.full(300, 2.0), "target 0 is 2 for all training nodes"),
        (None, "the graph has no targets: give y"),
    ],
)
def test_bad_targets_have_one_clear_line(planted, y, message):
    with pytest.raises((ConfigError, DataError), match=message):
        ARGNNRegressor("gcn", **SMALL).fit(planted[0], y)


def test_several_labels_are_an_indicator_matrix(planted, tmp_path):
    graph, values, masks = planted
    y = (values > 0.3).long().numpy()
    clf = ARGNNClassifier("graphsage", **SMALL)
    clf.fit(graph, y, masks["train_mask"], masks["val_mask"])
    assert clf.task == "multilabel"
    proba, predicted = clf.predict_proba(graph), clf.predict(graph)
    assert proba.shape == predicted.shape == (300, 2)
    np.testing.assert_array_equal(predicted, proba >= 0.5)
    test = masks["test_mask"].numpy()
    assert clf.score(graph, y, test) == pytest.approx((predicted == y)[test].all(1).mean())
    assert clf.score(graph, y, test) > (y[test] == 0).all(1).mean()
    assert clf.scores_["val"]["average_precision"] > 0.7
    clf.save(tmp_path / "model")
    loaded = argnn.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(graph), predicted)
    assert loaded.task == "multilabel"
    # The same estimator may learn classes afterwards.
    clf.fit(graph, y[:, 0], masks["train_mask"], masks["val_mask"])
    assert clf.predict(graph).shape == (300,)


def test_labels_have_no_threshold_and_no_class_weight(planted):
    graph, values, _ = planted
    y = (values > 0.3).long().numpy()
    with pytest.raises(ConfigError, match="class_weight belongs to classes"):
        ARGNNClassifier("gcn", class_weight="balanced", **SMALL).fit(graph, y)
    with pytest.raises(ConfigError, match="threshold needs a graph with two classes"):
        ARGNNClassifier("gcn", threshold=0.2, **SMALL).fit(graph, y)
