"""Experiment files: what they mean, and one clear line for everything that is wrong in them."""

from pathlib import Path

import pytest
import yaml

from argnn.bench.experiments import files
from argnn.bench.experiments.files import (
    DataChoice,
    Method,
    find_experiment,
    packaged_experiments,
    parsed_experiment,
)
from argnn.data import DATASETS
from argnn.errors import FORESEEN, ConfigError
from argnn.nn import MODELS
from packaged import NAMES, experiments

NINE = {
    "cora",
    "citeseer",
    "pubmed",
    "actor",
    "chameleon",
    "squirrel",
    "texas",
    "cornell",
    "wisconsin",
}
GOOD = {"name": "mine", "title": "Mine", "task": "node", "data": ["mixed"], "models": ["gcn"]}
LINK = {**GOOD, "task": "link", "ratio": "85/5/10"}


def parsed(folder=Path(), **changes):
    values = {**GOOD, **changes}
    values = {key: value for key, value in values.items() if value is not None}
    return parsed_experiment(yaml.safe_dump(values), "mine.yaml", folder)


def test_packaged_files_are_named_for_what_they_hold():
    folder = Path(files.__file__).parent
    names = {path.stem for path in folder.glob("*.yaml")}
    assert names == set(NAMES) == set(packaged_experiments())
    assert names >= {"node-small", "node-classification", "link-prediction", "embedded"}


@pytest.mark.parametrize("name", ["node-classification", "link-prediction"])
def test_tables_of_the_paper_have_every_graph_and_every_model(name):
    experiment = experiments()[name]
    assert {choice.name for choice in experiment.data} == NINE
    assert [method.model for method in experiment.methods] == list(MODELS)
    assert experiment.num_cells() == (6 + 3 * 5) * len(MODELS) * 10
    assert len(experiment.tables) in (3, 4)
    assert experiment.oracle


def test_ratios_of_the_two_link_files():
    assert experiments()["link-prediction"].ratio == "85/5/10"
    assert experiments()["link-prediction-80-5-15"].ratio == "80/5/15"


def test_small_experiment_is_what_the_issue_asks_for():
    small = experiments()["node-small"]
    assert [choice.name for choice in small.data] == ["texas", "wisconsin", "cora"]
    assert [method.label for method in small.methods] == ["argnn", "gcn", "mlp"]
    assert (small.splits, small.num_cells()) == ((0, 1), 2 * 3 * (5 + 5 + 1))


@pytest.mark.parametrize("name", NAMES)
def test_packaged_experiments_give_small_graphs_at_least_five_seeds(name):
    experiment = experiments()[name]
    for choice in experiment.data:
        nodes = DATASETS[choice.name].nodes
        assert len(experiment.seeds_for(nodes)) >= (5 if nodes < 1000 else 1)


def test_seeds_are_five_on_small_graphs_unless_the_file_names_some():
    assert [parsed().seeds_for(nodes) for nodes in (999, 1000)] == [(0, 1, 2, 3, 4), (0,)]
    assert [parsed(seeds=[7]).seeds_for(nodes) for nodes in (999, 1000)] == [(7,), (7,)]


def test_embedded_experiment_needs_no_files():
    assert all(DATASETS[c.name].embedded for c in experiments()["embedded"].data)


def test_defaults():
    found = parsed()
    assert (found.splits, found.seeds, found.score, found.oracle) == (None, None, "f1", False)
    assert found.data == (DataChoice("mixed"),)
    assert found.methods == (Method("gcn", "gcn"),)
    assert parsed(**LINK).score == "auroc"


