"""Run several splits, one after the other or in several processes."""

import atexit
import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Protocol

import torch
from torch_geometric.data import Data

from argnn.errors import FORESEEN, RunError
from argnn.files import fingerprint, read_tensors, write_checked, write_tensors
from argnn.runs.allocator import keep_freed_memory
from argnn.runs.prepare import Plan
from argnn.runs.provenance import code_state
from argnn.runs.run import failed_row, finished_row, run_cell, run_split, short_row
from argnn.runs.signals import children_ignoring_interrupts, leave_when_asked
from argnn.runs.summary import summary
from argnn.runs.threads import using_threads
from argnn.settings.run_config import RunConfig
from argnn.store.results import Row
from argnn.store.run_folder import RunFolder, read_checkpoint, record_code
from argnn.train import EpochRecord

_POLL_SECONDS = 0.1
_PATIENCE_SECONDS = 10
#: What a graph is made of.
TENSORS = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")
#: What is said about it; ``schema`` tells which features have to be made again for links.
_FACTS = ("name", "class_count", "class_names", "schema")
_SLOTS = 3  # epoch, loss, validation score


@dataclass(frozen=True)
class Job:
    """One split of one configuration.

    Attributes:
        config: What to run.
        split: Number of the split.
        folder: Where files go; with None, only the row is kept.
        oracle: Whether the row says what choosing by test score would give; not with a folder.
        dashboard: Whether to write TensorBoard events; with a folder only.
    """

    config: RunConfig
    split: int
    folder: RunFolder | None
    oracle: bool = False
    dashboard: bool = False


class Watcher(Protocol):
    """Who wants to know how the jobs are going."""

    def epoch(self, job: Job, epoch: int, loss: float, val_score: float) -> None:
        """A job has finished an epoch; not every epoch need be told."""

    def finished(self, job: Job, row: Row) -> None:
        """A job is over; its row holds scores or an error."""


class Silent:
    """Nobody watches."""

    def epoch(self, job: Job, epoch: int, loss: float, val_score: float) -> None:
        """Ignore it."""

    def finished(self, job: Job, row: Row) -> None:
        """Ignore it."""


def run_splits(
    plan: Plan, folder: RunFolder, watcher: Watcher | None = None, *, dashboard: bool = False
) -> list[Row]:
    """Run all splits of a plan that are not finished yet.

    After each split ``scores.json`` is written anew. A split that fails leaves a row with its
    error, and the others go on.

    Args:
        plan: What to run.
        folder: Where its files go.
        watcher: Is told how it goes.
        dashboard: Whether to write TensorBoard events.

    Returns:
        One row per split, in their order.

    Raises:
        RunError: Another process is running them, or a file of the run is damaged.
    """
    with folder.held():
        record_code(folder, code_state())
        return _run_splits(plan, folder, watcher or Silent(), dashboard)


def _run_splits(plan: Plan, folder: RunFolder, watcher: Watcher, dashboard: bool) -> list[Row]:
    config = plan.config
    rows = {split: row for split in config.splits if (row := finished_row(folder, split))}
    jobs = [
        Job(config.for_split(split), split, folder, dashboard=dashboard)
        for split in config.splits
        if split not in rows
    ]
    _check_checkpoints(jobs, rows, folder)
    folder.note(f"{len(jobs)} of {len(config.splits)} splits to run, {plan.workers} at a time")
    write_scores(_ordered(config, rows), folder)
    graphs = {config.graph["digest"]: plan.graph}
    for job, row in run_jobs(jobs, graphs, plan.workers, watcher):
        rows[job.split] = row
        folder.note(_log_line(row))
        write_scores(_ordered(config, rows), folder)
        watcher.finished(job, row)
    return _ordered(config, rows)


def _check_checkpoints(jobs: Sequence[Job], rows: Mapping[int, Row], folder: RunFolder) -> None:
    """Refuse a bad checkpoint before any work is done, and drop those that are not needed."""
    for split in rows:
        folder.checkpoint(split).unlink(missing_ok=True)
    for job in jobs:
        path = folder.checkpoint(job.split)
        if path.exists():
            read_checkpoint(path, fingerprint(job.config.to_json()))


def _ordered(config: RunConfig, rows: Mapping[int, Row]) -> list[Row]:
    return [rows[split] for split in config.splits if split in rows]


def write_scores(rows: Sequence[Row], folder: RunFolder) -> None:
    """Write ``scores.json``: a summary, and one row per split."""
    short = [short_row(row) for row in rows]
    write_checked(folder.scores, {"summary": summary(rows), "splits": short})


def _log_line(row: Row) -> str:
    if "error" in row:
        return f"split {row['split']} failed: {row.get('traceback', row['error'])}"
    return (
        f"split {row['split']} finished: epoch {row['chosen_epoch']} of {row['epochs_run']}, "
        f"{row['seconds']:.1f} s"
    )


def run_jobs(
    jobs: Sequence[Job], graphs: Mapping[str, Data], workers: int, watcher: Watcher
) -> Iterator[tuple[Job, Row]]:
    """Run jobs and give each with its row as soon as it is over.

    Args:
        jobs: What to run.
        graphs: The graph of each configuration, by its checksum.
        workers: Number of processes; with one, everything runs in this process.
        watcher: Is told about every epoch.
    """
    if min(workers, len(jobs)) <= 1:
        return _one_by_one(jobs, graphs, watcher)
    return _at_once(jobs, graphs, min(workers, len(jobs)), watcher)


