"""How an option of a command is declared, and the options that several commands share."""

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from inspect import Parameter
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from argnn.cli import completion
from argnn.cli.completion import chosen_from, one_of
from argnn.errors import ConfigError

if TYPE_CHECKING:
    from argnn.data.import_options import Columns
    from argnn.settings.resolve import Request

Group = Sequence[Parameter]
REQUIRED = Parameter.empty
#: The values of all options of a command, by their names.
Given = SimpleNamespace

#: Headings of the help, and the options under them; those of a group below have its heading.
_PANELS = {
    "Training": (
        *("model", "preset", "epochs", "settings_file", "no_trial", "recipes"),
        *("checkpoint_every", "trials", "ensemble", "settings"),
    ),
    "Machine": ("device", "workers", "executor", "address", "threads"),
    "Output": (
        *("out", "force", "as_json", "json_file", "dashboard", "resume", "storage", "tables"),
        *("table_format", "output_format", "formats", "dpi", "diagram", "kind_of_file"),
    ),
    "Graph and columns": ("data_root",),
}
_PANEL_OF = {name: panel for panel, names in _PANELS.items() for name in names}


def option(
    name: str,
    kind: Any,
    words: str,
    *flags: str,
    default: Any = None,
    values: completion.ValueSource | None = None,
    **more: Any,
) -> Parameter:
    """An option of a command.

    Args:
        name: Its name; ``--name`` is what the user writes unless there are ``flags``.
        kind: Its type. A switch, ``bool`` without a flag for "no", is off by default.
        words: Its help.
        flags: How it is written.
        default: What it is if not given.
        values: How a shell completes it.
        **more: Further arguments of ``typer.Option``.
    """
    flags = flags or (f"--{name.replace('_', '-')}",)
    if kind is bool and not any("/" in flag for flag in flags):
        default = False
    said = typer.Option(
        *flags, help=words, autocompletion=values, rich_help_panel=_PANEL_OF.get(name), **more
    )
    return _parameter(name, kind, default, said)


def argument(
    name: str,
    kind: Any,
    words: str,
    *,
    default: Any = None,
    values: completion.ValueSource | None = None,
    **more: Any,
) -> Parameter:
    """A word of a command without a flag; as :func:`option`."""
    said = typer.Argument(help=words, autocompletion=values, **more)
    return _parameter(name, kind, default, said)


def _parameter(name: str, kind: Any, default: Any, said: Any) -> Parameter:
    kind = kind | None if default is None else kind
    return Parameter(
        name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, said]
    )


def _in_panel(heading: str, *group: Parameter) -> tuple[Parameter, ...]:
    """A group of options under one heading of the help."""
    for one in group:
        one.annotation.__metadata__[0].rich_help_panel = heading
    return group


def _tell_more(asked: bool) -> None:
    if asked:
        logging.getLogger("argnn").setLevel(logging.DEBUG)


def _tell_less(asked: bool) -> None:
    if asked:
        logging.getLogger("argnn").setLevel(logging.ERROR)


AS_JSON = option("as_json", bool, "Print one JSON document, nothing else.", "--json")
FORCE = option("force", bool, "Replace existing files.")
DATA_ROOT = option("data_root", str, "Folder of the raw benchmark files, else $ARGNN_DATA.")
DEVICE = option(
    "device",
    str,
    "auto, cpu, cuda, one GPU such as cuda:1, or mps; auto takes CUDA where it is.",
    default="auto",
    values=one_of("auto", "cpu", "cuda", "cuda:0", "cuda:1", "mps"),
)
EXECUTOR = option("executor", str, "local or ray.", default="local", values=one_of("local", "ray"))
ADDRESS = option("address", str, "Ray cluster: auto or ray://...; else one is started here.")
DATA = argument(
    "data",
    str,
    "Name of a data set, or the path of a graph.",
    default=REQUIRED,
    values=completion.graphs,
)
MODEL = option(
    "model", str, "Model, argnn if not given; see argnn models.", values=completion.models
)
TASK = option(
    "task",
    str,
    "node, regression, multilabel or link; by the labels if not given.",
    values=chosen_from("tasks"),
)
PRESET = option("preset", str, "default, paper or reference.", values=chosen_from("presets"))
CELLS = option("workers", int, "Cells at the same time; one per core if not given.")

