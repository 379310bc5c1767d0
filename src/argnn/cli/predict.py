"""``argnn predict``: what a trained model says about a graph, as a table."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from argnn.cli.app import app, output_console, print_json, say
from argnn.cli.options import AsJson, DataRoot, Force, Run, Split

if TYPE_CHECKING:
    from argnn.outputs.predict import PredictionReport


@app.command()
def predict(
    run: Run,
    data: Annotated[
        str | None, typer.Argument(help="Name or path of a graph; that of the run if not given.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The table to write.")] = Path("predictions.csv"),
    split: Split = None,
    pairs: Annotated[
        Path | None, typer.Option(help="For links: CSV file with columns source,target.")
    ] = None,
    force: Force = False,
    data_root: DataRoot = None,
    as_json: AsJson = False,
) -> None:
    """Predict the class of every node, or the links of given pairs, with probabilities."""
    from argnn.outputs.predict import PredictionRequest
    from argnn.outputs.predict import predict as predicted

    report = predicted(PredictionRequest(run, out, data, split, pairs, force, data_root))
    if as_json:
        print_json(asdict(report))
    else:
        _print(report, output_console())


def _print(report: "PredictionReport", console: Console) -> None:
    what = "nodes" if report.task == "node" else "pairs"
    say(console, f"{report.data}: {report.rows} {what} with {report.model}")
    for name, count in report.counts.items():
        label = name if report.task == "node" else ("no link", "link")[int(name)]
        say(console, f"  {label}: {count}")
    say(console, *(f"Note: {note}" for note in report.notes), _calibration(report))
    say(console, f"Table: {report.out}")


def _calibration(report: "PredictionReport") -> str:
    if report.ece is None:
        return "Probabilities are not calibrated."
    return (
        f"Probabilities: temperature {report.temperature:.3g}, expected calibration error "
        f"{100 * report.ece:.1f} % on validation."
    )