def _one_by_one(
    jobs: Sequence[Job], graphs: Mapping[str, Data], watcher: Watcher
) -> Iterator[tuple[Job, Row]]:
    for job in jobs:

        def tell(record: EpochRecord, job: Job = job) -> None:
            watcher.epoch(job, record.epoch, record.loss, _score(record))

        with using_threads(job.config.threads):
            row = _row_of(job, graphs[job.config.graph["digest"]], tell)
        yield job, row


def _row_of(job: Job, graph: Data, on_epoch: Any) -> Row:
    try:
        if job.folder is None:
            return run_cell(job.config, graph, job.split, on_epoch, job.oracle)
        options = {"dashboard": True} if job.dashboard else {}
        return run_split(job.config, graph, job.split, job.folder, on_epoch, **options)
    except Exception as error:  # one bad split must not take the others with it
        return failed_row(job.config, job.split, error)


def _score(record: EpochRecord) -> float:
    return float("nan") if record.val_score is None else record.val_score


def _at_once(
    jobs: Sequence[Job], graphs: Mapping[str, Data], workers: int, watcher: Watcher
) -> Iterator[tuple[Job, Row]]:
    context = get_context("spawn")
    # Plain shared numbers: no queue that a killed worker could leave locked.
    board = context.RawArray("d", _SLOTS * len(jobs))
    stop = context.RawValue("b", 0)
    with tempfile.TemporaryDirectory(prefix="argnn-") as shared:
        for digest, graph in graphs.items():
            pack(graph, Path(shared) / digest)
        arguments = (shared, list(graphs), board, stop, os.getpid())
        with children_ignoring_interrupts():
            pool = ProcessPoolExecutor(
                workers, context, initializer=_start_worker, initargs=arguments
            )
        try:
            with children_ignoring_interrupts():
                futures = {pool.submit(_work, job, slot): slot for slot, job in enumerate(jobs)}
            yield from _collected(jobs, futures, board, watcher)
        finally:
            stop.value = 1
            pool.shutdown(cancel_futures=True)


def _collected(
    jobs: Sequence[Job], futures: Mapping[Future[Row], int], board: Any, watcher: Watcher
) -> Iterator[tuple[Job, Row]]:
    waiting = set(futures)
    told = [0] * len(jobs)
    while waiting:
        done, waiting = wait(waiting, _POLL_SECONDS, FIRST_COMPLETED)
        for slot, job in enumerate(jobs):
            epoch, loss, score = board[slot * _SLOTS : (slot + 1) * _SLOTS]
            if epoch > told[slot]:
                told[slot] = int(epoch)
                watcher.epoch(job, int(epoch), loss, score)
        for future in done:
            job = jobs[futures[future]]
            yield job, _result(future, job)


def _result(future: Future[Row], job: Job) -> Row:
    try:
        return future.result()
    except BrokenProcessPool:
        return failed_row(job.config, job.split, RunError("the worker process died"))


def pack(graph: Data, path: Path) -> None:
    """Leave a graph where workers find it; sent through a pipe, it would start them in turn."""
    tensors = {name: graph[name] for name in TENSORS}
    facts = {name: graph[name] for name in _FACTS if graph.get(name) is not None}
    write_tensors(path, tensors, facts)


def unpacked(path: Path) -> Data:
    """The graph that :func:`pack` left."""
    tensors, facts = read_tensors(path)
    return Data(**tensors, **facts)


class _Worker:
    """What a worker process holds between jobs."""

    graphs: dict[str, Data]
    board: Any
    stop: Any


def _start_worker(shared: str, digests: Sequence[str], board: Any, stop: Any, parent: int) -> None:
    _Worker.graphs = graphs_for_worker([Path(shared) / digest for digest in digests], parent)
    _Worker.board, _Worker.stop = board, stop


def graphs_for_worker(paths: Sequence[Path], parent: int) -> dict[str, Data]:
    """The graphs that :func:`pack` left, by name, in a process that ends with its parent."""
    folder = paths[0].parent
    threading.Thread(target=_leave_with_parent, args=(parent, folder), daemon=True).start()
    try:
        graphs = {path.name: unpacked(path) for path in paths}
    except FORESEEN:
        if os.getppid() == parent:
            raise
        os._exit(1)  # the parent was killed, and another worker has tidied up
    leave_when_asked()
    return graphs


def _leave_with_parent(parent: int, shared: Path) -> None:
    """End this process when its parent was killed, and tidy up: nobody else would."""
    while os.getppid() == parent:
        time.sleep(0.5)
    shutil.rmtree(shared, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGTERM)  # the main thread leaves in an orderly way,
    time.sleep(_PATIENCE_SECONDS)  # unless it hangs
    os._exit(1)


def _work(job: Job, slot: int) -> Row:
    def tell(record: EpochRecord) -> None:
        if _Worker.stop.value:
            raise RunError("stopped")
        start = slot * _SLOTS
        _Worker.board[start : start + _SLOTS] = [record.epoch, record.loss, _score(record)]

    keep_freed_memory()
    torch.set_num_threads(job.config.threads)
    try:
        return _row_of(job, _Worker.graphs[job.config.graph["digest"]], tell)
    except SystemExit:  # asked to end, which the pool would take for the result of a job
        atexit._run_exitfuncs()
        os._exit(1)
