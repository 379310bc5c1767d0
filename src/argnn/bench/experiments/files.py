"""Experiments as YAML files: which methods run on which graphs, splits and seeds.

The package has one file per table of the paper; a user's own file has the same keys.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from annotated_types import MinLen

from argnn.bench.experiments import experiment_files
from argnn.checked import Count, Text, checked
from argnn.data import DATASETS
from argnn.data.import_options import Columns
from argnn.data.links import NUM_LINK_SPLITS, parse_ratio
from argnn.errors import ConfigError, error_prefix
from argnn.nn import DECODERS, MODELS, model_name
from argnn.registry import canonical_name, suggestion
from argnn.runs.summary import ERRORS, LEAST_SEEDS, SCORES, SMALL_GRAPH
from argnn.settings.options import check_preset, parse_overrides
from argnn.wording import quoted
from argnn.yaml_files import parsed_yaml, yaml_content

T = TypeVar("T")
R = TypeVar("R")

ALL = "all"
_SUFFIXES = (".yaml", ".yml")


@dataclass(frozen=True)
class DataChoice:
    """A graph of an experiment."""

    name: Text
    directed: bool = False
    columns: Columns = Columns()


@dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
        label: What the row is called.
        model: Name of a model.
        preset: Name of a preset.
        overrides: Texts such as ``train.lr=0.01``; the key ``set`` of the file.
        settings_file: Absolute path of a file that `argnn tune` wrote; ``{data}`` in it stands
            for the name of the graph.
        decoder: Decoder of links, where not the usual one.
    """

    label: str
    model: str
    preset: str = "default"
    overrides: tuple[str, ...] = ()
    settings_file: str | None = None
    decoder: str | None = None

    def settings_for(self, data: DataChoice) -> str | None:
        """The file with settings for one graph."""
        return self.settings_file and self.settings_file.replace("{data}", Path(data.name).stem)


@dataclass(frozen=True)
class Experiment:
    """What a file says.

    Attributes:
        name: Names the results file, too.
        title: The experiment in words.
        task: ``"node"``, ``"regression"``, ``"multilabel"`` or ``"link"``.
        data: The graphs.
        methods: The rows of the table.
        splits: The splits, or None for all that a graph has.
        seeds: Seeds of weights and dropout, or None for the usual ones of each graph.
        score: The main score.
        oracle: Whether the best test score over epochs is recorded, too, in a column of its own.
        ratio: Shares of training, validation and test links.
        spanning_forest: Whether training links keep a spanning forest.
        tables: Labels of the paper's tables that the results stand beside.
        reference: Label of the method that the others are compared with.
        trial: Whether a trial may choose settings for a graph that has none stored. Without it,
            methods that differ in one setting agree in all others.
    """

    name: str
    title: str
    task: str
    data: tuple[DataChoice, ...]
    methods: tuple[Method, ...]
    splits: tuple[int, ...] | None
    seeds: tuple[int, ...] | None
    score: str
    oracle: bool = False
    ratio: str | None = None
    spanning_forest: bool = False
    tables: tuple[str, ...] = ()
    reference: str | None = None
    trial: bool = True

    def num_cells(self) -> int | None:
        """Number of cells, or None where it takes the files of the graphs to know."""
        total = 0
        for choice in self.data:
            spec = DATASETS.get(choice.name)
            usual = spec.splits if spec else None
            splits = NUM_LINK_SPLITS if self.task == "link" else usual
            splits = splits if self.splits is None else len(self.splits)
            if splits is None or (spec is None and self.seeds is None):
                return None
            total += splits * len(self.seeds_for(spec.nodes if spec else 0)) * len(self.methods)
        return total

    def seeds_for(self, nodes: int) -> tuple[int, ...]:
        """The seeds of a graph: those of the file, else one, or five where the graph is small."""
        usual = LEAST_SEEDS if nodes < SMALL_GRAPH else 1
        return tuple(range(usual)) if self.seeds is None else self.seeds


_NotEmpty = MinLen(1)


@dataclass(frozen=True)
class _MethodEntry:
    """A method in a file."""

    model: Text
    preset: Text = "default"
    label: Text | None = None
    set: tuple[Text, ...] = ()
    settings_file: Text | None = None
    decoder: Text | None = None

    def __post_init__(self) -> None:
        self.method(Path())
        _each("set", self.set, str)

    def method(self, folder: Path) -> Method:
        """With names in their own spelling; relative paths begin in a folder."""
        model = model_name(self.model)
        preset = check_preset(model, self.preset)
        parse_overrides(self.set, model)
        path = self.settings_file and folder / Path(self.settings_file).expanduser()
        return Method(
            label=self.label or (model if preset == "default" else f"{model} ({preset})"),
            model=model,
            preset=preset,
            overrides=self.set,
            settings_file=str(path.resolve()) if isinstance(path, Path) else None,
            decoder=self.decoder and canonical_name(self.decoder, DECODERS, "decoder"),
        )


