"""The options for reading a graph of the user."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Self

from argnn.data.columns import is_standardized
from argnn.data.hashed_words import WORD_FEATURES
from argnn.data.learned_columns import LEFT_OUT, ColumnOptions
from argnn.data.structural_features import FEATURE_KINDS
from argnn.data.tables import GIVE_FOLDER, listed
from argnn.data.written_numbers import DECIMAL_SIGNS
from argnn.errors import ConfigError, DataError

#: More words would be more features than hashed ones are.
MAX_CATEGORIES = WORD_FEATURES
LEAST_FOLDS = 3
#: What the weights of edges are called where they have no column.
WEIGHT_NAMES = ("weight", "edge_weight")
#: Tasks of nodes; ``auto`` looks at the targets.
NODE_TASKS = ("node", "regression", "multilabel", "auto")


class NoFeaturesError(DataError):
    """The nodes have no features, and none were asked for."""


def no_features(origin: str, notes: Sequence[str] = ()) -> NoFeaturesError:
    """The error for a graph without features; notes about what was left out say why."""
    kinds = ", ".join(FEATURE_KINDS)
    left_out = listed([note for note in notes if note.endswith((LEFT_OUT, GIVE_FOLDER))])
    missing = f"{origin}: the nodes have no features" + (f" ({left_out})" if left_out else "")
    return NoFeaturesError(f"{missing}; choose some with features (--features {kinds})")


@dataclass(frozen=True)
class Columns:
    """What the columns of a graph mean: arguments of :func:`argnn.data.load`, explained there."""

    features: str | None = None
    label: str | None = None
    node_id: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    standardize: bool | None = None
    time: str | None = None
    folds: int | None = None
    groups: str | None = None
    decimal: str | None = None
    month_first: bool = False

    def __post_init__(self) -> None:
        if self.folds is not None and not (type(self.folds) is int and self.folds >= LEAST_FOLDS):
            raise ConfigError(
                f"folds (--folds) must be at least {LEAST_FOLDS}: one tests, one validates, "
                f"the others train (got {self.folds})"
            )
        if self.groups is not None and self.folds is None:
            raise ConfigError("groups (--groups) belong to folds: say how many (--folds)")
        if self.decimal not in (None, *DECIMAL_SIGNS):
            signs = " or ".join(DECIMAL_SIGNS)
            raise ConfigError(f"decimal must be {signs} (got '{self.decimal}')")

    def given(self) -> dict[str, Any]:
        """The options that were given, as plain JSON values."""
        values = asdict(self) | {"drop": list(self.drop)}
        stated = {"standardize"} if self.standardize is not None else set()
        return {name: value for name, value in values.items() if value or name in stated}

    def recorded(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """What a run that read a graph by these options has to know to read it again.

        Whether numbers were standardized is recorded as it was done. A record that says nothing
        about it, as those do from before this was the default for tables, means that they were not.
        """
        values = {name: value for name, value in self.given().items() if name != "standardize"}
        return values | ({"standardize": True} if is_standardized(schema) else {})

    @classmethod
    def from_given(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what :meth:`given` gave."""
        drop = values.get("drop")
        return cls(**{**values, "drop": () if drop is None else tuple(drop)})

    @classmethod
    def among(cls, values: Mapping[str, Any]) -> Self:
        """The options among values by name, which may hold others, too."""
        names = [field.name for field in fields(cls) if field.name in values]
        return cls.from_given({name: values[name] for name in names})

    @classmethod
    def from_record(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild what :meth:`recorded` gave."""
        return cls.from_given({"standardize": False, **values})


def column_options(recorded: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a run knows about the columns of a graph, by the names of the options that say it."""
    words = {"id" if name == "node_id" else name: value for name, value in recorded.items()}
    is_table = schema["columns"] is not None
    return words | ({"no_standardize": True} if is_table and "standardize" not in words else {})


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

    @property
    def for_columns(self) -> ColumnOptions:
        """What decides how columns of a table become features.

        Numbers are standardized unless something else is asked for, such as rows of sum one.
        """
        scaled = not self.row_normalize if self.standardize is None else self.standardize
        return ColumnOptions(scaled, self.max_categories, self.decimal, self.month_first)
