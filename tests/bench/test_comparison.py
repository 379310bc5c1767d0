"""Comparisons: equal budgets, choices on validation only, and how they go on after every end."""

import json
import math

import numpy as np
import pytest
import torch
from rich.console import Console

import argnn
from argnn.bench.comparison.board import (
    board_row,
    difference_sentence,
    ranked,
    score_of_part,
    with_ensemble,
)
from argnn.bench.comparison.compare import compared, default_out
from argnn.bench.comparison.methods import (
    MethodRun,
    plan_comparison,
    run_comparison,
)
from argnn.errors import ConfigError, RunError
from argnn.runs import trial
from argnn.runs.prepare import Request
from argnn.runs.progress import ComparisonProgress
from argnn.runs.trial import TrialJob
from argnn.settings.resolve import AUTO
from argnn.store.results import read_rows
from argnn.store.run_folder import open_run

METHODS = ("mlp", "gcn", "argnn")
SILENT = ComparisonProgress(Console(quiet=True))


@pytest.fixture(autouse=True)
def _short(monkeypatch, brief_trial):
    """Trials of one and three epochs, in this process."""
    monkeypatch.setattr(trial, "_FIRST_ROUND", 1)


@pytest.fixture
def planned(small_npz, tmp_path):
    """A comparison of some methods on a small graph."""
    path = small_npz()

    def plan(models=METHODS, *, data=path, out="compared", ensemble=None, splits=None, **request):
        values = {"recipes": 3, "workers": 1, "task": AUTO, "overrides": ("epochs=3",), **request}
        wanted = Request(str(data), **values)
        return plan_comparison(wanted, models, tmp_path / out, splits=splits, ensemble=ensemble)

    return plan


def run(plan, watcher=None):
    return compared(plan, watcher or SILENT)


def choices(found):
    """What was chosen and on what grounds, without times."""
    names = ("method", "winner", "val", "recipes", "epochs", "trial_epochs")
    return [{name: row[name] for name in names} for row in found.rows]


def test_winner_has_the_best_validation_score_and_is_kept_as_a_model(planned):
    plan = planned()
    found = run(plan)
    means = [row["val"]["mean"] for row in found.rows]
    assert means == sorted(means, reverse=True)
    assert [row["winner"] for row in found.rows] == [True, False, False]
    assert found.rows[0]["method"] == found.winner
    folders = [open_run(plan.out / name)[1] for name in ("best", found.winner)]
    assert folders[0] == folders[1]
    weights = [argnn.load(plan.out / name).model_.state_dict() for name in ("best", found.winner)]
    assert all(torch.equal(weights[0][key], weights[1][key]) for key in weights[0])
    assert found.best.settings_.model == found.winner


def test_every_method_has_the_same_budget(planned):
    plan = planned()
    found = run(plan)
    spent = {row["trial_epochs"] for row in found.rows}
    assert spent == {3 * plan.budget()["trial_epochs"]} == {3 * 3}
    assert {row["epochs"] for row in found.rows} == {3 * 3}
    assert plan.budget() == {"recipes": 3, "trial_epochs": 3, "epochs": 3, "patience": 100}
    assert "3 recipes in at most 3 epochs" in found.sentences[0]


def test_without_own_epochs_all_methods_train_equally_long(planned):
    plan = planned(overrides=())
    lengths = {
        (recipe.train["epochs"], recipe.train["patience"])
        for made in plan.drafts.values()
        for job in made.jobs
        for recipe in job.recipes
    }
    assert lengths == {(1000, 100)}


def test_other_test_labels_change_no_choice(planned, small_npz):
    path = small_npz()
    content = dict(np.load(path))
    test = content["test_mask"][:, 0]
    y = np.where(test, (content["y"] + 1) % 3, content["y"])
    other = small_npz("other.npz", y=y)
    first, second = (
        run(planned(data=data, out=data.stem, splits="0", ensemble=2)) for data in (path, other)
    )
    assert choices(first) == choices(second)
    assert first.members == second.members
    assert [r["test"]["mean"] for r in first.rows] != [r["test"]["mean"] for r in second.rows]


def test_noise_gives_chance(planned, small_npz):
    rng = np.random.default_rng(3)
    noise = small_npz("noise.npz", x=rng.normal(size=(90, 3)), y=rng.integers(0, 3, size=90))
    found = run(planned(("mlp", "gcn"), data=noise, out="noise", ensemble=2))
    for row in found.rows:  # four standard errors of 75 test nodes
        assert abs(row["test"]["mean"] - 1 / 3) < 4 * math.sqrt(2 / 9 / 75)


