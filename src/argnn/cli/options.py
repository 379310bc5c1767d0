"""Options that several commands share."""

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from argnn.settings.resolve import Request

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]

# Graphs
DataRoot = Annotated[
    str | None, typer.Option(help="Folder of the raw benchmark files, else $ARGNN_DATA.")
]
Directed = Annotated[bool, typer.Option("--directed", help="Keep edge directions.")]
RowNormalize = Annotated[
    bool, typer.Option("--row-normalize", help="Scale feature rows to sum one.")
]
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

# Training
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="key=value, such as train.lr=0.01; argnn tune leaves it fixed."),
]
Select = Annotated[
    str | None,
    typer.Option(
        help="Validation score that chooses the epoch: accuracy, f1_macro, auroc, "
        "average_precision or loss."
    ),
]
ClassWeight = Annotated[
    str | None,
    typer.Option(help="Weights in the training loss: balanced, class=weight,..., or a YAML file."),
]
Threshold = Annotated[
    str | None,
    typer.Option(
        help="Probability from which a node is of the rarer of two classes: a number, or "
        "validation to choose it there."
    ),
]
Ratio = Annotated[
    str | None, typer.Option(help="Training/validation/test share of links; 85/5/10 if not given.")
]
Decoder = Annotated[
    str | None, typer.Option(help="dot, cosine, distance, metric or mlp; for links.")
]
SpanningForest = Annotated[
    bool, typer.Option("--spanning-forest", help="Keep one in training; for links.")
]
SplitBy = Annotated[
    str | None,
    typer.Option(help="random if not given; time: the newest links are tested; for links."),
]
Time = Annotated[
    str | None, typer.Option(help="Edge column of time stamps, numbers or dates; for links.")
]
Executor = Annotated[str, typer.Option(help="local or ray.")]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster: auto or ray://...; else one is started here.")
]

# Trained models
Run = Annotated[Path, typer.Argument(help="Folder of a run of argnn train, or of a model.")]
Split = Annotated[
    int | None, typer.Option(help="Split whose model is used; the first if not given.")
]


def judging_flags(
    select: str | None, class_weight: str | None, threshold: str | None = None
) -> list[str]:
    """The settings that these options stand for, as ``--set`` takes them."""
    flags = [] if select is None else [f"train.select={select}"]
    if class_weight is not None:
        from argnn.settings.class_weights import parsed_class_weight

        flags.append(f"train.class_weight={json.dumps(parsed_class_weight(class_weight))}")
    return flags if threshold is None else [*flags, f"train.threshold={threshold}"]


def requested(given: Mapping[str, Any], **changes: Any) -> "Request":
    """The request that the options of a command make.

    Args:
        given: The options by the names of their parameters; those of training and columns here.
        **changes: Entries of the request that replace them.
    """
    from argnn.data.import_options import Columns
    from argnn.settings.resolve import Request

    lengths = {name: given.get(name) for name in ("epochs", "checkpoint_every")}
    flags = [f"train.{name}={value}" for name, value in lengths.items() if value is not None]
    flags += judging_flags(given["select"], given["class_weight"], given["threshold"])
    columns = Columns(
        **{name: given[name] for name in ("features", "label", "node_id", "weight", "time")},
        drop=tuple(given["drop"] or ()),
        standardize=given["standardize"],
    )
    same = {field.name: given[field.name] for field in fields(Request) if field.name in given}
    overrides = (*flags, *(given["settings"] or ()))
    return Request(**{**same, "columns": columns, "overrides": overrides, **changes})
