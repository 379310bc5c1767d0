"""``argnn train --folds``: all folds run, nothing of a tested fold reaches its training."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    mean_absolute_error,
    r2_score,
    root_mean_squared_error,
)

import argnn as package
from argnn.bench.comparison.compare import compare
from argnn.data.import_options import Columns
from argnn.runs.parallel import run_splits
from argnn.runs.prepare import Request, load_graph, prepare
from argnn.store.run_folder import create_run
from planted_targets import planted_values

QUICK = ("--model=gcn", "--epochs=5", "--set=patience=0", "--workers=1")
FOLDS = ("--folds=4", "--groups=site")


@pytest.fixture
def tables(tmp_path):
    """A planted graph as tables: two numbers, a class, two labels, and twelve sites."""
    graph, values = planted_values(60)
    folder = tmp_path / "tables"
    folder.mkdir()
    ends = zip(*graph.edge_index.tolist(), strict=True)
    lines = [f"n{s},n{t}" for s, t in ends]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]))
    rows = ["id,a,b,price,size,tags,kind,site"]
    for i, (x, value) in enumerate(zip(graph.x.tolist(), values.tolist(), strict=True)):
        tags = ("plain", "round", "red", "red;round")[2 * (value[0] > 0) + (value[1] > 0)]
        cells = [*x[:2], *value]
        kind = "" if i % 15 == 14 else "hi" if value[0] > 0 else "lo"
        rows.append(",".join([f"n{i}", *(f"{c:.4f}" for c in cells), tags, kind, f"s{i % 12}"]))
    (folder / "nodes.csv").write_text("\n".join(rows))
    return folder


#: What is asked about each kind of target, and the columns that would tell it.
ASKED = {
    "node": ("--label=kind", *(f"--drop={name}" for name in ("price", "size", "tags"))),
    "regression": ("--label=price,size", "--drop=tags", "--drop=kind"),
    "multilabel": ("--label=tags", "--drop=price", "--drop=size", "--drop=kind"),
}


def out_of_fold(tables, task):
    """The targets of labelled nodes, and what the model that did not see a node says of it."""
    asked = dict(word.removeprefix("--").split("=") for word in ASKED[task][:1])
    dropped = tuple(word.removeprefix("--drop=") for word in ASKED[task][1:])
    columns = Columns(label=asked["label"], drop=dropped, folds=4, groups="site")
    graph = load_graph(str(tables), Request(str(tables), task=task, columns=columns))
    said = None
    for split in range(4):
        model = package.load("run", split=split)
        found = np.asarray(model.predict(str(tables)))
        said = np.empty_like(found) if said is None else said
        test = graph.test_mask[:, split].numpy()
        said[test] = found[test]
    known = graph.test_mask.any(1).numpy()
    true = graph.targets.numpy() if task != "node" else np.array(graph.class_names)[graph.y]
    return true[known], said[known]


def test_classes_from_folds_to_pooled_scores(argnn, tables):
    done = argnn("train", tables, *ASKED["node"], *FOLDS, *QUICK, "--out=run")
    assert (done.code, done.err) == (0, "")
    found = json.loads(Path("run/scores.json").read_text())["summary"]
    true, said = out_of_fold(tables, "node")
    assert len(true) == 56
    assert found["pooled"] == {
        "count": 56,
        "accuracy": pytest.approx(accuracy_score(true, said)),
        "f1": pytest.approx(f1_score(true, said, average="weighted")),
        "f1_macro": pytest.approx(f1_score(true, said, average="macro")),
    }
    assert "Note: column site: 12 groups, each in one fold; no feature" in done.out
    assert "n = 4; folds share training nodes, so a rough one." in done.out
    words = f"accuracy {100 * found['pooled']['accuracy']:.2f}"
    assert f"Pooled over 56 nodes, each tested once, in %: {words}" in done.out
    config = json.loads(Path("run/config.json").read_text())["run"]
    assert config["splits"] == [0, 1, 2, 3]
    assert (config["columns"]["folds"], config["columns"]["groups"]) == (4, "site")
    card = Path("run/split-2/model/README.md").read_text()
    assert "split: 4 folds stratified by class of whole groups (site), drawn from all" in card
    assert package.load("run", split=2).split_rule_.endswith("the next validates; split 2")


def test_numbers(argnn, tables):
    done = argnn("train", tables, *ASKED["regression"], *FOLDS, *QUICK, "--out=run", "--json")
    assert (done.code, done.err) == (0, "")
    true, said = out_of_fold(tables, "regression")
    assert json.loads(done.out)["summary"]["pooled"] == {
        "count": 60,
        "r2": pytest.approx(r2_score(true, said), rel=1e-4),
        "mae": pytest.approx(mean_absolute_error(true, said), rel=1e-4),
        "rmse": pytest.approx(root_mean_squared_error(true, said), rel=1e-4),
    }


def test_several_labels(argnn, tables):
    done = argnn("train", tables, *ASKED["multilabel"], *FOLDS, *QUICK, "--out=run", "--json")
    assert (done.code, done.err) == (0, "")
    true, said = out_of_fold(tables, "multilabel")
    assert json.loads(done.out)["summary"]["pooled"] == {
        "count": 60,
        "f1_micro": pytest.approx(f1_score(true, said, average="micro")),
        "f1_macro": pytest.approx(f1_score(true, said, average="macro")),
    }


def test_named_folds_only_and_a_run_that_goes_on(argnn, tables):
    words = ("train", tables, *ASKED["node"], *FOLDS, *QUICK)
    assert argnn(*words, "--split=1,3", "--out=run").code == 0
    config = json.loads(Path("run/config.json").read_text())["run"]
    assert config["splits"] == [1, 3]
    before = Path("run/split-3/model/model.safetensors").read_bytes()
    Path("run/split-3/result.json").unlink()
    done = argnn("train", "--resume=run")
    assert (done.code, done.err) == (0, "")
    assert Path("run/split-3/model/model.safetensors").read_bytes() == before
    refused = argnn("train", "--resume=run", "--folds=5")
    assert (refused.code, "leave out --folds" in refused.err) == (2, True)
    assert "split 4 out of range" in argnn(*words, "--split=4", "--out=other").err
    path = tables / "nodes.csv"  # another group, and therefore other folds
    path.write_text(path.read_text().replace(",s1\n", ",s2\n"))
    assert "the graph has changed since the run began" in argnn("train", "--resume=run").err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--folds=2",), "folds (--folds) must be at least 3"),
        (("--folds=40",), "labelled nodes, too few for 40 folds"),
        (("--folds=4", "--groups=sit"), "no column 'sit' for the groups"),
        (("--groups=site",), "groups (--groups) belong to folds"),
        (("--folds=4", "--task=link"), "--folds divides nodes; of links every --split is drawn"),
    ],
)
def test_what_is_refused(refused, tables, words, message):
    for command in ("train", "compare"):
        refused(command, tables, "--label=kind", *words, message=message)


def test_known_graphs(refused):
    refused("train", "mixed", "--folds=5", message="folds are for your own graphs")


@pytest.mark.parametrize("split", [0, 3])
def test_labels_of_a_tested_fold_choose_nothing(tables, tmp_path, one_thread, brief_trial, split):
    """Folds are drawn from all labels; after that, those of the tested fold are not looked at."""
    asked = Columns(label="kind", drop=("price", "size", "tags"), folds=4, groups="site")
    fields = {"overrides": ("epochs=4",), "split": "all", "workers": 1, "device": "cpu"}
    request = Request(str(tables), columns=asked, **fields)
    right = load_graph(str(tables), request)
    wrong = right.clone()
    test = right.test_mask[:, split]
    wrong.y = torch.where(test, 1 - right.y, right.y)
    found = []
    for name, graph in (("right", right), ("wrong", wrong)):
        plan = prepare(request, graph=graph)
        folder = create_run(tmp_path / name, plan.config.to_json())
        rows = run_splits(plan, folder)
        found.append((plan.config.for_split(split), rows[split], folder.weights(split)))
    (config, row, weights), (other, wrong_row, wrong_weights) = found
    assert replace(config, graph={}, trial=None) == replace(other, graph={}, trial=None)
    assert config.trial["chosen"] == other.trial["chosen"]
    assert row["chosen_epoch"] == wrong_row["chosen_epoch"]
    assert row["val"] == wrong_row["val"]
    assert weights.read_bytes() == wrong_weights.read_bytes()
    assert row["test"] != wrong_row["test"]


def test_search_takes_one_fold_and_says_so_where_it_takes_more(argnn, tables):
    pytest.importorskip("optuna")
    words = ("tune", tables, *ASKED["node"], *FOLDS, "--model=gcn", "--epochs=2", "--trials=1")
    done = argnn(*words, "--out=one.yaml", "--storage=one.jsonl")
    assert (done.code, done.err) == (0, "")
    chosen = yaml.safe_load(Path("one.yaml").read_text())
    assert chosen["validation"]["splits"] == [0]
    assert (chosen["columns"]["folds"], chosen["columns"]["groups"]) == (4, "site")
    assert "--folds 4 --groups site" in done.out
    assert "--split 0" in done.out
    assert "Warning" not in done.out
    several = argnn(*words, "--split=0,1", "--out=two.yaml", "--storage=two.jsonl")
    assert "are tested in other splits, so that test scores with these settings are too" in (
        several.out
    )


def read_lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_comparison_takes_all_folds(argnn, tables, brief_trial):
    words = ("--models=gcn,mlp", "--recipes=1", "--epochs=2", "--workers=1", "--json")
    done = argnn("compare", tables, *ASKED["node"], *FOLDS, *words)
    assert (done.code, done.err) == (0, "")
    rows = read_lines(Path("runs/tables-compare/results.jsonl"))
    assert {row["split"] for row in rows} == {0, 1, 2, 3}
    graph = package.data.mixed()
    found = compare(
        graph, ["gcn"], recipes=1, settings=["epochs=2"], workers=1, load_options={"folds": 3}
    )
    assert found.best.split_rule_.startswith("3 folds stratified by class, drawn")
    results = read_lines(found.out / "results.jsonl")
    assert {row["split"] for row in results} == {0, 1, 2}


def test_experiment_files(argnn, tables):
    columns = {"label": "kind", "drop": ["price", "size", "tags"], "folds": 4, "groups": "site"}
    document = {"name": "own", "title": "t", "task": "node", "models": ["gcn"], "seeds": [0]}
    document["methods"] = []
    document["data"] = [{"name": str(tables), "columns": columns}]
    path = Path("own.yaml")
    path.write_text(yaml.safe_dump(document))
    done = argnn("bench", path, "--workers=1", "--out=results.jsonl")
    assert (done.code, done.err) == (0, "")
    rows = read_lines(Path("results.jsonl"))
    assert sorted(row["split"] for row in rows) == [0, 1, 2, 3]
    assert rows[0]["config"]["columns"]["folds"] == 4
    columns["folds"] = 2
    path.write_text(yaml.safe_dump(document))
    refused = argnn("bench", path, "--out=other.jsonl")
    assert (refused.code, "must be at least 3" in refused.err) == (2, True)