def test_informative_features_beat_random_edges(planned, small_npz):
    x = 3 * np.eye(3)[np.arange(90) % 3] + np.random.default_rng(0).normal(size=(90, 3))
    clear = small_npz("clear.npz", x=x)
    found = run(planned(("gcn", "mlp"), data=clear, overrides=("epochs=60", "lr=0.05")))
    assert found.winner == "mlp"
    assert found.rows[0]["test"]["mean"] > 1 / 3 + 4 * math.sqrt(2 / 9 / 75)


class Interrupting(ComparisonProgress):
    """Ends the comparison when a split is over, or after some epochs of the trials."""

    def __init__(self, epochs=None):
        super().__init__(Console(quiet=True))
        self.epochs = epochs

    def tried(self, done, total):
        if self.epochs is not None and done > self.epochs:
            raise KeyboardInterrupt

    def finished(self, job, row):
        if self.epochs is None:
            raise KeyboardInterrupt


def test_stopped_in_training_goes_on_without_new_trials(planned, monkeypatch):
    whole = run(planned(out="whole", ensemble=2))
    with pytest.raises(KeyboardInterrupt):
        run(planned(ensemble=2), Interrupting())
    monkeypatch.setattr(TrialJob, "run", lambda *_: pytest.fail("tried again"))
    again = run(planned(ensemble=2))
    assert choices(again) == choices(whole)
    assert [r["test"] for r in again.rows] == [r["test"] for r in whole.rows]
    assert len(read_rows(again.out / "results.jsonl")) == 9
    third = run(planned(ensemble=2))
    assert third.rows == again.rows
    assert (again.out / "results.jsonl").read_text().count("\n") == 9


def test_stopped_in_the_trials_keeps_the_methods_that_were_tried(planned, monkeypatch):
    with pytest.raises(KeyboardInterrupt):
        run(planned(), Interrupting(epochs=10))  # nine are those of the first method
    tried = []
    usual = TrialJob.run
    monkeypatch.setattr(
        TrialJob, "run", lambda job, *more: (tried.append(job.config.model), usual(job, *more))[1]
    )
    found = run(planned())
    assert set(tried) == {"gcn", "argnn"}
    assert {row["method"] for row in found.rows} == set(METHODS)


def test_more_methods_may_be_added(planned):
    first = run(planned(("mlp",)))
    both = run(planned(("mlp", "gcn")))
    assert both.rows[[r["method"] for r in both.rows].index("mlp")]["val"] == first.rows[0]["val"]
    assert both.sentences[-1].startswith(" and ".join(r["method"] for r in both.rows))


def test_a_method_that_fails_is_a_row_and_stops_no_other(planned, monkeypatch):
    usual = TrialJob.run

    def failing(job, *more):
        if job.config.model == "gcn":
            raise RuntimeError("no such luck")
        return usual(job, *more)

    with monkeypatch.context() as patch:
        patch.setattr(TrialJob, "run", failing)
        found = run(planned(ensemble=3))
    last = found.rows[-1]
    assert (last["method"], last["error"]) == ("gcn", "RuntimeError: no such luck")
    assert (last["finished"], last["failed"], last["val"]["mean"]) == (0, 3, None)
    assert set(found.members) == {"mlp", "argnn"}
    assert "RuntimeError:" in repr(found)
    rows = {row["method"]: row for row in read_rows(found.out / "results.jsonl")}
    assert "no such luck" in rows["gcn"]["error"]
    assert run(planned(ensemble=3)).rows[-1]["error"] is None
    rows = read_rows(found.out / "results.jsonl")
    assert not [row for row in rows if "error" in row]


