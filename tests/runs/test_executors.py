"""Cells in processes and on Ray: the same rows, and a worker that dies takes nobody along."""

import multiprocessing
import os
import signal
import sys
import warnings
from types import SimpleNamespace

import pytest

from argnn.bench.experiments.cells import plan_bench, run_bench
from argnn.bench.experiments.files import DataChoice, Experiment, Method
from argnn.cli import main
from argnn.errors import ConfigError, RunError
from argnn.runs.executors import open_executor, run_local, run_on_ray
from argnn.runs.parallel import Silent

SHORT = ("epochs=4", "hidden_channels=4")
#: What the clock and the machine say.
MEASURED = ("seconds", "peak_memory_mib", "finished")


def experiment(*methods, splits=(0, 1), data="mixed", **changes):
    return Experiment(
        name="mine",
        title="Mine",
        task="node",
        data=(DataChoice(str(data)),),
        methods=methods,
        splits=splits,
        seeds=(0,),
        score="f1",
        **changes,
    )


class Told(Silent):
    def __init__(self):
        self.begun = []

    def begin(self, todo, skipped, workers):
        pass

    def epoch(self, job, epoch, loss, val_score):
        self.begun.append((job.config.model, job.split))


def results(execute, path, *experiments, workers=2):
    bench = plan_bench([(item, path) for item in experiments], workers=workers)
    rows = run_bench(bench, execute, Told())
    return [
        {key: value for key, value in row.items() if key not in MEASURED} for row in rows.values()
    ]


@pytest.fixture(scope="module")
def ray():
    """A Ray on this machine for the tests of this file."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("HOME", "/nonexistent")  # nothing may be written there
        ray = pytest.importorskip("ray")
        before = signal.getsignal(signal.SIGTERM)
        with open_executor("ray", 2) as (execute, workers):
            assert signal.getsignal(signal.SIGTERM) == before
            assert (execute, workers) == (run_on_ray, 2)
            yield ray
    assert not ray.is_initialized()


@pytest.mark.slow
def test_ray_gives_the_rows_of_local_processes(ray, tmp_path):
    both = experiment(
        Method("argnn", "argnn", overrides=SHORT),
        Method("gcn", "gcn", overrides=SHORT),
        oracle=True,
    )
    bad = experiment(Method("bad", "gcn", overrides=(*SHORT, "lr=1e30", "weight_decay=1e30")))
    local = results(run_local, tmp_path / "local.jsonl", both, bad)
    remote = results(run_on_ray, tmp_path / "ray.jsonl", both, bad)
    assert remote == local
    assert [row.get("error", "")[:15] for row in local] == [""] * 4 + ["DivergenceError"] * 2
    assert all(row["oracle"]["epoch"] for row in local[:4])
    assert {row["threads"] for row in local[:4]} == {1}


MINE = """
name: mine
title: Mine
task: node
data: [mixed]
methods:
  - {model: gcn, set: [epochs=4, hidden_channels=4]}
