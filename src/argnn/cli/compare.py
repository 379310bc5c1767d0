"""``argnn compare``: all methods with the same small budget, one leaderboard, one winner."""

from pathlib import Path

import typer

from argnn.cli import completion, options
from argnn.cli.app import command, complain, keeping, output_console, print_json, remarks, say
from argnn.cli.options import option
from argnn.runs.progress import ComparisonProgress


@command(
    "Train",
    "argnn compare cora --models argnn,gcn,gat",
    options.DATA,
    option(
        "models",
        str,
        "Models with commas, see argnn models; or all.",
        default="all",
        values=completion.models,
    ),
    option("recipes", int, "Settings that each method tries on each split.", default=6),
    option("split", str, "Numbers of splits with commas, or all; else three, with --folds all."),
    option("ensemble", int, "Also average the predictions of so many of the best."),
    options.TASK,
    option("seed", int, "Seed of recipes, weights and dropout.", default=0),
    option("epochs", int, "Most epochs to train for, 1000 if not given."),
    options.DEVICE,
    option("out", Path, "Folder of the comparison, runs/NAME-compare if not given."),
    option("workers", int, "Trials or splits to run at the same time."),
    options.AS_JSON,
    options.TRAINING,
    options.GRAPH,
)
def compare(given: options.Given) -> None:
    """Compare methods on a graph with equal budgets, and keep the best as a model.

    Validation scores choose recipes, epochs and winner. The same command goes on where it was
    stopped.
    """
    from argnn.bench.comparison.compare import compared, default_out
    from argnn.bench.comparison.methods import plan_comparison
    from argnn.settings.resolve import AUTO

    console = output_console(given.as_json)
    request = options.requested(vars(given), task=given.task or AUTO, split="all")
    models = [name.strip() for name in given.models.split(",")]
    chosen = None if [name.lower() for name in models] == ["all"] else models
    path = given.out or default_out(given.data)
    plan = plan_comparison(request, chosen, path, splits=given.split, ensemble=given.ensemble)
    for note in plan.graph.notes:
        say(remarks(console), f"Note: {note}")
    counts = f"{len(plan.drafts)} methods on {len(plan.about['splits'])} splits"
    say(remarks(console), f"{counts}, in {path}; the same command goes on where it was stopped.")
    with keeping(f"what is finished is in {path}, and the same command goes on"):
        with ComparisonProgress(console) as watcher:
            found = compared(plan, watcher)
        if given.as_json:
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
