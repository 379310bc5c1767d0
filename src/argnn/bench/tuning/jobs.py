"""The work of a search: train one split of one trial, in this process, in others, or on Ray."""

import json
import math
import os
import shutil
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing import connection, get_context
from pathlib import Path
from typing import Any, Protocol

import torch
from torch_geometric.data import Data

from argnn.bench.tuning.study import Params
from argnn.errors import FORESEEN, ConfigError, RunError
from argnn.runs.allocator import keep_freed_memory
from argnn.runs.executors import EXECUTORS, ray_session
from argnn.runs.parallel import graphs_for_worker, pack
from argnn.runs.problems import pose_problem
from argnn.runs.signals import children_ignoring_interrupts
from argnn.runs.threads import using_threads
from argnn.runs.train_one import train_one
from argnn.settings.options import Overrides, parse_overrides, resolve_options
from argnn.settings.run_config import RunConfig


@dataclass(frozen=True)
class SplitJob:
    """One split of a trial."""

    trial: int
    params: Params
    split: int


@dataclass(frozen=True)
class Outcome:
    """What came of a job: a validation score and its epoch, or an error."""

    score: float = math.nan
    epoch: int = 0
    seconds: float = 0.0
    error: str | None = None
    traceback: str | None = None


def sorted_params(params: Mapping[str, Any], model: str) -> Overrides:
    """Searched settings, placed and checked as those of a user are."""
    return parse_overrides([f"{k}={json.dumps(v)}" for k, v in params.items()], model)


def trial_config(config: RunConfig, params: Params) -> RunConfig:
    """The configuration of a trial: the default one with the searched settings changed."""
    changes = sorted_params(params, config.model)
    options = resolve_options(config.model, config.preset, config.options, changes.options)
    return replace(config, options=options, train=replace(config.train, **changes.train))


def train_split(config: RunConfig, graph: Data, job: SplitJob) -> Outcome:
    """Train one split of a trial as ``argnn train`` does, but score nothing on the test set.

    Args:
        config: The default configuration.
        graph: The graph, without test labels.
        job: The settings to change, and the split.
    """
    began = time.perf_counter()
    try:
        config = trial_config(config, job.params)
        problem = pose_problem(graph, job.split, config.device, config.link)
        result = train_one(config, problem.visible, problem.task).result
        if not math.isfinite(result.val_score):
            raise RunError(f"the validation score of split {job.split} is {result.val_score}")
    except Exception as error:  # one bad trial must not take the others with it
        return _failure(error, time.perf_counter() - began)
    return Outcome(result.val_score, result.best_epoch, time.perf_counter() - began)


def _failure(error: Exception, seconds: float = 0.0) -> Outcome:
    """An error as an outcome; with its traceback only if nobody foresaw it."""
    unforeseen = not isinstance(error, FORESEEN)
    return Outcome(
        seconds=seconds,
        error=f"{type(error).__name__}: {error}",
        traceback="".join(traceback.format_exception(error)) if unforeseen else None,
    )


class Pool(Protocol):
    """Where jobs are run, so many at a time."""

    workers: int

    def submit(self, job: SplitJob) -> None:
        """Take a job; there is a free worker for it."""

    def next_done(self) -> tuple[SplitJob, Outcome]:
        """Wait until any of the jobs is over."""


def open_pool(
    config: RunConfig,
    graph: Data,
    executor: str = "local",
    workers: int | None = None,
    address: str | None = None,
) -> AbstractContextManager[Pool]:
    """The pool that a user asked for.

    Args:
        config: The default configuration; every job uses its number of threads.
        graph: The graph, without test labels.
        executor: ``"local"`` or ``"ray"``.
        workers: Jobs at a time; one, or on Ray as many as fit, if not given.
        address: Of the Ray cluster; one is started here if not given.
    """
    if executor not in EXECUTORS:
        names = ", ".join(EXECUTORS)
        raise ConfigError(f"--executor must be one of {names} (got '{executor}')")
    if workers is not None and workers < 1:
        raise ConfigError(f"--workers must be at least 1 (got {workers})")
    if executor == "ray":
        return _ray_pool(config, graph, workers, address)
    if address is not None:
        raise ConfigError("--address belongs to --executor ray")
    return _local_pool(config, graph, workers or 1)


@contextmanager
def _local_pool(config: RunConfig, graph: Data, workers: int) -> Iterator[Pool]:
    if workers == 1:
        with using_threads(config.threads):
            yield _Here(config, graph)
        return
    with tempfile.TemporaryDirectory(prefix="argnn-") as folder:
        path = Path(folder) / "graph"
        pack(graph, path)
        pool = _Processes(config, path, workers)
        try:
            yield pool
        finally:
            pool.close()


