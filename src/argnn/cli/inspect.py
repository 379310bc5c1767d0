"""``argnn inspect``: what a graph holds and how it was understood."""

from typing import Annotated

import typer

from argnn.cli.app import (
    AsJson,
    DataRoot,
    Directed,
    RowNormalize,
    app,
    output_console,
    print_json,
)
from argnn.cli.data_options import Drop, Features, Label, NodeId, Standardize, Weight


@app.command()
def inspect(
    data: Annotated[str, typer.Argument(help="Path of a graph, or the name of a data set.")],
    data_root: DataRoot = None,
    directed: Directed = False,
    row_normalize: RowNormalize = False,
    features: Features = None,
    label: Label = None,
    node_id: NodeId = None,
    weight: Weight = None,
    drop: Drop = None,
    standardize: Standardize = False,
    as_json: AsJson = False,
) -> None:
    """Show what was understood of a graph before anything is trained on it."""
    from argnn.data.import_options import Columns
    from argnn.data.inspect import inspect_graph
    from argnn.data.inspection_tables import inspection_tables
    from argnn.wording import printable

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
    for word, lines in (("Note", report["notes"]), ("Warning", report["warnings"])):
        for line in lines:
            console.print(f"{word}: {printable(line)}", soft_wrap=True, markup=False)
