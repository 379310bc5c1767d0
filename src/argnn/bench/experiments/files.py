"""Experiments as YAML files: which methods run on which graphs, splits and seeds.

The package has one file per table of the paper; a user's own file has the same keys.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from argnn.data import DATASETS
from argnn.data.links import NUM_LINK_SPLITS, parse_ratio
from argnn.errors import ConfigError
from argnn.nn import DECODERS, MODELS, model_name
from argnn.registry import canonical_name, suggestion
from argnn.runs.summary import LEAST_SEEDS, SCORES, SMALL_GRAPH
from argnn.settings.options import check_preset, parse_overrides
from argnn.yaml_files import parsed_yaml, yaml_content

T = TypeVar("T")

ALL = "all"
_SUFFIXES = (".yaml", ".yml")
_KEYS = (
    "name",
    "title",
    "task",
    "tables",
    "data",
    "models",
    "methods",
    "splits",
    "seeds",
    "score",
    "oracle",
    "ratio",
    "spanning_forest",
)
_DATA_KEYS = ("name", "directed")
_METHOD_KEYS = ("model", "preset", "label", "set", "settings_file", "decoder")
_REQUIRED = object()


@dataclass(frozen=True)
class DataChoice:
    """A graph of an experiment.

    Attributes:
        name: Name of a data set, or the absolute path of a file.
        directed: Whether directions of edges are kept.
    """

    name: str
    directed: bool = False


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
        task: ``"node"`` or ``"link"``.
        data: The graphs.
        methods: The rows of the table.
        splits: The splits, or None for all that a graph has.
        seeds: Seeds of weights and dropout, or None for the usual ones of each graph.
        score: The main score.
        oracle: Whether the best test score over epochs is recorded, too, in a column of its own.
        ratio: Shares of training, validation and test links.
        spanning_forest: Whether training links keep a spanning forest.
        tables: Labels of the paper's tables that the results stand beside.
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

    def num_cells(self) -> int | None:
        """Number of cells, or None where it takes the files of the graphs to know."""
        total = 0
        for choice in self.data:
            splits, nodes = self._num_splits(choice.name), _num_nodes(choice.name)
            if splits is None or (nodes is None and self.seeds is None):
                return None
            total += splits * len(self.seeds_for(nodes or 0)) * len(self.methods)
        return total

    def seeds_for(self, nodes: int) -> tuple[int, ...]:
        """The seeds of a graph: those of the file, else one, or five where the graph is small."""
        usual = LEAST_SEEDS if nodes < SMALL_GRAPH else 1
        return tuple(range(usual)) if self.seeds is None else self.seeds

    def _num_splits(self, data: str) -> int | None:
        if self.splits is not None:
            return len(self.splits)
        if self.task == "link":
            return NUM_LINK_SPLITS
        return DATASETS[data].splits if data in DATASETS else None


def _num_nodes(data: str) -> int | None:
    return DATASETS[data].nodes if data in DATASETS else None


def packaged_experiments() -> dict[str, Experiment]:
    """The package's own experiments, by name."""
    folder = files("argnn.bench").joinpath("experiments")
    texts = {
        file.name: file.read_text(encoding="utf-8")
        for file in folder.iterdir()
        if file.name.endswith(_SUFFIXES)
    }
    found = [parsed_experiment(text, name, Path()) for name, text in texts.items()]
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
    """Read and check an experiment.

    Args:
        text: The YAML text.
        origin: The file, for error messages.
        folder: Where relative paths in the file begin.
    """
    section = _Section(parsed_yaml(text, origin), f"{origin}:", _KEYS)
    task = section.choice("task", tuple(SCORES))
    data = section.each("data", lambda entry, where: _data_choice(entry, where, folder))
    return Experiment(
        name=_file_name(section),
        title=section.text("title"),
        task=task,
        data=data,
        methods=_methods(section, task, data, folder),
        splits=None if section.take("splits", ALL) == ALL else section.each("splits", _number),
        seeds=section.each("seeds", _number) if "seeds" in section.values else None,
        score=section.choice("score", SCORES[task], SCORES[task][0]),
        oracle=section.flag("oracle"),
        ratio=_ratio(section, task),
        spanning_forest=_spanning_forest(section, task),
        tables=section.each("tables", _word, []),
    )


