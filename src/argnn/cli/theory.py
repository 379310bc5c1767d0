"""``argnn theory``: each claim of the paper, measured."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from argnn.cli.app import command, output_console, print_json, say
from argnn.cli.options import AsJson, DataRoot, Force
from argnn.runs.progress import StepBar

if TYPE_CHECKING:
    from argnn.bench.theory import Finding

#: A table with more rows is shown in files only.
_MOST_ROWS = 16


@command("Tables and speed", "argnn theory flow --plots drawn")
def theory(
    claims: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[CLAIM]...",
            help="Some of weights, gradients, generalization, flow, convergence, stability, "
            "robustness, special-cases, universality, complexity; all if not given.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="The sizes of the docs instead of small ones.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of graphs, features and weights.")] = 0,
    plots: Annotated[
        Path | None, typer.Option(help="Folder for a figure of each claim, as PDF, SVG and PNG.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the tables as CSV files, with command and date.")
    ] = None,
    data_root: DataRoot = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Measure what the paper claims: each statement with its figures and a verdict."""
    from argnn.bench.theory import Effort
    from argnn.bench.theory.report import (
        chosen_claims,
        document,
        drawn_figures,
        measure_claims,
        table_files,
    )
    from argnn.files import require_writable, write_output

    names = chosen_claims(claims or [])
    effort = Effort("full" if full else "small", seed, data_root)
    # Before the measuring, which may take long.
    planned = [] if out is None else [out / f"theory-verdicts-{name}.csv" for name in names]
    planned += [] if plots is None else [plots / f"theory-{name}.pdf" for name in names]
    for path in planned:
        require_writable(path, force)
    with StepBar("theory") as tell:
        found = measure_claims(names, effort, tell)
        files: dict[Path, bytes] = {}
        if out is not None:
            files |= {out / name: text for name, text in table_files(found, effort).items()}
        if plots is not None:
            files |= {plots / name: image for name, image in drawn_figures(found).items()}
    for path, content in files.items():
        write_output(path, content, force=force)
    if as_json:
        print_json(document(found, effort))
        return
    console = output_console()
    for name, finding in found.items():
        _print(name, finding, console)
    for word, folder in (("Tables", out), ("Figures", plots)):
        if folder is not None:
            say(console, f"{word}: {folder}")


def _print(name: str, finding: "Finding", console: Console) -> None:
    from argnn.bench.theory.finding import shown
    from argnn.tables import rich_table

    header = ("statement", "the paper says", "measured", "verdict")
    rows = [(s.name, f"{s.says} ({s.place})", s.measured, s.verdict) for s in finding.statements]
    table = rich_table(header, rows, left=header, title=name)
    table.show_lines = True
    console.print(table)
    for found in finding.tables:
        if len(found.rows) <= _MOST_ROWS:
            cells = [[shown(cell) for cell in row] for row in found.rows]
            console.print(rich_table(found.header, cells, left=found.header[:1]))
        else:
            say(console, f"{found.name}: {len(found.rows)} rows, with --out or --json")
    rules = dict.fromkeys(f"{s.name}: {s.rule}" for s in finding.statements)
    say(console, f"Conditions: {finding.conditions}", *(f"Rule, {rule}." for rule in rules), "")
