"""``argnn bench``: run the cells of experiments, and go on where an earlier run stopped."""

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console

from argnn.cli import options
from argnn.cli.app import (
    command,
    complain,
    keeping,
    output_console,
    print_json,
    print_listing,
    remarks,
    say,
)
from argnn.cli.completion import experiments as experiment_names
from argnn.cli.options import argument, option
from argnn.errors import ConfigError
from argnn.runs.progress import ProgressPrinter, finished_text, progress_bars
from argnn.tables import rich_table

if TYPE_CHECKING:
    from rich.table import Table

    from argnn.bench.experiments.cells import Bench, Cell, CellKey
    from argnn.bench.experiments.files import Experiment
    from argnn.runs.parallel import Job
    from argnn.store.results import Row

_SHOWN_FAILURES, _SHOWN_RUNNING = 5, 3


@command(
    "Train",
    "argnn bench embedded --workers 2",
    argument(
        "experiments",
        list[str],
        "Names (see --list), or paths of YAML files.",
        values=experiment_names,
        metavar="EXPERIMENT",
        show_default=False,
    ),
    option("out", Path, "Results file; results/EXPERIMENT.jsonl if not given."),
    options.EXECUTOR,
    options.CELLS,
    options.ADDRESS,
    option("retry_failed", bool, "Run cells again that failed before."),
    options.DEVICE,
    options.DATA_ROOT,
    option("listing", bool, "List the experiments of the package.", "--list"),
    options.AS_JSON,
)
def bench(given: options.Given) -> None:
    """Run experiments cell by cell; finished cells are skipped on restart."""
    if given.listing:
        _list_experiments(given.as_json)
        return
    from argnn.bench.experiments.files import find_experiment

    if not given.experiments:
        raise ConfigError("name an experiment (see argnn bench --list) or a YAML file")
    targets = with_results_files([find_experiment(name) for name in given.experiments], given.out)
    console = output_console(given.as_json)
    with keeping_results(targets):
        found = ran(targets, console, given, retry_failed=given.retry_failed)
        reports = [_report(*target, found.of(target[0])) for target in targets]
        if given.as_json:
            print_json({"experiments": reports})
        else:
            for report in reports:
                _print_report(report, console)
        report_failures(found)


@dataclass(frozen=True)
class BenchOutcome:
    """Cells that were planned, and the last row of each."""

    planned: "Bench"
    rows: "Mapping[CellKey, Row]"

    def of(self, experiment: "Experiment") -> "list[Row]":
        """The rows of an experiment."""
        return [self.rows[key] for key in self.planned.members[experiment.name]]


def keeping_results(
    targets: "Sequence[tuple[Experiment, Path]]",
) -> AbstractContextManager[None]:
    """Say where finished cells are if the user interrupts the command."""
    results = ", ".join(dict.fromkeys(str(path) for _, path in targets))
    return keeping(f"what is finished is in {results}, and the same command goes on")


def ran(
    targets: "Sequence[tuple[Experiment, Path]]",
    console: Console,
    given: options.Given,
    *,
    retry_failed: bool = False,
) -> BenchOutcome:
    """Run the cells of some experiments that are not finished yet, with a progress bar."""
    from argnn.bench.experiments.cells import plan_bench, run_bench
    from argnn.runs.pool import open_executor

    with (
        open_executor(given.executor, given.workers, given.address) as slots,
        CellProgress(console) as watcher,
    ):
        planned = plan_bench(
            targets,
            workers=slots,
            device=given.device,
            data_root=given.data_root,
            executor=given.executor,
            tell=watcher.preparing,
        )
        rows = run_bench(planned, watcher, executor=given.executor, retry_failed=retry_failed)
    return BenchOutcome(planned, rows)


def _list_experiments(as_json: bool) -> None:
    from argnn.bench.experiments.files import packaged_experiments

    rows = [
        {
            "name": experiment.name,
            "task": experiment.task,
            "cells": experiment.num_cells(),
            "title": experiment.title,
            "tables": list(experiment.tables),
        }
        for experiment in packaged_experiments().values()
    ]
    names = ("name", "task", "cells", "title")
    cells = [[str(row[name]) for name in names] for row in rows]
    print_listing(rows, lambda _: rich_table(names, cells, left=("name", "task", "title")), as_json)


def with_results_files(
    experiments: "Sequence[Experiment]", out: Path | None
) -> "list[tuple[Experiment, Path]]":
    """The experiments, and the results file of each; files that are there must be sound."""
    from argnn.store.results import check_results

    found: list[tuple[Experiment, Path]] = []
    for experiment in experiments:
        if experiment.name in [other.name for other, _ in found]:
            raise ConfigError(f"experiment '{experiment.name}' is named twice")
        found.append((experiment, out or Path("results") / f"{experiment.name}.jsonl"))
    for path in dict.fromkeys(path for _, path in found):
        if path.exists() and not path.is_file():
            raise ConfigError(f"--out {path}: is not a plain file")
        if path.exists():
            check_results(path)
    return found


def _report(experiment: "Experiment", path: Path, rows: "Sequence[Row]") -> dict[str, Any]:
    """What became of an experiment."""
    from argnn.bench.experiments.cells import outcomes

    failed = sum("error" in row for row in rows)
    return {
        "experiment": experiment.name,
        "results": str(path),
        "cells": len(rows),
        "finished": len(rows) - failed,
        "failed": failed,
        "score": experiment.score,
        "outcomes": outcomes(rows, experiment.score),
    }


