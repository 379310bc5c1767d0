"""``argnn perf``: time a training step beside its rivals."""

from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from argnn.cli import options
from argnn.cli.app import command, output_console, print_json, say
from argnn.cli.options import option
from argnn.runs.progress import StepBar
from argnn.waiting import USER_WAIT_POLICY


@command(
    "Tables and speed",
    "argnn perf --nodes 20000 --edges 400000",
    option("nodes", int, "Nodes of the graph.", default=20_000),
    option("edges", int, "Listed edges, both directions.", default=400_000),
    option("channels", int, "Width of every layer.", default=128),
    option("layers", int, "Number of layers.", default=3),
    option("input_channels", int, "Size of the random features; channels if not given."),
    option("graph", str, "random, or power-law with one huge hub.", default="random"),
    option(
        "models",
        str,
        "Some of paper, paper-plain, default, default-plain, message, structure, gcn-best, "
        "gcn-pyg, gat.",
    ),
    options.DEVICE,
    option("dtype", str, "float32, tf32, or bfloat16 by autocast.", default="float32"),
    option("dropout", float, "Dropout of every model.", default=0.0),
    option("penalties", bool, "Steps of argnn with both penalties."),
    option("repeats", int, "Most measured steps of a row.", default=20),
    option(
        "budget",
        float,
        "Seconds for a row; slow ones get 2 or 3 steps all the same.",
        default=20.0,
    ),
    option("threads", int, "CPU threads; all cores if not given."),
    option("seed", int, "Seed of graph, features and weights.", default=0),
    option("memory", bool, "Measure peak memory.", "--memory/--no-memory", default=True),
    option("record", bool, "On a GPU, also time steps as recorded CUDA graphs, as training does."),
    option(
        "scaling",
        bool,
        "Go through 1, 2, 4, 8 times nodes and edges, and a power-law graph of the "
        "largest size; rows paper,default,gcn-best,gcn-pyg.",
    ),
    option("json_file", Path, "Write the whole result; - prints only that.", "--json", metavar="F"),
    options.FORCE,
)
def perf(json_file: Path | None, force: bool, **rest: Any) -> None:
    """Time a training step beside the plain kernels, two GCNs and PyG's GAT, on a random graph."""
    from argnn.bench.perf import PerfConfig, chosen_rows, run_perf
    from argnn.files import json_bytes, require_writable, write_output
    from argnn.runs.machine import threads_for
    from argnn.train.devices import resolve_device

    usual = {"input_channels": rest["channels"], "threads": threads_for(1)}
    rest |= {name: value for name, value in usual.items() if rest[name] is None}
    rest["models"] = chosen_rows(rest["models"], rest["scaling"])
    config = PerfConfig(**{**rest, "device": resolve_device(rest["device"], "--device")})
    printed_only = json_file == Path("-")
    if json_file is not None and not printed_only:
        require_writable(json_file, force)
    with StepBar() as turns:
        result = run_perf(config, turns, USER_WAIT_POLICY)
    if printed_only:
        print_json(result)
    else:
        _print_perf(result, output_console())
        if json_file is not None:
            write_output(json_file, json_bytes(result), force=force)
    _report_perf_failures(result)


def _print_perf(result: dict[str, Any], console: Console) -> None:
    from argnn.bench.perf.tables import edge_table, first_steps, row_table, scaling_table

    config, measurements = result["config"], result["measurements"]
    console.print(
        f"{result['device']}, {result['threads']} thread{'s' if result['threads'] > 1 else ''}, "
        f"{config['layers']} layers of {config['channels']} channels, {config['dtype']}, "
        f"seed {config['seed']}",
        style="bold",
    )
    if config["scaling"]:
        console.print(scaling_table(measurements))
        return
    console.print(row_table(measurements[0]))
    say(console, first_steps(measurements[0]))
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