splits: [0, 1, 2]
"""


@pytest.mark.slow
def test_command_goes_on_with_ray_where_local_processes_stopped(ray, tmp_path, capsys):
    path, gcn = tmp_path / "results.jsonl", Method("gcn", "gcn", overrides=SHORT)
    results(run_local, path, experiment(gcn, splits=(0,)), workers=1)
    (tmp_path / "mine.yaml").write_text(MINE)
    with pytest.raises(SystemExit) as stopped:
        main(["bench", str(tmp_path / "mine.yaml"), "--executor=ray", f"--out={path}"])
    assert stopped.value.code == 0
    assert "2 cells to run, 2 at a time; in the results already: 1." in capsys.readouterr().out
    assert len(path.read_text().splitlines()) == 3


class Deadly:
    """Ends whoever unpacks it."""

    def __reduce__(self):
        return os._exit, (1,)


@pytest.mark.slow
def test_dead_ray_worker_is_a_failed_row(ray, tmp_path, monkeypatch):
    monkeypatch.setattr("argnn.runs.executors._RAY_RETRIES", 0)
    gcn = Method("gcn", "gcn", overrides=SHORT)
    bench = plan_bench([(experiment(gcn), tmp_path / "results.jsonl")], workers=1)
    jobs = [cell.job for cell in bench.cells]
    digest = jobs[0].config.graph["digest"]
    rows = [row for _, row in run_on_ray(jobs[:1], {digest: Deadly()}, 2, Silent())]
    (error,) = [row["error"] for row in rows]
    assert error.startswith("RunError: Ray lost the cell (")
    told = Told()
    rows = [row for _, row in run_on_ray(jobs, bench.graphs, 2, told)]
    assert not any("error" in row for row in rows)
    assert sorted(told.begun) == [("gcn", 0), ("gcn", 1)]


@pytest.mark.slow
def test_error_of_a_cell_on_ray_keeps_its_traceback(ray, tmp_path):
    gcn = Method("gcn", "gcn", overrides=SHORT)
    bench = plan_bench([(experiment(gcn, splits=(0,)), tmp_path / "x")], workers=1)
    digest = bench.cells[0].job.config.graph["digest"]
    ((_, row),) = run_on_ray([bench.cells[0].job], {digest: "no graph"}, 1, Silent())
    assert row["error"].startswith("AttributeError: ")
    assert "Traceback" in row["traceback"]


def test_ray_that_is_not_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(ConfigError, match=r"needs Ray: pip install 'argnn\[bench\]'"),
        open_executor("ray", 2),
    ):
        pass


def test_cluster_that_is_not_there(monkeypatch):
    fake = type(sys)("ray")
    fake.is_initialized = lambda: False

    def init(**options):
        assert options["address"] == "auto"
        assert "num_cpus" not in options
        raise ConnectionError("Could not find\nany running Ray instance")

    fake.init = init
    monkeypatch.setitem(sys.modules, "ray", fake)
    with (
        pytest.raises(RunError, match="cannot reach a Ray cluster at auto: Could not find any"),
        open_executor("ray", None, "auto"),
    ):
        pass


@pytest.mark.parametrize(
    ("name", "address", "message"),
    [
        ("slurm", None, "--executor must be one of local, ray"),
        ("local", "auto", "--address belongs to --executor ray"),
    ],
)
def test_impossible_executors(name, address, message):
    with pytest.raises(ConfigError, match=message), open_executor(name, 2, address):
        pass


class Killer(Silent):
    """Kills all worker processes as soon as one has begun, once."""

    def __init__(self):
        self.killed = []

    def epoch(self, job, epoch, loss, val_score):
        if not self.killed:
            self.killed = [child.pid for child in multiprocessing.active_children()]
            for pid in self.killed:
                os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_jobs_survive_the_death_of_workers(small_npz):
    gcn = Method("gcn", "gcn", overrides=("epochs=200", "hidden_channels=4"))
    own = experiment(gcn, splits=(0, 1, 2), data=small_npz())
    bench = plan_bench([(own, "unused")], workers=2)
    jobs, killer = [cell.job for cell in bench.cells], Killer()
    rows = {job.split: row for job, row in run_local(jobs, bench.graphs, 2, killer)}
    assert len(killer.killed) == 2
    assert sorted(rows) == [0, 1, 2]
    assert not any("error" in row for row in rows.values())


@pytest.mark.parametrize("workers", [2, 3, 5])
@pytest.mark.parametrize("killers", [(), (0,), (3,), (8,), (0, 5)])
def test_job_that_always_kills_its_worker_has_failed(monkeypatch, workers, killers):
    jobs = [SimpleNamespace(split=split) for split in range(9)]

    def pool(jobs, graphs, workers, watcher):
        """As many run at a time as there are workers; a killer ends them all."""
        assert len(jobs) > 1 or jobs[0].split not in killers, "would end this process"
        for place, job in enumerate(jobs):
            if any(other.split in killers for other in jobs[place : place + workers]):
                for other in jobs[place:]:
                    yield other, {"error": "RunError: the worker process died"}
                return
            yield job, {}

    monkeypatch.setattr("argnn.runs.executors.run_jobs", pool)
    ended = list(run_local(jobs, {}, workers, Silent()))
    assert sorted(job.split for job, _ in ended) == list(range(9))
    failed = {job.split for job, row in ended if row}
    assert failed >= set(killers)
    # Who shares the last pool with a killer is suspected, too.
    assert len(failed) <= workers * len(killers)
