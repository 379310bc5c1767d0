"""Running splits: what is written, what is repeated bit for bit, what failure leaves behind."""

import json
import shutil
import signal

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score

from argnn.bench.experiments.cells import plan_bench
from argnn.bench.experiments.files import parsed_experiment
from argnn.data import load, split_links
from argnn.errors import DivergenceError, RunError
from argnn.files import read_checked, read_json
from argnn.runs import trial
from argnn.runs.machine import using_threads
from argnn.runs.parallel import SilentWatcher, run_splits
from argnn.runs.prepare import Request, prepare, reopen
from argnn.runs.run import convergence_epoch, run_cell, trained_model
from argnn.settings.run_config import RunConfig
from argnn.store.run_folder import RunFolder, create_run
from argnn.train import fit
from forked import code, command, run_forked

TINY = ("hidden_channels=8", "num_layers=2", "epochs=6", "checkpoint_every=2")


def run(out, data="mixed", *more, watcher=None, **changes):
    usual = {"preset": "reference", "workers": 1, "device": "cpu"}
    fields = {**usual, "overrides": (*TINY, *more), **changes}
    plan = prepare(Request(str(data), **fields))
    folder = create_run(out, plan.config.to_json())
    return folder, run_splits(plan, folder, watcher)


def without_time(row):
    # Where a test damages or compares rows, what the clock and the machine say is left out.
    keys = ("seconds", "peak_memory_mib", "resumed_from_epoch", "git_commit", "git_changed")
    return {key: value for key, value in row.items() if key not in keys}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        return run(tmp_path_factory.mktemp("finished") / "run", split="0,3")


def test_folder_holds_what_it_should(finished):
    folder, rows = finished
    names = {str(path.relative_to(folder.root)) for path in folder.root.rglob("*.*")}
    held = ["result.json"]
    held += [f"model/{name}" for name in ("model.safetensors", "model.json", "README.md")]
    parts = {f"split-{i}/{name}" for i in (0, 3) for name in held}
    assert names == {"config.json", "code.json", "scores.json", "log.txt", *parts}
    assert "split 3 finished: epoch" in folder.log.read_text()
    assert [row["split"] for row in rows] == [0, 3]


def test_row_says_where_it_comes_from(finished):
    folder, rows = finished
    row = read_checked(folder.result(3))
    assert row == json.loads(json.dumps(rows[1]))
    assert (row["data"], row["model"], row["preset"]) == ("mixed", "argnn", "reference")
    assert (row["seed"], row["epochs_run"], row["stopped_by"]) == (0, 6, "epochs")
    assert row["config"] == read_json(folder.config)["run"]
    assert row["versions"].keys() >= {"python", "torch", "torch_geometric", "numpy", "argnn"}
    assert row["threads"] == row["config"]["threads"]
    assert row["device"].startswith("cpu")
    assert row["peak_memory_mib"] > 1
    assert row["seconds"] > 0
    assert [record["epoch"] for record in row["history"]] == [1, 2, 3, 4, 5, 6]
    assert row["git_commit"] is None or len(row["git_commit"]) == 40


def test_chosen_epoch_is_the_best_on_validation(finished):
    for row in finished[1]:
        best = max(row["history"], key=lambda record: (record["val_score"], -record["val_loss"]))
        assert row["chosen_epoch"] == best["epoch"]
        assert row["val"]["accuracy"] == pytest.approx(best["val_score"])


def test_stored_weights_give_the_stored_scores(finished):
    folder, rows = finished
    graph = load("mixed")
    model = trained_model(folder, 3)
    with torch.no_grad():
        predicted = model(graph.x, graph.edge_index).argmax(-1)
    mask = graph.test_mask[:, 3]
    right = (predicted == graph.y)[mask].double().mean().item()
    assert rows[1]["test"]["accuracy"] == pytest.approx(right)
    assert rows[1]["test"]["count"] == int(mask.sum())


def test_weights_that_were_changed_are_refused(finished, tmp_path):
    folder = RunFolder(tmp_path)
    shutil.copytree(finished[0].model(0), folder.model(0))
    shutil.copy(finished[0].weights(3), folder.weights(0))
    with pytest.raises(RunError, match="model.safetensors"):
        trained_model(folder, 0)