class _Section:
    """A mapping in a file, and where it stands there."""

    def __init__(self, values: Any, where: str, known: Sequence[str]) -> None:
        if not isinstance(values, dict):
            raise ConfigError(f"{where} must be a mapping of keys to values (got {_shown(values)})")
        for key in values:
            if key not in known:
                hint = suggestion(str(key), known)
                raise ConfigError(f"{where} unknown key '{key}'; {hint}")
        self.values, self.where = values, where

    def take(self, key: str, default: Any = _REQUIRED) -> Any:
        """The value of a key, unchecked."""
        value = self.values.get(key, default)
        if value is _REQUIRED:
            raise ConfigError(f"{self.where} has no '{key}'")
        return value

    def text(self, key: str, default: Any = _REQUIRED) -> Any:
        """A text; the default may be None."""
        value = self.take(key, default)
        return value if value is default else _word(value, f"{self.where} {key}")

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.take(key, False)
        if not isinstance(value, bool):
            raise ConfigError(f"{self.where} {key} must be true or false (got {_shown(value)})")
        return value

    def choice(self, key: str, choices: Sequence[str], default: Any = _REQUIRED) -> str:
        """One of some words."""
        value: str = self.text(key, default)
        if value not in choices:
            raise ConfigError(f"{self.where} unknown {key} '{value}'; {suggestion(value, choices)}")
        return value

    def each(
        self, key: str, read: Callable[[Any, str], T], default: Any = _REQUIRED
    ) -> tuple[T, ...]:
        """A list, each entry read by a function, and none of them twice."""
        values = self.take(key, default)
        if not isinstance(values, list) or (not values and values is not default):
            raise ConfigError(f"{self.where} {key} must be a list (got {_shown(values)})")
        found: list[T] = []
        for number, value in enumerate(values, start=1):
            where = f"{self.where} {key}, entry {number}:"
            item = read(value, where)
            if item in found:
                raise ConfigError(f"{where} {_shown(value)} is there twice")
            found.append(item)
        return tuple(found)


def _shown(value: Any) -> str:
    """A value for an error message; long ones are cut."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _word(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{where} must be a text (got {_shown(value)})")
    return value.strip()


def _number(value: Any, where: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ConfigError(f"{where} must be a whole number from 0 (got {_shown(value)})")
    return value


def _file_name(section: _Section) -> str:
    name: str = section.text("name")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise ConfigError(
            f"{section.where} name must have letters, digits, '-', '_' and '.' only, as it names "
            f"a file (got {_shown(name)})"
        )
    return name


def _data_choice(entry: Any, where: str, folder: Path) -> DataChoice:
    values = {"name": entry} if isinstance(entry, str) else entry
    section = _Section(values, where, _DATA_KEYS)
    name = section.text("name")
    try:
        name = canonical_name(name, DATASETS, "data set")
    except ConfigError as error:
        if os.sep not in name and not Path(name).suffix:
            raise ConfigError(f"{where} {error}") from error
        path = folder / Path(name).expanduser()
        if not path.exists():
            raise ConfigError(f"{where} {path}: no such file") from error
        name = str(path.resolve())
    return DataChoice(name, section.flag("directed"))


def _methods(
    section: _Section, task: str, data: Sequence[DataChoice], folder: Path
) -> tuple[Method, ...]:
    """Plain models first, then those with settings of their own."""
    if section.take("models", None) == ALL:
        plain = tuple(Method(model, model) for model in MODELS)
    else:
        plain = section.each("models", _plain_method, [])

    def read(entry: Any, where: str) -> Method:
        method = _method(entry, where, task, folder)
        for path in [method.settings_for(choice) for choice in data]:
            if path is not None and not Path(path).is_file():
                raise ConfigError(f"{where} settings_file {path}: no such file")
        return method

    methods = plain + section.each("methods", read, [])
    if not methods:
        raise ConfigError(f"{section.where} names no 'models' and no 'methods'")
    labels = [method.label for method in methods]
    twice = [label for label in labels if labels.count(label) > 1]
    if twice:
        raise ConfigError(
            f"{section.where} two methods are called '{twice[0]}'; give one of them a 'label'"
        )
    return methods


def _plain_method(entry: Any, where: str) -> Method:
    model = _model(_word(entry, where), where)
    return Method(model, model)


def _model(name: str, where: str) -> str:
    try:
        return model_name(name)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from error


def _method(entry: Any, where: str, task: str, folder: Path) -> Method:
    section = _Section(entry, where, _METHOD_KEYS)
    model = _model(section.text("model"), where)
    overrides = section.each("set", _word, [])
    try:
        preset = check_preset(model, section.text("preset", "default"))
        parse_overrides(overrides, model)
    except ConfigError as error:
        raise ConfigError(f"{where} {error}") from error
    settings = section.text("settings_file", None)
    return Method(
        label=section.text("label", model if preset == "default" else f"{model} ({preset})"),
        model=model,
        preset=preset,
        overrides=overrides,
        settings_file=settings and str((folder / Path(settings).expanduser()).resolve()),
        decoder=_decoder(section, task),
    )


def _decoder(section: _Section, task: str) -> str | None:
    name = section.text("decoder", None)
    if name is None:
        return None
    _require_link(section, "decoder", task)
    try:
        return canonical_name(name, DECODERS, "decoder")
    except ConfigError as error:
        raise ConfigError(f"{section.where} {error}") from error


def _require_link(section: _Section, key: str, task: str) -> None:
    if task != "link":
        raise ConfigError(f"{section.where} {key} belongs to task link, not to {task}")


def _spanning_forest(section: _Section, task: str) -> bool:
    asked = section.flag("spanning_forest")
    if asked:
        _require_link(section, "spanning_forest", task)
    return asked


def _ratio(section: _Section, task: str) -> str | None:
    ratio: str | None = section.text("ratio", None)
    if task == "link" and ratio is None:
        raise ConfigError(f"{section.where} has no 'ratio', which task link needs")
    if ratio is None:
        return None
    _require_link(section, "ratio", task)
    try:
        parse_ratio(ratio)
    except ConfigError as error:
        raise ConfigError(f"{section.where} {error}") from error
    return ratio
