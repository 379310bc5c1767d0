import pytest

from argnn.data import DATASETS
from argnn.errors import ConfigError
from argnn.nn import MODELS, PRESETS
from argnn.settings.options import resolve_options, resolve_train
from argnn.settings.resolve import (
    ANY,
    FOR_UNDIRECTED,
    StoredSettings,
    find_settings,
    parsed_settings,
    stored_settings,
)

ENTRY = "{data: cora, edges: undirected, preset: default, source: a search}"


@pytest.mark.parametrize("settings", stored_settings(), ids=lambda s: "-".join(s.key))
def test_entry_is_complete_and_valid(settings):
    assert settings.data in (*DATASETS, ANY)
    assert settings.preset in PRESETS
    assert settings.source.strip()
    assert settings.edges == "undirected" or DATASETS[settings.data].directed
    assert (settings.decoder is not None) is (settings.task == "link")
    options = resolve_options(settings.method, settings.preset, settings.model)
    assert {name: options[name] for name in settings.model} == settings.model
    train = resolve_train(settings.method, settings.preset, 0, settings.train)
    assert {name: getattr(train, name) for name in settings.train} == settings.train
    # A seed, or less than the full course, would be a choice by luck.
    assert not {"seed", "checkpoint_every"} & settings.train.keys()
    if options.get("direction") in ("in", "out", "both") and settings.preset == "default":
        assert settings.edges == "directed"


def test_the_nine_graphs_have_settings():
    nine = [n for n, spec in DATASETS.items() if not spec.embedded and n != "cornell-old"]
    assert len(nine) == 9
    for name in nine:
        assert find_settings(name, directed=False, preset="default"), name
    for name in ("chameleon", "squirrel"):
        assert find_settings(name, directed=True, preset="default"), name


def test_published_commands_are_stored():
    found = {
        name: find_settings(name, directed=False, preset="reference")
        for name in ("cora", "citeseer", "pubmed")
    }
    dropout = {name: settings.model["dropout"] for name, settings in found.items()}
    assert dropout == {"cora": 0.3, "citeseer": 0.2, "pubmed": 0.2}


def test_links_of_any_graph_have_settings():
    own = find_settings("cora", directed=False, preset="default", task="link")
    usual = find_settings("/some/file.npz", directed=False, preset="default", task="link")
    assert (own.data, usual.data) == ("cora", ANY)
    assert find_settings("cora", directed=False, preset="paper", task="link") is None


def test_unknown_graph_has_no_settings():
    assert find_settings("/some/file.npz", directed=False, preset="default") is None
    assert find_settings("cora", directed=False, preset="paper") is None


def both_edges(data, **method):
    return [
        find_settings(data, directed=directed, preset="default", **method)
        for directed in (False, True)
    ]


@pytest.mark.parametrize("data", ["texas", "chameleon", "/some/file.npz"])
@pytest.mark.parametrize("task", ["node", "link"])
@pytest.mark.parametrize("method", sorted(MODELS.keys() - {"argnn"}))
def test_rival_keeps_its_settings_with_directed_edges(method, task, data):
    undirected, directed = both_edges(data, method=method, task=task)
    if undirected is None:  # mlp has the usual settings of any network where it was not tuned
        assert (method, directed) == ("mlp", None)
        return
    assert (directed.model, directed.train) == (undirected.model, undirected.train)
    assert (directed.data, directed.decoder) == (undirected.data, undirected.decoder)
    assert directed.source == undirected.source + FOR_UNDIRECTED


def test_argnn_takes_no_undirected_settings_for_directed_edges():
    for data, task in (("texas", "node"), ("/some/file.npz", "node"), ("texas", "link")):
        assert both_edges(data, task=task)[1] is None
    for own in (both_edges("chameleon")[1], both_edges("squirrel")[1]):
        assert own.edges == "directed"
        assert FOR_UNDIRECTED not in own.source


def test_entries_are_asked_for_in_a_stated_order(monkeypatch):
    order = [("texas", "directed"), ("texas", "undirected"), (ANY, "directed"), (ANY, "undirected")]
    entries = [
        StoredSettings(data, edges, "default", f"{data} {edges}", method="gcn")
        for data, edges in order
    ]
    for left in range(len(entries)):
        monkeypatch.setattr("argnn.settings.resolve.stored_settings", lambda n=left: entries[n:])
        found = find_settings("texas", directed=True, preset="default", method="gcn")
        note = FOR_UNDIRECTED if entries[left].edges == "undirected" else ""
        assert found.source == entries[left].source + note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "some.yaml: must be a list .got {}."),
        ("[3]", "entry 1: must be a mapping"),
        ("[{data: cora, modle: {}}]", "unknown key 'modle'; did you mean 'model'"),
        ("[{data: cora}]", "some.yaml: entry 1: has no 'edges'"),
        (f"[{ENTRY.replace('cora', 'coar')}]", "unknown data set 'coar'"),
        (f"[{ENTRY.replace('undirected', 'both')}]", "edges must be one of"),
        (f"[{ENTRY.replace('a search', '')}]", "entry 1: source must be a text"),
        (f"[{ENTRY}, {ENTRY}]", "argnn, node, cora, undirected, default is there twice"),
    ],
)
def test_faulty_file_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parsed_settings(text, "some.yaml")