@dataclass(frozen=True)
class _ExperimentFile:
    """The keys of a file; those without a default are required."""

    name: Text
    title: Text
    task: Literal["node", "link", "regression", "multilabel"]
    data: Annotated[tuple[Text | DataChoice, ...], _NotEmpty]
    models: Text | Annotated[tuple[Text, ...], _NotEmpty] | None = None
    methods: tuple[_MethodEntry, ...] = ()
    set: tuple[Text, ...] = ()
    splits: Text | Annotated[tuple[Count, ...], _NotEmpty] = ALL
    seeds: Annotated[tuple[Count, ...], _NotEmpty] | None = None
    score: Text | None = None
    oracle: bool = False
    ratio: Text | None = None
    spanning_forest: bool = False
    tables: tuple[Text, ...] = ()
    reference: Text | None = None
    trial: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
            raise ConfigError(
                "name must have letters, digits, '-', '_' and '.' only, as it names a file "
                f"(got {quoted(self.name)})"
            )
        for key in ("models", "splits"):
            value = getattr(self, key)
            if isinstance(value, str) and value != ALL:
                raise ConfigError(f"{key} must be a list or '{ALL}' (got {quoted(value)})")
        if self.models is None and not self.methods:
            raise ConfigError("names no 'models' and no 'methods'")
        for key in ("splits", "seeds", "set", "tables"):
            value = getattr(self, key) or ()
            _each(key, () if isinstance(value, str) else value, repr)
        if self.score is not None and self.score not in SCORES[self.task]:
            hint = suggestion(self.score, SCORES[self.task])
            raise ConfigError(f"unknown score '{self.score}'; {hint}")
        if self.score in ERRORS:
            raise ConfigError(f"score {self.score} is an error, by which no table ranks; take r2")
        for key in ("ratio", "spanning_forest"):
            if getattr(self, key):
                self.require_link(key)
        if self.task == "link":
            if self.ratio is None:
                raise ConfigError("has no 'ratio', which task link needs")
            parse_ratio(self.ratio)

    def require_link(self, key: str) -> None:
        """Raise unless the task has a use for a key."""
        if self.task != "link":
            raise ConfigError(f"{key} belongs to task link, not to {self.task}")


def packaged_experiments() -> dict[str, Experiment]:
    """The package's own experiments, by name."""
    found = [parsed_experiment(f.read_bytes(), f.name, Path()) for f in experiment_files()]
    return {experiment.name: experiment for experiment in sorted(found, key=lambda e: e.name)}


def find_experiment(text: str) -> Experiment:
    """The experiment that a text means: a name of the package, or the path of a file."""
    packaged = packaged_experiments()
    path = Path(text).expanduser()
    try:
        return packaged[canonical_name(text, packaged, "experiment")]
    except ConfigError:
        if os.sep not in text and path.suffix not in _SUFFIXES and not path.exists():
            raise
    return parsed_experiment(yaml_content(path), str(path), path.resolve().parent)


def parsed_experiment(text: str | bytes, origin: str, folder: Path) -> Experiment:
    """Read and check an experiment."""
    document = parsed_yaml(text, origin)
    with error_prefix(f"{origin}:"):
        file = checked(document, _ExperimentFile)
        data = tuple(_each("data", file.data, lambda entry: data_choice(entry, folder)))
        _each("data", data, lambda choice: (choice.name, choice.directed))
        found = {
            "data": data,
            "methods": _methods(file, data, folder),
            "splits": None if isinstance(file.splits, str) else file.splits,
            "score": file.score or SCORES[file.task][0],
        }
        same = {field.name: getattr(file, field.name) for field in fields(Experiment)}
        return Experiment(**{**same, **found})


def data_choice(entry: str | DataChoice, folder: Path) -> DataChoice:
    """A graph by its own name, or by the absolute path of a file that is there."""
    choice = DataChoice(entry) if isinstance(entry, str) else entry
    try:
        name = canonical_name(choice.name, DATASETS, "data set")
    except ConfigError as error:
        path = folder / Path(choice.name).expanduser()
        is_path = os.sep in choice.name or Path(choice.name).suffix or path.exists()
        if not is_path:
            raise
        if not path.exists():
            raise ConfigError(f"{path}: no such file") from error
        name = str(path.resolve())
    return replace(choice, name=name)


def _methods(file: _ExperimentFile, data: Sequence[DataChoice], folder: Path) -> tuple[Method, ...]:
    """Plain models first, then those with settings of their own."""
    models = tuple(MODELS) if file.models == ALL else file.models or ()
    plain = _each("models", models, model_name)
    for model in plain:
        parse_overrides(file.set, model)

    def read(entry: _MethodEntry) -> Method:
        method = replace(entry, set=(*file.set, *entry.set)).method(folder)
        if method.decoder is not None:
            file.require_link("decoder")
        for path in [method.settings_for(choice) for choice in data]:
            if path is not None and not Path(path).is_file():
                raise ConfigError(f"settings_file {path}: no such file")
        return method

    methods = (
        *(Method(model, model, overrides=file.set) for model in plain),
        *_each("methods", file.methods, read),
    )
    labels = [method.label for method in methods]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise ConfigError(f"two methods are called '{twice[0]}'; give one of them a 'label'")
    if file.reference is not None and file.reference not in labels:
        hint = suggestion(file.reference, labels)
        raise ConfigError(f"reference '{file.reference}' is no method; {hint}")
    return methods


def _each(key: str, entries: Sequence[T], read: Callable[[T], R]) -> list[R]:
    """What a function reads from each entry of a list; none may be there twice."""
    found: list[R] = []
    for number, entry in enumerate(entries, start=1):
        with error_prefix(f"{key}, entry {number}:"):
            item = read(entry)
            if item in found:
                raise ConfigError(f"{quoted(entry)} is there twice")
        found.append(item)
    return found
