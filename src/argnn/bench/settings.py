"""Settings that were found for known graphs, stored as data with their source."""

from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from argnn.data import DATASETS
from argnn.errors import ConfigError
from argnn.registry import resolve, suggestion

_FILE = "settings/argnn.yaml"
_EDGES = ("undirected", "directed")


@dataclass(frozen=True)
class Settings:
    """Settings of argnn for one graph.

    Attributes:
        data: Name of the data set.
        edges: ``"undirected"`` or ``"directed"``.
        preset: The preset they change.
        source: Where they come from, in words.
        model: Options of the model.
        train: Training settings.
    """

    data: str
    edges: str
    preset: str
    source: str
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        resolve(self.data, DATASETS, "data set")
        if self.edges not in _EDGES:
            raise ConfigError(f"edges must be one of {', '.join(_EDGES)} (got {self.edges!r})")
        if not self.source:
            raise ConfigError(f"the settings of {self.data} have no source")


@cache
def stored_settings() -> tuple[Settings, ...]:
    """All entries of the package's own file."""
    text = files("argnn.bench").joinpath(_FILE).read_text(encoding="utf-8")
    return parsed_settings(text, _FILE)


def parsed_settings(text: str, origin: str) -> tuple[Settings, ...]:
    """Read a list of settings; an unknown key, or the same graph twice, is an error."""
    entries = yaml.safe_load(text)
    if not isinstance(entries, list):
        raise ConfigError(f"{origin}: must hold a list (got {type(entries).__name__})")
    found: dict[tuple[str, str, str], Settings] = {}
    for number, entry in enumerate(entries, start=1):
        settings = _parsed_entry(entry, f"{origin}, entry {number}")
        key = (settings.data, settings.edges, settings.preset)
        if key in found:
            raise ConfigError(f"{origin}: {', '.join(key)} is there twice")
        found[key] = settings
    return tuple(found.values())


def _parsed_entry(entry: Any, origin: str) -> Settings:
    if not isinstance(entry, dict):
        raise ConfigError(f"{origin}: must be a mapping (got {type(entry).__name__})")
    known = [item.name for item in fields(Settings)]
    for key in entry:
        if key not in known:
            raise ConfigError(f"{origin}: unknown key '{key}'; {suggestion(str(key), known)}")
    try:
        return Settings(**entry)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{origin}: {error}") from error


def find_settings(data: str, *, directed: bool, preset: str) -> Settings | None:
    """The entry of a data set, or nothing if nobody has tuned it."""
    wanted = (data, _EDGES[directed], preset)
    for settings in stored_settings():
        if (settings.data, settings.edges, settings.preset) == wanted:
            return settings
    return None
