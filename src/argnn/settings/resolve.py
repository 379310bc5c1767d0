"""From what a user asked for to a complete configuration: the only reader of settings files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from argnn.checked import Text, checked
from argnn.data import DATASETS
from argnn.data.import_options import Columns
from argnn.data.links import RATIOS, SPLITS_BY
from argnn.errors import ConfigError, error_prefix
from argnn.nn import DECODERS, model_class, model_name
from argnn.registry import canonical_name
from argnn.settings.options import (
    Overrides,
    check_preset,
    parse_overrides,
    resolve_options,
    resolve_train,
)
from argnn.settings.run_config import LinkConfig, RunConfig
from argnn.settings.tuned import read_tuned
from argnn.train.selection import selection_of
from argnn.yaml_files import parsed_yaml

#: What a graph without a name or a file is called.
IN_MEMORY = "a graph in memory"
#: As a task: classify, or predict numbers or labels, whichever the graph has.
AUTO = "auto"
_FOLDER = "files"
#: In place of a data set: the usual settings of all that have none of their own.
ANY = "any"
_EDGES = ("undirected", "directed")
#: Said of settings that are used with directed edges although they were found without.
FOR_UNDIRECTED = "; for undirected edges, as none are stored for directed ones"


@dataclass(frozen=True)
class Request:
    """What a user asks for: the data, the model, and all that is to be changed.

    Attributes:
        data: Name of a data set, or the path of a file; or :data:`IN_MEMORY`.
        model: Name of a model.
        preset: Name of a preset.
        split: A number, several with commas, or ``"all"``.
        seed: Seed of weights and dropout.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        overrides: Texts such as ``train.lr=0.01``; later ones win.
        data_root: Folder of the raw benchmark files.
        directed: Keep the directions of the edges.
        row_normalize: Scale each row of the features to sum one.
        workers: How many splits run at the same time; as many as there are cores if not given.
        task: ``"node"``, ``"regression"``, ``"multilabel"`` or ``"link"``, or :data:`AUTO`.
        ratio: Shares of training, validation and test pairs; only for links.
        decoder: Name of a decoder; only for links, and the model's own if not given.
        spanning_forest: Keep a spanning forest in training; only for links.
        split_by: ``"random"`` or ``"time"``; only for links, and random if not given.
        settings_file: A file that ``argnn tune`` wrote, instead of stored settings.
        fresh: Ignore stored settings and run no trial, so that in a search with equal budgets
            every method starts from its preset.
        recipes: Number of recipes of a trial that every method has, whatever settings are stored.
        no_trial: Take the preset where a trial would choose settings.
        columns: How the columns of the user's own graph are to be understood.
        ignore_weights: Train without the weights that the user names in ``columns``.
    """

    data: str
    model: str = "argnn"
    preset: str = "default"
    split: str = "0"
    seed: int = 0
    device: str = "auto"
    overrides: tuple[str, ...] = ()
    data_root: str | None = None
    directed: bool = False
    row_normalize: bool = False
    workers: int | None = None
    task: str = "node"
    ratio: str | None = None
    decoder: str | None = None
    spanning_forest: bool = False
    split_by: str | None = None
    settings_file: str | None = None
    fresh: bool = False
    recipes: int | None = None
    no_trial: bool = False
    columns: Columns = Columns()
    ignore_weights: bool = False


def data_name(data: str) -> str:
    """A registered name in its own spelling, or an absolute path."""
    if data == IN_MEMORY:
        return data
    try:
        return canonical_name(data, DATASETS, "data set")
    except ConfigError:
        return str(Path(data).expanduser().resolve())


@dataclass(frozen=True)
class BaseSettings:
    """Settings that the user's own changes are put on, and where they come from.

    Attributes:
        options: Options of the model.
        train: Training settings.
        source: Where they come from, in words.
        decoder: For links, what scores the pairs; None leaves it to the model.
        trial: The short runs that chose them, where there were any.
    """

    options: Mapping[str, Any]
    train: Mapping[str, Any]
    source: str
    decoder: str | None = None
    trial: dict[str, Any] | None = None


#: What a trial starts from, and what is used without one.
PRESET = BaseSettings({}, {}, "preset default")


def usual_request(data: str, settings_file: str | None) -> Request:
    """What is asked for where the user names nothing else: what a file of ``argnn tune`` says."""
    if settings_file is None:
        return Request(data, task=AUTO)
    tuned = read_tuned(Path(settings_file))
    return Request(data, model=tuned.model, preset=tuned.preset, task=tuned.task)


def names_of(request: Request) -> tuple[str, str]:
    """The model's and the preset's own names."""
    model = model_name(request.model)
    return model, check_preset(model, request.preset)


def requested_changes(request: Request) -> Overrides:
    """Single settings of the user; an error if they are wrong whatever the graph is."""
    model, preset = names_of(request)
    changes = parse_overrides(request.overrides, model)
    resolve_options(model, preset, changes.options)
    resolve_train(model, preset, request.seed, changes.train)
    return changes


def is_directed(request: Request) -> bool:
    """Whether directions were asked for, and the graph can have any."""
    name = data_name(request.data)
    return request.directed and (name not in DATASETS or DATASETS[name].directed)


def base_settings(request: Request) -> BaseSettings | None:
    """The settings to start from; None where a trial on the graph has to choose them."""
    if request.recipes is not None:
        return None
    model, preset = names_of(request)
    if request.settings_file is not None:
        return _tuned(request, model, preset)
    kind = model_class(model)
    link_options = kind.link_options if request.task == "link" else {}
    stored = None
    if not request.fresh:
        stored = find_settings(
            data_name(request.data),
            directed=is_directed(request),
            preset=preset,
            task="link" if request.task == "link" else "node",
            method=model,
        )
    if stored is not None:
        options = {**link_options, **stored.model}
        return BaseSettings(options, stored.train, stored.source, stored.decoder)
    if not kind.has_trial:
        return BaseSettings(link_options, {}, "usual settings of a baseline")
    untried = request.fresh or request.no_trial
    if preset != "default" or untried or request.task == "link":
        return BaseSettings(link_options, {}, f"preset {preset}")
    return None


def trial_start(request: Request) -> BaseSettings:
    """What the recipes of a trial change."""
    options = model_class(names_of(request)[0]).link_options if request.task == "link" else {}
    return replace(PRESET, options=options)


def _tuned(request: Request, model: str, preset: str) -> BaseSettings:
    """The settings of a file of ``argnn tune``, which must be about this model and task."""
    path = Path(str(request.settings_file))
    tuned = read_tuned(path)
    tuned.require(path, {"model": model, "preset": preset, "task": request.task})
    decoder = None if tuned.link is None else tuned.link.decoder
    return BaseSettings(tuned.options, tuned.train, tuned.source, decoder)


def resolve(
    request: Request,
    changes: Overrides,
    bases: Sequence[BaseSettings],
    *,
    splits: Sequence[int],
    graph: Mapping[str, Any],
    device: str,
    threads: int,
    columns: Mapping[str, Any] | None = None,
) -> RunConfig:
    """A configuration with nothing left to a default.

    The changes of the user are put on ``bases``, one for all splits or one for each. ``graph``
    holds facts, such as the numbers of ``features`` and ``classes``; ``columns`` holds what the
    user said about the columns of their graph.
    """
    model, preset = names_of(request)
    names = [*changes.options, *changes.train]
    note = f"; set by the user: {', '.join(names)}" if names else ""
    choices: list[dict[str, Any]] = [
        {
            "options": resolve_options(model, preset, base.options, changes.options),
            "train": resolve_train(model, preset, request.seed, base.train, changes.train),
            "source": base.source + note,
            "trial": base.trial,
        }
        for base in bases
    ]
    own = {
        str(split): {**choice, "train": choice["train"].to_json()}
        for split, choice in zip(splits, choices, strict=len(choices) > 1)
    }
    config = RunConfig(
        data=data_name(request.data),
        task=request.task,
        model=model,
        preset=preset,
        directed=request.directed,
        row_normalize=request.row_normalize,
        seed=request.seed,
        device=device,
        threads=threads,
        splits=tuple(splits),
        **choices[0],
        link=_link_config(request, model, bases[0].decoder),
        graph=dict(graph),
        columns=dict(columns or {}),
        per_split=own if len(choices) > 1 else {},
    )
    _check_judging(config)
    if config.link is not None:
        config.spec.try_out()
    learns = model_class(model).learns_metric
    if learns and config.train.penalty_weights != "fixed" and not graph["classes"]:
        raise ConfigError("penalty weights from theory need labels, and the graph has none")
    return config


def _check_judging(config: RunConfig) -> None:
    """Raise where score, weights or threshold do not fit the task."""
    train, task, classes = config.train, config.task, config.graph["classes"]
    selection_of(task, train.select)
    if train.class_weight is not None and task != "node":
        raise ConfigError(f"class_weight belongs to classes of nodes, not to task {task}")
    if train.threshold is not None and (task != "node" or classes != 2):
        found = f"{classes} classes" if task == "node" else f"task {task}"
        raise ConfigError(f"threshold needs a graph with two classes (got {found})")


def _link_config(request: Request, model: str, usual: str | None) -> LinkConfig | None:
    """How links are divided and scored, or nothing where classes are asked for.

    The decoder is the user's, that of the settings, or the model's own.
    """
    if request.task != "link":
        return None
    decoder = request.decoder or usual or model_class(model).link_decoder
    return LinkConfig(
        ratio=request.ratio or RATIOS[0],
        spanning_forest=request.spanning_forest,
        decoder=canonical_name(decoder, DECODERS, "decoder"),
        split_by=request.split_by or SPLITS_BY[0],
    )


# Stored settings: those of the package, for known graphs.


@dataclass(frozen=True)
class StoredSettings:
    """Settings of a method for one graph.

    Attributes:
        data: Name of the data set, or :data:`ANY`.
        edges: ``"undirected"`` or ``"directed"``.
        preset: The preset they change.
        source: Where they come from, in words.
        model: Options of the model.
        train: Training settings.
        method: Name of the model.
        task: ``"node"`` or ``"link"``.
        decoder: Name of the decoder; for links only.
    """

    data: str
    edges: str
    preset: str
    source: Text
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    method: str = "argnn"
    task: str = "node"
    decoder: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What identifies an entry."""
        return (self.method, self.task, self.data, self.edges, self.preset)

    def __post_init__(self) -> None:
        model_class(self.method)
        if self.data != ANY:
            canonical_name(self.data, DATASETS, "data set")
        if self.task not in ("node", "link"):
            raise ConfigError(f"task must be node or link (got {self.task!r})")
        if self.decoder is not None:
            canonical_name(self.decoder, DECODERS, "decoder")
        if self.edges not in _EDGES:
            raise ConfigError(f"edges must be one of {', '.join(_EDGES)} (got {self.edges!r})")