@contextmanager
def _ray_pool(
    config: RunConfig, graph: Data, workers: int | None, address: str | None
) -> Iterator[Pool]:
    with ray_session(workers, address) as cpus:
        pool = _OnRay(config, graph, workers or max(1, cpus // config.threads))
        try:
            yield pool
        finally:
            pool.close()


class _Here:
    workers = 1

    def __init__(self, config: RunConfig, graph: Data) -> None:
        self.config, self.graph = config, graph
        self.jobs: deque[SplitJob] = deque()

    def submit(self, job: SplitJob) -> None:
        self.jobs.append(job)

    def next_done(self) -> tuple[SplitJob, Outcome]:
        job = self.jobs.popleft()
        return job, train_split(self.config, self.graph, job)


class _Processes:
    """Processes that each run one job after the other; one that dies is replaced."""

    def __init__(self, config: RunConfig, graph: Path, workers: int) -> None:
        self.config, self.graph, self.workers = config, graph, workers
        self.context = get_context("spawn")
        self.free: list[_Worker] = []
        self.busy: dict[connection.Connection, tuple[_Worker, SplitJob]] = {}

    def submit(self, job: SplitJob) -> None:
        worker = self.free.pop() if self.free else None
        if worker is None or not worker.process.is_alive():
            worker = _Worker(self.context, self.config, self.graph)
        with suppress(OSError):  # it has just died, which the end of its pipe will tell
            worker.pipe.send(job)
        self.busy[worker.pipe] = (worker, job)

    def next_done(self) -> tuple[SplitJob, Outcome]:
        pipe = connection.wait(list(self.busy))[0]
        assert isinstance(pipe, connection.Connection)
        worker, job = self.busy.pop(pipe)
        try:
            outcome = pipe.recv()
        except (EOFError, OSError):
            worker.close()
            return job, _failure(RunError(f"the worker process died (code {worker.code})"))
        self.free.append(worker)
        return job, outcome

    def close(self) -> None:
        for worker in [*self.free, *(worker for worker, _ in self.busy.values())]:
            worker.close()


class _Worker:
    def __init__(self, context: Any, config: RunConfig, graph: Path) -> None:
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, config, graph, os.getpid())
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        with children_ignoring_interrupts():
            self.process.start()
        theirs.close()  # or its death would not end the pipe

    @property
    def code(self) -> int | None:
        return self.process.exitcode  # type: ignore[no-any-return]

    def close(self) -> None:
        """End it at once: nothing of a job is worth keeping before its end."""
        self.process.terminate()
        self.process.join()
        self.pipe.close()


def _work(pipe: connection.Connection, config: RunConfig, path: Path, parent: int) -> None:
    keep_freed_memory()
    torch.set_num_threads(config.threads)
    graph = graphs_for_worker([path], parent)[path.name]
    with suppress(EOFError, OSError):  # the parent has left, perhaps without tidying up
        while True:
            pipe.send(train_split(config, graph, pipe.recv()))
    shutil.rmtree(path.parent, ignore_errors=True)


class _OnRay:
    """Tasks of the Ray session of this process; the graph is stored there once."""

    def __init__(self, config: RunConfig, graph: Data, workers: int) -> None:
        import ray

        self.workers = workers
        self.stored = (ray.put(config), ray.put(graph))
        self.task = ray.remote(_train_on_ray).options(
            num_cpus=config.threads,
            num_gpus=1 if config.device == "cuda" else 0,
            max_retries=0,  # a trial that kills its worker has failed
        )
        self.running: dict[Any, SplitJob] = {}

    def submit(self, job: SplitJob) -> None:
        self.running[self.task.remote(*self.stored, job)] = job

    def next_done(self) -> tuple[SplitJob, Outcome]:
        import ray
        from ray.exceptions import RayError

        [result], _ = ray.wait(list(self.running))
        job = self.running.pop(result)
        try:
            return job, ray.get(result)
        except RayError as error:
            why = str(error).strip().partition("\n")[0]
            return job, _failure(RunError(f"the Ray worker died ({why})"))

    def close(self) -> None:
        import ray

        for result in self.running:
            ray.cancel(result, force=True)


def _train_on_ray(config: RunConfig, graph: Data, job: SplitJob) -> Outcome:
    keep_freed_memory()
    torch.set_num_threads(config.threads)
    return train_split(config, graph, job)
