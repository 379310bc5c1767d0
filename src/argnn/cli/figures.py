"""``argnn figures``: draw every figure of stored runs."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from argnn.cli.app import AsJson, DataRoot, app, keeping, output_console, print_json


@app.command()
def figures(
    runs: Annotated[list[Path] | None, typer.Argument(help="Folders of runs.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path("figures"),
    results: Annotated[
        list[Path] | None, typer.Option(help="Results file of argnn bench, for the bars.")
    ] = None,
    split: Annotated[
        int | None, typer.Option(help="Split whose model is drawn; the first if not given.")
    ] = None,
    formats: Annotated[
        list[str] | None, typer.Option("--format", help="pdf, svg or png; all if not given.")
    ] = None,
    dpi: Annotated[int, typer.Option(min=30, max=1200, help="Dots per inch of images.")] = 200,
    force: Annotated[bool, typer.Option("--force", help="Replace figures of the same name.")] = (
        False
    ),
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Draw the figures of some runs: maps, hulls, metrics, training, homophily and bars."""
    from dataclasses import asdict

    from argnn.analysis.figures import FORMATS
    from argnn.outputs.figures import FigureRequest, draw_figures

    console = Console(quiet=True) if as_json else output_console()
    order = FigureRequest(
        runs=runs or [],
        out=out,
        results=results or [],
        split=split,
        formats=formats or FORMATS,
        dpi=dpi,
        force=force,
        data_root=data_root,
    )
    with keeping(f"the figures in {out} are whole"), console.status("") as status:
        report = draw_figures(order, lambda name: status.update(f"drawing {name}"))
    if as_json:
        print_json(asdict(report))
        return
    for note in report.notes:
        console.print(f"Note: {note}", soft_wrap=True, markup=False)
    for point in report.points:
        name, *numbers = (_shown(*item) for item in point.items())
        console.print(f"{name}: {', '.join(numbers)}", soft_wrap=True, markup=False)
    for file in report.files:
        console.print(file, soft_wrap=True, markup=False)


def _shown(name: str, value: float | str | None) -> str:
    if isinstance(value, str):
        return value
    return f"{name} not defined" if value is None else f"{name} {value:.3g}"