def _print_report(report: dict[str, Any], console: Console) -> None:
    from argnn.runs.tables import SCORE_NAMES

    score = SCORE_NAMES[report["score"]]
    console.print(f"{report['experiment']}: mean test {score} in per cent", style="bold")
    console.print(_outcome_table(report))
    say(
        console,
        f"{counted(report['cells'])}: {report['finished']} finished, {report['failed']} failed. "
        f"Results: {report['results']}",
    )
    say(remarks(console), f"Next: argnn table {report['results']}")


def _outcome_table(report: dict[str, Any]) -> "Table":
    """Methods by graphs."""
    from rich.text import Text

    found = {(row["method"], _graph(row)): row for row in report["outcomes"]}
    graphs = list(dict.fromkeys(graph for _, graph in found))
    columns = [(graph, "test") for graph in graphs]
    for graph in {_graph(row) for row in found.values() if "test_without_twins" in row}:
        columns.insert(columns.index((graph, "test")) + 1, (graph, "test_without_twins"))
    names = [graph + ("" if part == "test" else ", without twins") for graph, part in columns]
    rows: list[list[Text | str]] = [
        [Text(method), *(_mean(found.get((method, graph)), part) for graph, part in columns)]
        for method in dict.fromkeys(method for method, _ in found)
    ]
    return rich_table(["method", *names], rows, left=("method",))


def _graph(row: dict[str, Any]) -> str:
    return Path(row["data"]).stem + (" (directed)" if row["directed"] else "")


def _mean(row: dict[str, Any] | None, part: str) -> str:
    from argnn.runs.tables import per_cent

    if row is None:
        return ""
    failed = f" ({row['failed']} failed)" if row["failed"] else ""
    return per_cent(row[part]["mean"] if part in row else None) + failed


def report_failures(found: BenchOutcome) -> None:
    """Name the first failed cells; all of them are in the results."""
    rows = [(cell, found.rows[cell.key]) for cell in found.planned.cells]
    failed = [(cell, row) for cell, row in rows if "error" in row]
    for cell, row in failed[:_SHOWN_FAILURES]:
        complain(f"{cell.label} failed: {row['error']}")
    if failed:
        complain(f"{counted(len(failed))} failed; --retry-failed runs them again")
        raise typer.Exit(1)


def counted(cells: int) -> str:
    """A number of cells in words.

    Example:
        >>> counted(1), counted(2)
        ('1 cell', '2 cells')
    """
    return f"{cells} cell" if cells == 1 else f"{cells} cells"


class CellProgress(ProgressPrinter):
    """One live bar: cells that are over, failures, what is running, and the time left."""

    def __init__(self, console: Console) -> None:
        from rich.progress import TextColumn, TimeElapsedColumn

        super().__init__(console)
        words = TextColumn("{task.fields[left]}"), TextColumn("{task.fields[state]}", markup=False)
        self.progress = progress_bars(console, TimeElapsedColumn(), *words)
        self.bar = self.progress.add_task("preparing", total=None, state="", left="")
        self.cells: dict[int, Cell] = {}
        self.running: dict[int, str] = {}
        self.failed = self.done = 0

    def preparing(self, what: str) -> None:
        """Show what is being prepared."""
        self.progress.update(self.bar, state=what)

    def begin(self, todo: "Sequence[Cell]", skipped: int, workers: int) -> None:
        """Say how much there is to do, and start to count."""
        from argnn.bench.experiments.cells import Pace

        self.cells = {id(cell.job): cell for cell in todo}
        self.pace = Pace(todo, workers)
        known = f"; in the results already: {skipped}" if skipped else ""
        at_once = f", {workers} at a time" if todo else ""
        say(self.console, f"{counted(len(todo))} to run{at_once}{known}.")
        self.progress.update(self.bar, description="cells", total=len(todo), state="")

    def epoch(self, job: "Job", epoch: int, loss: float, val_score: float) -> None:
        """A cell is running."""
        if self.is_live:
            cell = self.cells[id(job)]
            self.running[id(job)] = cell.label
            self.pace.moved(cell, epoch / job.config.train.epochs)
            self._show()

    def finished(self, job: "Job", row: "Row") -> None:
        """A cell is over: move the bar, or print a line with its scores or its error."""
        cell = self.cells[id(job)]
        self.done += 1
        if not self.is_live:
            failed = "error" in row
            outcome = f"failed: {row['error']}" if failed else finished_text(row, cell.score)
            say(self.console, f"[{self.done}/{len(self.cells)}] {cell.label}: {outcome}")
            return
        self.running.pop(id(job), None)
        self.failed += "error" in row
        self.pace.finished(cell, row.get("seconds"))
        self.progress.update(self.bar, completed=self.done)
        self._show()

    def _show(self) -> None:
        parts = [f"{self.failed} failed"] if self.failed else []
        parts += list(self.running.values())[:_SHOWN_RUNNING]
        if len(self.running) > _SHOWN_RUNNING:
            parts.append(f"{len(self.running) - _SHOWN_RUNNING} more")
        left = time_left(self.pace.seconds_left())
        self.progress.update(self.bar, state="; ".join(parts), left=left)


def time_left(seconds: float | None) -> str:
    """A time in words.

    Example:
        >>> [time_left(seconds) for seconds in (None, 7.2, 600, 8000)]
        ['', '8 s left', '10 min left', '2 h 14 min left']
    """
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{math.ceil(seconds)} s left"
    minutes = math.ceil(seconds / 60)
    hours = f"{minutes // 60} h " if minutes >= 60 else ""
    return f"{hours}{minutes % 60} min left"
