import pytest

from argnn.bench.config import resolve_options, resolve_train
from argnn.bench.settings import ANY, find_settings, parsed_settings, stored_settings
from argnn.data import DATASETS
from argnn.errors import ConfigError
from argnn.nn import PRESETS

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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "must hold a list"),
        ("[3]", "entry 1: must be a mapping"),
        ("[{data: cora, modle: {}}]", "unknown key 'modle'; did you mean 'model'"),
        ("[{data: cora}]", "entry 1: .*missing"),
        (f"[{ENTRY.replace('cora', 'coar')}]", "unknown data set 'coar'"),
        (f"[{ENTRY.replace('undirected', 'both')}]", "edges must be one of"),
        (f"[{ENTRY.replace('a search', '')}]", "no source"),
        (f"[{ENTRY}, {ENTRY}]", "argnn, node, cora, undirected, default is there twice"),
    ],
)
def test_faulty_file_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parsed_settings(text, "some.yaml")