# Trained models
RUN = argument("run", Path, "Folder of a run of argnn train, or of a model.", default=REQUIRED)
TRAINED = argument("run", Path, "Folder of a run of argnn train.", default=REQUIRED)
SPLIT = option("split", int, "Split whose model is used; the first if not given.")

#: How much is said, before or after the name of a command.
SAYING = (
    option("quiet", bool, "Only results and errors.", "--quiet", "-q", callback=_tell_less),
    option(
        *("verbose", bool, "Also settings, device, files and times.", "--verbose", "-v"),
        callback=_tell_more,
    ),
)
#: How a graph is read, and what its columns mean: see :func:`graph_columns`.
GRAPH = _in_panel(
    "Graph and columns",
    DATA_ROOT,
    option("directed", bool, "Keep edge directions."),
    option("row_normalize", bool, "Scale feature rows to sum one."),
    option(
        *("features", str, "Features made from the edges: degree, onehot, random or laplacian."),
        values=one_of("degree", "onehot", "random", "laplacian"),
    ),
    option("label", str, "Node column of the classes; else label or y."),
    option("node_id", str, "Node column of the ids; else id or the first.", "--id"),
    option("weight", str, "Edge column of the weights."),
    option("time", str, "Edge column of time stamps, numbers or dates; for links."),
    option("drop", list[str], "Node column to leave out; may be repeated."),
    option(
        "standardize",
        bool,
        "Scale numbers to mean 0, deviation 1: as usual for tables, not for arrays.",
        "--standardize/--no-standardize",
    ),
    option("decimal", str, "Sign before decimals where both fit: . or , (1,234 is 1.234)."),
    option("month_first", bool, "Read dates such as 03/04/2024 with the month first."),
    option("folds", int, "Divide labelled nodes into so many folds, each of which is tested."),
    option("groups", str, "Node column of groups that no fold divides; with --folds."),
)
_LEARNING = _in_panel(
    "Training",
    option(
        "settings",
        list[str],
        "key=value, such as train.lr=0.01; argnn tune leaves it fixed.",
        "--set",
        values=completion.settings,
    ),
    option(
        "select",
        str,
        "Validation score that chooses the epoch: accuracy, f1_macro, auroc, average_precision or "
        "loss.",
        values=chosen_from("selections"),
    ),
    option(
        "class_weight",
        str,
        "Weights in the training loss: balanced, class=weight,..., or a YAML file.",
        values=one_of("balanced"),
    ),
    option(
        "threshold",
        str,
        "Probability from which a node is of the rarer of two classes: a number, or validation to "
        "choose it there.",
    ),
    option("ignore_weights", bool, "Train without the weights of the edges."),
)
_LINKS = _in_panel(
    "Links",
    option("ratio", str, "Training/validation/test share of links; 85/5/10 if not given."),
    option(
        *("decoder", str, "dot, cosine, distance, metric or mlp; for links."),
        values=chosen_from("decoders"),
    ),
    option("spanning_forest", bool, "Keep one in training; for links."),
    option(
        *("split_by", str, "random if not given; time: the newest links are tested; for links."),
        values=one_of("random", "time"),
    ),
)
_BATCHES = _in_panel(
    "Batches",
    option(
        *("batching", str, "What a step sees: the whole graph, or clusters of it."),
        values=one_of("whole", "clusters"),
    ),
    option("parts", int, "Clusters of the graph; with --batching clusters."),
    option(
        "clusters_per_batch",
        int,
        "Clusters of a batch, else a quarter of all; with --batching clusters.",
    ),
    option("halo", int, "Hops around its clusters that a batch sees; with --batching clusters."),
)
#: What a run is to do: see :func:`requested`.
TRAINING = (*_LEARNING, *_LINKS, *_BATCHES)
_OF_CLUSTERS = ("parts", "clusters_per_batch", "halo")


def graph_columns(given: Mapping[str, Any]) -> "Columns":
    """What the options of :data:`GRAPH` say about columns."""
    from argnn.data.import_options import Columns

    return Columns.among(given)


def requested(given: Mapping[str, Any], **changes: Any) -> "Request":
    """The request that the options of a command make.

    Args:
        given: The options by the names of their parameters; those of both groups are there.
        **changes: Entries of the request that replace them.
    """
    from argnn.settings.options import parsed_class_weight
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
