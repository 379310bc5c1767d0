"""Options that several commands share, one by one or as a group."""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import wraps
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argnn.cli import completion
from argnn.cli.completion import chosen_from, one_of
from argnn.errors import ConfigError

if TYPE_CHECKING:
    from argnn.data.import_options import Columns
    from argnn.settings.resolve import Request

Group = Sequence[Parameter]

#: Headings of the help, and the options under them; those of a group below have its heading.
_PANELS = {
    "Training": (
        *("model", "preset", "epochs", "settings_file", "no_trial", "recipes"),
        *("checkpoint_every", "trials", "ensemble"),
    ),
    "Machine": ("device", "workers", "executor", "address", "threads"),
    "Output": (
        *("out", "force", "as_json", "json_file", "dashboard", "resume", "storage", "tables"),
        *("table_format", "output_format", "formats", "dpi", "diagram"),
    ),
}
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}


def _tell_more(asked: bool) -> None:
    if asked:
        logging.getLogger("argnn").setLevel(logging.DEBUG)


def _tell_less(asked: bool) -> None:
    if asked:
        logging.getLogger("argnn").setLevel(logging.ERROR)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, nothing else.")]
Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]

DataRoot = Annotated[
    str | None, typer.Option(help="Folder of the raw benchmark files, else $ARGNN_DATA.")
]
Device = Annotated[
    str,
    typer.Option(
        help="auto, cpu, cuda, one GPU such as cuda:1, or mps; auto takes CUDA where it is.",
        autocompletion=one_of("auto", "cpu", "cuda", "cuda:0", "cuda:1", "mps"),
    ),
]
Executor = Annotated[str, typer.Option(help="local or ray.", autocompletion=one_of("local", "ray"))]
DATA = typer.Argument(
    help="Name of a data set, or the path of a graph.", autocompletion=completion.graphs
)
Data = Annotated[str, DATA]
Model = Annotated[
    str | None,
    typer.Option(
        help="Model, argnn if not given; see argnn models.", autocompletion=completion.models
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="node, regression, multilabel or link; by the labels if not given.",
        autocompletion=chosen_from("tasks"),
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(help="default, paper or reference.", autocompletion=chosen_from("presets")),
]
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


def _option(
    name: str, kind: Any, words: str, *flags: str, values: Any = None, callback: Any = None
) -> Parameter:
    """An option that is off, or not given, by default; a shell completes it by its values."""
    said = typer.Option(
        *(flags or (f"--{name.replace('_', '-')}",)),
        help=words,
        autocompletion=values,
        callback=callback,
    )
    default, kind = (False, bool) if kind is bool else (None, kind | None)
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, said]
    )


def _in_panel(heading: str, *group: Parameter) -> tuple[Parameter, ...]:
    """A group of options under one heading of the help."""
    for option in group:
        option.annotation.__metadata__[0].rich_help_panel = heading
    return group


#: How much is said, before or after the name of a command.
SAYING = (
    _option("quiet", bool, "Only results and errors.", "--quiet", "-q", callback=_tell_less),
    _option(
        *("verbose", bool, "Also settings, device, files and times.", "--verbose", "-v"),
        callback=_tell_more,
    ),
)
#: How a graph is read, and what its columns mean: see :func:`graph_columns`.
GRAPH = _in_panel(
    "Graph and columns",
    Parameter("data_root", Parameter.KEYWORD_ONLY, default=None, annotation=DataRoot),
    _option("directed", bool, "Keep edge directions."),
    _option("row_normalize", bool, "Scale feature rows to sum one."),
    _option(
        *("features", str, "Features made from the edges: degree, onehot, random or laplacian."),
        values=one_of("degree", "onehot", "random", "laplacian"),
    ),
    _option("label", str, "Node column of the classes; else label or y."),
    _option("node_id", str, "Node column of the ids; else id or the first.", "--id"),
    _option("weight", str, "Edge column of the weights."),
    _option("time", str, "Edge column of time stamps, numbers or dates; for links."),
    _option("drop", list[str], "Node column to leave out; may be repeated."),
    Parameter("standardize", Parameter.KEYWORD_ONLY, default=None, annotation=Standardize),
    _option("decimal", str, "Sign before decimals where both fit: . or , (1,234 is 1.234)."),
    _option("month_first", bool, "Read dates such as 03/04/2024 with the month first."),
    _option("folds", int, "Divide labelled nodes into so many folds, each of which is tested."),
    _option("groups", str, "Node column of groups that no fold divides; with --folds."),
)
_LEARNING = _in_panel(
    "Training",
    _option(
        "settings",
        list[str],
        "key=value, such as train.lr=0.01; argnn tune leaves it fixed.",
        "--set",
        values=completion.settings,
    ),
    _option(
        "select",
        str,
        "Validation score that chooses the epoch: accuracy, f1_macro, auroc, average_precision or "
        "loss.",
        values=chosen_from("selections"),
    ),
    _option(
        "class_weight",
        str,
        "Weights in the training loss: balanced, class=weight,..., or a YAML file.",
        values=one_of("balanced"),
    ),
    _option(
        "threshold",
        str,
        "Probability from which a node is of the rarer of two classes: a number, or validation to "
        "choose it there.",
    ),
    _option("ignore_weights", bool, "Train without the weights of the edges."),
)
_LINKS = _in_panel(
    "Links",
    _option("ratio", str, "Training/validation/test share of links; 85/5/10 if not given."),
    _option(
        *("decoder", str, "dot, cosine, distance, metric or mlp; for links."),
        values=chosen_from("decoders"),
    ),
    _option("spanning_forest", bool, "Keep one in training; for links."),
    _option(
        *("split_by", str, "random if not given; time: the newest links are tested; for links."),
        values=one_of("random", "time"),
    ),
)
_BATCHES = _in_panel(
    "Batches",
    _option(
        *("batching", str, "What a step sees: the whole graph, or clusters of it."),
        values=one_of("whole", "clusters"),
    ),
    _option("parts", int, "Clusters of the graph; with --batching clusters."),
    _option("clusters_per_batch", int, "Clusters of a batch; with --batching clusters."),
    _option("halo", int, "Hops around its clusters that a batch sees; with --batching clusters."),
)
#: What a run is to do: see :func:`requested`.
TRAINING = (*_LEARNING, *_LINKS, *_BATCHES)
_OF_CLUSTERS = ("parts", "clusters_per_batch", "halo")


def with_options(
    *groups: Group,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command further options, which it finds in the parameters of its context."""

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = signature(function)

        @wraps(function)
        def command(**given: Any) -> None:
            function(**{name: given[name] for name in own.parameters})

        listed = [p.replace(kind=Parameter.KEYWORD_ONLY) for p in own.parameters.values()]
        for option in listed:
            for said in getattr(option.annotation, "__metadata__", ()):
                said.rich_help_panel = said.rich_help_panel or _PANEL_OF.get(option.name)
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