def test_scores_file_equals_the_rows(finished):
    folder, rows = finished
    scores = read_checked(folder.scores)
    assert [row["test"] for row in scores["splits"]] == [row["test"] for row in rows]
    assert "history" not in scores["splits"][0]
    accuracy = [row["test"]["accuracy"] for row in rows]
    assert scores["summary"]["test"]["accuracy"]["mean"] == pytest.approx(np.mean(accuracy))


def test_same_seed_same_bytes_other_seed_other_bytes(finished, tmp_path):
    weights = finished[0].weights(0).read_bytes()
    same, _ = run(tmp_path / "same", split="0", seed=0)
    other, _ = run(tmp_path / "other", split="0", seed=1)
    assert same.weights(0).read_bytes() == weights
    assert other.weights(0).read_bytes() != weights


def relabelled(graph, split):
    """Every test label replaced by another class."""
    y, test = graph.y.clone(), graph.test_mask[:, split]
    y[test] = (y[test] + 1) % graph.class_count
    return y


def save_split(graph, split, y, path):
    masks = {
        name: graph[name][:, split].numpy() for name in ("train_mask", "val_mask", "test_mask")
    }
    np.savez(path, x=graph.x.numpy(), edge_index=graph.edge_index.numpy(), y=y.numpy(), **masks)


def both_ways(graph, split, tmp_path, *more):
    """The same run with true and with wrong test labels; the whole way, the trial included."""
    outcomes = []
    for name, y in (("true", graph.y), ("wrong", relabelled(graph, split))):
        data = tmp_path / f"{name}.npz"
        save_split(graph, split, y, data)
        overrides = ("epochs=8", *more)
        folder, rows = run(tmp_path / name, data, preset="default", overrides=overrides)
        config = read_json(folder.config)["run"]
        outcomes.append((folder.weights(0).read_bytes(), rows[0], config))
    return outcomes


def check_test_labels_are_unseen(outcomes):
    (weights, row, config), (wrong_weights, wrong_row, wrong_config) = outcomes
    assert weights == wrong_weights
    for key in ("chosen_epoch", "epochs_run", "stopped_by", "val", "history"):
        assert row[key] == wrong_row[key], key
    assert row["test"] != wrong_row["test"]
    for key in ("options", "train", "source"):
        assert config[key] == wrong_config[key], key
    assert config["trial"]["chosen"] == wrong_config["trial"]["chosen"]
    scores = [[run["val_score"], run["val_loss"]] for run in config["trial"]["runs"]]
    assert scores == [[r["val_score"], r["val_loss"]] for r in wrong_config["trial"]["runs"]]


def test_test_labels_are_unseen_on_mixed(tmp_path, brief_trial):
    check_test_labels_are_unseen(both_ways(load("mixed"), 1, tmp_path, "hidden_channels=8"))


def test_test_labels_are_unseen_on_texas(tmp_path, brief_trial, benchmark_root):
    graph = load("texas", root=benchmark_root)
    check_test_labels_are_unseen(both_ways(graph, 0, tmp_path))


@pytest.fixture
def two_recipes(brief_trial, monkeypatch):
    """Trials that are over soon, and can still choose."""
    monkeypatch.setattr(trial, "RECIPES", trial.RECIPES[1:3])


def corrupted(small_npz, name, split):
    """Three splits of a graph nobody tuned; the labels that one of them tests are wrong."""
    path = small_npz(f"{name}.npz")
    if split is None:
        return path
    with np.load(path) as stored:
        fields = dict(stored)
    test = fields["test_mask"][:, split]
    fields["y"] = np.where(test, (fields["y"] + 1) % 3, fields["y"])
    return small_npz(f"{name}.npz", **fields)


def same_choice(row, other):
    """Whether two rows of a split were trained with the same settings and ended the same."""
    config, wrong = row["config"], other["config"]
    settings = all(config[key] == wrong[key] for key in ("options", "train", "source"))
    course = all(row[key] == other[key] for key in ("val", "chosen_epoch", "epochs_run"))
    return settings and course


