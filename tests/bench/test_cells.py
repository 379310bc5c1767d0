"""Cells: their identity, which are to do, what their rows hold, and how long they take."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from argnn.bench.experiments.cells import (
    Pace,
    first_difference,
    outcomes,
    plan_bench,
    run_bench,
)
from argnn.bench.experiments.files import DataChoice, Experiment, Method
from argnn.data import load
from argnn.errors import ConfigError, DivergenceError, RunError
from argnn.files import fingerprint
from argnn.runs.parallel import SilentWatcher
from argnn.runs.run import failed_row
from argnn.store.results import read_rows
from result_rows import append_row

SHORT = ("epochs=2", "hidden_channels=4")


def method(label="gcn", model="gcn", overrides=SHORT, **changes):
    return Method(label, model, overrides=overrides, **changes)


def experiment(name="mine", **changes):
    values = {
        "title": "Mine",
        "task": "node",
        "data": (DataChoice("mixed"),),
        "methods": (method(), method("mlp", "mlp")),
        "splits": (0, 3),
        "seeds": (0, 7),
        "score": "f1",
    }
    return Experiment(name, **{**values, **changes})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.jsonl"


def outcome(job, f1=0.25, **changes):
    """What a runner gives back, without the running."""
    scores = {"f1": f1, "accuracy": 0.5}
    values = {
        "data": job.config.data,
        "test": scores,
        "val": scores,
        "oracle": {"epoch": 1, "test": scores} if job.oracle else None,
        "chosen_epoch": 1,
        "epochs_run": 2,
        "seconds": 0.5,
        "threads": job.config.threads,
    }
    return {**values, **changes}


class Runner:
    """In place of training; some jobs fail, some interrupt."""

    def __init__(self, fails=(), interrupts=(), **changes):
        self.fails, self.interrupts, self.changes = fails, interrupts, changes
        self.ran, self.graphs = [], {}

    def __call__(self, jobs, graphs, workers, watcher, **options):
        self.graphs = graphs
        for job in jobs:
            place = (job.config.model, job.split, job.config.seed)
            if place in self.interrupts:
                raise KeyboardInterrupt
            self.ran.append(place)
            if place in self.fails:
                yield job, failed_row(job.config, job.split, DivergenceError("the loss is nan"))
            else:
                yield job, outcome(job, **self.changes)


class Told(SilentWatcher):
    def __init__(self):
        self.rows, self.opening = [], None

    def begin(self, todo, skipped, workers):
        self.opening = (len(todo), skipped, workers)

    def finished(self, job, row):
        self.rows.append(row)


def ran_by(runner, bench, told, **options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("argnn.bench.experiments.cells.run_jobs", runner)
        return run_bench(bench, told, **options)


def run(path, *experiments, runner=None, told=None, **options):
    targets = [(item, path) for item in experiments or [experiment()]]
    bench = plan_bench(targets, workers=options.pop("workers", 1))
    runner = runner or Runner()
    rows = ran_by(runner, bench, told or Told(), **options)
    return runner.ran, list(rows.values())


ALL = [(model, split, seed) for model in ("gcn", "mlp") for seed in (0, 7) for split in (0, 3)]


def test_cells_are_all_combinations(path):
    bench = plan_bench([(experiment(), path)])
    found = [(c.job.config.model, c.job.split, c.job.config.seed) for c in bench.cells]
    assert found == ALL
    assert len({cell.id for cell in bench.cells}) == 8
    assert all(cell.job.folder is None for cell in bench.cells)


def test_identity_is_the_documented_fingerprint(path):
    cell = plan_bench([(experiment(), path)]).cells[1]
    names = {"task": "node", "data": "mixed", "directed": False, "method": "gcn"}
    assert cell.id == fingerprint({**names, "split": 3, "seed": 0})[:16]
    link = experiment(task="link", ratio="85/5/10", score="auroc")
    cell = plan_bench([(link, path)]).cells[0]
    names = {**names, "task": "link", "ratio": "85/5/10"}
    assert cell.id == fingerprint({**names, "split": 0, "seed": 0})[:16]


def test_circumstances_are_no_settings(path):
    cell = plan_bench([(experiment(), path)]).cells[0]

    def settings(**changes):
        job = replace(cell.job, config=replace(cell.job.config, **changes))
        return replace(cell, job=job).settings

    same = {"threads": 9, "device": "cuda", "splits": (5,), "source": "x", "trial": {"seconds": 1}}
    assert {settings(**{name: value}) for name, value in same.items()} == {cell.settings}
    train = replace(cell.job.config.train, lr=0.5)
    others = {"train": train, "options": {}, "graph": {}, "row_normalize": True}
    changed = {settings(**{name: value}) for name, value in others.items()}
    assert len(changed) == 4
    assert cell.settings not in changed


def test_threads_do_not_depend_on_what_is_finished(path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr("argnn.runs.machine.core_count", lambda: 8)
    cells = plan_bench([(experiment(), path)], workers=2).cells
    assert {cell.job.config.threads for cell in cells} == {4}
    one = experiment(splits=(0,), seeds=(0,), methods=(method(),))
    bench = plan_bench([(one, path)], workers=8)
    assert (bench.workers, bench.cells[0].job.config.threads) == (1, 8)


def test_graph_is_loaded_once(path, monkeypatch):
    loaded = []

    def counting(data, **options):
        loaded.append(data)
        return load(data, **options)

    monkeypatch.setattr("argnn.runs.prepare.load", counting)
    both = experiment(data=(DataChoice("mixed"), DataChoice("digits")))
    bench = plan_bench([(both, path), (experiment("other"), path)])
    assert loaded == ["mixed", "digits"]
    assert len(bench.graphs) == 2


def test_row_has_everything_the_contract_names(path):
    _, rows = run(path, experiment(oracle=True))
    row = read_rows(path)[0]
    assert row in [json.loads(json.dumps(item)) for item in rows]
    expected = {
        "format": 1,
        "experiment": "mine",
        "task": "node",
        "data": "mixed",
        "directed": False,
        "method": "gcn",
        "model": "gcn",
        "preset": "default",
        "split": 0,
        "seed": 0,
        "chosen_epoch": 1,
        "seconds": 0.5,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["config"]["train"]["epochs"] == 2
    assert row["oracle"]["epoch"] == 1
    assert row["finished"].endswith("+00:00")
    assert list(row)[:4] == ["format", "cell", "experiment", "task"]


def test_finished_cells_are_skipped(path):
    runner = Runner(interrupts=[ALL[5]])
    with pytest.raises(KeyboardInterrupt):
        run(path, runner=runner)
    assert runner.ran == ALL[:5]
    told = Told()
    ran, rows = run(path, told=told)
    assert ran == ALL[5:]
    assert told.opening == (3, 5, 1)
    assert [row["split"] for row in told.rows] == [split for _, split, _ in ALL[5:]]
    assert len(rows) == 8
    assert len(path.read_text().splitlines()) == 8
    assert run(path)[0] == []


def test_only_graphs_that_are_needed_are_handed_on(path):
    two = experiment(data=(DataChoice("digits"), DataChoice("mixed")))
    run(path, experiment())
    runner = Runner()
    run(path, two, runner=runner)
    assert [graph.name for graph in runner.graphs.values()] == ["digits"]


def test_longest_cells_come_first(path):
    slow = method("slow", "gcn", overrides=("epochs=50",))
    run(path, experiment(methods=(method(), slow), splits=(0,), seeds=(0, 1)))
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["method"] for row in rows] == ["slow", "slow", "gcn", "gcn"]


def test_failed_cells_are_rows_and_wait_to_be_asked_for(path):
    bad = ALL[2]
    ran, rows = run(path, runner=Runner(fails=[bad]))
    assert ran == ALL
    (failed,) = [row for row in rows if "error" in row]
    assert failed["error"] == "DivergenceError: the loss is nan"
    assert failed["config"]["model"] == "gcn"
    assert failed["settings"]
    assert "test" not in failed
    assert run(path)[0] == []
    ran, rows = run(path, retry_failed=True)
    assert ran == [bad]
    assert not any("error" in row for row in rows)
    assert not any("error" in row for row in read_rows(path))
    assert run(path, retry_failed=True)[0] == []


def test_failed_cell_runs_again_with_other_settings(path):
    run(path, runner=Runner(fails=ALL))
    changed = (method(overrides=(*SHORT, "lr=0.5")), method("mlp", "mlp"))
    assert run(path, experiment(methods=changed))[0] == ALL[:4]


def test_numbers_that_are_none_are_a_failure(path):
    _, rows = run(path, runner=Runner(f1=float("nan")))
    assert all(row["error"].startswith("RunError: a result is not a finite") for row in rows)
    assert len(read_rows(path)) == 8


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"overrides": ("epochs=3", "hidden_channels=4")}, "train.epochs is 2 and 3 now"),
        ({"overrides": ("epochs=2",)}, "options.hidden_channels is 4 and 64 now"),
    ],
)
def test_other_settings_are_not_mixed(path, changes, what):
    run(path)
    before = path.read_bytes()
    changed = experiment(methods=(method(**changes), method("mlp", "mlp")))
    runner = Runner()
    with pytest.raises(RunError) as caught:
        run(path, changed, runner=runner)
    assert f"{path}: mixed, gcn, split 0, seed 0 was run with other settings" in str(caught.value)
    assert what in str(caught.value)
    assert "choose another --out" in str(caught.value)
    assert (runner.ran, path.read_bytes()) == ([], before)


def test_changed_graph_is_another_setting(path, small_npz):
    own = experiment(data=(DataChoice(str(small_npz())),), splits=(0,))
    run(path, own)
    small_npz(x=[[float(i)] for i in range(90)])
    with pytest.raises(RunError, match="was run with other settings"):
        run(path, own)


def test_other_number_of_workers_goes_on(path):
    run(path, runner=Runner(fails=[ALL[0]]), workers=1)
    assert run(path, workers=4, retry_failed=True)[0] == [ALL[0]]


def test_missing_oracle_is_added(path):
    run(path)
    ran, rows = run(path, experiment(oracle=True))
    assert ran == ALL
    assert all(row["oracle"] is not None for row in rows)
    assert run(path, experiment(oracle=True))[0] == []
    assert run(path)[0] == []


def test_oracle_without_test_nodes_is_not_missing(path):
    bench = plan_bench([(experiment(oracle=True), path)])
    rows = [cell.row(outcome(cell.job, oracle=None)) for cell in bench.cells]
    assert all(cell.is_to_do(row) for cell, row in zip(bench.cells, rows, strict=True))
    rows = [cell.row(outcome(cell.job, oracle=None, test=None)) for cell in bench.cells]
    assert not any(cell.is_to_do(row) for cell, row in zip(bench.cells, rows, strict=True))


def test_experiments_share_cells_of_one_file(path):
    small = experiment("small", splits=(0,))
    bench = plan_bench([(small, path), (experiment(oracle=True), path)])
    assert len(bench.cells) == 8
    assert [len(bench.members[name]) for name in ("small", "mine")] == [4, 8]
    assert all(cell.job.oracle for cell in bench.cells)
    assert {cell.experiment for cell in bench.cells} == {"small", "mine"}


def test_experiments_that_contradict_each_other_are_refused(path):
    other = experiment("other", methods=(method(overrides=("epochs=9",)),))
    with pytest.raises(ConfigError, match=r"options.hidden_channels is 4 and 64 in mine and in ot"):
        plan_bench([(experiment(), path), (other, path)])
    bench = plan_bench([(experiment(), path), (other, path.with_name("other.jsonl"))])
    assert len(bench.cells) == 12


def test_experiments_with_files_of_their_own(path):
    other = path.with_name("other.jsonl")
    bench = plan_bench([(experiment(), path), (experiment("other"), other)])
    rows = ran_by(Runner(), bench, Told())
    assert len(rows) == 16
    assert {row["experiment"] for row in read_rows(other)} == {"other"}
    assert len(read_rows(path)) == 8


def test_split_that_is_not_there(path):
    with pytest.raises(ConfigError, match="experiment mine: split 12 out of range"):
        plan_bench([(experiment(splits=(0, 12)), path)])
    assert not path.exists()


def test_results_of_another_version_stop_the_bench(path):
    path.write_text('{"format": 7}\n')
    with pytest.raises(RunError, match="has format 7"):
        run(path)
    assert path.read_text() == '{"format": 7}\n'


def test_difference_names_what_is_missing():
    assert first_difference({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}) == "a.c is missing and 2"
    assert first_difference({"a": {"b": None}}, {}) == "a.b is null and missing"
    assert first_difference({"threads": 1}, {"threads": 2}) == "the settings differ"


def test_outcomes_are_means_of_finished_cells(path):
    _, rows = run(path, runner=Runner(fails=[ALL[0]]))
    rows[1]["test"]["f1"] = 0.75
    rows[2]["test"] = None
    gcn, mlp = outcomes(rows, "f1")
    assert (gcn["method"], gcn["data"], gcn["finished"], gcn["failed"]) == ("gcn", "mixed", 3, 1)
    assert (gcn["test"]["mean"], gcn["test"]["n"]) == (0.5, 2)
    assert (mlp["test"]["mean"], mlp["failed"]) == (0.25, 0)


@pytest.mark.usefixtures("plain_seeds", "forked_workers")
def test_trial_is_the_same_for_every_number_of_workers(small_npz, path, brief_trial):
    own = experiment(
        data=(DataChoice(str(small_npz())),), methods=(Method("argnn", "argnn"),), splits=None
    )
    found = [plan_bench([(own, path)], workers=workers).cells for workers in (1, 2)]
    assert found[0][0].job.config.trial["chosen"]
    assert [cell.settings for cell in found[0]] == [cell.settings for cell in found[1]]


def test_appended_rows_of_others_are_seen(path):
    bench = plan_bench([(experiment(), path)])
    cell = bench.cells[3]
    append_row(path, cell.row(outcome(cell.job)))
    assert ALL[3] not in run(path)[0]


class TestPace:
    @pytest.fixture
    def cells(self):
        slow = method("slow", "gcn", overrides=("epochs=20", "hidden_channels=4"))
        both = experiment(methods=(method(), slow), splits=(0, 1), seeds=(0,))
        return plan_bench([(both, Path("x"))]).cells

    def test_nothing_is_known_at_first(self, cells):
        pace = Pace(cells, 1)
        assert pace.seconds_left() is None
        pace.finished(cells[0], None)
        assert pace.seconds_left() is None

    def test_costs_scale(self, cells):
        assert cells[2].cost == 10 * cells[0].cost
        pace = Pace(cells, 1)
        pace.finished(cells[0], 1.0)
        assert pace.seconds_left() == pytest.approx(1 + 10 + 10)

    def test_own_pace_of_a_method_and_workers(self, cells):
        pace = Pace(cells, 2)
        pace.finished(cells[0], 1.0)
        pace.finished(cells[2], 40.0)
        assert pace.seconds_left() == pytest.approx(40)  # the longest cell
        pace.moved(cells[3], 0.5)
        assert pace.seconds_left() == pytest.approx(20)
        pace.moved(cells[3], 1.0)
        assert pace.seconds_left() == pytest.approx(1)
        pace.finished(cells[1], 1.0)
        pace.finished(cells[3], None)
        assert pace.seconds_left() == 0