@cache
def stored_settings() -> tuple[StoredSettings, ...]:
    """All entries of the package's own files."""
    folder = files("argnn.settings").joinpath(_FOLDER)
    found = [
        entry
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        for entry in parsed_settings(file.read_text(encoding="utf-8"), f"{_FOLDER}/{file.name}")
    ]
    _require_distinct(found)
    return tuple(found)


def parsed_settings(text: str, origin: str) -> tuple[StoredSettings, ...]:
    """Read a list of settings; an unknown key, or the same graph twice, is an error."""
    with error_prefix(f"{origin}:"):
        found = checked(parsed_yaml(text, origin), tuple[StoredSettings, ...])
        _require_distinct(found)
    return found


def _require_distinct(entries: Sequence[StoredSettings]) -> None:
    seen: set[tuple[str, ...]] = set()
    for settings in entries:
        if settings.key in seen:
            raise ConfigError(f"{', '.join(settings.key)} is there twice")
        seen.add(settings.key)


def edge_kinds(model: str, directed: bool) -> tuple[str, ...]:
    """The edges whose stored settings a method may use, the best first.

    With directed edges, a model without entries for them takes those for undirected edges. A model
    with a trial does not, because its options depend on the directions.
    """
    if not directed:
        return ("undirected",)
    return ("directed",) if model_class(model).has_trial else ("directed", "undirected")


def find_settings(
    data: str, *, directed: bool, preset: str, task: str = "node", method: str = "argnn"
) -> StoredSettings | None:
    """The entry of a data set, else the usual one of its task, else None.

    Each of the two is looked up for the edges of :func:`edge_kinds`, in that order. Where an entry
    for undirected edges is taken for directed ones, its source says so.
    """
    entries = {settings.key: settings for settings in stored_settings()}
    kinds = edge_kinds(method, directed)
    keys = [(method, task, name, kind, preset) for name in (data, ANY) for kind in kinds]
    found = next((entries[key] for key in keys if key in entries), None)
    if found is None or found.edges == kinds[0]:
        return found
    return replace(found, source=found.source + FOR_UNDIRECTED)
