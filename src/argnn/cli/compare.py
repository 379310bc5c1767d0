"""``argnn compare``: all methods with the same small budget, one leaderboard, one winner."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from argnn.cli import completion, options
from argnn.cli.app import command, complain, keeping, output_console, print_json, remarks, say
from argnn.runs.progress import ComparisonProgress


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
