"""Where cells run: in processes of this machine, or on a Ray cluster."""

import logging
import math
import os
import secrets
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

import argnn
from argnn.errors import ConfigError, RunError
from argnn.runs.allocator import keep_freed_memory
from argnn.runs.parallel import Job, Watcher, run_jobs
from argnn.runs.run import failed_row, run_cell
from argnn.runs.signals import handlers_kept
from argnn.runs.threads import core_count
from argnn.store.results import Row

#: Runs jobs, given their graphs by checksum, so many at the same time.
Executor = Callable[[Sequence[Job], Mapping[str, Data], int, Watcher], Iterator[tuple[Job, Row]]]
EXECUTORS = ("local", "ray")

_DIED = "RunError: the worker process died"
_ATTEMPTS = 2
#: How often Ray starts a cell again whose worker died.
_RAY_RETRIES = 1
#: What a cell on Ray must find in its environment as a local one does.
_PASSED_ON = ("OMP_WAIT_POLICY", "ARGNN_CACHE")


@contextmanager
def open_executor(
    name: str, workers: int | None, address: str | None = None
) -> Iterator[tuple[Executor, int | None]]:
    """An executor, and how many cells it runs at the same time; None leaves that open.

    Args:
        name: ``"local"`` or ``"ray"``.
        workers: How many are asked for.
        address: Of a Ray cluster; without, a Ray is started on this machine and ended again.
    """
    if name not in EXECUTORS:
        raise ConfigError(f"--executor must be one of {', '.join(EXECUTORS)} (got '{name}')")
    if name == "local":
        if address is not None:
            raise ConfigError("--address belongs to --executor ray")
        yield run_local, workers
        return
    with ray_session(workers, address) as cpus:
        yield run_on_ray, workers or cpus


def run_local(
    jobs: Sequence[Job], graphs: Mapping[str, Data], workers: int, watcher: Watcher
) -> Iterator[tuple[Job, Row]]:
    """Run jobs as :func:`argnn.runs.parallel.run_jobs` does, but survive dying workers.

    A worker that dies, mostly for want of memory, takes the whole pool along. Jobs that had not
    begun then run in a new pool, and those that may have been the reason run last. Who is there
    when a pool dies for the second time has failed.
    """
    waiting, deaths = list(jobs), Counter[int]()
    while waiting:
        died: dict[int, Row] = {}
        for job, row in run_jobs(waiting, graphs, workers, watcher):
            if row.get("error") == _DIED:
                died[id(job)] = row
            else:
                yield job, row
        left = [job for job in waiting if id(job) in died]
        suspects, waiting = left[:workers], left[workers:]
        deaths.update(id(job) for job in suspects)
        again = [job for job in suspects if deaths[id(job)] < _ATTEMPTS]
        if len(again) == 1 and not waiting:
            again = []  # alone it would run in this process, which must not die with it
        kept = {id(job) for job in again}
        for job in suspects:
            if id(job) not in kept:
                yield job, died[id(job)]
        waiting += again


def run_on_ray(
    jobs: Sequence[Job], graphs: Mapping[str, Data], workers: int, watcher: Watcher
) -> Iterator[tuple[Job, Row]]:
    """Run jobs as tasks of the Ray session of this process.

    Each graph is stored once for all. A task asks for as many CPUs as its configuration has
    threads, and computes the same bits as a local worker with so many.
    """
    import ray

    stored = {digest: ray.put(graph) for digest, graph in graphs.items()}
    task = ray.remote(_row_on_ray)
    waiting = list(reversed(jobs))
    running: dict[Any, Job] = {}
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                job = waiting.pop()
                start = task.options(
                    num_cpus=job.config.threads,
                    num_gpus=1 if job.config.device == "cuda" else 0,
                    max_retries=_RAY_RETRIES,
                )
                running[start.remote(job, stored[job.config.graph["digest"]])] = job
                watcher.epoch(job, 0, math.nan, math.nan)  # it has begun
            for result in ray.wait(list(running))[0]:
                job = running.pop(result)
                yield job, _fetched(result, job)
    finally:
        for result in running:
            ray.cancel(result, force=True)


def _row_on_ray(job: Job, graph: Data) -> Row:
    keep_freed_memory()
    torch.set_num_threads(job.config.threads)
    try:
        return run_cell(job.config, graph, job.split, oracle=job.oracle)
    except Exception as error:  # one bad cell must not take the others with it
        return failed_row(job.config, job.split, error)


def _fetched(result: Any, job: Job) -> Row:
    import ray
    from ray.exceptions import RayError

    try:
        row: Row = ray.get(result)
    except RayError as error:
        why = str(error).strip().partition("\n")[0]
        return failed_row(job.config, job.split, RunError(f"Ray lost the cell ({why})"))
    return row


@contextmanager
def ray_session(workers: int | None, address: str | None) -> Iterator[int]:
    """Connect to a cluster or start one here; gives its number of CPUs.

    A session that this process has already is used, and stays.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError("--executor ray needs Ray: pip install 'argnn[bench]'") from error
    if ray.is_initialized():
        yield _cpus()
        return
    with tempfile.TemporaryDirectory(prefix="argnn-ray-", dir=_short_folder()) as folder:
        if address is None:
            _quiet_local_ray()
            where: dict[str, Any] = {
                "num_cpus": max(core_count(), workers or 1),
                "include_dashboard": False,
                "_temp_dir": folder,
            }
        else:
            where = {"address": address}
        environment = {"env_vars": _ray_environment()}
        try:
            with handlers_kept():
                ray.init(
                    **where,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                    runtime_env=environment,
                )
        except (ConnectionError, ImportError, RuntimeError, ValueError) as error:
            why = " ".join(str(error).split())
            raise RunError(f"cannot reach a Ray cluster at {address}: {why}") from error
        try:
            yield _cpus()
        finally:
            ray.shutdown()


def _cpus() -> int:
    import ray

    return max(1, int(ray.cluster_resources().get("CPU", 1)))


def _short_folder() -> str | None:
    """A folder for the sockets of Ray, whose paths must be short."""
    return "/tmp" if Path("/tmp").is_dir() else None


def _quiet_local_ray() -> None:
    """Without these, Ray writes to the user's home, and reports its use."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if "RAY_AUTH_TOKEN_PATH" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))


def _ray_environment() -> dict[str, str]:
    """The same argnn as here, where the workers can see its folder."""
    package = str(Path(argnn.__file__).resolve().parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    return {"PYTHONPATH": path, **passed}
