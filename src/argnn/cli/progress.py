"""What a user sees while work goes on: live bars on a terminal, single lines elsewhere."""

from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from argnn.runs.parallel import Job, Watcher
    from argnn.store.results import Row


def watching(console: Console) -> "Bars | Lines":
    """Who tells about the jobs of a run, as the console allows."""
    return Bars(console) if console.is_terminal else Lines(console)


class Lines:
    """One line per split, for output that is not a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def epoch(self, job: "Job", epoch: int, loss: float, val_score: float) -> None:
        """Nothing: lines are for what is over."""

    def finished(self, job: "Job", row: "Row") -> None:
        """One line with its scores; errors are reported at the end."""
        from argnn.runs.summary import SELECTION
        from argnn.runs.tables import SCORE_NAMES, per_cent, test_text

        if "error" not in row:
            score = SELECTION[row["task"]]
            self.console.print(
                f"{job_label(job)}: test {SCORE_NAMES[score]} {test_text(row, score)}, validation "
                f"{per_cent(row['val'][score])}, epoch {row['chosen_epoch']} of "
                f"{row['epochs_run']}, {row['seconds']:.1f} s",
                soft_wrap=True,
            )


class Bars:
    """One live bar per split: loss, validation score, time left."""

    def __init__(self, console: Console) -> None:
        self.progress = progress_bars(console)
        self.bars: dict[str, TaskID] = {}

    def __enter__(self) -> "Watcher":
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def epoch(self, job: "Job", epoch: int, loss: float, val_score: float) -> None:
        """Move the bar of a job."""
        label = job_label(job)
        if label not in self.bars:
            total = job.config.train.epochs
            self.bars[label] = self.progress.add_task(label, total=total, state="")
        score = "" if val_score != val_score else f", validation {100 * val_score:.1f} %"
        state = f"loss {loss:.3f}{score}"
        self.progress.update(self.bars[label], completed=epoch, state=state)

    def finished(self, job: "Job", row: "Row") -> None:
        """Fill the bar of a job."""
        bar = self.bars.get(job_label(job))
        if bar is not None:
            # A run may stop early: the bar is full all the same.
            epochs = row.get("epochs_run")
            state = "failed" if epochs is None else f"chosen epoch {row['chosen_epoch']}"
            self.progress.update(bar, total=epochs, completed=epochs, state=state)


def job_label(job: "Job") -> str:
    """A job in words."""
    return f"{job.config.graph['name']}, {job.config.model}, split {job.split}"


def progress_bars(console: Console) -> "Progress":
    """Bars with a count, a state in words (field ``state``) and the time left."""
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
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=console,
    )


class Counting:
    """A bar for work that comes before training; only on a terminal, and only if there is any."""

    def __init__(self, console: Console, text: str) -> None:
        self.console, self.text = console, text
        self.progress: Progress | None = None

    def __enter__(self) -> "Counting":
        return self

    def __exit__(self, *error: object) -> None:
        if self.progress is not None:
            self.progress.stop()

    def __call__(self, done: int, total: int) -> None:
        """So much of it is done."""
        if not self.console.is_terminal:
            return
        if self.progress is None:
            self.progress = progress_bars(self.console)
            self.progress.start()
            self.progress.add_task(self.text, total=total, state="")
        self.progress.update(self.progress.task_ids[0], completed=done, total=total)


class Turns:
    """What is being measured; shown where standard error is a terminal."""

    def __init__(self) -> None:
        self.progress = progress_bars(Console(stderr=True))
        self.shown = self.progress.console.is_terminal
        self.bar = self.progress.add_task("perf", total=None, state="")

    def __enter__(self) -> "Turns":
        if self.shown:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.progress.stop()

    def __call__(self, done: int, total: int, text: str) -> None:
        """Move on to what ``text`` says."""
        self.progress.update(self.bar, completed=done, total=total or None, state=text)
