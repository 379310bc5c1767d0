"""Numbers and several labels on the command line, from training to predictions."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import argnn as package
from planted_targets import parts, planted_values

QUICK = ("--model=graphsage", "--epochs=30", "--set=lr=0.02", "--workers=1", "--out=run")


@pytest.fixture
def graphs(tmp_path):
    """The same planted graph, with numbers, with labels, and as tables with both."""
    graph, values = planted_values(120)
    arrays = {"x": graph.x.numpy(), "edge_index": graph.edge_index.numpy()}
    arrays |= {name: mask.numpy() for name, mask in parts(120).items()}
    labels = (values > 0).long().numpy()
    np.savez(tmp_path / "numbers.npz", y=values[:, 0].double().numpy(), **arrays)
    np.savez(tmp_path / "labels.npz", y=labels, class_names=np.array(["red", "round"]), **arrays)
    folder = tmp_path / "tables"
    folder.mkdir()
    source, target = graph.edge_index.tolist()
    lines = [f"n{s},n{t}" for s, t in zip(source, target, strict=True)]
    (folder / "edges.csv").write_text("\n".join(["source,target", *lines]))
    kinds = ("plain", "round", "red", "red;round")
    rows = ["id,a,b,price,size,tags"]
    for i in range(120):
        tags = kinds[2 * labels[i, 0] + labels[i, 1]]
        x, (price, size) = graph.x[i].tolist(), values[i].tolist()
        rows.append(f"n{i},{x[0]:.4f},{x[1]:.4f},{price:.4f},{size:.4f},{tags}")
    (folder / "nodes.csv").write_text("\n".join(rows))
    return tmp_path


def result():
    return json.loads(Path("run/split-0/result.json").read_text())


def table():
    with Path("table.csv").open() as file:
        return list(csv.DictReader(file))


def test_numbers_are_noticed_learned_predicted_and_exported(argnn, graphs):
    path = graphs / "numbers.npz"
    done = argnn("train", path, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "Note: y: read for --task regression" in done.out
    assert "epoch chosen by validation r2; test nodes scored once" in done.out
    row = result()
    assert row["task"] == "regression"
    assert set(row["test"]) == {"r2", "mae", "rmse", "count"}
    assert row["test"]["r2"] > 0.3
    assert f"test R² │ {row['test']['r2']:.4g} │" in " ".join(done.out.split())
    assert f"test MAE │ {row['test']['mae']:.4g} │" in " ".join(done.out.split())
    model = package.load("run")
    data = np.load(path)
    test = data["test_mask"]
    error = np.abs(model.predict(str(path)) - data["y"])[test].mean()
    assert row["test"]["mae"] == pytest.approx(error, rel=1e-5)
    said = argnn("predict", "run", "--out=table.csv")
    assert (said.code, said.err) == (0, "")
    found = [float(line["target 0"]) for line in table()]
    np.testing.assert_allclose(found, model.predict(str(path)), rtol=1e-6)
    made = argnn("export", "run", "--out=model.pt2")
    assert (made.code, made.err) == (0, "")
    program = torch.export.load("model.pt2").module()
    x, edges = torch.from_numpy(data["x"]).float(), torch.from_numpy(data["edge_index"])
    np.testing.assert_allclose(program(x, edges)[:, 0].detach(), found, rtol=1e-4, atol=1e-5)


def test_labels_are_noticed_learned_predicted_and_exported(argnn, graphs):
    path = graphs / "labels.npz"
    done = argnn("train", path, *QUICK)
    assert (done.code, done.err) == (0, "")
    row = result()
    assert row["task"] == "multilabel"
    assert set(row["test"]) == {"f1_micro", "f1_macro", "average_precision", "count"}
    assert row["classes"]["names"] == ["red", "round"]
    assert "round" in done.out
    assert row["test"]["average_precision"] > 0.7
    model = package.load("run")
    assert model.classes_.tolist() == ["red", "round"]
    argnn("predict", "run", "--out=table.csv")
    expected = [
        ";".join(name for name, has in zip(model.classes_, line, strict=True) if has)
        for line in model.predict(str(path))
    ]
    assert [line["labels"] for line in table()] == expected
    assert argnn("export", "run", "--out=model.pt2").code == 0


@pytest.mark.parametrize(
    ("label", "task", "names"),
    [
        ("price", "regression", ["price"]),
        ("price,size", "regression", ["price", "size"]),
        ("tags", "multilabel", ["plain", "red", "round"]),
    ],
)
def test_columns_of_tables(argnn, graphs, label, task, names):
    done = argnn("train", graphs / "tables", *QUICK, f"--label={label}", "--drop=tags"
                 if label != "tags" else "--drop=price")  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert result()["task"] == task
    model = package.load("run")
    assert model.target_.names == names
    said = argnn("predict", "run", graphs / "tables", "--out=table.csv")
    assert said.code == 0, said.err
    assert table()[0]["id"] == "n0"
    if len(names) == 2:
        assert set(result()["targets"]["test"]) == set(names)


def test_run_is_continued_and_test_targets_are_unseen(argnn, graphs):
    argnn("train", graphs / "numbers.npz", *QUICK)
    first = Path("run/split-0/model/model.safetensors").read_bytes()
    fields = dict(np.load(graphs / "numbers.npz"))
    fields["y"] = np.where(fields["test_mask"], -fields["y"], fields["y"])
    np.savez(graphs / "other.npz", **fields)
    argnn("train", graphs / "other.npz", *QUICK[:-1], "--out=other")
    assert Path("other/split-0/model/model.safetensors").read_bytes() == first
    Path("run/split-0/result.json").unlink()
    again = argnn("train", "--resume=run")
    assert again.code == 0, again.err
    assert Path("run/split-0/model/model.safetensors").read_bytes() == first


def test_bench_and_tune_know_the_tasks(argnn, graphs):
    path = graphs / "numbers.npz"
    Path("e.yaml").write_text(
        f"name: e\ntitle: numbers\ntask: regression\ndata: ['{path}']\nseeds: [0]\n"
        "methods:\n  - {model: gcn, set: [epochs=3]}\n"
    )
    done = argnn("bench", "e.yaml", "--workers=1", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)["experiments"][0]
    assert (report["finished"], report["score"]) == (1, "r2")
    shown = argnn("table", "results/e.jsonl")
    assert shown.code == 0, shown.err
    assert "R²" in shown.out
    words = ("--model=gcn", "--trials=2", "--epochs=3", "--task=regression")
    done = argnn("tune", path, *words)
    assert done.code == 0, done.err
    assert "by mean validation R²" in done.out


def test_inspect_says_what_is_to_be_predicted(argnn, graphs):
    done = argnn("inspect", graphs / "tables", "--label=price", "--json")
    assert done.code == 0, done.err
    report = json.loads(done.out)
    assert (report["task"], report["classes"], report["unlabelled"]) == ("regression", [], 0)
    assert [(row["name"], row["nodes"]) for row in report["targets"]] == [("price", 120)]
    assert {"column": "price", "became": "a number to predict"} in report["columns"]
    assert not any("labels" in warning for warning in report["warnings"])
    shown = argnn("inspect", graphs / "labels.npz").out
    assert "target of multilabel" in shown


def test_page_of_a_run(argnn, graphs):
    argnn("train", graphs / "labels.npz", *QUICK)
    done = argnn("analyze", "run", "--out=page.html")
    assert done.code == 0, done.err
    page = Path("page.html").read_text()
    assert "labels of nodes" in page
    assert "class_scores" in page


def test_several_splits_and_methods(argnn, graphs):
    done = argnn("train", graphs / "numbers.npz", "--epochs=2", "--workers=1", "--out=run",
                 "--set=hidden_channels=4", "--preset=reference", "--set=num_layers=2")  # fmt: skip
    assert (done.code, done.err) == (0, "")
    assert result()["model"] == "argnn"


@pytest.mark.parametrize(
    ("file", "words", "message"),
    [
        ("numbers.npz", ("--task=node",), "y must hold integers"),
        ("labels.npz", ("--task=node",), "y must have shape"),
        ("numbers.npz", ("--select=accuracy",), "select must be one of r2, loss for task"),
        ("numbers.npz", ("--class-weight=balanced",), "class_weight belongs to classes of nodes"),
        ("labels.npz", ("--threshold=0.2",), "threshold needs a graph with two classes"),
        ("numbers.npz", ("--task=sums",), "--task must be one of node, link, regression"),
        ("tables", ("--task=regression", "--label=tags"), "column tags: a target must be a finite"),
        ("tables", ("--task=regression",), "no column of targets"),
        ("numbers.npz", ("--task=multilabel",), "must be 0 or 1"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(refused, graphs, file, words, message):
    refused("train", graphs / file, *QUICK, *words, message=message)


def test_constant_numbers_of_a_split_are_refused_before_a_folder_is_made(refused, graphs):
    fields = dict(np.load(graphs / "numbers.npz"))
    fields["y"] = np.where(fields["train_mask"], 2.0, fields["y"])
    np.savez(graphs / "same.npz", **fields)
    refused("train", graphs / "same.npz", *QUICK, message="is 2 for all training nodes")


@pytest.mark.parametrize(
    ("file", "value", "message"),
    [("numbers.npz", 2.0, "has no R²"), ("labels.npz", 0, "there is no average precision")],
)
def test_a_split_that_cannot_be_judged_is_refused(refused, argnn, graphs, file, value, message):
    fields = dict(np.load(graphs / file))
    fields["y"][fields["val_mask"]] = value
    np.savez(graphs / "same.npz", **fields)
    refused("train", graphs / "same.npz", *QUICK, message=message)
    assert argnn("train", graphs / "same.npz", *QUICK, "--select=loss").code == 0
