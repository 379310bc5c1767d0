"""Progress of a bench: one bar for all cells on a terminal, one line per cell elsewhere."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from argnn.cli.app import say
from argnn.cli.progress import ProgressPrinter, finished_text, progress_bars

if TYPE_CHECKING:
    from argnn.bench.experiments.cells import Cell
    from argnn.runs.parallel import Job
    from argnn.store.results import Row

_SHOWN_RUNNING = 3


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
        from argnn.bench.experiments.pace import Pace

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