def test_everything_that_can_be_said(tmp_path):
    (tmp_path / "own.npz").touch()
    for name in ("mixed", "own"):
        (tmp_path / f"{name}-gcn.yaml").touch()
    found = parsed(
        tmp_path,
        task="link",
        ratio="80/5/15",
        spanning_forest=True,
        data=["Mixed", {"name": "own.npz", "directed": True}],
        models=["MLP"],
        methods=[
            {"model": "argnn", "preset": "paper", "decoder": "dot"},
            {"model": "gcn", "label": "GCN, tuned", "settings_file": "{data}-gcn.yaml"},
            {"model": "gcn", "label": "GCN, slow", "set": ["train.lr=1e-3", "dropout=0.1"]},
        ],
        splits=[3, 1],
        seeds=[0, 7],
        score="mrr",
        oracle=True,
    )
    assert found.data == (DataChoice("mixed"), DataChoice(str(tmp_path / "own.npz"), True))
    assert [method.label for method in found.methods] == [
        "mlp",
        "argnn (paper)",
        "GCN, tuned",
        "GCN, slow",
    ]
    assert found.methods[1].decoder == "dot"
    tuned = found.methods[2]
    assert [tuned.settings_for(choice) for choice in found.data] == [
        str(tmp_path / "mixed-gcn.yaml"),
        str(tmp_path / "own-gcn.yaml"),
    ]
    assert found.methods[3].overrides == ("train.lr=1e-3", "dropout=0.1")
    assert found.methods[3].settings_for(found.data[0]) is None
    assert (found.splits, found.seeds, found.score) == ((3, 1), (0, 7), "mrr")
    assert found.spanning_forest
    assert found.num_cells() == 2 * 4 * 2 * 2


def test_all_models_and_all_splits():
    found = parsed(models="all", splits="all")
    assert [method.label for method in found.methods] == list(MODELS)
    assert found.splits is None
    assert found.num_cells() == 10 * len(MODELS)


def test_number_of_cells_of_a_file_is_not_known_without_reading_it(tmp_path):
    (tmp_path / "own.npz").touch()
    assert parsed(tmp_path, data=["own.npz"]).num_cells() is None
    assert parsed(tmp_path, data=["own.npz"], splits=[0]).num_cells() is None
    assert parsed(tmp_path, data=["own.npz"], splits=[0], seeds=[0]).num_cells() == 1


WRONG = [
    ({"modles": ["gcn"]}, "unknown key 'modles'; did you mean 'models'"),
    ({"title": None}, "has no 'title'"),
    ({"name": None}, "has no 'name'"),
    ({"title": 3}, "title must be a text (got 3)"),
    ({"title": " "}, "title must be a text"),
    ({"name": "../mine"}, "name must have letters, digits"),
    ({"task": "edges"}, "task must be one of node, link, regression, multilabel (got 'edges')"),
    ({"task": True}, "task must be a text (got True)"),
    ({"data": "mixed"}, "data must be a list (got 'mixed')"),
    ({"data": []}, "data must be a list that is not empty (got [])"),
    ({"data": ["mixde"]}, "data, entry 1: unknown data set 'mixde'; did you mean 'mixed'"),
    ({"data": ["mixed", "Mixed"]}, "data, entry 2: 'Mixed' is there twice"),
    ({"data": ["none.npz"]}, "data, entry 1: none.npz: no such file"),
    ({"data": [7]}, "data, entry 1: must be a text or a mapping of names to values (got 7)"),
    ({"data": [{"nmae": "mixed"}]}, "data, entry 1: unknown key 'nmae'; did you mean 'name'"),
    ({"data": [{"directed": True}]}, "data, entry 1: has no 'name'"),
    ({"data": [{"name": "mixed", "directed": 1}]}, "directed must be true or false (got 1)"),
    ({"models": ["gnc"]}, "models, entry 1: unknown model 'gnc'; did you mean 'gcn'"),
    ({"models": ["gcn", "GCN"]}, "models, entry 2: 'GCN' is there twice"),
    ({"models": "gcn"}, "models must be a list or 'all' (got 'gcn')"),
    ({"models": None}, "names no 'models' and no 'methods'"),
    ({"methods": [{"model": "gcn"}]}, "two methods are called 'gcn'"),
    ({"methods": ["gcn"]}, "methods, entry 1: must be a mapping"),
    ({"methods": [{"modle": "gcn"}]}, "methods, entry 1: unknown key 'modle'"),
    ({"methods": [{"preset": "paper"}]}, "methods, entry 1: has no 'model'"),
    ({"methods": [{"model": "mlp", "preset": "paper"}]}, "preset 'paper' belongs to argnn"),
    ({"methods": [{"model": "argnn", "preset": "papr"}]}, "entry 1: unknown preset 'papr'"),
    ({"methods": [{"model": "mlp", "set": ["lr=fast"]}]}, "entry 1: lr must be a number"),
    ({"methods": [{"model": "mlp", "set": ["dropuot=1"]}]}, "did you mean 'dropout'"),
    ({"methods": [{"model": "mlp", "set": "lr=1"}]}, "entry 1: set must be a list"),
    ({"methods": [{"model": "mlp", "set": [3]}]}, "entry 1: set, entry 1: must be a text (got 3)"),
    ({"methods": [{"model": "mlp", "label": 3}]}, "entry 1: label must be a text (got 3)"),
    ({"methods": [{"model": "mlp", "decoder": "dot"}]}, "decoder belongs to task link"),
    ({"methods": [{"model": "mlp", "settings_file": "no.yaml"}]}, "no.yaml: no such file"),
    ({"splits": "some"}, "splits must be a list or 'all' (got 'some')"),
    ({"splits": [0, -1]}, "splits, entry 2: must be a number from 0 (got -1)"),
    ({"splits": [0, True]}, "splits, entry 2: must be a whole number (got True)"),
    ({"splits": [0, 0]}, "splits, entry 2: 0 is there twice"),
    ({"splits": []}, "splits must be a list that is not empty (got [])"),
    ({"seeds": [0.5]}, "seeds, entry 1: must be a whole number (got 0.5)"),
    ({"seeds": 3}, "seeds must be a list (got 3)"),
    ({"score": "mrr"}, "unknown score 'mrr'"),
    ({"oracle": "yes"}, "oracle must be true or false (got 'yes')"),
    ({"ratio": "85/5/10"}, "ratio belongs to task link, not to node"),
    ({"spanning_forest": True}, "spanning_forest belongs to task link, not to node"),
    ({"tables": "tab:x"}, "tables must be a list"),
    ({**LINK, "ratio": None}, "has no 'ratio', which task link needs"),
    ({**LINK, "ratio": "85/5"}, "--ratio must read like 85/5/10 (got '85/5')"),
    ({**LINK, "score": "f1"}, "unknown score 'f1'"),
    (
        {**LINK, "methods": [{"model": "mlp", "decoder": "dto"}]},
        "methods, entry 1: unknown decoder 'dto'; did you mean 'dot'",
    ),
]


