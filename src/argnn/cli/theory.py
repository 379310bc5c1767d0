"""``argnn theory``: each claim of the paper, measured."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from argnn.cli import options
from argnn.cli.app import command, output_console, print_json, say
from argnn.cli.options import argument, option
from argnn.runs.progress import StepBar

if TYPE_CHECKING:
    from argnn.bench.theory import Finding

#: A table with more rows is shown in files only.
_MOST_ROWS = 16


@command(
    "Tables and speed",
    "argnn theory flow --plots drawn",
    argument(
        "claims",
        list[str],
        "Some of weights, gradients, generalization, flow, convergence, stability, "
        "robustness, special-cases, universality, complexity; all if not given.",
        metavar="[CLAIM]...",
    ),
    option("full", bool, "The sizes of the docs instead of small ones."),
    option("seed", int, "Seed of graphs, features and weights.", default=0, min=0),
    option("plots", Path, "Folder for a figure of each claim, as PDF, SVG and PNG."),
    option("out", Path, "Folder for the tables as CSV files, with command and date."),
    options.DATA_ROOT,
    options.FORCE,
    options.AS_JSON,
)
def theory(given: options.Given) -> None:
    """Measure what the paper claims: each statement with its figures and a verdict."""
    from argnn.bench.theory import Effort, report
    from argnn.files import require_writable, write_output

    names = report.chosen_claims(given.claims or [])
    effort = Effort("full" if given.full else "small", given.seed, given.data_root)
    # Before the measuring, which may take long.
    planned = (
        [] if given.out is None else [given.out / f"theory-verdicts-{name}.csv" for name in names]
    )
    planned += [] if given.plots is None else [given.plots / f"theory-{name}.pdf" for name in names]
    for path in planned:
        require_writable(path, given.force)
    with StepBar("theory") as tell:
        found = report.measure_claims(names, effort, tell)
        tables = {} if given.out is None else report.table_files(found, effort)
        figures = {} if given.plots is None else report.drawn_figures(found)
    for folder, files in ((given.out, tables), (given.plots, figures)):
        for name, content in files.items():
            write_output(folder / name, content, force=given.force)
    if given.as_json:
        print_json(report.document(found, effort))
        return
    console = output_console()
    for name, finding in found.items():
        _print(name, finding, console)
    for word, folder in (("Tables", given.out), ("Figures", given.plots)):
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
