"""Settings that were found for known graphs, stored as data with their source."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

from argnn.data import DATASETS
from argnn.errors import ConfigError
from argnn.nn import DECODERS, model_class
from argnn.registry import resolve, suggestion
from argnn.yaml_files import parsed_yaml

_FOLDER = "files"
#: In place of a data set: the usual settings of all that have none of their own.
ANY = "any"
_EDGES = ("undirected", "directed")
#: Said of settings that are used with directed edges although they were found without.
FOR_UNDIRECTED = "; for undirected edges, as none are stored for directed ones"


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
    source: str
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)
    method: str = "argnn"
    task: str = "node"
    decoder: str | None = None

    @property
    def key(self) -> tuple[str, ...]:
        """What no other entry has in common."""
        return (self.method, self.task, self.data, self.edges, self.preset)

    def __post_init__(self) -> None:
        model_class(self.method)
        if self.data != ANY:
            resolve(self.data, DATASETS, "data set")
        if self.task not in ("node", "link"):
            raise ConfigError(f"task must be node or link (got {self.task!r})")
        if self.decoder is not None:
            resolve(self.decoder, DECODERS, "decoder")
        if self.edges not in _EDGES:
            raise ConfigError(f"edges must be one of {', '.join(_EDGES)} (got {self.edges!r})")
        if not self.source:
            raise ConfigError(f"the settings of {self.data} have no source")


@cache
def stored_settings() -> tuple[StoredSettings, ...]:
    """All entries of the package's own files."""
    folder = files("argnn.settings").joinpath(_FOLDER)
    found = [
        entry
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        for entry in parsed_settings(file.read_text(encoding="utf-8"), f"{_FOLDER}/{file.name}")
    ]
    _require_distinct(found, _FOLDER)
    return tuple(found)


def parsed_settings(text: str, origin: str) -> tuple[StoredSettings, ...]:
    """Read a list of settings; an unknown key, or the same graph twice, is an error."""
    entries = parsed_yaml(text, origin)
    if not isinstance(entries, list):
        raise ConfigError(f"{origin}: must hold a list (got {type(entries).__name__})")
    found = [
        _parsed_entry(entry, f"{origin}, entry {number}")
        for number, entry in enumerate(entries, start=1)
    ]
    _require_distinct(found, origin)
    return tuple(found)


def _require_distinct(entries: Sequence[StoredSettings], origin: str) -> None:
    seen: set[tuple[str, ...]] = set()
    for settings in entries:
        if settings.key in seen:
            raise ConfigError(f"{origin}: {', '.join(settings.key)} is there twice")
        seen.add(settings.key)


def _parsed_entry(entry: Any, origin: str) -> StoredSettings:
    if not isinstance(entry, dict):
        raise ConfigError(f"{origin}: must be a mapping (got {type(entry).__name__})")
    known = [item.name for item in fields(StoredSettings)]
    for key in entry:
        if key not in known:
            raise ConfigError(f"{origin}: unknown key '{key}'; {suggestion(str(key), known)}")
    try:
        return StoredSettings(**entry)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{origin}: {error}") from error


def edge_kinds(model: str, directed: bool) -> tuple[str, ...]:
    """The edges whose stored settings a method may use, the best first.

    With directed edges a rival takes settings found on undirected ones where it has no others.
    A model with a trial does not: its options decide what directions are good for.
    """
    if not directed:
        return ("undirected",)
    return ("directed",) if model_class(model).has_trial else ("directed", "undirected")


def find_settings(
    data: str, *, directed: bool, preset: str, task: str = "node", method: str = "argnn"
) -> StoredSettings | None:
    """The entry of a data set, else the usual one of its task, else nothing.

    Each of the two is looked up for the edges of :func:`edge_kinds`, in
    that order; the source says so where an entry for undirected edges serves directed ones.
    """
    entries = {settings.key: settings for settings in stored_settings()}
    kinds = edge_kinds(method, directed)
    keys = [(method, task, name, kind, preset) for name in (data, ANY) for kind in kinds]
    found = next((entries[key] for key in keys if key in entries), None)
    if found is None or found.edges == kinds[0]:
        return found
    return replace(found, source=found.source + FOR_UNDIRECTED)
