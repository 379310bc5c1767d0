"""An estimator is an ``argnn train`` without a folder: the same settings, the same weights."""

import pytest
import torch

from argnn.data import load
from argnn.errors import ConfigError
from argnn.estimators import ARGNNClassifier, ARGNNLinkPredictor
from argnn.nn import MODELS
from argnn.runs.prepare import Request, prepare
from argnn.runs.run import run_split, trained_model
from argnn.settings.resolve import FOR_UNDIRECTED
from argnn.store.run_folder import create_run

SHORT = {"epochs": 3}


def fitted(source, task, **options):
    kind = ARGNNLinkPredictor if task == "link" else ARGNNClassifier
    return kind(device="cpu", **options).fit(source)


def settled(config):
    names = ("task", "model", "preset", "seed", "options", "train", "source", "link", "directed")
    return {name: getattr(config, name) for name in names}


@pytest.mark.parametrize(("task", "directed"), [("node", False), ("node", True), ("link", False)])
@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn"}))
def test_settings_are_those_of_the_command(small_npz, monkeypatch, model, task, directed):
    pytest.importorskip("geoopt")
    pytest.importorskip("ot")
    path = str(small_npz())
    overrides = ("epochs=3",)
    request = Request(path, model=model, task=task, directed=directed, overrides=overrides)
    kept = {"directed": True} if directed else {}
    estimator = fitted(path, task, model=model, epochs=3, **kept)
    assert settled(estimator.settings_) == settled(prepare(request).config)


@pytest.mark.parametrize("task", ["node", "link"])
@pytest.mark.parametrize("data", ["mixed", "digits", "texas", "cora"])
@pytest.mark.parametrize("model", ["argnn", "gcn"])
def test_weights_are_those_of_the_command(
    data, task, model, tmp_path, brief_trial, benchmark_root, monkeypatch
):
    """Bit for bit, with stored settings where there are some, and with a trial where not."""
    monkeypatch.setenv("ARGNN_DATA", str(benchmark_root))
    monkeypatch.setenv("ARGNN_CACHE", str(tmp_path / "cache"))
    plan = prepare(Request(data, model=model, task=task, device="cpu", overrides=("epochs=3",)))
    torch.set_num_threads(plan.config.threads)
    folder = create_run(tmp_path / "run", plan.config.to_json())
    run_split(plan.config, plan.graph, 0, folder)
    weights = trained_model(folder, 0).state_dict()
    found = fitted(data, task, model=model, epochs=3).model_.state_dict()
    assert weights.keys() == found.keys()
    assert all(torch.equal(weights[name], found[name]) for name in weights)


def test_graph_in_memory_takes_no_settings_of_a_name(benchmark_root):
    graph = load("texas", root=benchmark_root)
    clf = ARGNNClassifier("gcn", epochs=1).fit(graph)
    stored = prepare(Request("texas", model="gcn", data_root=str(benchmark_root))).config
    assert clf.settings_.source != stored.source
    assert clf.settings_.data == "a graph in memory"


def test_estimator_says_that_its_settings_are_for_undirected_edges(graph):
    clf = ARGNNClassifier("h2gcn", directed=True, epochs=1).fit(graph)
    assert f"{FOR_UNDIRECTED}; set by the user" in clf.settings_.source
    assert (clf.settings_.train.patience, clf.settings_.train.weight_decay) == (300, 0.001)


def test_settings_are_complete(graph):
    """What a saved model says does not change with a default of a later version."""
    clf = ARGNNClassifier("h2gcn", epochs=1).fit(graph)
    assert "normalize_input" in clf.settings_.options


def test_seed_is_the_random_state(graph):
    with pytest.raises(ConfigError, match="the seed is set with random_state"):
        ARGNNClassifier("gcn", train_options={"seed": 1}).fit(graph)
