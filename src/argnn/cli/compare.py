"""``argnn compare``: all methods with the same small budget, one leaderboard, one winner."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from argnn.cli import completion, options
from argnn.cli.app import command, complain, keeping, output_console, print_json, remarks, say
from argnn.runs.progress import SplitProgress, finished_text, job_label

if TYPE_CHECKING:
    from rich.progress import TaskID

    from argnn.runs.parallel import Job
    from argnn.store.results import Row


@command("Train", "argnn compare cora --models argnn,gcn,gat", options.TRAINING, options.GRAPH)
def compare(
    context: typer.Context,
    data: options.Data,
    models: Annotated[
        str,
        typer.Option(
            help="Models with commas, see argnn models; or all.",
            autocompletion=completion.models,
        ),
    ] = "all",
    recipes: Annotated[
        int, typer.Option(help="Settings that each method tries on each split.")
    ] = 6,
    split: Annotated[
        str | None,
        typer.Option(help="Numbers of splits with commas, or all; else three, with --folds all."),
    ] = None,
    ensemble: Annotated[
        int | None, typer.Option(help="Also average the predictions of so many of the best.")
    ] = None,
    task: options.Task = None,
    seed: Annotated[int, typer.Option(help="Seed of recipes, weights and dropout.")] = 0,
    epochs: Annotated[
        int | None, typer.Option(help="Most epochs to train for, 1000 if not given.")
    ] = None,
    device: options.Device = "auto",
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of the comparison, runs/NAME-compare if not given."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="Trials or splits to run at the same time.")
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare methods on a graph with equal budgets, and keep the best as a model.

    Validation scores choose recipes, epochs and winner. The same command goes on where it was
    stopped.
    """
    from argnn.bench.comparison.compare import compared, default_out
    from argnn.bench.comparison.methods import plan_comparison
    from argnn.settings.resolve import AUTO

    console = Console(quiet=True) if as_json else output_console()
    request = options.requested(context.params, task=task or AUTO, split="all")
    chosen = None if models.strip().lower() == "all" else [m.strip() for m in models.split(",")]
    path = out or default_out(data)
    plan = plan_comparison(request, chosen, path, splits=split, ensemble=ensemble)
    for note in plan.graph.notes:
        say(remarks(console), f"Note: {note}")
    counts = f"{len(plan.drafts)} methods on {len(plan.about['splits'])} splits"
    say(remarks(console), f"{counts}, in {path}; the same command goes on where it was stopped.")
    with keeping(f"what is finished is in {path}, and the same command goes on"):
        with ComparisonProgress(console) as watcher:
            found = compared(plan, watcher)
        if as_json:
            print_json(found.document())
        else:
            found.print_to(console)
            say(console, f"Model: {found.out / 'best'} (each method: {found.out}/NAME)")
            say(remarks(console), f"Next: argnn predict {found.out / 'best'}")
        failed = [row for row in found.rows if row["error"]]
        for row in failed:
            complain(f"{row['method']} failed: {row['error']}")
        if failed:
            raise typer.Exit(1)


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
