"""Options that several commands share, one by one or as a group."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argnn.errors import ConfigError

if TYPE_CHECKING:
    from argnn.data.import_options import Columns
    from argnn.settings.resolve import Request

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]

DataRoot = Annotated[
    str | None, typer.Option(help="Folder of the raw benchmark files, else $ARGNN_DATA.")
]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Executor = Annotated[str, typer.Option(help="local or ray.")]
Address = Annotated[
    str | None, typer.Option(help="Ray cluster: auto or ray://...; else one is started here.")
]

Standardize = Annotated[
    bool | None,
    typer.Option(
        "--standardize/--no-standardize",
        help="Scale numbers to mean 0, deviation 1: as usual for tables, not for arrays.",
    ),
]

# Trained models
Run = Annotated[Path, typer.Argument(help="Folder of a run of argnn train, or of a model.")]
Split = Annotated[
    int | None, typer.Option(help="Split whose model is used; the first if not given.")
]


def _option(name: str, kind: Any, words: str, flag: str | None = None) -> Parameter:
    """An option that is off, or not given, by default."""
    said = typer.Option(flag or f"--{name.replace('_', '-')}", help=words)
    default, kind = (False, bool) if kind is bool else (None, kind | None)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, said]
    )


#: How a graph is read, and what its columns mean: see :func:`graph_columns`.
GRAPH = (
    Parameter("data_root", Parameter.KEYWORD_ONLY, default=None, annotation=DataRoot),
    _option("directed", bool, "Keep edge directions."),
    _option("row_normalize", bool, "Scale feature rows to sum one."),
    _option("features", str, "Features made from the edges: degree, onehot, random or laplacian."),
    _option("label", str, "Node column of the classes; else label or y."),
    _option("node_id", str, "Node column of the ids; else id or the first.", "--id"),
    _option("weight", str, "Edge column of the weights."),
    _option("time", str, "Edge column of time stamps, numbers or dates; for links."),
    _option("drop", list[str], "Node column to leave out; may be repeated."),
    Parameter("standardize", Parameter.KEYWORD_ONLY, default=None, annotation=Standardize),
    _option("decimal", str, "Sign before decimals where both fit: . or , (1,234 is 1.234)."),
    _option("month_first", bool, "Read dates such as 03/04/2024 with the month first."),
)
#: What a run is to do: see :func:`requested`.
TRAINING = (
    _option(
        "settings",
        list[str],
        "key=value, such as train.lr=0.01; argnn tune leaves it fixed.",
        "--set",
    ),
    _option(
        "select",
        str,
        "Validation score that chooses the epoch: accuracy, f1_macro, auroc, average_precision or "
        "loss.",
    ),
    _option(
        "class_weight",
        str,
        "Weights in the training loss: balanced, class=weight,..., or a YAML file.",
    ),
    _option(
        "threshold",
        str,
        "Probability from which a node is of the rarer of two classes: a number, or validation to "
        "choose it there.",
    ),
    _option("ratio", str, "Training/validation/test share of links; 85/5/10 if not given."),
    _option("decoder", str, "dot, cosine, distance, metric or mlp; for links."),
    _option("spanning_forest", bool, "Keep one in training; for links."),
    _option("split_by", str, "random if not given; time: the newest links are tested; for links."),
    _option("ignore_weights", bool, "Train without the weights of the edges."),
    _option("batching", str, "What a step sees: the whole graph, or clusters of it."),
    _option("parts", int, "Clusters of the graph; with --batching clusters."),
    _option("clusters_per_batch", int, "Clusters of a batch; with --batching clusters."),
    _option("halo", int, "Hops around its clusters that a batch sees; with --batching clusters."),
)
_OF_CLUSTERS = ("parts", "clusters_per_batch", "halo")


def with_options(
    *groups: Sequence[Parameter],
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command further options, which it finds in the parameters of its context."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = signature(function)

        @wraps(function)
        def command(**given: Any) -> None:
            function(**{name: given[name] for name in own.parameters})

        listed = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own.parameters.values()]
        added = [option for group in groups for option in group]
        command.__signature__ = own.replace(parameters=[*listed, *added])  # type: ignore[attr-defined]
        return command

    return decorate


def graph_columns(given: Mapping[str, Any]) -> "Columns":
    """What the options of :data:`GRAPH` say about columns."""
    from argnn.data.import_options import Columns

    values = {field.name: given[field.name] for field in fields(Columns)}
    return Columns(**{**values, "drop": tuple(given["drop"] or ())})


def requested(given: Mapping[str, Any], **changes: Any) -> "Request":
    """The request that the options of a command make.

    Args:
        given: The options by the names of their parameters; those of both groups are there.
        **changes: Entries of the request that replace them.
    """
    from argnn.settings.class_weights import parsed_class_weight
    from argnn.settings.resolve import Request

    names = (
        *("epochs", "checkpoint_every", "select", "class_weight", "threshold", "batching"),
        *_OF_CLUSTERS,
    )
    train = {name: given[name] for name in names if given.get(name) is not None}
    for name in _OF_CLUSTERS if train.get("batching") != "clusters" else ():
        if name in train:
            flag = f"--{name.replace('_', '-')}"
            raise ConfigError(f"{flag} belongs to --batching clusters")
    if "class_weight" in train:
        train["class_weight"] = json.dumps(parsed_class_weight(train["class_weight"]))
    flags = [f"train.{name}={value}" for name, value in train.items()]
    same = {field.name: given[field.name] for field in fields(Request) if field.name in given}
    same |= {"columns": graph_columns(given), "overrides": (*flags, *(given["settings"] or ()))}
    return Request(**{**same, **changes})
