"""An estimator starts from the settings of ``argnn train`` on a graph that nobody has tuned."""

from dataclasses import replace

import pytest

from argnn.estimators import ARGNNClassifier
from argnn.estimators.base import complete_options
from argnn.nn import MODELS
from argnn.runs.prepare import Request, prepare
from argnn.settings.usual import FOR_UNDIRECTED, usual_settings
from argnn.train import train_config


@pytest.mark.parametrize(("task", "directed"), [("node", False), ("node", True), ("link", False)])
@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn"}))
def test_settings_are_those_of_the_command(small_npz, model, task, directed):
    pytest.importorskip("geoopt")
    pytest.importorskip("ot")
    request = Request(str(small_npz()), model=model, task=task, directed=directed, device="cpu")
    config = prepare(request).config
    usual = usual_settings(model, task, "default", directed=directed)
    options = complete_options(model, "default", usual.options)
    assert options.items() <= config.options.items()
    train = train_config("default", {**usual.train, "checkpoint_every": 25})
    assert train == config.train
    assert usual.source == config.source
    stored = usual.source != "usual settings of a baseline"
    assert usual.source.endswith(FOR_UNDIRECTED) is (directed and stored)
    if task == "link":
        assert (usual.decoder or MODELS[model].link_decoder) == config.link.decoder


@pytest.mark.parametrize("task", ["node", "link"])
@pytest.mark.parametrize("model", sorted(set(MODELS) - {"argnn"}))
def test_directed_edges_change_only_the_source(model, task):
    undirected = usual_settings(model, task, "default")
    directed = usual_settings(model, task, "default", directed=True)
    note = "" if undirected.source == "usual settings of a baseline" else FOR_UNDIRECTED
    assert directed == replace(undirected, source=undirected.source + note)


def test_argnn_takes_no_undirected_settings_for_directed_edges():
    for task in ("node", "link"):
        usual = usual_settings("argnn", task, "default", directed=True)
        assert (usual.source, usual.train) == ("preset default", {})


def test_estimator_says_that_its_settings_are_for_undirected_edges(graph):
    clf = ARGNNClassifier("h2gcn", directed=True, epochs=1).fit(graph)
    assert clf.settings_.source.endswith(FOR_UNDIRECTED)
    assert (clf.settings_.train.patience, clf.settings_.train.weight_decay) == (300, 0.001)


def test_links_of_argnn(small_npz):
    config = prepare(Request(str(small_npz()), task="link", device="cpu")).config
    usual = usual_settings("argnn", "link", "default")
    assert complete_options("argnn", "default", usual.options) == config.options
    assert (usual.source, usual.decoder) == (config.source, config.link.decoder)


@pytest.mark.parametrize("preset", ["paper", "reference"])
def test_presets_of_argnn(small_npz, preset):
    config = prepare(Request(str(small_npz()), preset=preset, device="cpu")).config
    usual = usual_settings("argnn", "node", preset)
    assert complete_options("argnn", preset, usual.options) == config.options
    assert train_config(preset, {**usual.train, "checkpoint_every": 25}) == config.train
