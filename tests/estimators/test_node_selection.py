"""Nodes of one graph in scikit-learn's cross-validation and searches."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.metrics import f1_score
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RandomizedSearchCV,
    StratifiedKFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    train_test_split,
)
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor
from argnn.errors import ConfigError
from planted_targets import planted_values

from .conftest import NAMES, planted

FAST = {"model": "gcn", "epochs": 8, "train_options": {"patience": 0}, "device": "cpu"}


def fast(kind=ARGNNClassifier, **changes):
    return kind(**{**FAST, **changes})


def same_weights(one, other):
    pairs = zip(one.model_.state_dict().values(), other.model_.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


def test_a_selection_is_indexed_like_an_array(graph):
    rows = argnn.nodes(graph)
    assert (len(rows), rows.shape) == (90, (90,))
    part = rows[[5, 3, 8]]
    assert part.index.tolist() == [5, 3, 8]
    assert part[np.array([True, False, True])].index.tolist() == [5, 8]
    assert part[torch.tensor([2, 0])].index.tolist() == [8, 5]
    assert part[-1].index.tolist() == [8]
    assert part[1:].index.tolist() == [3, 8]
    assert part[np.array([0, 1]), ...].index.tolist() == [5, 3]
    assert repr(part) == "NodeSelection(3 of the 90 nodes of graph)"
    train, test = train_test_split(rows, test_size=0.2, random_state=0)
    assert sorted([*train.index, *test.index]) == list(range(90))


def test_cross_validation_is_what_masks_do_by_hand(graph):
    y, cv = graph.y.numpy(), StratifiedKFold(3, shuffle=True, random_state=1)
    found = cross_val_score(fast(), argnn.nodes(graph), y, cv=cv, error_score="raise")
    expected = [
        fast().fit(graph, y, train_mask=train).score(graph, y, mask=test)
        for train, test in cv.split(y, y)
    ]
    assert found.tolist() == expected


def test_labels_of_other_nodes_cannot_reach_training(graph):
    """The graph has its labels at hand: those outside a selection may be anything."""
    train = np.arange(0, 90, 2)
    wrong = graph.clone()
    wrong.y[1::2] = (graph.y[1::2] + 1) % 3
    for labels in (graph.y.numpy()[train], None):
        right, other = (fast().fit(argnn.nodes(g)[train], labels) for g in (graph, wrong))
        assert same_weights(right, other)
        assert right.best_epoch_ == other.best_epoch_
        test = np.arange(1, 90, 2)
        scores = [m.score(argnn.nodes(g)[test]) for m, g in ((right, graph), (other, wrong))]
        assert scores[0] != scores[1]


def test_trial_sees_the_training_fold_only(graph, brief_trial):
    train = np.arange(0, 90, 2)
    wrong = graph.clone()
    wrong.y[1::2] = (graph.y[1::2] + 1) % 3
    clf = ARGNNClassifier(epochs=3, device="cpu")
    right, other = (clone(clf).fit(argnn.nodes(g)[train]) for g in (graph, wrong))
    assert right.settings_.options == other.settings_.options
    assert same_weights(right, other)


def test_meaningless_labels_are_at_chance():
    graph = planted(300)
    y = np.random.default_rng(0).integers(0, 3, size=300)
    found = cross_val_score(fast(epochs=30), argnn.nodes(graph), y, cv=5, error_score="raise")
    # Four standard errors of a share of 300 nodes.
    assert abs(found.mean() - 1 / 3) < 4 * np.sqrt(1 / 3 * 2 / 3 / 300)


def test_rows_of_predictions_are_those_of_the_selection(graph):
    clf = fast().fit(graph)
    rows = argnn.nodes(graph)[[7, 2, 2]]
    for method in ("predict", "predict_proba", "embed"):
        np.testing.assert_array_equal(
            getattr(clf, method)(rows), getattr(clf, method)(graph)[[7, 2, 2]]
        )
    learned = ARGNNClassifier(trial=False, epochs=1, device="cpu").fit(graph)
    for part, whole in zip(learned.metric_field(rows), learned.metric_field(graph), strict=True):
        np.testing.assert_array_equal(part, whole[[7, 2, 2]])


def test_scorers_groups_and_texts(graph):
    y, groups = NAMES[graph.y].astype(str), np.arange(90) // 5
    rows, cv = argnn.nodes(graph), GroupKFold(3)
    asked = {"cv": cv, "groups": groups, "error_score": "raise"}
    found = cross_validate(fast(), rows, y, scoring=["accuracy", "f1_macro"], **asked)
    said = cross_val_predict(fast(), rows, y, cv=cv, groups=groups)
    for fold, (_, test) in enumerate(cv.split(y, y, groups)):
        assert found["test_accuracy"][fold] == pytest.approx((said == y)[test].mean())
        expected = f1_score(y[test], said[test], average="macro")
        assert found["test_f1_macro"][fold] == pytest.approx(expected)
    proba = cross_val_predict(fast(), rows, y, cv=cv, groups=groups, method="predict_proba")
    assert proba.shape == (90, 3)
    assert set(said) == {"ant", "bee", "cat"}


def test_searches(graph):
    rows, y = argnn.nodes(graph), graph.y.numpy()
    grid = GridSearchCV(fast(), {"epochs": [1, 8]}, cv=3, error_score="raise").fit(rows, y)
    assert grid.cv_results_["mean_test_score"].shape == (2,)
    assert grid.best_params_ == {"epochs": 8}
    assert grid.predict(rows[:4]).shape == (4,)
    space = {"model": ["gcn", "mlp"], "epochs": [2]}
    drawn = RandomizedSearchCV(fast(), space, n_iter=2, cv=2, random_state=0, error_score="raise")
    assert drawn.fit(rows, y).best_params_["model"] in ("gcn", "mlp")


def test_numbers():
    graph, values = planted_values(90)
    y = values.numpy().astype(np.float64)
    y[0, 0] = -1.0  # which would mean that there is none, were it a class
    rows, cv = argnn.nodes(graph), KFold(3)
    for target in (y[:, 0], y):
        reg = fast(ARGNNRegressor, epochs=30)
        found = cross_val_score(reg, rows, target, cv=cv, error_score="raise")
        expected = [
            fast(ARGNNRegressor, epochs=30)
            .fit(graph, target, train_mask=train)
            .score(graph, target, mask=test)
            for train, test in cv.split(y)
        ]
        assert found.tolist() == expected
    said = cross_val_predict(fast(ARGNNRegressor), rows, y, cv=cv)
    assert said.shape == (90, 2)
    table = pd.DataFrame(y, columns=["price", "size"])
    assert fast(ARGNNRegressor).fit(rows[:60], table[:60]).target_.names == ["price", "size"]


def test_several_labels():
    graph, values = planted_values(90)
    y = (values > 0).long().numpy()
    found = cross_validate(
        fast(), argnn.nodes(graph), y, cv=3, scoring=["accuracy", "f1_micro"], error_score="raise"
    )
    assert found["test_f1_micro"].shape == (3,)
    clf = fast().fit(argnn.nodes(graph)[:60], y[:60])
    assert clf.predict(argnn.nodes(graph)[60:]).shape == (30, 2)


def test_nodes_of_tables_and_their_labels():
    graph = planted(60)
    ends = graph.edge_index.numpy()
    edges = pd.DataFrame({"source": ends[0], "target": ends[1]})
    kinds = [None if i % 6 == 5 else NAMES[c] for i, c in enumerate(graph.y.tolist())]
    table = pd.DataFrame({"id": range(60), **dict(zip("abc", graph.x.T.numpy(), strict=True))})
    rows = argnn.nodes((edges, table.assign(kind=kinds)), label="kind")
    with pytest.raises(ConfigError, match=r"take \.labelled\(\)"):
        _ = rows.labels
    rows = rows.labelled()
    assert len(rows) == 50
    assert rows.labels.tolist() == [kind for kind in kinds if kind is not None]
    assert cross_val_score(fast(), rows, rows.labels, cv=3, error_score="raise").shape == (3,)
    prices = argnn.nodes((edges, table.assign(label=table.a * 3)))
    np.testing.assert_allclose(prices.labels, 3 * table.a, rtol=1e-6)
    assert fast(ARGNNRegressor).fit(prices[:40], prices[:40].labels).score(prices[40:]) < 1


def test_weights_of_nodes_are_divided_with_them(graph):
    y, weight = graph.y.numpy(), np.random.default_rng(0).random(90)
    train = np.arange(0, 90, 2)
    divided = fast().fit(argnn.nodes(graph)[train], y[train], sample_weight=weight[train])
    whole = fast().fit(graph, y, train_mask=train, sample_weight=weight)
    assert same_weights(divided, whole)


def test_what_is_refused(graph):
    rows, y = argnn.nodes(graph), graph.y.numpy()
    with pytest.raises(ConfigError, match="leave out the masks"):
        fast().fit(rows, y, val_mask=[3])
    with pytest.raises(ConfigError, match="must not hold a node twice"):
        fast().fit(rows[[0, 1, 2, 0]], y[[0, 1, 2, 0]])
    with pytest.raises(ConfigError, match=r"30 nodes needs as many rows \(got 90\)"):
        fast().fit(rows[:30], y)
    clf = fast().fit(rows[:60], y[:60])
    with pytest.raises(ConfigError, match="leave out the mask"):
        clf.score(rows, y, mask=[3])
    with pytest.raises(ConfigError, match="a link predictor learns pairs, not nodes"):
        ARGNNLinkPredictor("gcn", epochs=1).fit(rows)
    with pytest.raises(ConfigError, match="unknown option 'folds' in load_options"):
        fast(load_options={"folds": 3}).fit(graph)


def test_a_selection_can_be_pickled(graph):
    copy = pickle.loads(pickle.dumps(argnn.nodes(graph)[[4, 2]]))
    assert copy.index.tolist() == [4, 2]
    assert torch.equal(copy.graph.edge_index, argnn.nodes(graph).graph.edge_index)
    assert fast().fit(copy.graph).score(copy, [0, 0]) in (0.0, 0.5, 1.0)


@pytest.mark.torture
def test_two_processes_score_as_one(graph):
    rows, y = argnn.nodes(graph), graph.y.numpy()
    found = [
        cross_val_score(fast(), rows, y, cv=4, n_jobs=jobs, error_score="raise") for jobs in (1, 2)
    ]
    np.testing.assert_allclose(*found)


def test_data_without_features():
    pairs = torch.arange(40)
    edge_index = torch.stack([pairs, (pairs * 7 + 1) % 40])
    data = Data(edge_index=edge_index, y=pairs % 2, num_nodes=40)
    rows = argnn.nodes(data, features="degree")
    assert cross_val_score(fast(), rows, rows.labels, cv=3, error_score="raise").shape == (3,)