@pytest.mark.parametrize("split", [0, 1, 2])
def test_no_split_sees_the_test_labels_of_its_own(small_npz, tmp_path, two_recipes, split):
    """``--split all``: a node that one split tests is trained on by others, so each has a trial."""
    fields = {"preset": "default", "overrides": ("epochs=4",), "split": "all"}
    whole, rows = run(tmp_path / "true", corrupted(small_npz, "true", None), **fields)
    wrong, wrong_rows = run(tmp_path / "wrong", corrupted(small_npz, "wrong", split), **fields)
    assert [row["split"] for row in rows] == [0, 1, 2]
    assert same_choice(rows[split], wrong_rows[split])
    assert whole.weights(split).read_bytes() == wrong.weights(split).read_bytes()
    assert rows[split]["test"] != wrong_rows[split]["test"]


@pytest.mark.parametrize("split", [0, 1, 2])
def test_no_cell_of_a_bench_sees_the_test_labels_of_its_split(
    small_npz, tmp_path, two_recipes, split
):
    rows = []
    for name, corrupt in (("right", None), ("wrong", split)):
        data = corrupted(small_npz, name, corrupt)
        text = f"{{name: {name}, title: t, task: node, data: [{data}], splits: all, "
        text += "seeds: [0], score: f1, "
        text += "methods: [{model: argnn, label: argnn, set: [epochs=4]}]}"
        experiment = parsed_experiment(text, name, tmp_path)
        bench = plan_bench([(experiment, tmp_path / f"{name}.jsonl")], workers=1, device="cpu")
        [cell] = [cell for cell in bench.cells if cell.job.split == split]
        graph = bench.graphs[cell.job.config.graph["digest"]]
        rows.append(cell.row(run_cell(cell.job.config, graph, split)))
    assert same_choice(*rows)
    assert rows[0]["test"] != rows[1]["test"]


def test_trials_of_splits_are_stored_and_continued(small_npz, tmp_path, two_recipes):
    fields = {"preset": "default", "overrides": ("epochs=4",), "split": "all"}
    folder, rows = run(tmp_path / "run", small_npz(), **fields)
    config = RunConfig.from_json(read_json(folder.config)["run"], "config.json")
    assert set(config.per_split) == {"0", "1", "2"}
    for row in rows:
        own = config.for_split(row["split"])
        assert own.trial["split"] == row["split"]
        assert row["config"] == own.to_json()
        assert config.per_split[str(row["split"])]["trial"] == own.trial
    again = run_splits(reopen(config, None, 1), folder)
    assert again == rows


def test_stored_settings_are_constants(benchmark_root):
    """What was found by searches is read from the package, whatever the labels at hand say."""
    found = [
        prepare(Request("texas", data_root=str(benchmark_root)), graph=graph).config
        for graph in (load("texas", root=benchmark_root), wrong_texas(benchmark_root))
    ]
    assert found[0].options == found[1].options
    assert found[0].train == found[1].train
    assert found[0].graph["digest"] != found[1].graph["digest"]


def wrong_texas(root):
    graph = load("texas", root=root)
    graph.y = relabelled(graph, 0)
    return graph


def test_empty_test_mask_gives_no_test_scores(small_npz, tmp_path):
    empty = np.zeros((90, 3), dtype=bool)
    _, rows = run(tmp_path / "run", small_npz(test_mask=empty))
    assert rows[0]["test"] is None
    assert rows[0]["val"]["accuracy"] > 0


# -- the oracle -----------------------------------------------------------------------------------


@pytest.fixture
def watched(monkeypatch):
    """What every training leaves: its weights, and what an observer saw, epoch by epoch."""
    runs = []

    def watched_fit(model, *arguments, observe=None, **options):
        seen = {}

        def observe_and_keep(epoch, outputs):
            seen[epoch] = outputs.clone()
            observe(epoch, outputs)

        observer = None if observe is None else observe_and_keep
        result = fit(model, *arguments, observe=observer, **options)
        runs.append(({name: t.clone() for name, t in model.state_dict().items()}, seen))
        return result

    monkeypatch.setattr("argnn.runs.train_one.fit", watched_fit)
    return runs


def slow_node_score(graph, outputs):
    mask = graph.test_mask[:, 1]
    return f1_score(graph.y[mask], outputs[mask].argmax(-1), average="weighted", zero_division=0)


