"""Cells in processes and on Ray: the same rows, and a worker that dies takes nobody along."""

import multiprocessing.util
import os
import runpy
import signal
import sys
import threading
import time
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from argnn.bench.experiments.cells import plan_bench, run_bench
from argnn.bench.experiments.files import DataChoice, Experiment, Method
from argnn.bench.tuning.search import plan_search, run_search
from argnn.cli import main
from argnn.data import load
from argnn.errors import ConfigError, RunError
from argnn.nn import MODELS
from argnn.runs.parallel import SilentWatcher, run_jobs
from argnn.runs.pool import _without_script, open_executor, open_pool
from argnn.runs.prepare import Request
from argnn.train import EpochRecord

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


class Told(SilentWatcher):
    def __init__(self):
        self.begun = []

    def begin(self, todo, skipped, workers):
        pass

    def epoch(self, job, epoch, loss, val_score):
        self.begun.append((job.config.model, job.split))


def results(executor, path, *experiments, workers=2):
    bench = plan_bench([(item, path) for item in experiments], workers=workers)
    rows = run_bench(bench, Told(), executor=executor)
    return [
        {key: value for key, value in row.items() if key not in MEASURED} for row in rows.values()
    ]


@pytest.fixture(scope="module")
def ray():
    """A Ray on this machine for the tests of this file."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("ignore")
        patch.setenv("OMP_NUM_THREADS", "1")
        patch.setenv("RAY_worker_niceness", "0")  # else other tests leave it hardly any time
        # Jobs of this file, and the same argnn as here also in a second working tree.
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[1]), prepend=os.pathsep)
        patch.setenv("HOME", "/nonexistent")  # nothing may be written there
        ray = pytest.importorskip("ray")
        before = signal.getsignal(signal.SIGTERM)
        with open_executor("ray", 2) as workers:
            assert signal.getsignal(signal.SIGTERM) == before
            assert workers == 2
            yield ray
    assert not ray.is_initialized()


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_ray_gives_the_rows_of_local_processes(ray, tmp_path):
    both = experiment(
        Method("argnn", "argnn", overrides=SHORT),
        Method("gcn", "gcn", overrides=SHORT),
        oracle=True,
    )
    bad = experiment(Method("bad", "gcn", overrides=(*SHORT, "lr=1e30", "weight_decay=1e30")))
    local = results("local", tmp_path / "local.jsonl", both, bad)
    remote = results("ray", tmp_path / "ray.jsonl", both, bad)
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
    results("local", path, experiment(gcn, splits=(0,)), workers=1)
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
def test_dead_ray_worker_is_a_failed_row(ray, tmp_path):
    gcn = Method("gcn", "gcn", overrides=SHORT)
    bench = plan_bench([(experiment(gcn), tmp_path / "results.jsonl")], workers=1)
    jobs = [cell.job for cell in bench.cells]
    digest = jobs[0].config.graph["digest"]
    rows = [
        row for _, row in run_jobs(jobs[:1], {digest: Deadly()}, 2, SilentWatcher(), executor="ray")
    ]
    (error,) = [row["error"] for row in rows]
    assert error.startswith("RunError: Ray lost the job (")
    told = Told()
    rows = [row for _, row in run_jobs(jobs, bench.graphs, 2, told, executor="ray")]
    assert not any("error" in row for row in rows)
    assert sorted(told.begun) == [("gcn", 0), ("gcn", 1)]


@pytest.mark.slow
def test_error_of_a_cell_on_ray_keeps_its_traceback(ray, tmp_path):
    gcn = Method("gcn", "gcn", overrides=SHORT)
    bench = plan_bench([(experiment(gcn, splits=(0,)), tmp_path / "x")], workers=1)
    digest = bench.cells[0].job.config.graph["digest"]
    jobs, graphs = [bench.cells[0].job], {digest: "no graph"}
    ((_, row),) = run_jobs(jobs, graphs, 1, SilentWatcher(), executor="ray")
    assert row["error"].startswith("AttributeError: ")
    assert "Traceback" in row["traceback"]


@pytest.mark.slow
@pytest.mark.usefixtures("plain_seeds")
def test_trials_of_a_search_are_the_same_on_ray(ray, small_npz, tmp_path):
    request = Request(str(small_npz()), model="gcn", overrides=("epochs=2",), workers=1)
    search = plan_search(request, 2, splits="0,1")
    remote = run_search(search, tmp_path / "ray.journal", executor="ray", workers=1)
    here = run_search(search, tmp_path / "here.journal")
    assert len(here) == 2
    assert [replace(record, seconds=0.0) for record in remote] == [
        replace(record, seconds=0.0) for record in here
    ]


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
    ("arguments", "message"),
    [
        (("slurm", 2), "--executor must be one of local, ray"),
        (("local", 0), "--workers must be at least 1"),
        (("ray", 0), "--workers must be at least 1"),
        (("local", 2, "auto"), "--address belongs to --executor ray"),
    ],
)
def test_impossible_executors(arguments, message):
    with pytest.raises(ConfigError, match=message), open_executor(*arguments):
        pass


@dataclass(frozen=True)
class SumJob:
    """A job without training that kills its worker the first few times."""

    number: int
    folder: Path
    deaths: int = 0
    config: SimpleNamespace = field(
        default_factory=lambda: SimpleNamespace(graph={"digest": "one"}, threads=1, device="cpu")
    )

    def run(self, graph, on_epoch):
        if self.number < 0:
            raise ValueError("negative")
        begun = self.folder / f"{self.number}"
        with begun.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(begun.read_text().splitlines()) <= self.deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        on_epoch(EpochRecord(self.number + 1, 0.5, 0.5, 0.0, 1.0, 0.25))
        return self.number + int(graph.y.sum())

    def failed(self, error, seconds):
        return f"{type(error).__name__}: {error}"


@pytest.fixture(scope="module")
def graphs():
    return {"one": load("mixed")}


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local", pytest.param("ray", marks=pytest.mark.torture)])
def test_worker_that_dies_fails_only_its_job(request, graphs, tmp_path, executor):
    request.getfixturevalue("ray" if executor == "ray" else "forked_workers")
    jobs = [SumJob(number, tmp_path, {1: 1, 3: 9}.get(number, 0)) for number in range(6)]
    total, told = int(graphs["one"].y.sum()), {}

    def tell(job, *course):
        told[job.number] = course

    with open_pool(graphs, 2, executor, attempts=2, tell=tell) as pool:
        for job in [*jobs[:4], SumJob(-1, tmp_path)]:
            pool.submit(job)
        ended = [pool.next_done()]
        for job in jobs[4:]:  # while others are running
            pool.submit(job)
        ended += [pool.next_done() for _ in range(6)]
    found = {job.number: result for job, result in ended}
    words = {"local": "the worker process died (code -9)", "ray": "Ray lost the job ("}
    assert found.pop(3).startswith(f"RunError: {words[executor]}")
    assert found == {-1: "ValueError: negative", **{n: n + total for n in (0, 1, 2, 4, 5)}}
    attempts = {n: len((tmp_path / str(n)).read_text().splitlines()) for n in range(6)}
    assert attempts == {0: 1, 1: 2, 2: 1, 3: 2, 4: 1, 5: 1}
    if executor == "local":
        assert {n: told[n] for n in (0, 5)} == {0: (1, 0.5, 0.25), 5: (6, 0.5, 0.25)}


@pytest.mark.slow
def test_a_script_without_a_guard_runs_once(tmp_path, monkeypatch):
    """``spawn`` runs a script again in every worker, which would begin the same work there.

    Of the two workers only one is started: a new Python takes long to import everything.
    """
    monkeypatch.chdir(tmp_path)
    mlp = Method("mlp", "mlp", overrides=("epochs=1",))
    bench = plan_bench([(experiment(mlp, splits=(0,)), tmp_path / "x.jsonl")], workers=1)
    (tmp_path / "mine.py").write_text(
        "from argnn.runs.pool import open_pool\n"
        "with open('begun', 'a') as file:\n"
        "    file.write('once;')\n"
        "with open_pool(graphs, workers=2) as pool:\n"
        "    pool.submit(job)\n"
        "    [(worker, _)] = pool.running.items()\n"
        "    _, row = pool.next_done()\n"
    )
    given = {"graphs": bench.graphs, "job": bench.cells[0].job}
    found = runpy.run_path("mine.py", given, run_name="__main__")
    assert found["worker"].process.pid != os.getpid()
    assert found["row"]["epochs_run"] == 1
    assert Path("begun").read_text() == "once;"


def test_a_script_that_adds_a_model_runs_in_workers_too(monkeypatch):
    class Mine(MODELS["mlp"]):
        pass

    script = sys.modules["__main__"]
    with _without_script():
        assert sys.modules["__main__"] is not script
    monkeypatch.setitem(MODELS, "mine", Mine)
    with _without_script():
        assert sys.modules["__main__"] is script
    assert sys.modules["__main__"] is script


@pytest.mark.slow
def test_pool_of_one_is_this_process(graphs, tmp_path):
    told = []
    with open_pool(graphs, tell=lambda *values: told.append(values)) as pool:
        for number in (2, 1):
            pool.submit(SumJob(number, tmp_path))
        assert [pool.next_done()[0].number for _ in range(2)] == [2, 1]
    assert (tmp_path / "1").read_text() == f"{os.getpid()}\n"
    assert [epoch for _, epoch, _, _ in told] == [3, 2]


@dataclass(frozen=True)
class HangingJob(SumJob):
    """A job that does not end when it is asked to."""

    def run(self, graph, on_epoch):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (self.folder / "begun").touch()
        threading.Event().wait()


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_worker_that_hangs_is_killed_when_the_pool_is_left(graphs, tmp_path, monkeypatch):
    monkeypatch.setattr("argnn.runs.pool._EPOCH_SECONDS", 0.1)
    monkeypatch.setattr("argnn.runs.pool._PATIENCE_SECONDS", 0.1)
    with open_pool(graphs, 2) as pool:
        pool.submit(HangingJob(0, tmp_path))
        (worker,) = pool.running
        while not (tmp_path / "begun").exists():
            assert worker.process.is_alive()
            time.sleep(0.02)
    assert worker.process.exitcode == -signal.SIGKILL


@dataclass(frozen=True)
class SlowToEndJob(SumJob):
    """A job whose process takes long to end, as on a busy machine."""

    def run(self, graph, on_epoch):
        def end_slowly():
            (self.folder / "ending").touch()
            threading.Event().wait()

        multiprocessing.util.Finalize(None, end_slowly, exitpriority=0)
        return self.number


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_worker_that_is_asked_to_end_while_python_ends_says_nothing(graphs, tmp_path, capfd):
    with open_pool(graphs, 2) as pool:
        pool.submit(SlowToEndJob(0, tmp_path))
        pool.next_done()
        (worker,) = pool.idle
        worker.pipe.close()
        while not (tmp_path / "ending").exists():
            assert worker.process.is_alive()
            time.sleep(0.02)
        worker.process.terminate()
        worker.process.join()
        pool.idle.clear()
    assert worker.process.exitcode == -signal.SIGTERM
    assert capfd.readouterr().err == ""
