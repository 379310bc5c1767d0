"""``argnn train``: begin a run or continue one, and show its scores."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

import typer
from rich.console import Console

from argnn.cli import options
from argnn.cli.app import command, complain, keeping, output_console, print_json, remarks, say
from argnn.cli.options import option
from argnn.errors import ConfigError
from argnn.runs.progress import CountingBar, SplitProgress

if TYPE_CHECKING:
    from argnn.runs.pool import TellEpoch
    from argnn.runs.prepare import Draft, Plan
    from argnn.runs.trial import TrialJob
    from argnn.settings.resolve import Request
    from argnn.store.results import Row
    from argnn.store.run_folder import RunFolder


#: Options that may be given with --resume; everything else is known from the run.
_WITH_RESUME = (
    *("data", "resume", "data_root", "workers", "dashboard", "as_json", "quiet", "verbose"),
)


@command(
    "Train",
    "argnn train cora --split all",
    options.DATA.replace(default=None),
    options.MODEL,
    options.TASK,
    options.PRESET,
    option(
        "split",
        str,
        "Number of the split, several with commas, or all; 0 if not given, with --folds all.",
    ),
    option("seed", int, "Seed of weights and dropout.", default=0),
    option("epochs", int, "Most epochs to train for."),
    options.DEVICE,
    option("out", Path, "New folder for the run."),
    option("resume", Path, "Folder of a run to continue."),
    option("settings_file", str, "A file that argnn tune wrote.", "--settings"),
    option("no_trial", bool, "Take stored settings or the preset; try no recipes."),
    option("workers", int, "Splits to run at the same time."),
    option("checkpoint_every", int, "Epochs between checkpoints, 25 if not given; 0 for none."),
    option("dashboard", bool, "Write TensorBoard events into the run folder."),
    options.AS_JSON,
    options.TRAINING,
    options.GRAPH,
)
def train(given: options.Given) -> None:
    """Train a model on one split or on all, and score it on the test nodes or links."""
    if given.dashboard:
        from argnn.runs.dashboard import require_tensorboard

        require_tensorboard()
        if given.batching == "clusters":
            raise ConfigError("a dashboard needs the whole graph at once: leave out --dashboard")
    console = output_console(given.as_json)
    if _goes_on(given.out, given.resume, given.data_root):
        folder, plan = _continued(given.out, given.data, None, given.workers)
    elif given.resume is not None:
        _refuse_settings(given.context)
        folder, plan = _continued(given.resume, given.data, given.data_root, given.workers)
    else:
        from argnn.settings.resolve import usual_request

        if given.data is None:
            raise ConfigError("name a data set (see argnn datasets), a graph file, or --resume RUN")
        usual = usual_request(given.data, given.settings_file)
        request = options.requested(  # which reads the parameters that are not named here
            vars(given),
            model=given.model or usual.model,
            preset=given.preset or usual.preset,
            task=given.task or usual.task,
            split=given.split or ("all" if given.folds else "0"),
        )
        folder, plan = _begun(request, given.out, remarks(console))
    with keeping(f"continue with: argnn train --resume {shlex.quote(str(folder.root))}"):
        if given.dashboard:
            say(remarks(console), f"Live view: tensorboard --logdir {folder.root}")
        _run(plan, folder, console, given.as_json, given.dashboard)


def _goes_on(out: Path | None, resume: Path | None, data_root: str | None) -> TypeGuard[Path]:
    """Whether torchrun has started this command again, so that its run is to be continued."""
    from argnn.runs.ranks import rank_count, was_restarted
    from argnn.store.run_folder import is_begun_by

    if rank_count() > 1 and out is None and resume is None:
        raise ConfigError("with torchrun name the run folder, so that a restart finds it: --out")
    if rank_count() > 1 and data_root is not None:
        raise ConfigError("with torchrun set $ARGNN_DATA for all processes, not --data-root")
    return was_restarted() and out is not None and is_begun_by(out, sys.argv[1:])


def _refuse_settings(context: typer.Context) -> None:
    """Raise where the command line names a setting, which the run to continue knows already."""
    for one in context.command.params:
        source = context.get_parameter_source(one.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and one.name not in _WITH_RESUME:
            raise ConfigError(f"--resume takes its settings from the run: leave out {one.opts[0]}")


def _begun(request: "Request", out: Path | None, console: Console) -> "tuple[RunFolder, Plan]":
    """A new run. Its folder is made last: whatever is wrong leaves nothing behind."""
    from argnn.data.inspect import class_warnings, leak_warnings
    from argnn.runs.prepare import draft
    from argnn.runs.ranks import rank_count
    from argnn.runs.tables import chosen_table, metric_sentence, trial_table
    from argnn.store.run_folder import create_run, default_run_path, require_free

    if out is not None:
        require_free(out)
    plan = _settled(draft(request), console)
    config = plan.config
    for note in plan.graph.notes:
        say(console, f"Note: {note}")
    for warn in (leak_warnings, class_warnings) if config.task == "node" else ():
        say(console, *(f"Warning: {warning}" for warning in warn(plan.graph)))
    if config.per_split:
        console.print("Settings: each split has its own, chosen on its own validation nodes")
        console.print(chosen_table([own["trial"] for own in config.per_split.values()]))
    else:
        say(console, f"Settings: {config.source}")
        if config.trial is not None and config.trial["runs"]:
            console.print(trial_table(config.trial))
            say(console, metric_sentence(config.trial))
    path = out or default_run_path(config.graph["name"], config.model, config.preset)
    command = sys.argv[1:] if rank_count() > 1 else None
    return create_run(path, config.to_json(), command), plan


def _settled(made: "Draft", console: Console) -> "Plan":
    """The plan, with trials where there must be some; a Ctrl-C ends them with the best so far."""
    from argnn.runs.machine import noting_ctrl_c
    from argnn.runs.prepare import settled

    if not made.jobs:
        return made.plan
    with CountingBar(console, "epochs of the trial") as counting, noting_ctrl_c() as noted:
        [plan] = settled([made], tell=_trial_teller(made, console, counting, noted))
    if noted:  # too late for the trials
        raise KeyboardInterrupt
    return plan


def _trial_teller(
    made: "Draft", console: Console, counting: CountingBar, noted: list[int]
) -> "TellEpoch":
    """Say once what is tried, and how far it is; stop when a Ctrl-C was noted."""
    from argnn.runs.pool import StopEarly
    from argnn.runs.trial import EpochCount

    count = EpochCount(made.jobs, counting)

    def tell(job: "TrialJob", epoch: int, loss: float, val_score: float) -> None:
        if not count.done:
            say(
                console,
                "No stored settings for this graph: recipes are tried on the validation nodes of "
                f"each split, in at most {job.most_epochs()} epochs. Ctrl-C takes the best so far; "
                "a second one ends the command.",
            )
        count(job, epoch, loss, val_score)
        if noted:
            noted.clear()
            raise StopEarly

    return tell


def _continued(
    path: Path, data: str | None, data_root: str | None, workers: int | None
) -> "tuple[RunFolder, Plan]":
    from argnn.runs.prepare import data_name, reopen, stored_run

    folder, config = stored_run(path)
    if data is not None and data_name(data) != config.data:
        raise ConfigError(f"{path}: is a run on {config.data}, not on {data}")
    return folder, reopen(config, data_root, workers)


def _run(
    plan: "Plan", folder: "RunFolder", console: Console, as_json: bool, dashboard: bool
) -> None:
    from argnn.runs.parallel import run_splits
    from argnn.runs.summary import summary
    from argnn.runs.train_one import precompute_curvature
    from argnn.store.run_folder import short_row

    with CountingBar(console, "curvature of edges") as counting:
        precompute_curvature(plan.config, plan.graph, counting)
    with SplitProgress(console) as watcher:
        rows = run_splits(plan, folder, watcher, dashboard=dashboard)
    if as_json:
        print_json(
            {
                "run": str(folder.root),
                "config": plan.config.to_json(),
                "summary": summary(rows),
                "splits": [short_row(row) for row in rows],
            }
        )
    else:
        _print_scores(plan, folder, rows, console)
    _report_failures(rows)


def _print_scores(plan: "Plan", folder: "RunFolder", rows: "list[Row]", console: Console) -> None:
    from argnn.runs.problems import class_labels
    from argnn.runs.summary import LEAST_SEEDS, SMALL_GRAPH, summary
    from argnn.runs.tables import (
        class_table,
        one_split_sentence,
        pooled_sentence,
        score_table,
        twin_sentence,
    )

    config, total = plan.config, summary(rows)
    if total["splits"]:
        title = (
            f"{config.graph['name']}, {config.model}, preset {config.preset}, seed {config.seed}"
        )
        console.print(title, style="bold")
        console.print(score_table(total))
        if total["splits"] > 1:
            shared = "; folds share training nodes, so a rough one" if "pooled" in total else ""
            say(console, f"Interval: {total['interval']}, n = {total['splits']}{shared}.")
        elif sentence := one_split_sentence(next(row for row in rows if "error" not in row)):
            say(console, sentence)
        if pooled := pooled_sentence(total):
            say(console, pooled)
        if (table := class_table(total)) is not None:
            console.print(table)
        if sentence := twin_sentence(total):
            say(console, sentence)
        if total["splits"] > 1 and config.graph["nodes"] < SMALL_GRAPH:
            say(
                remarks(console),
                f"With {config.graph['nodes']} nodes one seed is noise: take at least "
                f"{LEAST_SEEDS} (--seed 0, --seed 1, ..., or an experiment of argnn bench).",
            )
        for label in sorted({c for absent in total["absent_classes"].values() for c in absent}):
            holders = [
                split for split, absent in total["absent_classes"].items() if label in absent
            ]
            name = class_labels(plan.graph)[label]
            say(console, f"No test node of class {name} in split {', '.join(holders)}.")
        say(console, f"Protocol: {total['protocol']}.")
    say(console, f"Run folder: {folder.root}")


def _report_failures(rows: "list[Row]") -> None:
    failed = [row for row in rows if "error" in row]
    for row in failed:
        if "traceback" in row:
            typer.echo(row["traceback"], err=True)
        complain(f"split {row['split']} failed: {row['error']}")
    if failed:
        raise typer.Exit(1)