def test_without_any_method_that_finishes_there_is_one_line(planned, monkeypatch):
    def failing(job, *more):
        raise RuntimeError("no such luck")

    monkeypatch.setattr(TrialJob, "run", failing)
    with pytest.raises(RunError, match="no method finished; mlp: RuntimeError: no such luck"):
        run(planned())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recipes": 4}, "holds a comparison with other recipes"),
        ({"seed": 1}, "with other seed"),
        ({"splits": "0"}, "with other splits"),
        ({"overrides": ("epochs=4",)}, "with other settings"),
        ({"task": "link"}, "with other task"),
        ({"models": ("gpt",)}, "unknown model 'gpt'"),
        ({"models": ()}, "name at least one model"),
        ({"ensemble": 1}, "--ensemble must be from 2 to the number of methods, 3"),
        ({"ensemble": 4}, "--ensemble must be from 2 to the number of methods, 3"),
        ({"ensemble": 2, "task": "link"}, "belongs to targets of nodes"),
        ({"recipes": 0}, "--recipes must be at least 1"),
        ({"overrides": ("metric=fixed",)}, "unknown setting 'metric' of mlp"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_written(
    planned, tmp_path, changes, message
):
    run(planned(("mlp",), splits="0,1,2"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    with pytest.raises(ConfigError, match=message):
        planned(**{"splits": "0,1,2", **changes})
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before


def test_folders_with_something_else_are_refused(planned, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").touch()
    with pytest.raises(RunError, match="not empty"):
        planned(out="full")
    with pytest.raises(RunError, match="not a folder"):
        planned(out="full/mine")


def test_ensemble_is_the_mean_of_calibrated_probabilities(planned, small_npz):
    plan = planned(ensemble=2)
    found = run(plan)
    [row] = [row for row in found.rows if row["method"].startswith("ensemble")]
    assert row["method"] == f"ensemble of {', '.join(found.members)}"
    assert list(found.members) == [r["method"] for r in found.rows if r is not row][:2]
    graph, right = plan.graph, []
    for split in (0, 1, 2):
        models = [argnn.load(plan.out / name, split=split) for name in found.members]
        mean = np.mean([model.predict_proba(str(small_npz())) for model in models], axis=0)
        test = graph.test_mask[:, split].numpy()
        right.append((mean.argmax(1) == graph.y.numpy())[test].mean())
    assert row["test"]["mean"] == pytest.approx(np.mean(right), abs=1e-12)
    models = [argnn.load(plan.out / name) for name in found.members]
    mean = np.mean([model.predict_proba(str(small_npz())) for model in models], axis=0)
    assert found.ensemble_proba(str(small_npz())) == pytest.approx(mean)


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_other_targets_are_compared_and_averaged(tmp_path, kind):
    graph = argnn.data.mixed()
    rng = np.random.default_rng(0)
    y = graph.x[:, :2].double() + 0.1 * torch.tensor(rng.normal(size=(graph.num_nodes, 2)))
    graph.y = (y > 0).double() if kind == "multilabel" else y
    found = argnn.compare(
        graph,
        ["mlp", "gcn"],
        recipes=2,
        splits="0",
        ensemble=2,
        out=tmp_path / "new",
        settings=["epochs=5"],
        workers=1,
        task=kind,
    )
    assert (found.select, found.score) == {
        "regression": ("r2", "r2"),
        "multilabel": ("average_precision", "average_precision"),
    }[kind]
    [mean] = [row for row in found.rows if row["method"].startswith("ensemble")]
    assert mean["test"]["mean"] is not None
    if kind == "regression":
        with pytest.raises(ConfigError, match="no probabilities"):
            found.ensemble_proba(graph)
    else:
        assert found.ensemble_proba(graph).shape == (graph.num_nodes, 2)


def test_links_are_compared(planned):
    found = run(planned(("gcn", "hgcn"), task="link", splits="0"))
    assert (found.select, found.score) == ("auroc", "auroc")
    assert {row["trial_epochs"] for row in found.rows} == {3}
    assert "one split cannot tell" in found.sentences[-1]


def test_a_selection_by_loss_prefers_the_smaller(planned):
    found = run(planned(overrides=("epochs=3", "select=loss"), splits="0"))
    means = [row["val"]["mean"] for row in found.rows]
    assert means == sorted(means)
    assert (found.select, found.score) == ("loss", "f1")


def test_compare_in_memory(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    graph = argnn.data.mixed()
    found = argnn.compare(
        graph, ["gcn", "mlp"], recipes=1, splits=[0], settings=["epochs=2"], workers=1, verbose=True
    )
    assert found.out.parent.name == "runs"
    assert capsys.readouterr().out.count("split 0: test accuracy ") == 2
    table = found.leaderboard
    assert list(table["method"]) == [row["method"] for row in found.rows]
    assert table["val_accuracy"].tolist() == [row["val"]["mean"] for row in found.rows]
    assert found.best.predict(graph).shape == (graph.num_nodes,)
    assert "Winner: " in repr(found)
    assert json.loads(json.dumps(found.document()))["winner"] == found.winner
    with pytest.raises(ConfigError, match="no ensemble"):
        found.ensemble_proba(graph)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sed": 1}, "compare has no argument 'sed'; did you mean 'seed'"),
        ({"model": "gcn"}, "compare has no argument 'model'"),
        ({"load_options": {"lable": "y"}}, "load_options of a path has no 'lable'; did you mean"),
        ({"models": "gcn,gpt"}, "unknown model 'gpt'"),
    ],
)
def test_mistakes_in_python_are_named(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=message):
        argnn.compare("mixed", **options)
    assert not list(tmp_path.glob("runs"))


def test_leaderboard_without_pandas_is_a_list(planned, monkeypatch):
    found = run(planned(("mlp",), splits="0"))
    monkeypatch.setattr("argnn.bench.comparison.compare.find_spec", lambda name: None)
    assert found.leaderboard[0]["method"] == "mlp"


def test_default_folder_is_the_same_for_the_same_graph(small_npz):
    assert default_out("cora").as_posix() == "runs/cora-compare"
    assert default_out(str(small_npz())).as_posix() == "runs/small-compare"


def made_up(config, model, scores, *, val=0.5):
    rows = [
        {
            "task": "node",
            "split": split,
            "seed": 0,
            "test": {"accuracy": score},
            "val": {"accuracy": val},
        }
        for split, score in enumerate(scores)
    ]
    return MethodRun(model, config, None, rows)


def test_sentence_about_the_first_two(planned):
    config = planned(("mlp",)).config
    one = made_up(config, "a", [0.5])
    assert "one split cannot tell" in difference_sentence(one, made_up(config, "b", [0.6]))
    near = made_up(config, "b", [0.52, 0.58, 0.7])
    text = difference_sentence(made_up(config, "a", [0.5, 0.6, 0.7]), near)
    assert text.startswith("a and b do not differ clearly on the test set")
    far = made_up(config, "b", [0.3, 0.4, 0.5])
    text = difference_sentence(made_up(config, "a", [0.5, 0.6, 0.701]), far)
    assert "a and b differ on the test set: mean difference of accuracy 20.03 ± " in text
    many = made_up(config, "a", [0.5 + 0.01 * n for n in range(6)])
    text = difference_sentence(many, made_up(config, "b", [0.4 + 0.001 * n for n in range(6)]))
    assert "differ on the test set" in text
    assert "Wilcoxon's signed-rank test, p = 0.031" in text


def test_test_scores_do_not_rank(planned):
    config = planned(("mlp",)).config
    good, bad = made_up(config, "a", [0.1], val=0.9), made_up(config, "b", [0.9], val=0.8)
    assert [found.model for found in ranked([bad, good])] == ["a", "b"]
    best = {**good.rows[0], "val": {"accuracy": 1.0}}
    short = MethodRun("c", config, None, [best, {"error": ""}])
    both = made_up(config, "d", [0.1, 0.1], val=0.2)
    assert [found.model for found in ranked([short, both])] == ["d", "c"]


def test_ensemble_stands_at_its_place():
    rows = [{"val": {"mean": mean}, "failed": failed} for mean, failed in ((0.9, 0), (None, 3))]
    mean = {"val": {"mean": 0.8}}
    assert with_ensemble(rows, mean, "accuracy") == [rows[0], mean, rows[1]]
    assert with_ensemble(rows, mean, "loss") == [mean, *rows]
    unknown = {"val": {"mean": None}}
    assert with_ensemble(rows, unknown, "loss") == [*rows, unknown]


def test_average_precision_is_that_of_the_rarer_class():
    part = {"average_precision": [0.9, 0.2]}
    row = {"test": {"accuracy": 0.9}, "classes": {"rare": 1, "test": part}}
    assert score_of_part(row, "test", "average_precision") == 0.2
    row["classes"]["test"] = {"average_precision": [0.9, None, 0.3]}
    assert score_of_part(row, "test", "average_precision") == pytest.approx(0.6)
    assert score_of_part(row, "test", "loss") is None
    assert score_of_part({"test": None}, "test", "accuracy") is None


def test_rows_are_json(planned):
    runs = run_comparison(planned(("mlp",), splits="0"), SILENT)
    assert json.loads(json.dumps(board_row(runs[0]), allow_nan=False))["method"] == "mlp"
