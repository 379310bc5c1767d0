"""The command line: parse, call one function, print."""

import json
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from argnn.bench.allocator import keep_freed_memory
from argnn.errors import ArgnnError, ConfigError
from argnn.version import __version__

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from argnn.bench.parallel import Job, Watcher
    from argnn.bench.prepare import Plan, Request
    from argnn.bench.run import Row
    from argnn.io import RunFolder
    from argnn.train import Trial

# Threads that wait for each other must sleep, not spin: beside another busy process a spinning
# pair is twenty times slower than one thread alone. Has to be set before torch is imported,
# which none of the imports above does. `argnn perf` measures under the user's own policy.
_USER_WAIT_POLICY = os.environ.get("OMP_WAIT_POLICY")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

_PLAIN_WIDTH = 120

app = typer.Typer(
    name="argnn",
    help="Adaptive Riemannian Graph Neural Networks: every node learns its own metric.",
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    add_completion=False,
)

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
DataRoot = Annotated[
    str | None, typer.Option(help="Folder of the raw benchmark files, else $ARGNN_DATA.")
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; an error that the user can mend is one line and exit code 2."""
    logging.basicConfig(format="argnn: %(message)s")
    logging.getLogger("argnn").setLevel(logging.INFO)
    keep_freed_memory()
    try:
        code = app(args=arguments, prog_name="argnn", standalone_mode=False)
    except ArgnnError as error:
        _complain(str(error))
        code = 2
    except typer.Abort:
        _complain("interrupted")
        code = 130
    except Exception as error:
        # Typer brings a copy of click along, or uses the installed one; both errors have this.
        if not hasattr(error, "format_message"):
            raise
        _complain(error.format_message())
        code = 2
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> None:
    typer.echo(f"argnn: error: {' '.join(message.split())}", err=True)


def _console() -> Console:
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def _print_json(document: Any) -> None:
    typer.echo(json.dumps(document, indent=2, allow_nan=False))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"argnn {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


@app.command()
def datasets(data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the data sets: sizes, homophily, and whether they are at hand."""
    from argnn.bench.catalog import dataset_rows
    from argnn.bench.tables import dataset_table

    rows = dataset_rows(data_root)
    if as_json:
        _print_json(rows)
    else:
        _console().print(dataset_table(rows))


@app.command()
def models(as_json: AsJson = False) -> None:
    """List the models: geometry, citation and search space."""
    from argnn.bench.catalog import model_rows
    from argnn.bench.tables import model_table

    rows = model_rows()
    if as_json:
        _print_json(rows)
    else:
        _console().print(model_table(rows))


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the report.")] = Path("argnn-demo"),
) -> None:
    """Train on two embedded graphs beside a GCN, and draw the learned geometry."""
    from argnn.bench.demo import NOTE, run_demo
    from argnn.bench.tables import comparison_table

    console = _console()
    console.print("Training argnn and a GCN on two embedded graphs, on the same splits.")
    with _watching(console) as watcher:
        report = run_demo(out, watcher)
    console.print(comparison_table(report.results))
    console.print(f"Means over {report.num_splits} splits; {report.protocol}.", soft_wrap=True)
    console.print(NOTE, soft_wrap=True)
    console.print(f"Picture of the learned geometry: {report.picture}", soft_wrap=True)
    console.print(f"Report: {report.page}", soft_wrap=True)


