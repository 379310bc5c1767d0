"""Run the splits of a plan, and what a job of one split is."""

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from torch_geometric.data import Data

from argnn.errors import DivergenceError
from argnn.runs.machine import code_state, using_threads
from argnn.runs.pool import open_pool
from argnn.runs.prepare import Plan, reopen
from argnn.runs.problems import problem_of
from argnn.runs.ranks import next_order
from argnn.runs.run import failed_row, run_cell, run_split
from argnn.runs.summary import summary
from argnn.runs.train_one import OnEpoch, train_one
from argnn.settings.run_config import RunConfig
from argnn.store.results import Row
from argnn.store.run_folder import RunFolder, read_checkpoint, record_code
from argnn.train import Snapshot


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

    def run(self, graph: Data, on_epoch: OnEpoch) -> Row:
        """Train and score the split."""
        if self.folder is None:
            return run_cell(self.config, graph, self.split, on_epoch, self.oracle)
        options = {"dashboard": True} if self.dashboard else {}
        return run_split(self.config, graph, self.split, self.folder, on_epoch, **options)

    def failed(self, error: Exception, seconds: float) -> Row:
        """A row with the error."""
        return failed_row(self.config, self.split, error)


class Watcher(Protocol):
    """Is told how the jobs are going."""

    def epoch(self, job: Job, epoch: int, loss: float, val_score: float) -> None:
        """A job has finished an epoch; not every epoch need be told."""

    def finished(self, job: Job, row: Row) -> None:
        """A job is over; its row holds scores or an error."""


class SilentWatcher:
    """A watcher that ignores everything."""

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

    It is an error if another process runs them, or if a file is damaged.
    """
    with folder.held():
        record_code(folder, code_state())
        return _run_splits(plan, folder, watcher or SilentWatcher(), dashboard)


def _run_splits(plan: Plan, folder: RunFolder, watcher: Watcher, dashboard: bool) -> list[Row]:
    config = plan.config
    rows = {split: row for split in config.splits if (row := folder.finished_row(split))}
    jobs = [
        Job(config.for_split(split), split, folder, dashboard=dashboard)
        for split in config.splits
        if split not in rows
    ]
    _check_checkpoints(jobs, rows, folder)
    folder.note(f"{len(jobs)} of {len(config.splits)} splits to run, {plan.workers} at a time")
    _write_scores(config, rows, folder)
    graphs = {config.graph["digest"]: plan.graph}
    for job, row in run_jobs(jobs, graphs, plan.workers, watcher):
        rows[job.split] = row
        folder.note(_log_line(row))
        _write_scores(config, rows, folder)
        watcher.finished(job, row)
    return _ordered(config, rows)


def _check_checkpoints(jobs: Sequence[Job], rows: Mapping[int, Row], folder: RunFolder) -> None:
    """Refuse a bad checkpoint before any work is done, and drop those that are not needed."""
    for split in rows:
        folder.checkpoint(split).unlink(missing_ok=True)
    for job in jobs:
        path = folder.checkpoint(job.split)
        if path.exists():
            read_checkpoint(path, job.config.to_json())


def _ordered(config: RunConfig, rows: Mapping[int, Row]) -> list[Row]:
    return [rows[split] for split in config.splits if split in rows]


def _write_scores(config: RunConfig, rows: Mapping[int, Row], folder: RunFolder) -> None:
    ordered = _ordered(config, rows)
    folder.write_scores(summary(ordered), ordered)


def _log_line(row: Row) -> str:
    if "error" in row:
        return f"split {row['split']} failed: {row.get('traceback', row['error'])}"
    return (
        f"split {row['split']} finished: epoch {row['chosen_epoch']} of {row['epochs_run']}, "
        f"{row['seconds']:.1f} s"
    )


def run_jobs(
    jobs: Sequence[Job],
    graphs: Mapping[str, Data],
    workers: int,
    watcher: Watcher,
    *,
    executor: str = "local",
    attempts: int = 1,
) -> Generator[tuple[Job, Row], None, None]:
    """Run jobs and give each with its row as soon as it is over.

    ``graphs`` has the graph of each configuration by its checksum; ``executor`` and ``attempts``
    are those of :func:`argnn.runs.pool.open_pool`.
    """
    workers = max(1, min(workers, len(jobs)))
    with open_pool(graphs, workers, executor, attempts, watcher.epoch) as pool:
        yield from pool.run(jobs)


def follow() -> None:
    """Train what the first process trains, in each other process of ``torchrun``.

    The graph is loaded here, too.
    """
    graphs: dict[str, Data] = {}
    while (order := next_order()) is not None:
        config = RunConfig.from_json(order.config, "the order of the first process")
        digest = config.graph["digest"]
        if digest not in graphs:
            graphs = {digest: reopen(config, None, 1).graph}
        problem = problem_of(config, graphs[digest], order.split)
        resume_from = None if order.snapshot is None else Snapshot(*order.snapshot)
        with suppress(DivergenceError), using_threads(config.threads):
            posed = (problem.visible, problem.task)
            train_one(config, *posed, split=order.split, resume_from=resume_from)
