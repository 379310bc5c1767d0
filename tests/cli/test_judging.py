"""``--select``, ``--class-weight`` and ``--threshold``, and what is printed about classes."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

import argnn as package
from argnn.data import load
from planted_targets import rare_classes

QUICK = ("--model=gcn", "--epochs=8", "--set=hidden_channels=4", "--workers=1", "--out=run")


@pytest.fixture
def rare(tmp_path):
    """Two classes, one of them 6 %."""
    graph = rare_classes(300, share=0.06)
    path = tmp_path / "rare.npz"
    fields = {name: value.numpy() for name, value in graph.to_dict().items()}
    np.savez(path, class_names=np.array(["ok", "fraud"]), **fields)
    return path


def result():
    return json.loads(Path("run/split-0/result.json").read_text())


def test_scores_of_the_rare_class_are_printed_as_such(argnn, rare):
    done = argnn("train", rare, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "Warning: 94 % of the labelled nodes are of class ok: look at the macro F1" in done.out
    row, summary = result(), json.loads(Path("run/scores.json").read_text())["summary"]
    graph, model = load(str(rare)), package.load("run")
    test, p = graph.test_mask[:, 0].numpy(), model.predict_proba(str(rare))
    expected = average_precision_score(graph.y.numpy()[test] == 1, p[test, 1])
    assert row["classes"]["names"] == ["ok", "fraud"]
    assert row["classes"]["rare"] == 1
    assert row["classes"]["test"]["average_precision"][1] == pytest.approx(expected)
    assert summary["classes"]["average_precision_rare"]["mean"] == pytest.approx(expected)
    assert f"test average precision of fraud │ {100 * expected:.2f}" in _close(done.out)
    assert "test AUPRC (weighted)" in done.out
    assert "as fraud" in done.out
    confusion = np.array(row["classes"]["test"]["confusion"])
    assert confusion.sum(1).tolist() == row["classes"]["test"]["support"]
    assert confusion.sum() == test.sum()


def _close(text):
    """The text with runs of spaces made one."""
    return " ".join(text.split())


@pytest.mark.parametrize("select", ["f1_macro", "auroc", "average_precision", "loss"])
def test_the_score_of_the_user_chooses_the_epoch(argnn, rare, select):
    done = argnn("train", rare, *QUICK, f"--select={select}")
    assert (done.code, done.err) == (0, "")
    row = result()
    best = max(row["history"], key=lambda r: (r["val_score"], -r["val_loss"]))
    assert row["chosen_epoch"] == best["epoch"]
    value = best["val_loss"] if select == "loss" else best["val_score"]
    assert row["selection"] == {"score": select, "val": value}
    assert f"epoch chosen by validation {select}" in done.out
    summary = json.loads(Path("run/scores.json").read_text())["summary"]
    assert summary["val"][select]["mean"] == value
    assert f"by validation {select}" in Path("run/split-0/model/README.md").read_text()


def test_threshold_of_validation_is_stored_and_used(argnn, rare):
    done = argnn("train", rare, *QUICK, "--select=f1_macro", "--threshold=validation")
    assert (done.code, done.err) == (0, "")
    graph, model, row = load(str(rare)), package.load("run"), result()
    assert row["threshold"] == model.threshold_ != 0
    labels, test, val = (
        graph.y.numpy(),
        *(graph[f"{p}_mask"][:, 0].numpy() for p in ("test", "val")),
    )
    predicted = (model.predict(str(rare)) == "fraud").astype(int)
    for part, mask in (("test", test), ("val", val)):
        f1 = f1_score(labels[mask], predicted[mask], average="macro", zero_division=0)
        assert row[part]["f1_macro"] == pytest.approx(f1), part
    usual = model.predict_proba(str(rare)).argmax(1)
    assert row["val"]["f1_macro"] > f1_score(labels[val], usual[val], average="macro")
    rule = model.decision_rule_
    assert rule["class"] == "fraud"
    chosen = model.predict_proba(str(rare))[:, 1] > rule["from_probability"]
    np.testing.assert_array_equal(chosen, predicted == 1)
    said = argnn("predict", "run", "--out=table.csv")
    assert f"class fraud from probability {rule['from_probability']:.3g}" in said.out
    with Path("table.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(line["class"] == "fraud") for line in rows] == predicted.tolist()
    exported = json.loads(argnn("export", "run", "--out=model.pt2", "--json").out)
    assert exported["decision_rule"] == pytest.approx(rule)


def test_test_labels_do_not_change_the_threshold(argnn, rare, tmp_path):
    argnn("train", rare, *QUICK, "--threshold=validation", "--select=f1_macro")
    before, weights = result()["threshold"], Path("run/split-0/model/model.safetensors")
    first = weights.read_bytes()
    fields = dict(np.load(rare))
    fields["y"] = np.where(fields["test_mask"], 1 - fields["y"], fields["y"])
    np.savez(tmp_path / "other.npz", **fields)
    argnn("train", tmp_path / "other.npz", *QUICK[:-1], "--out=run2", "--threshold=validation",
          "--select=f1_macro")  # fmt: skip
    other = json.loads(Path("run2/split-0/result.json").read_text())
    assert other["threshold"] == before
    assert Path("run2/split-0/model/model.safetensors").read_bytes() == first
    assert other["test"] != result()["test"]


def test_a_threshold_of_the_user(argnn, rare):
    argnn("train", rare, *QUICK, "--threshold=0.1")
    model = package.load("run")
    chosen = model.predict_proba(str(rare))[:, 1] >= 0.1
    np.testing.assert_array_equal(chosen, model.predict(str(rare)) == "fraud")
    assert chosen.any()


def test_class_weights_change_the_training_only(argnn, rare):
    weights = {}
    for name, words in {"no": (), "yes": ("--class-weight=balanced",)}.items():
        done = argnn("train", rare, *QUICK[:-1], f"--out={name}", *words)
        assert (done.code, done.err) == (0, "")
        weights[name] = package.load(name).predict_proba(str(rare))[:, 1].mean()
    assert weights["yes"] > 2 * weights["no"]


def test_tune_searches_by_the_score(argnn, rare):
    done = argnn("tune", rare, "--model=gcn", "--trials=2", "--epochs=3", "--select=loss")
    assert done.code == 0, done.err
    assert "by mean validation loss" in done.out
    text = next(Path("tuning").glob("*.yaml")).read_text()
    assert "select: loss" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--select=recall",), "select must be one of accuracy, f1_macro, auroc"),
        (("--task=link", "--select=accuracy"), "select must be one of auroc, average_precision"),
        (("--class-weight=fruad=3",), "there is no class 'fruad'; did you mean 'fraud'"),
        (("--class-weight=fraud=-3",), "class_weight of fraud must be positive"),
        (("--class-weight=nothing",), "--class-weight must be balanced"),
        (("--task=link", "--class-weight=balanced"), "class_weight belongs to classes of nodes"),
        (("--threshold=1.5",), "threshold must be between 0 and 1"),
        (("--threshold=best",), "threshold must be validation or a number"),
        (("--task=link", "--threshold=0.3"), "threshold needs a graph with two classes"),
    ],
)
def test_impossible_wishes_are_refused_in_one_line(refused, rare, words, message):
    refused("train", rare, *QUICK, *words, message=message)


def with_labels(rare, where, value):
    """The graph with one label for all nodes of a part; the others in turn of both."""
    fields = dict(np.load(rare))
    fields["y"] = np.where(fields[where], value, np.arange(len(fields["y"])) % 2)
    path = rare.with_name("other.npz")
    np.savez(path, **fields)
    return path


def test_a_ranking_needs_validation_nodes_of_two_classes(refused, rare):
    graph, words = with_labels(rare, "val_mask", 0), ("--select=auroc", *QUICK)
    refused("train", graph, *words, message="needs validation nodes of two classes")


def test_a_class_without_test_nodes_is_named(argnn, rare):
    done = argnn("train", with_labels(rare, "test_mask", 0), *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "No test node of class fraud in split 0." in done.out


def test_one_class_is_refused(refused, rare):
    fields = dict(np.load(rare))
    del fields["class_names"]
    fields["y"][:] = 0
    np.savez(rare, **fields)
    refused("train", rare, *QUICK, message="there is only one class, class 0: nothing can be")


def test_more_than_two_classes_have_no_threshold(refused):
    refused("train", "digits", *QUICK, "--threshold=0.3", message="two classes (got 10 classes)")