@app.command()
def train(
    data: Annotated[
        str | None, typer.Argument(help="Name of a data set, or the path of a .npz file.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="Model: see argnn models. [argnn]")] = None,
    task: Annotated[str, typer.Option(help="node; link is not available yet.")] = "node",
    preset: Annotated[
        str | None, typer.Option(help="default, paper or reference. [default]")
    ] = None,
    split: Annotated[
        str | None, typer.Option(help="Number of the split, several with commas, or all. [0]")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of weights and dropout. [0]")] = None,
    epochs: Annotated[int | None, typer.Option(help="Most epochs to train for.")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda. [auto]")] = None,
    out: Annotated[Path | None, typer.Option(help="New folder for the run.")] = None,
    resume: Annotated[Path | None, typer.Option(help="Folder of a run to continue.")] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, such as train.lr=0.01.")
    ] = None,
    data_root: DataRoot = None,
    directed: Annotated[bool, typer.Option("--directed", help="Keep edge directions.")] = False,
    row_normalize: Annotated[
        bool, typer.Option("--row-normalize", help="Scale feature rows to sum one.")
    ] = False,
    workers: Annotated[int | None, typer.Option(help="Splits to run at the same time.")] = None,
    checkpoint_every: Annotated[
        int | None, typer.Option(help="Epochs between checkpoints; 0 for none. [25]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train a model on one split or on all, and score it on the test nodes."""
    _check_task(task)
    fixed: dict[str, Any] = {
        "--model": model,
        "--preset": preset,
        "--split": split,
        "--seed": seed,
        "--epochs": epochs,
        "--device": device,
        "--out": out,
        "--set": settings,
        "--directed": directed,
        "--row-normalize": row_normalize,
        "--checkpoint-every": checkpoint_every,
    }
    console = Console(quiet=True) if as_json else _console()
    if resume is not None:
        # 0 is a value, too: only what the user left out is None, False or an empty list.
        given = [n for n, v in fixed.items() if v is not None and v is not False and v != []]
        folder, plan = _continued(resume, data, given, data_root, workers)
    else:
        from argnn.bench.prepare import Request

        changes = {"epochs": epochs, "checkpoint_every": checkpoint_every}
        flags = [f"train.{name}={value}" for name, value in changes.items() if value is not None]
        request = Request(
            data=_required(data),
            model=model or "argnn",
            preset=preset or "default",
            split=split or "0",
            seed=seed or 0,
            device=device or "auto",
            overrides=(*flags, *(settings or ())),
            data_root=data_root,
            directed=directed,
            row_normalize=row_normalize,
            workers=workers,
        )
        folder, plan = _begun(request, out, console)
    _run(plan, folder, console, as_json)


@app.command()
def perf(
    nodes: Annotated[int, typer.Option(help="Nodes of the graph.")] = 20_000,
    edges: Annotated[int, typer.Option(help="Listed edges, both directions.")] = 400_000,
    channels: Annotated[int, typer.Option(help="Width of every layer.")] = 128,
    layers: Annotated[int, typer.Option(help="Number of layers.")] = 3,
    input_channels: Annotated[
        int | None, typer.Option(help="Size of the random features; channels if not given.")
    ] = None,
    graph: Annotated[str, typer.Option(help="random, or power-law with one huge hub.")] = "random",
    models: Annotated[
        str | None,
        typer.Option(help="Some of paper, paper-plain, default, default-plain, gcn, gat."),
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    dtype: Annotated[str, typer.Option(help="float32, or bfloat16 by autocast.")] = "float32",
    dropout: Annotated[float, typer.Option(help="Dropout of every model.")] = 0.0,
    repeats: Annotated[int, typer.Option(help="Most measured steps of a row.")] = 20,
    budget: Annotated[
        float, typer.Option(help="Seconds for a row; slow ones get 2 or 3 steps all the same.")
    ] = 20.0,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; all cores if not given.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of graph, features and weights.")] = 0,
    memory: Annotated[bool, typer.Option(help="Measure peak memory.")] = True,
    scaling: Annotated[
        bool,
        typer.Option(
            "--scaling",
            help="Go through 1, 2, 4, 8 times nodes and edges, and a power-law graph of the "
            "largest size; rows paper,default,gcn.",
        ),
    ] = False,
    json_file: Annotated[
        str | None,
        typer.Option("--json", metavar="F", help="Write the whole result; - prints only that."),
    ] = None,
) -> None:
    """Time a training step beside the plain kernels, PyG's GCN and GAT, on one random graph."""
    from argnn.bench.config import resolve_device
    from argnn.bench.perf import PerfConfig, chosen_rows, run_perf
    from argnn.bench.threads import threads_for
    from argnn.io import write_json

    config = PerfConfig(
        nodes=nodes,
        edges=edges,
        channels=channels,
        layers=layers,
        input_channels=channels if input_channels is None else input_channels,
        graph=graph,
        models=chosen_rows(models, scaling),
        device=resolve_device(device),
        dtype=dtype,
        dropout=dropout,
        repeats=repeats,
        budget=budget,
        threads=threads_for(1) if threads is None else threads,
        seed=seed,
        memory=memory,
        scaling=scaling,
    )
    if json_file is not None and Path(json_file).is_dir():
        raise ConfigError(f"--json {json_file}: is a folder, not a file")
    try:
        with _Turns() as turns:
            result = run_perf(config, turns, _USER_WAIT_POLICY)
    except KeyboardInterrupt:
        _complain("interrupted; nothing was written")
        raise typer.Exit(130) from None
    if json_file == "-":
        _print_json(result)
    else:
        if json_file is not None:
            write_json(Path(json_file), result)
        _print_perf(result, _console())
    _report_perf_failures(result)


def _print_perf(result: dict[str, Any], console: Console) -> None:
    from argnn.bench.perf.tables import edge_table, first_steps, row_table, scaling_table

    config, measurements = result["config"], result["measurements"]
    console.print(
        f"{result['device']}, {result['threads']} threads, {config['layers']} layers of "
        f"{config['channels']} channels, {config['dtype']}, seed {config['seed']}",
        style="bold",
    )
    if config["scaling"]:
        console.print(scaling_table(measurements))
        return
    console.print(row_table(measurements[0]))
    console.print(first_steps(measurements[0]), soft_wrap=True)
    if measurements[0]["edge_part"] is not None:
        console.print(edge_table(measurements[0]))


def _report_perf_failures(result: dict[str, Any]) -> None:
    """Say what could not be measured; too little memory is a result, anything else a failure."""
    from argnn.bench.perf.tables import failures

    failed = failures(result["measurements"])
    for what, fields in failed:
        typer.echo(fields.get("traceback", ""), err=True, nl=False)
        typer.echo(f"argnn: {what}: {fields['error']}", err=True)
    if any(fields.get("out_of_memory") is False for _, fields in failed):
        raise typer.Exit(1)


class _Turns:
    """What is being measured; shown where standard error is a terminal."""

    def __init__(self) -> None:
        self.progress = _progress(Console(stderr=True))
        self.shown = self.progress.console.is_terminal
        self.bar = self.progress.add_task("perf", total=None, state="")

    def __enter__(self) -> "_Turns":
        if self.shown:
            self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self.shown:
            self.progress.stop()

    def __call__(self, done: int, total: int, text: str) -> None:
        self.progress.update(self.bar, completed=done, total=total or None, state=text)


def _check_task(task: str) -> None:
    if task == "link":
        raise ConfigError("--task link is not available yet; this version trains on nodes")
    if task != "node":
        raise ConfigError(f"--task must be node (got '{task}')")


def _required(data: str | None) -> str:
    if data is None:
        raise ConfigError("name a data set (see argnn datasets), a .npz file, or --resume RUN")
    return data


def _begun(request: "Request", out: Path | None, console: Console) -> "tuple[RunFolder, Plan]":
    """A new run. Its folder is made last: whatever is wrong leaves nothing behind."""
    from argnn.bench.prepare import prepare
    from argnn.bench.tables import trial_table
    from argnn.io import create_run, default_run_path, require_free

    if out is not None:
        require_free(out)
    plan = prepare(request, _trial_teller(console))
    config = plan.config
    console.print(f"Settings: {config.source}", soft_wrap=True)
    if config.trial is not None:
        console.print(trial_table(config.trial))
    path = out or default_run_path(config.graph["name"], config.model, config.preset)
    return create_run(path, config.to_json()), plan


def _trial_teller(console: Console) -> "Callable[[Trial], None]":
    from argnn.train.trial import MAX_TRIALS, TRIAL_EPOCHS

    told: list[str] = []

    def tell(trial: "Trial") -> None:
        if not told:
            console.print(
                "No stored settings for this graph: its switches are chosen by at most "
                f"{MAX_TRIALS} runs of {TRIAL_EPOCHS} epochs, on validation.",
                soft_wrap=True,
            )
        told.append(trial.recipe.name)
        if console.is_terminal:
            console.print(f"  {len(told)}: {trial.recipe.name}, {100 * trial.val_score:.1f} %")

    return tell


def _continued(
    path: Path, data: str | None, given: list[str], data_root: str | None, workers: int | None
) -> "tuple[RunFolder, Plan]":
    from argnn.bench.config import RunConfig
    from argnn.bench.prepare import data_name, reopen
    from argnn.io import open_run

    if given:
        raise ConfigError(f"--resume takes its settings from the run: leave out {given[0]}")
    folder, stored = open_run(path)
    config = RunConfig.from_json(stored, str(folder.config))
    if data is not None and data_name(data) != config.data:
        raise ConfigError(f"{path}: is a run on {config.data}, not on {data}")
    return folder, reopen(config, data_root, workers)


def _run(plan: "Plan", folder: "RunFolder", console: Console, as_json: bool) -> None:
    from argnn.bench.parallel import run_splits

    try:
        with _watching(console) as watcher:
            rows = run_splits(plan, folder, watcher)
    except KeyboardInterrupt:
        _complain(f"interrupted; continue with: argnn train --resume {folder.root}")
        raise typer.Exit(130) from None
    if as_json:
        _print_document(plan, folder, rows)
    else:
        _print_scores(plan, folder, rows, console)
    _report_failures(rows)


def _print_document(plan: "Plan", folder: "RunFolder", rows: "list[Row]") -> None:
    from argnn.bench.report import summary
    from argnn.bench.run import short_row

    _print_json(
        {
            "run": str(folder.root),
            "config": plan.config.to_json(),
            "summary": summary(rows),
            "splits": [short_row(row) for row in rows],
        }
    )


def _print_scores(plan: "Plan", folder: "RunFolder", rows: "list[Row]", console: Console) -> None:
    from argnn.bench.report import summary
    from argnn.bench.tables import score_table

    config, total = plan.config, summary(rows)
    if total["splits"]:
        title = (
            f"{config.graph['name']}, {config.model}, preset {config.preset}, seed {config.seed}"
        )
        console.print(title, style="bold")
        console.print(score_table(total))
        if total["splits"] > 1:
            console.print(f"Interval: {total['interval']}, n = {total['splits']}.")
        for label in sorted({c for absent in total["absent_classes"].values() for c in absent}):
            holders = [
                split for split, absent in total["absent_classes"].items() if label in absent
            ]
            console.print(f"No test node of class {label} in split {', '.join(holders)}.")
        console.print(f"Protocol: {total['protocol']}.", soft_wrap=True)
    console.print(f"Run folder: {folder.root}", soft_wrap=True)


def _report_failures(rows: "list[Row]") -> None:
    failed = [row for row in rows if "error" in row]
    for row in failed:
        if "traceback" in row:
            typer.echo(row["traceback"], err=True)
        _complain(f"split {row['split']} failed: {row['error']}")
    if failed:
        raise typer.Exit(1)


def _watching(console: Console) -> "_Bars | _Lines":
    return _Bars(console) if console.is_terminal else _Lines(console)


class _Lines:
    """One line per split, for output that is not a terminal."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def epoch(self, job: "Job", epoch: int, loss: float, val_score: float) -> None:
        pass

    def finished(self, job: "Job", row: "Row") -> None:
        from argnn.bench.tables import per_cent

        if "error" not in row:
            test = None if row["test"] is None else row["test"]["accuracy"]
            self.console.print(
                f"{_label(job)}: test accuracy {per_cent(test)}, validation "
                f"{per_cent(row['val']['accuracy'])}, epoch {row['chosen_epoch']} of "
                f"{row['epochs_run']}, {row['seconds']:.1f} s",
                soft_wrap=True,
            )


class _Bars:
    """One live bar per split: loss, validation score, time left."""

    def __init__(self, console: Console) -> None:
        self.progress = _progress(console)
        self.bars: dict[str, TaskID] = {}

    def __enter__(self) -> "Watcher":
        self.progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.progress.stop()

    def epoch(self, job: "Job", epoch: int, loss: float, val_score: float) -> None:
        label = _label(job)
        if label not in self.bars:
            total = job.config.train.epochs
            self.bars[label] = self.progress.add_task(label, total=total, state="")
        score = "" if val_score != val_score else f", validation {100 * val_score:.1f} %"
        state = f"loss {loss:.3f}{score}"
        self.progress.update(self.bars[label], completed=epoch, state=state)

    def finished(self, job: "Job", row: "Row") -> None:
        bar = self.bars.get(_label(job))
        if bar is not None:
            # A run may stop early: the bar is full all the same.
            epochs = row.get("epochs_run")
            state = "failed" if epochs is None else f"chosen epoch {row['chosen_epoch']}"
            self.progress.update(bar, total=epochs, completed=epochs, state=state)


def _label(job: "Job") -> str:
    return f"{job.config.graph['name']}, {job.config.model}, split {job.split}"


def _progress(console: Console) -> "Progress":
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
