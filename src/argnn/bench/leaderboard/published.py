"""Published results of other papers, stored with source and protocol."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

from argnn.checked import checked
from argnn.data import DATASETS
from argnn.errors import ConfigError, error_prefix
from argnn.registry import canonical_name

#: The method's own paper comes first: its figures are the ones to explain.
_FILES = ("argnn-paper.yaml", "ablations.yaml", "literature.yaml")
_VALUE = re.compile(r"(\d+(?:\.\d+)?)(?: ± (\d+(?:\.\d+)?))?")
#: Figures for the data set on the right are shown beside ours on the one on the left as well.
_STANDS_FOR = {"cornell-old": "cornell"}


@dataclass(frozen=True, kw_only=True)
class PublishedValue:
    """One figure as printed: scores in per cent, efficiency in the unit its name ends with.

    The method is the name of a model, or the label of a level of an ablation. The interval is half
    the width of the 95 % interval, the remark what is special about this data set, and the note
    what is special about the whole table.
    """

    task: str
    score: str
    method: str
    data: str
    value: float
    interval: float | None = None
    sd: float | None = None
    source: str
    protocol: str
    remark: str | None = None
    note: str | None = None


@dataclass(frozen=True)
class _PublishedTable:
    """One table of a file: a row per method, a column per data set."""

    task: Literal["node", "link"]
    score: str
    source: str
    protocol: str
    data: list[str]
    methods: dict[str, list[Any]]
    spread: Literal["interval", "sd"] = "interval"
    protocols: dict[str, str] = field(default_factory=dict)
    remarks: dict[str, str] = field(default_factory=dict)
    note: str | None = None

    def __post_init__(self) -> None:
        for data in (*self.data, *self.remarks):
            canonical_name(data, DATASETS, "data set")
        for method in self.protocols:
            if method not in self.methods:
                raise ConfigError(f"a protocol of '{method}', which has no row")
        for method, row in self.methods.items():
            if len(row) != len(self.data):
                raise ConfigError(f"{method}: expected {len(self.data)} values (got {len(row)})")


@cache
def published_values() -> tuple[PublishedValue, ...]:
    """Everything that is stored, the method's own paper first."""
    folder = files("argnn.bench.leaderboard").joinpath("published")
    found: list[PublishedValue] = []
    for name in _FILES:
        found += parsed_tables(folder.joinpath(name).read_text(encoding="utf-8"), name)
    return tuple(found)


def parsed_tables(text: str, origin: str) -> list[PublishedValue]:
    """Read a list of tables; unknown keys, unknown data sets and odd values are errors."""
    with error_prefix(f"{origin}:"):
        # Files of the package, which use aliases: not for the reader of users' files.
        tables = checked(yaml.safe_load(text), list[_PublishedTable])
        return [value for table in tables for value in _values(table)]


def _values(table: _PublishedTable) -> Iterator[PublishedValue]:
    about: dict[str, Any] = {n: getattr(table, n) for n in ("task", "score", "source", "note")}
    for method, row in table.methods.items():
        about |= {"method": method, "protocol": table.protocols.get(method, table.protocol)}
        for data, printed in zip(table.data, row, strict=True):
            if printed != "-":
                value, spread = _numbers(f"{method}, {data}", printed)
                own: dict[str, Any] = {"remark": table.remarks.get(data), table.spread: spread}
                yield PublishedValue(data=data, value=value, **about, **own)


def _numbers(where: str, printed: Any) -> tuple[float, float | None]:
    """Value and spread from a text such as ``75.21 ± 0.28``, or from a number."""
    match = _VALUE.fullmatch(str(printed))
    if match is None:
        raise ConfigError(f"{where}: must read like 75.21 ± 0.28, 75.21 or - (got {printed!r})")
    value, spread = match.groups()
    return float(value), None if spread is None else float(spread)


def find_published(task: str, score: str, model: str, data: str) -> list[PublishedValue]:
    """All figures of a model on a data set; dashes and case of the model's name do not matter.

    Example:
        >>> [found.value for found in find_published("node", "f1", "argnn", "cora")]
        [86.83]
    """
    wanted = (task, score, _folded(model), _STANDS_FOR.get(data, data))
    return _index().get(wanted, [])


@cache
def _index() -> Mapping[tuple[str, str, str, str], list[PublishedValue]]:
    index: dict[tuple[str, str, str, str], list[PublishedValue]] = {}
    for value in published_values():
        key = (value.task, value.score, _folded(value.method), value.data)
        index.setdefault(key, []).append(value)
    return index


def _folded(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
