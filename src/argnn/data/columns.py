"""Columns of a node table as features, by rules that also hold for the next table.

Numbers are kept as they are. A missing number becomes the mean of its column, and a column of
zeros and ones says where that happened. Words become one feature per value.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.data.node_ids import shown
from argnn.data.tables import Table, is_missing
from argnn.errors import DataError

Numbers = NDArray[np.float64]
ColumnRule = dict[str, Any]
#: Features of one column, and how many there are: numbers as ``[N, k]``; words as ``[N]``, the
#: number of the feature that is 1 in each row, or -1 if all are 0.
Part = tuple[NDArray[Any], int]

#: Texts that stand for a missing number. In a column of words they are words.
_NO_NUMBER = {"", "na", "n/a", "nan", "null", "none"}
_TRUTH = {"true": 1.0, "false": 0.0}
#: Largest absolute value of a feature, which has 32 bits.
LARGEST = float(np.finfo(np.float32).max)
_MOST_FEATURES = 50_000


@dataclass
class EncodedColumns:
    """Features, their names, and notes for the user."""

    parts: list[Part] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, values: Numbers, names: Iterable[str]) -> None:
        """Append columns ``[N, k]``, or one ``[N]``."""
        columns = values.reshape(len(values), -1).astype(np.float32)
        self.parts.append((columns, columns.shape[1]))
        self.names.extend(names)


def side_by_side(parts: Sequence[Part]) -> NDArray[np.float32]:
    """All parts as one matrix ``[N, F]``.

    Example:
        >>> side_by_side([(np.array([1, -1]), 2), (np.array([[0.5], [4.0]]), 1)]).tolist()
        [[0.0, 1.0, 0.5], [0.0, 0.0, 4.0]]
    """
    x = np.zeros((len(parts[0][0]), sum(width for _, width in parts)), dtype=np.float32)
    start = 0
    for values, width in parts:
        if values.ndim == 2:
            x[:, start : start + width] = values
        else:
            rows = np.flatnonzero(values >= 0)
            x[rows, start + values[rows]] = 1
        start += width
    return x


def learned_rules(
    table: Table,
    names: Sequence[str],
    notes: list[str],
    *,
    standardize: bool,
    max_categories: int,
) -> list[ColumnRule]:
    """How each column becomes features; those that do not are noted."""
    rules = []
    check_feature_count(table, len(names))
    for name in names:
        rule = _learned_rule(table, name, standardize, max_categories)
        if rule is None:
            notes.append(f"column {name}: empty, left out")
        else:
            rules.append(rule)
    return rules


def encoded_columns(table: Table, rules: Iterable[ColumnRule]) -> EncodedColumns:
    """The features of a table by given rules."""
    encoded = EncodedColumns()
    for rule in rules:
        name = rule["name"]
        if name not in table.columns:
            raise DataError(f"{table.origin}: no column '{name}', which the model was trained with")
        _ENCODERS[rule["kind"]](table, rule, encoded)
        check_feature_count(table, len(encoded.names))
    return encoded


def check_feature_count(table: Table, count: int) -> None:
    """Raise if the columns of a table become too many features."""
    if count > _MOST_FEATURES:
        raise DataError(f"{table.origin}: the columns become more than {_MOST_FEATURES} features")


def _learned_rule(
    table: Table, name: str, standardize: bool, max_categories: int
) -> ColumnRule | None:
    first = next(table.present(name), (0, None))[1]
    if first is None:
        return None
    if isinstance(first, list | tuple | np.ndarray):
        return {"name": name, "kind": "vector", "size": len(first)}
    for kind in _READERS:
        values = _numbers(table, name, kind)
        if values is not None:
            return _number_rule(name, kind, values, standardize and kind == "number")
    return _category_rule(table, name, max_categories)


def _number_rule(name: str, kind: str, values: Numbers, standardize: bool) -> ColumnRule | None:
    known = values[~np.isnan(values)]
    if not len(known):  # words such as "none" only
        return None
    mean, deviation = float(known.mean()), float(known.std())
    return {
        "name": name,
        "kind": kind,
        "mean": mean,
        "indicator": len(known) < len(values),
        "center": mean if standardize else 0.0,
        "scale": deviation if standardize and deviation > 0 else 1.0,
    }


def _category_rule(table: Table, name: str, max_categories: int) -> ColumnRule:
    words = set()
    for row, cell in table.present(name):
        if not isinstance(cell, str | bool | int | float):
            kind = type(cell).__name__
            problem = f"a value of type {kind} cannot become a feature; drop the column"
            raise table.error(row, name, problem)
        words.add(str(cell))
    categories = sorted(words)
    if len(categories) > max_categories:
        raise DataError(
            f"{table.origin}, column {name}: {len(categories)} different words, more than the "
            f"{max_categories} that become features; drop the column (got {shown(categories[0])}, "
            f"{shown(categories[1])}, ...)"
        )
    return {"name": name, "kind": "category", "categories": categories}


def _numbers(table: Table, name: str, kind: str) -> Numbers | None:
    """The cells as numbers, missing ones as NaN; None if any cell is not of this kind."""
    cells, (read, types, _) = table.columns[name], _READERS[kind]
    if cells.dtype.kind in types:
        values = cells.astype(np.float64)
    elif cells.dtype.kind != "O":
        return None
    else:
        try:
            values = np.fromiter(map(read, cells.tolist()), np.float64, len(cells))
        except _NOT_OF_THE_KIND:
            return None
    too_large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(too_large):
        row = int(too_large[0])
        raise table.error(row, name, f"{shown(cells[row])} is too large for a feature")
    return values


def _truth(cell: object) -> float:
    if isinstance(cell, str) and cell.lower() in _TRUTH:
        return _TRUTH[cell.lower()]
    if isinstance(cell, bool):
        return float(cell)
    if not is_missing(cell):
        raise ValueError(cell)
    return math.nan


def _number(cell: object) -> float:
    if is_missing(cell) or (isinstance(cell, str) and cell.lower() in _NO_NUMBER):
        return math.nan
    if isinstance(cell, bool) or (isinstance(cell, str) and "_" in cell):
        raise ValueError(cell)  # Python reads 1_0 as ten
    return float(cell)  # type: ignore[arg-type]


_NOT_OF_THE_KIND = (TypeError, ValueError, OverflowError)
#: How a cell of a column is read, which numpy types need no reading, and what a cell must be.
_READERS: Mapping[str, tuple[Callable[[object], float], str, str]] = {
    "boolean": (_truth, "b", "true or false"),
    "number": (_number, "iuf", "a number"),
}


def _encode_number(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    name, kind = rule["name"], rule["kind"]
    values = _numbers(table, name, kind)
    if values is None:
        row = _first_misfit(table, name, kind)
        cell = shown(table.columns[name][row])
        raise table.error(row, name, f"{cell} must be {_READERS[kind][2]}")
    missing = np.isnan(values)
    filled = np.where(missing, rule["mean"], values)
    if missing.any():
        where = ", marked in a feature of its own" if rule["indicator"] else ""
        what = f"{int(missing.sum())} missing values became the mean"
        encoded.notes.append(f"column {name}: {what}{where}")
    with np.errstate(over="ignore"):  # infinity is refused later, when the graph is assembled
        encoded.add((filled - rule["center"]) / rule["scale"], [name])
    if rule["indicator"]:
        encoded.add(missing.astype(np.float64), [f"{name} is missing"])


def _first_misfit(table: Table, name: str, kind: str) -> int:
    """Row of the first cell that is not of this kind."""
    for row, cell in enumerate(table.columns[name].tolist()):
        try:
            _READERS[kind][0](cell)
        except _NOT_OF_THE_KIND:
            return row
    return 0


def _encode_category(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    name, categories = rule["name"], rule["categories"]
    place = {category: index for index, category in enumerate(categories)}
    places = np.full(len(table), -1, dtype=np.int32)
    missing, unknown = len(table), set()
    for row, cell in table.present(name):
        missing -= 1
        places[row] = place.get(str(cell), -1)
        if places[row] < 0:
            unknown.add(str(cell))
    encoded.parts.append((places, len(categories)))
    encoded.names.extend(f"{name} = {category}" for category in categories)
    if missing:
        encoded.notes.append(f"column {name}: {missing} missing words became zeros")
    if unknown:
        what = f"{len(unknown)} unknown words became zeros ({shown(min(unknown))} for one)"
        encoded.notes.append(f"column {name}: {what}")


def _encode_vector(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    name, size = rule["name"], rule["size"]
    values = np.empty((len(table), size))
    for row, cell in enumerate(table.columns[name].tolist()):
        try:
            vector = np.asarray(cell, dtype=np.float64)
        except (TypeError, ValueError):
            vector = np.empty(0)
        if vector.shape != (size,):
            raise table.error(row, name, f"must be a list of {size} numbers")
        if not np.all(np.abs(vector) <= LARGEST):
            raise table.error(row, name, "holds a number that is not finite")
        values[row] = vector
    encoded.add(values, [f"{name}[{index}]" for index in range(size)])


_ENCODERS = {
    "number": _encode_number,
    "boolean": _encode_number,
    "category": _encode_category,
    "vector": _encode_vector,
}


def described(rule: Mapping[str, Any]) -> str:
    """What a column was turned into, in words.

    Example:
        >>> described({"kind": "category", "categories": ["blue", "red"]})
        'words, one feature for each of 2'
    """
    if rule["kind"] == "category":
        return f"words, one feature for each of {len(rule['categories'])}"
    if rule["kind"] == "vector":
        return f"lists of {rule['size']} numbers"
    kind = _READERS[rule["kind"]][2]
    scaled = ", standardized" if rule["scale"] != 1 or rule["center"] != 0 else ""
    return kind + scaled + (", with a mark where it is missing" if rule["indicator"] else "")


def feature_count(rule: Mapping[str, Any]) -> int:
    """How many features a rule makes.

    Example:
        >>> feature_count({"kind": "category", "categories": ["blue", "red"]})
        2
    """
    if rule["kind"] == "category":
        return len(rule["categories"])
    return int(rule["size"]) if rule["kind"] == "vector" else 1 + rule["indicator"]
