"""What a user sees while work goes on: live bars for a person, single lines elsewhere."""

import logging
from multiprocessing import current_process
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Self

from rich.console import Console

from argnn.wording import printable

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

    from argnn.runs.parallel import Job
    from argnn.runs.train_one import OnEpoch, TrainedModel
    from argnn.runs.trial import TrialJob
    from argnn.settings.resolve import BaseSettings
    from argnn.settings.run_config import RunConfig
    from argnn.store.results import Row
    from argnn.train import EpochRecord


def say(console: Console, *lines: str) -> None:
    """Print lines as they are, without Rich's markup and without line breaks at the edge."""
    for line in lines:
        console.print(printable(line.replace("\n", " ")), markup=False, soft_wrap=True)


def remarks(console: Console) -> Console:
    """The console for what is no result: notes, bars, what to do next. It is silent with ``-q``.

    The level of the logger says how much the user wants to read; ``-q`` leaves only errors.
    """
    wanted = logging.getLogger("argnn").isEnabledFor(logging.WARNING)
    return console if wanted else Console(quiet=True)


def console_for(verbose: bool | None) -> Console:
    """Where a function of Python shows its progress.

    Args:
        verbose: Whether to show it; None where somebody is watching: on a terminal or in a
            notebook, but not in one of several processes or threads, whose bars would be mixed.
    """
    console = Console(highlight=False)
    alone = current_process().name == "MainProcess" and current_thread() is main_thread()
    watched = alone and (console.is_terminal or console.is_jupyter)
    return console if (watched if verbose is None else verbose) else Console(quiet=True)


class ProgressPrinter:
    """Shows live bars on a terminal; elsewhere it prints a line for everything that is over."""

    def __init__(self, console: Console) -> None:
        self.console = console = remarks(console)
        self.is_live = not console.quiet and (console.is_terminal or console.is_jupyter)
        self.progress = progress_bars(console)

    def __enter__(self) -> Self:
        if self.is_live:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.is_live:
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
        state = _epoch_text(job.config, loss, None if val_score != val_score else val_score)
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


class ComparisonProgress(SplitProgress):
    """A bar for all trials with the time left, then one for each split that is trained."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.trials: TaskID | None = None

    def tried(self, done: int, total: int) -> None:
        """Move the bar of the trials."""
        if self.trials is None:
            self.trials = self.progress.add_task("epochs of all trials", total=total, state="")
        self.progress.update(self.trials, completed=done)

    def finished(self, job: "Job", row: "Row") -> None:
        """Replace the bar of a split by a line: there may be too many for one screen."""
        from argnn.runs.summary import SELECTION

        super().finished(job, row)
        bar = self.bars.pop(job_label(job), None)
        if bar is not None:
            self.progress.remove_task(bar)
        if self.is_live:
            error = row.get("error")
            text = finished_text(row, SELECTION[row["task"]]) if error is None else "failed"
            say(self.console, f"{job_label(job)}: {text}")


def _epoch_text(config: "RunConfig", loss: float, val_score: float | None) -> str:
    """How an epoch went."""
    score = "" if val_score is None else f", validation {live_score(config, val_score)}"
    return f"loss {loss:.3f}{score}"


def live_score(config: "RunConfig", value: float) -> str:
    """A validation score during training, in words; a loss is told with a minus."""
    from argnn.runs.tables import score_text
    from argnn.train.selection import selection_of

    name = selection_of(config.task, config.train.select)
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

    if console.is_jupyter:
        from argnn.runs.notebook_bars import NotebookBars as Progress  # noqa: N811
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        *(columns or (TextColumn("{task.fields[state]}"), TimeRemainingColumn())),
        console=console,
    )


class FitProgress(ProgressPrinter):
    """The fit of an estimator: a bar for the epochs of its trial, and one for its training."""

    def trying(self, job: "TrialJob") -> "OnEpoch":
        """Show a trial that begins; gives what is to be told of its epochs."""
        return self._epochs("trial", job.config, job.most_epochs())

    def tried(self, settings: "BaseSettings") -> None:
        """Show that the trial is over."""
        assert settings.trial is not None  # it comes from one
        self._over(settings.trial["epochs"], f"chosen: {settings.trial['chosen']}")

    def training(self, config: "RunConfig") -> "OnEpoch":
        """Show a training that begins; gives what is to be told of its epochs."""
        return self._epochs("training", config, config.train.epochs)

    def trained(self, config: "RunConfig", trained: "TrainedModel") -> None:
        """Show that the training is over."""
        found = trained.result
        score = live_score(config, found.val_score)
        self._over(found.epochs_run, f"chosen epoch {found.best_epoch}, validation {score}")

    def _epochs(self, what: str, config: "RunConfig", most: int) -> "OnEpoch":
        bar = self.progress.add_task(f"epochs of the {what}", total=most, state="")

        def tell(record: "EpochRecord") -> None:
            state = _epoch_text(config, record.loss, record.val_score)
            self.progress.update(bar, completed=record.epoch, state=state)

        return tell

    def _over(self, epochs: int, state: str) -> None:
        """Fill the last bar, as there may be fewer epochs than allowed, or print a line."""
        bar = self.progress.tasks[-1]
        self.progress.update(bar.id, total=epochs, completed=epochs, state=state)
        if not self.is_live:
            say(self.console, f"{bar.description}, {epochs}: {state}")


class CountingBar(ProgressPrinter):
    """A bar for work that comes before training; only on a terminal, and only if there is any."""

    def __init__(self, console: Console, text: str) -> None:
        super().__init__(console)
        self.text = text

    def __enter__(self) -> Self:
        return self

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done."""
        if not self.is_live:
            return
        if not self.progress.task_ids:
            self.progress.start()
            self.progress.add_task(self.text, total=total, state="")
        self.progress.update(self.progress.task_ids[0], completed=done, total=total)


class StepBar(ProgressPrinter):
    """Says what is being done, where standard error is a terminal."""

    def __init__(self, title: str = "perf") -> None:
        super().__init__(Console(stderr=True))
        self.bar = self.progress.add_task(title, total=None, state="")

    def __call__(self, done: int, total: int, text: str) -> None:
        """Show the next step."""
        self.progress.update(self.bar, completed=done, total=total or None, state=text)
