"""The options for reading a graph of the user."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from argnn.data.structural_features import FEATURE_KINDS
from argnn.data.target_values import NODE_TASKS
from argnn.errors import ConfigError, DataError

MAX_CATEGORIES = 100
LEAST_FOLDS = 3


class NoFeaturesError(DataError):
    """The nodes have no features, and none were asked for."""


def no_features(origin: str) -> NoFeaturesError:
    """The error for a graph without features, which says how to get some."""
    kinds = ", ".join(FEATURE_KINDS)
    missing = f"{origin}: the nodes have no features"
    return NoFeaturesError(f"{missing}; choose some with features (--features {kinds})")


@dataclass(frozen=True)
class Columns:
    """What the columns of a graph mean: arguments of :func:`argnn.data.load`, explained there."""

    features: str | None = None
    label: str | None = None
    node_id: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    standardize: bool = False
    time: str | None = None
    folds: int | None = None
    groups: str | None = None

    def __post_init__(self) -> None:
        if self.folds is not None and not (type(self.folds) is int and self.folds >= LEAST_FOLDS):
            raise ConfigError(
                f"folds (--folds) must be at least {LEAST_FOLDS}: one tests, one validates, "
                f"the others train (got {self.folds})"
            )
        if self.groups is not None and self.folds is None:
            raise ConfigError("groups (--groups) belong to folds: say how many (--folds)")

    def given(self) -> dict[str, Any]:
        """The options that were given, as plain JSON values."""
        values = asdict(self) | {"drop": list(self.drop)}
        return {name: value for name, value in values.items() if value}

    @classmethod
    def from_given(cls, values: Mapping[str, Any]) -> "Columns":
        """Rebuild what :meth:`given` gave."""
        return cls(**{**values, "drop": tuple(values.get("drop", ()))})


def column_options(columns: Mapping[str, Any]) -> dict[str, Any]:
    """What was said about the columns of a graph, by the names of the options that say it."""
    return {"id" if name == "node_id" else name: value for name, value in columns.items()}


@dataclass(frozen=True)
class ImportOptions(Columns):
    """How a graph is read: arguments of :func:`argnn.data.load`, explained there."""

    directed: bool = False
    row_normalize: bool = False
    task: str = "node"
    max_categories: int = MAX_CATEGORIES
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.features is not None and self.features not in FEATURE_KINDS:
            kinds = ", ".join(FEATURE_KINDS)
            raise ConfigError(f"features must be one of {kinds} (got '{self.features}')")
        if self.task not in NODE_TASKS:
            raise ConfigError(f"task must be one of {', '.join(NODE_TASKS)} (got '{self.task}')")
        if self.max_categories < 1:
            raise ConfigError(f"max_categories must be at least 1 (got {self.max_categories})")
        if self.seed < 0:
            raise ConfigError(f"seed must not be negative (got {self.seed})")
