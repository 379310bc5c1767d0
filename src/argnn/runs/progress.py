"""What a user sees while work goes on: live bars on a terminal, single lines elsewhere."""

import logging
from typing import TYPE_CHECKING, Self

from rich.console import Console

from argnn.wording import printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from argnn.runs.parallel import Job
    from argnn.store.results import Row


def say(console: Console, *lines: str) -> None:
    """Print lines that may quote a file: as they are, and not broken at the edge."""
    for line in lines:
        console.print(printable(line.replace("\n", " ")), markup=False, soft_wrap=True)


def remarks(console: Console) -> Console:
    """Where to print what is no result: notes, bars, what to do next. Nowhere with ``-q``.

    The level of the logger says how much the user wants to read; ``-q`` leaves only errors.
    """
    wanted = logging.getLogger("argnn").isEnabledFor(logging.WARNING)
    return console if wanted else Console(quiet=True)


class ProgressPrinter:
    """Shows live bars on a terminal; elsewhere a printer says in single lines what is over."""

    def __init__(self, console: Console) -> None:
        self.console = console = remarks(console)
        self.is_live = console.is_terminal and not console.quiet
        self.progress = progress_bars(console)

    def __enter__(self) -> Self:
        if self.is_live:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress.live.is_started:
            self.progress.stop()


class SplitProgress(ProgressPrinter):
    """One bar or line per split: loss, scores, time left."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.bars: dict[str, TaskID] = {}

    def epoch(self, job: "Job", epoch: int, loss: float, val_score: float) -> None:
        """Move the bar of a job."""
        label = job_label(job)
        if label not in self.bars:
            total = job.config.train.epochs
            self.bars[label] = self.progress.add_task(label, total=total, state="")
        score = "" if val_score != val_score else f", validation {_live_score(job, val_score)}"
        state = f"loss {loss:.3f}{score}"
        self.progress.update(self.bars[label], completed=epoch, state=state)

    def finished(self, job: "Job", row: "Row") -> None:
        """Fill the bar of a job, or print its scores; errors are reported at the end."""
        from argnn.runs.summary import SELECTION

        bar = self.bars.get(job_label(job))
        if self.is_live and bar is not None:
            # A run may stop early: the bar is full all the same.
            epochs = row.get("epochs_run")
            state = "failed" if epochs is None else f"chosen epoch {row['chosen_epoch']}"
            self.progress.update(bar, total=epochs, completed=epochs, state=state)
        elif not self.is_live and "error" not in row:
            text = finished_text(row, SELECTION[row["task"]])
            say(self.console, f"{job_label(job)}: {text}")


def _live_score(job: "Job", value: float) -> str:
    """A validation score while training goes on; a loss has a minus there."""
    from argnn.runs.tables import score_text
    from argnn.train.selection import selection_of

    name = selection_of(job.config.task, job.config.train.select)
    if name in ("loss", "r2"):
        return score_text(name, abs(value) if name == "loss" else value)
    return f"{100 * value:.1f} %"


def finished_text(row: "Row", score: str) -> str:
    """Scores, epochs and time of a finished row."""
    from argnn.runs.summary import selection_of_row
    from argnn.runs.tables import SCORE_NAMES, score_text, test_text

    chosen_by, value = selection_of_row(row)
    name = "" if chosen_by == score else f"{SCORE_NAMES[chosen_by]} "
    return (
        f"test {SCORE_NAMES[score]} {test_text(row, score)}, validation {name}"
        f"{score_text(chosen_by, value)}, epoch {row['chosen_epoch']} of "
        f"{row['epochs_run']}, {row['seconds']:.1f} s"
    )


def job_label(job: "Job") -> str:
    """A job in words."""
    return f"{job.config.graph['name']}, {job.config.model}, split {job.split}"


def progress_bars(console: Console, *columns: "ProgressColumn") -> "Progress":
    """Bars with a count; then, unless told otherwise, a state in words and the time left."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *(columns or (TextColumn("{task.fields[state]}"), TimeRemainingColumn())),
        console=console,
    )


class CountingBar(ProgressPrinter):
    """A bar for work that comes before training; only on a terminal, and only if there is any."""

    def __init__(self, console: Console, text: str) -> None:
        super().__init__(console)
        self.text = text

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        """So much of it is done."""
        if not self.is_live:
            return
        if not self.progress.task_ids:
            self.progress.start()
            self.progress.add_task(self.text, total=total, state="")
        self.progress.update(self.progress.task_ids[0], completed=done, total=total)


class StepBar(ProgressPrinter):
    """What is being done; shown where standard error is a terminal."""

    def __init__(self, title: str = "perf") -> None:
        super().__init__(Console(stderr=True))
        self.bar = self.progress.add_task(title, total=None, state="")

    def __call__(self, done: int, total: int, text: str) -> None:
        """Move on to what ``text`` says."""
        self.progress.update(self.bar, completed=done, total=total or None, state=text)