def slow_link_score(graph, outputs):
    """AUROC of inner products; behind the eight channels of a point is its metric."""
    split = split_links(graph.edge_index, graph.num_nodes, "85/5/10", 1)
    points = outputs[:, :8].double().numpy()
    pairs = torch.cat([split.test, split.test_negatives], dim=1).numpy()
    label = np.arange(pairs.shape[1]) < split.test.size(1)
    return roc_auc_score(label, (points[pairs[0]] * points[pairs[1]]).sum(-1))


ORACLES = [("node", "f1", slow_node_score), ("link", "auroc", slow_link_score)]


@pytest.mark.parametrize(("task", "score", "slow_score"), ORACLES, ids=["node", "link"])
def test_oracle_tells_the_best_test_epoch_and_changes_nothing(
    small_npz, watched, task, score, slow_score
):
    settings = (*TINY, "epochs=20", "evaluate_every=3", "lr=0.02")
    decoder = None if task == "node" else "dot"
    wanted = {"preset": "reference", "task": task, "decoder": decoder, "overrides": settings}
    plan = prepare(Request(str(small_npz()), device="cpu", **wanted))
    with using_threads(1):
        plain, told = (run_cell(plan.config, plan.graph, 1, oracle=o) for o in (False, True))

    (weights, unseen), (same_weights, seen) = watched
    assert unseen == {}
    assert list(seen) == [3, 6, 9, 12, 15, 18, 20]
    assert [name for name in weights if not torch.equal(weights[name], same_weights[name])] == []
    assert plain["oracle"] is None
    assert "history" not in told
    for key in plain.keys() - {"oracle", "seconds", "peak_memory_mib"}:
        assert told[key] == plain[key], key

    scores = {epoch: slow_score(plan.graph, outputs) for epoch, outputs in seen.items()}
    assert len(set(scores.values())) > 2, "else any epoch would do"
    oracle = told["oracle"]
    assert oracle["rule"] == "best test score over epochs"
    assert scores[oracle["epoch"]] == pytest.approx(max(scores.values()))
    assert oracle["test"][score] == pytest.approx(max(scores.values()))
    assert oracle["test"].keys() == told["test"].keys()
    assert told["test"][score] == pytest.approx(scores[told["chosen_epoch"]])
    assert told["test"][score] <= oracle["test"][score]


def test_oracle_has_nothing_to_say_without_test_nodes(small_npz):
    path = small_npz(test_mask=np.zeros((90, 3), dtype=bool))
    plan = prepare(Request(str(path), preset="reference", device="cpu", overrides=TINY))
    with using_threads(1):
        assert run_cell(plan.config, plan.graph, 0, oracle=True)["oracle"] is None


def test_cell_is_the_row_of_a_run_without_its_history(finished):
    row = finished[1][1]
    with using_threads(row["threads"]):
        cell = run_cell(prepare_config(finished[0]), load("mixed"), 3)
    assert row.keys() - cell.keys() == {"history", "resumed_from_epoch"}
    course = cell.pop("course")
    losses = [record["loss"] for record in row["history"]]
    assert (course["first_loss"], course["last_loss"]) == (losses[0], losses[-1])
    assert course["converged_at"] == convergence_epoch(row["history"])
    for key in cell.keys() - {"seconds", "peak_memory_mib"}:
        assert cell[key] == row[key], key


def test_early_stop_is_recorded(small_npz, tmp_path):
    _, rows = run(
        tmp_path / "run", small_npz(), "epochs=100", "patience=3", model="gcn", preset="default"
    )
    assert rows[0]["stopped_by"] == "patience"
    assert rows[0]["epochs_run"] == rows[0]["chosen_epoch"] + 3


def test_divergence_is_a_row_and_the_next_split_runs(small_npz, tmp_path, monkeypatch):
    from argnn.runs import parallel

    def fragile(config, graph, split, folder, on_epoch):
        if split == 1:
            raise DivergenceError("the loss became nan in epoch 3")
        return whole(config, graph, split, folder, on_epoch)

    whole = parallel.run_split
    monkeypatch.setattr(parallel, "run_split", fragile)
    folder, rows = run(tmp_path / "run", small_npz(), split="all")
    assert [row.get("error") for row in rows] == [
        None,
        "DivergenceError: the loss became nan in epoch 3",
        None,
    ]
    assert "traceback" not in rows[1]
    scores = read_checked(folder.scores)
    assert (scores["summary"]["splits"], scores["summary"]["failed"]) == (2, 1)
    assert scores["splits"][1]["error"] == rows[1]["error"]

    monkeypatch.undo()
    plan = reopen(prepare_config(folder), None, 1)
    repaired = run_splits(plan, folder)
    assert not any("error" in row for row in repaired)


