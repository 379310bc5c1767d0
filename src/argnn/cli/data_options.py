"""Options about a user's own graph, shared by the commands that read one."""

from typing import Annotated

import typer

Features = Annotated[
    str | None,
    typer.Option(help="Features made from the edges: degree, onehot, random or laplacian."),
]
Label = Annotated[str | None, typer.Option(help="Node column of the classes; else label or y.")]
NodeId = Annotated[
    str | None, typer.Option("--id", help="Node column of the ids; else id or the first.")
]
Weight = Annotated[str | None, typer.Option(help="Edge column of the weights.")]
Drop = Annotated[list[str] | None, typer.Option(help="Node column to leave out; may be repeated.")]
Standardize = Annotated[
    bool, typer.Option("--standardize", help="Scale number columns to mean 0, deviation 1.")
]
IgnoreWeights = Annotated[
    bool, typer.Option("--ignore-weights", help="Train without the weights of the edges.")
]
