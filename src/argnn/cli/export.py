"""``argnn export``: a trained model as a program that runs without the package."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from argnn.cli.app import app, output_console, print_json, say
from argnn.cli.options import AsJson, Force, Run, Split


@app.command()
def export(
    run: Run,
    out: Annotated[Path, typer.Option(help="The program to write.")] = Path("model.pt2"),
    split: Split = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a trained model as a torch.export program: torch alone can run it."""
    from argnn.outputs.export import export_model

    report = export_model(run, out, split=split, force=force)
    if as_json:
        print_json(asdict(report))
        return
    console = output_console()
    say(console, f"{report.model}: {report.size} bytes")
    say(console, *(f"  {name}: {text}" for name, text in report.inputs.items()))
    say(console, f"  returns: {report.output}")
    say(console, f"Program: {report.out}; torch.export.load('{report.out}').module()(...) runs it.")