def prepare_config(folder):
    from argnn.settings.run_config import RunConfig

    return RunConfig.from_json(read_json(folder.config)["run"], "config.json")


def test_unforeseen_error_keeps_its_traceback(small_npz, tmp_path, monkeypatch):
    monkeypatch.setattr("argnn.runs.train_one.fit", None)
    folder, rows = run(tmp_path / "run", small_npz())
    assert rows[0]["error"].startswith("TypeError: 'NoneType'")
    assert "Traceback" in rows[0]["traceback"]
    assert "Traceback" in folder.log.read_text()


@pytest.mark.usefixtures("plain_seeds", "forked_workers")
def test_workers_give_the_same_bits(small_npz, tmp_path):
    path = small_npz()
    alone, _ = run(tmp_path / "alone", path, split="all")
    plan = reopen(prepare_config(alone), None, 2)
    folder = create_run(tmp_path / "together", plan.config.to_json())
    told = Recorder()
    rows = run_splits(plan, folder, told)
    assert [row.get("error") for row in rows] == [None] * 3
    assert sorted(told.done) == [0, 1, 2]
    for split in range(3):
        assert folder.weights(split).read_bytes() == alone.weights(split).read_bytes()
        assert rows[split]["threads"] == plan.config.threads


class Recorder(SilentWatcher):
    def __init__(self):
        self.done = []

    def finished(self, job, row):
        self.done.append(job.split)


KILLED_RUN = """
import os, signal, sys
from pathlib import Path
from argnn.settings.run_config import RunConfig
from argnn.bench.experiments.cells import plan_bench
from argnn.bench.experiments.files import parsed_experiment
from argnn.runs.parallel import SilentWatcher, run_splits
from argnn.runs.prepare import Request, prepare
from argnn.store.run_folder import create_run

class Killer(SilentWatcher):
    def epoch(self, job, epoch, loss, val_score):
        if (job.split, epoch) == (int(sys.argv[2]), 17):
            os.kill(os.getpid(), signal.SIGKILL)

overrides = ("hidden_channels=8", "num_layers=2", "epochs=23", "checkpoint_every=5")
wanted = {"preset": "reference", "split": sys.argv[3], "workers": 1, "overrides": overrides}
plan = prepare(Request("mixed", device="cpu", **wanted))
run_splits(plan, create_run(Path(sys.argv[1]), plan.config.to_json()), Killer())
"""


@pytest.mark.slow
@pytest.mark.usefixtures("plain_seeds")
def test_killed_run_continues_bit_for_bit(tmp_path):
    killed = RunFolder(tmp_path / "killed")
    done, _, errors = run_forked(code, KILLED_RUN, killed.root, "2", "0,2,4", cwd=tmp_path)
    assert done == -signal.SIGKILL, errors
    assert killed.result(0).exists()
    assert killed.checkpoint(2).exists()
    assert not killed.result(2).exists()
    assert not (killed.root / "split-4").exists()
    before = killed.result(0).stat().st_mtime_ns, killed.result(0).read_bytes()

    resume = ("train", "--resume", killed.root, "--workers=1")
    resumed, _, errors = run_forked(command, *resume, cwd=tmp_path)
    assert (resumed, errors) == (0, "")
    assert (killed.result(0).stat().st_mtime_ns, killed.result(0).read_bytes()) == before
    assert not killed.checkpoint(2).exists()

    whole, rows = run(tmp_path / "whole", "mixed", "epochs=23", "checkpoint_every=5", split="0,2,4")
    for split, row in zip((0, 2, 4), rows, strict=True):
        assert killed.weights(split).read_bytes() == whole.weights(split).read_bytes()
        found = read_checked(killed.result(split))
        assert found["history"] == row["history"]
        assert without_time(found) == without_time(row)
    assert read_checked(killed.result(2))["resumed_from_epoch"] == 15
    assert read_checked(killed.result(4))["resumed_from_epoch"] is None
