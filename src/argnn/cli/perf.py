"""``argnn perf``: time a training step beside its rivals."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from argnn.cli.app import command, output_console, print_json, say
from argnn.cli.options import Device, Force
from argnn.runs.progress import StepBar
from argnn.waiting import USER_WAIT_POLICY


@command("Tables and speed", "argnn perf --nodes 20000 --edges 400000")
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
        typer.Option(
            help="Some of paper, paper-plain, default, default-plain, message, structure, "
            "gcn-best, gcn-pyg, gat."
        ),
    ] = None,
    device: Device = "auto",
    dtype: Annotated[str, typer.Option(help="float32, or bfloat16 by autocast.")] = "float32",
    dropout: Annotated[float, typer.Option(help="Dropout of every model.")] = 0.0,
    penalties: Annotated[
        bool, typer.Option("--penalties", help="Steps of argnn with both penalties.")
    ] = False,
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
            "largest size; rows paper,default,gcn-best,gcn-pyg.",
        ),
    ] = False,
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="F", help="Write the whole result; - prints only that."),
    ] = None,
    force: Force = False,
) -> None:
    """Time a training step beside the plain kernels, two GCNs and PyG's GAT, on a random graph."""
    from argnn.bench.perf import PerfConfig, chosen_rows, run_perf
    from argnn.files import json_bytes, require_writable, write_output
    from argnn.runs.machine import threads_for
    from argnn.train.devices import resolve_device

    config = PerfConfig(
        nodes=nodes,
        edges=edges,
        channels=channels,
        layers=layers,
        input_channels=channels if input_channels is None else input_channels,
        graph=graph,
        models=chosen_rows(models, scaling),
        device=resolve_device(device, "--device"),
        dtype=dtype,
        dropout=dropout,
        penalties=penalties,
        repeats=repeats,
        budget=budget,
        threads=threads_for(1) if threads is None else threads,
        seed=seed,
        memory=memory,
        scaling=scaling,
    )
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
        f"{result['device']}, {result['threads']} threads, {config['layers']} layers of "
        f"{config['channels']} channels, {config['dtype']}, seed {config['seed']}",
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
