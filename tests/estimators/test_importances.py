"""Importances of columns: what matters is found, what does not is at zero, and no test label."""

import numpy as np
import pandas
import pytest
import torch

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor
from argnn.errors import ConfigError

WORDS = ("low", "mid", "high")


@pytest.fixture
def tables():
    """The class is that of the column ``grade``; ``noise`` and ``town`` say nothing."""
    rng = np.random.default_rng(0)
    ids = [f"n{node}" for node in range(240)]
    grade = rng.integers(0, 3, len(ids))
    nodes = pandas.DataFrame(
        {
            "id": ids,
            "grade": np.array(WORDS)[grade],
            "noise": rng.normal(size=len(ids)),
            "town": rng.choice(["Bonn", "Jena"], len(ids)),
            "label": np.array(["a", "b", "c"])[grade],
        }
    )
    ends = rng.integers(0, len(ids), (2, 200))
    edges = pandas.DataFrame({"source": np.array(ids)[ends[0]], "target": np.array(ids)[ends[1]]})
    return edges, nodes


@pytest.mark.parametrize("loaded", [False, True])
def test_only_the_planted_column_matters(tables, loaded):
    graph = argnn.data.load(tables, draw_split=False) if loaded else tables
    clf = ARGNNClassifier("mlp", epochs=60).fit(graph)
    table = clf.importances(repeats=4)
    assert list(table) == ["column", "importance", "deviation", "features"]
    assert table["column"][0] == "grade"
    assert dict(zip(table["column"], table["features"], strict=True)) == {
        "grade": 3, "noise": 1, "town": 2
    }  # fmt: skip
    # One in three rows keeps its word by chance, so two thirds of the score are lost.
    spread = 4 * np.sqrt(2 / 9 / clf.counts_["validation nodes"])
    assert clf.val_score_ == 1
    assert table["importance"][0] == pytest.approx(2 / 3, abs=spread)
    rest = table[1:]
    assert (rest["importance"].abs() <= rest["deviation"]).all()
    assert clf.importances(repeats=4).equals(table)
    assert not clf.importances(repeats=4, random_state=1).equals(table)


def test_columns_and_nodes_can_be_chosen(tables):
    clf = ARGNNClassifier("mlp", epochs=5).fit(tables)
    assert clf.importances(columns=["town"], repeats=1)["column"].tolist() == ["town"]
    assert len(clf.importances(tables, mask=np.arange(9), repeats=1)) == 3
    with pytest.raises(ConfigError, match="no column 'twon'; did you mean 'town'"):
        clf.importances(columns=["twon"])
    with pytest.raises(ConfigError, match="3 columns to shuffle, more than 2: .*most=3"):
        clf.importances(most=2)


def test_test_labels_change_nothing(graph):
    train, val = np.arange(0, 40), np.arange(40, 60)
    other = graph.clone()
    other.y[60:] = 0
    found = [
        ARGNNClassifier("gcn", epochs=5).fit(g, train_mask=train, val_mask=val).importances()
        for g in (graph, other)
    ]
    assert found[0].equals(found[1])


def test_features_of_arrays_and_made_ones(graph):
    table = ARGNNClassifier("gcn", epochs=2, load_options={"features": "degree"}).fit(graph)
    names = set(table.importances(repeats=1)["column"])
    assert names == {"feature 0", "feature 1", "feature 2", "degree (from the edges)"}


def test_numbers_and_links(graph):
    reg = ARGNNRegressor("mlp", epochs=60).fit(graph, y=graph.x[:, 1])
    assert reg.importances()["column"][0] == "feature 1"
    links = ARGNNLinkPredictor("gcn", epochs=30).fit(graph)
    table = links.importances(repeats=2)
    assert table["importance"][0] > 0
    with pytest.raises(ConfigError, match="validation pairs of fit"):
        links.importances(graph)


def test_command_writes_the_table(tables, tmp_path, monkeypatch):
    from argnn.outputs.importances import importances
    from argnn.runs.parallel import run_splits
    from argnn.runs.prepare import Request, prepare
    from argnn.store.run_folder import create_run

    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    for name, table in zip(("edges", "nodes"), tables, strict=True):
        table.to_csv(f"data/{name}.csv", index=False)
    plan = prepare(Request("data", model="mlp", overrides=("epochs=60",), workers=1))
    run_splits(plan, create_run(tmp_path / "run", plan.config.to_json()))
    state = torch.get_rng_state()
    report = importances(tmp_path / "run", tmp_path / "i.csv", repeats=2)
    assert torch.equal(torch.get_rng_state(), state)
    written = pandas.read_csv("i.csv")
    assert written["column"][0] == "grade"
    assert [row["column"] for row in report["columns"]] == written["column"].tolist()
