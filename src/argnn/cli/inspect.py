"""``argnn inspect``: what a graph holds and how it was understood."""

from typing import Annotated

import typer

from argnn.cli import options
from argnn.cli.app import app, output_console, print_json, say


@app.command()
def inspect(
    data: Annotated[str, typer.Argument(help="Path of a graph, or the name of a data set.")],
    data_root: options.DataRoot = None,
    directed: options.Directed = False,
    row_normalize: options.RowNormalize = False,
    features: options.Features = None,
    label: options.Label = None,
    node_id: options.NodeId = None,
    weight: options.Weight = None,
    drop: options.Drop = None,
    standardize: options.Standardize = False,
    as_json: options.AsJson = False,
) -> None:
    """Show what was understood of a graph before anything is trained on it."""
    from argnn.data.import_options import Columns
    from argnn.data.inspect import inspect_graph, inspection_tables

    columns = Columns(features, label, node_id, weight, tuple(drop or ()), standardize)
    report = inspect_graph(
        data, root=data_root, directed=directed, row_normalize=row_normalize, columns=columns
    )
    if as_json:
        print_json(report)
        return
    console = output_console()
    for table in inspection_tables(report):
        console.print(table)
    say(console, *(f"Note: {line}" for line in report["notes"]))
    say(console, *(f"Warning: {line}" for line in report["warnings"]))
