"""``argnn compare``: what it prints and leaves, and what it refuses."""

import json
from pathlib import Path

import pytest

from argnn.runs import trial

SHORT = ("--models=gcn,mlp", "--recipes=2", "--epochs=2", "--workers=1")


@pytest.fixture(autouse=True)
def _short(monkeypatch, brief_trial):
    monkeypatch.setattr(trial, "_FIRST_ROUND", 1)


def test_compare_table_predict_and_resume(argnn, small_npz):
    done = argnn("compare", small_npz(), *SHORT, "--ensemble=2")
    assert (done.code, done.err) == (0, "")
    assert "2 methods on 3 splits, in runs/small-compare" in done.out
    assert done.out.count("2 recipes in at most 2 epochs") == 1
    assert "ensemble" in done.out
    assert "Winner: " in done.out
    assert " on the test set: mean difference of accuracy " in done.out
    folder = Path("runs/small-compare")
    names = {"best", "gcn", "mlp", "results.jsonl", "comparison.json"}
    assert {path.name for path in folder.iterdir()} == names
    assert argnn("predict", folder / "best", small_npz(), "--out=p.csv").code == 0
    assert argnn("train", f"--resume={folder}/gcn").code == 0
    table = argnn("table", folder / "results.jsonl")
    assert table.code == 0
    assert "gcn" in table.out
    again = argnn("compare", small_npz(), *SHORT, "--ensemble=2")
    assert again.code == 0
    assert again.out.splitlines()[-3:] == done.out.splitlines()[-3:]


def test_json_is_one_document(argnn, small_npz):
    done = argnn("compare", small_npz(), *SHORT, "--split=0", "--json", "--out=here")
    document = json.loads(done.out)
    assert document["budget"] == {
        "recipes": 2,
        "trial_epochs": 2,
        "epochs": 2,
        "patience": 100,
    }
    assert [row["winner"] for row in document["leaderboard"]] == [True, False]
    assert document["best"] == "here/best"


def test_a_failed_method_is_named_and_the_code_is_1(argnn, small_npz, monkeypatch):
    usual = trial.TrialJob.run

    def failing(job, *more):
        if job.config.model == "mlp":
            raise RuntimeError("no such luck")
        return usual(job, *more)

    monkeypatch.setattr(trial.TrialJob, "run", failing)
    done = argnn("compare", small_npz(), *SHORT, "--split=0")
    assert (done.code, done.err) == (1, "argnn: error: mlp failed: RuntimeError: no such luck\n")
    assert "Winner: gcn" in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--models=gnc",), "did you mean 'gcn'"),
        (("--ensemble=9",), "--ensemble must be from 2"),
        (("--recipes=0",), "--recipes must be at least 1"),
        (("--set=hedas=2",), "unknown setting 'hedas' of gcn"),
        (("--set=adjacency_rows=true",), "unknown setting 'adjacency_rows' of gcn"),
        (("--split=7",), "split"),
        (("--task=links",), "--task must be one of"),
        (("--workers=0",), "--workers must be at least 1"),
        (("--select=best",), "select"),
    ],
)
def test_bad_options_are_one_line_and_leave_nothing(refused, small_npz, options, message):
    refused("compare", small_npz(), *SHORT, *options, message=message)


def test_options_of_training_reach_every_method(argnn, small_npz):
    done = argnn(
        *("compare", small_npz(), *SHORT, "--split=0", "--json", "--select=f1_macro"),
        *("--class-weight=balanced", "--set=dropout=0.1", "--directed", "--seed=3"),
    )
    document = json.loads(done.out)
    assert document["select"] == "f1_macro"
    for name in ("gcn", "mlp"):
        run = json.loads(Path(f"runs/small-compare/{name}/config.json").read_text())["run"]
        assert (run["options"]["dropout"], run["seed"], run["directed"]) == (0.1, 3, True)
        assert run["train"]["class_weight"] == "balanced"
