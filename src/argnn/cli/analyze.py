"""``argnn analyze``: a page about what a run learned."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from argnn.cli.app import app, keeping, output_console, print_json, say
from argnn.cli.options import AsJson, DataRoot, Force, Split

if TYPE_CHECKING:
    from argnn.outputs.analyze import PageReport


@app.command()
def analyze(
    run: Annotated[Path, typer.Argument(help="Folder of a run of argnn train.")],
    out: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    split: Split = None,
    seed: Annotated[int, typer.Option(help="Seed of the drawing and of the rewiring.")] = 0,
    tables: Annotated[
        Path | None, typer.Option(help="Folder for the statistics as tables, too.")
    ] = None,
    table_format: Annotated[str, typer.Option(help="csv or parquet.")] = "csv",
    ollivier: Annotated[
        bool, typer.Option("--ollivier", help="Tables with Ollivier-Ricci curvatures; slow.")
    ] = False,
    force: Force = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Write an interactive page about the learned geometry: one file, no network needed."""
    from argnn.outputs.analyze import PageRequest
    from argnn.outputs.analyze import analyze as analyzed

    with keeping("a page or table that was written is whole"), _waiting():
        report = analyzed(
            PageRequest(run, out, split, force, data_root, seed, tables, table_format, ollivier)
        )
    if as_json:
        print_json(asdict(report))
    else:
        _print(report, output_console())


def _waiting() -> AbstractContextManager[Any]:
    """A sign that something happens, on a terminal only."""
    console = Console(stderr=True)
    text = "Layers, messages, rewiring, positions: up to two minutes for 20,000 nodes"
    return console.status(text) if console.is_terminal else nullcontext()


def _print(report: "PageReport", console: Console) -> None:
    what = f"{report.layers} layers" if report.layers else "no metric"
    say(
        console,
        f"{report.data}: {report.nodes} nodes, {report.model}, split {report.split}, {what}",
    )
    say(console, *(f"Note: {note}" for note in report.notes))
    say(console, *(f"Table: {file}" for file in report.tables))
    say(console, f"Page: {report.out} ({report.size / 1e6:.1f} MB)")