@pytest.mark.parametrize(("changes", "message"), WRONG, ids=[message for _, message in WRONG])
def test_mistake_is_named_with_its_file_and_key(changes, message):
    with pytest.raises(ConfigError) as caught:
        parsed(**changes)
    assert str(caught.value).startswith("mine.yaml: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a mapping of names to values (got None)"),
        ("- a\n- b\n", "must be a mapping of names to values (got ['a', 'b'])"),
        ("name: [1,\n", "not YAML: "),
        ("name: a: b\n", "not YAML: mapping values are not allowed here (line 1, column 8)"),
        ("name: !!python/object/apply:os.system ['true']\n", "not YAML: "),
        ("name: !!timestamp 2020-99-99\n", "not YAML: "),
        ("name: &a [x]\ndata: *a\n", "not YAML: anchors (&) and aliases (*) are not read (line 1"),
        ("name: a\ntask: node\nname: b\n", "key 'name' is there twice (line 3, column 1)"),
        ("data: [{name: a, name: b}]\n", "key 'name' is there twice (line 1, column 18)"),
        ("[" * 5000, "not YAML: "),
        ("\x00", "not YAML: "),
        ("3: x\n", "unknown key '3'"),
        ("? [a, b]\n: x\n", "not YAML: "),
    ],
)
def test_text_that_is_no_experiment(text, message):
    with pytest.raises(ConfigError) as caught:
        parsed_experiment(text, "mine.yaml", Path())
    assert str(caught.value).startswith("mine.yaml: ")
    assert message in str(caught.value)


def test_found_by_name_or_by_path(tmp_path, monkeypatch):
    assert find_experiment("Node_Small") == experiments()["node-small"]
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump(GOOD))
    assert find_experiment(str(path)).name == "mine"
    monkeypatch.chdir(tmp_path)
    assert find_experiment("mine.yaml").name == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("node-smal", "unknown experiment 'node-smal'; did you mean 'node-small'"),
        ("none.yaml", "No such file or directory: 'none.yaml'"),
        ("folder.yaml", "folder.yaml: not a file"),
        ("latin.yaml", "latin.yaml: not YAML: "),
    ],
)
def test_not_found(tmp_path, monkeypatch, text, message):
    monkeypatch.chdir(tmp_path)
    Path("folder.yaml").mkdir()
    Path("latin.yaml").write_bytes("title: größer".encode("latin-1"))
    with pytest.raises(FORESEEN) as caught:
        find_experiment(text)
    assert message in str(caught.value)
