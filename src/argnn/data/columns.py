"""Columns of a node table as features, by rules that also hold for the next table.

``argnn.data.learned_columns`` finds the rules. A missing number becomes the mean of its column, and
a column of zeros and ones says where that happened.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.data.dates import date_names, date_numbers, day_of, read_date
from argnn.data.hashed_words import encode_texts, hash_of_word
from argnn.data.node_ids import shown
from argnn.data.tables import Table, is_missing, listed, places_of_words
from argnn.data.written_numbers import Writing
from argnn.errors import DataError, Problems

Numbers = NDArray[np.float64]
ColumnRule = dict[str, Any]
#: Features of one column, and how many there are: numbers as ``[N, k]``; words as ``[N]``, the
#: number of the feature that is 1 in each row, or -1 if all are 0.
Part = tuple[NDArray[Any], int]
NewArray = Callable[..., NDArray[Any]]

#: Texts that stand for a missing value, in small letters. Beside numbers "none" is one, too.
#: The errors of spreadsheets are missing values, too.
_NO_WORD = {"", "na", "n/a", "n.a.", "<na>", "nan", "null", "?", "-", "--"} | {
    *("#n/a", "#div/0!", "#value!", "#ref!", "#name?", "#num!", "#null!"),
}
_NO_NUMBER = {*_NO_WORD, "none"}
_TRUTH = {"true": 1.0, "false": 0.0}
#: Largest absolute value of a feature, which has 32 bits.
LARGEST = float(np.finfo(np.float32).max)
_MOST_FEATURES = 50_000


@dataclass
class EncodedColumns:
    """Features, their names, and notes for the user; ``new_array`` makes room for wide features."""

    parts: list[Part] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    new_array: NewArray = np.zeros

    def add(self, values: NDArray[Any], names: Iterable[str]) -> None:
        """Append columns ``[N, k]``, or one ``[N]``."""
        columns = values.reshape(len(values), -1).astype(np.float32, copy=False)
        self.parts.append((columns, columns.shape[1]))
        self.names.extend(names)

    def add_places(self, places: NDArray[np.int32], names: Sequence[str]) -> None:
        """Append features of which one is 1 in each row, or none where the place is -1."""
        self.parts.append((places, len(names)))
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


def encoded_columns(
    table: Table,
    rules: Iterable[ColumnRule],
    problems: Problems | None = None,
    new_array: NewArray = np.zeros,
) -> EncodedColumns:
    """The features of a table by given rules; what is wrong is raised, or left to ``problems``."""
    encoded, found = EncodedColumns(new_array=new_array), problems or Problems()
    for rule in rules:
        name = rule["name"]
        with found.noted():
            if name not in table.columns:
                lacks = f"no column '{name}', which the model was trained with"
                raise DataError(f"{table.origin}: {lacks}")
            _ENCODERS[rule["kind"]](table, rule, encoded)
        check_feature_count(table, len(encoded.names))
    if problems is None:
        found.tell()
    return encoded


def check_feature_count(table: Table, count: int) -> None:
    """Raise if the columns of a table become too many features."""
    if count > _MOST_FEATURES:
        raise DataError(f"{table.origin}: the columns become more than {_MOST_FEATURES} features")


# ---- cells -------------------------------------------------------------------------------------


def is_no_number(cell: object) -> bool:
    """Whether a cell is missing in a column of numbers or dates."""
    return is_missing(cell) or (isinstance(cell, str) and cell.lower() in _NO_NUMBER)


def is_no_word(cell: object) -> bool:
    """Whether a cell is missing in a column of words."""
    return is_missing(cell) or (isinstance(cell, str) and cell.lower() in _NO_WORD)


def _truth(cell: object) -> float:
    if isinstance(cell, str) and cell.lower() in _TRUTH:
        return _TRUTH[cell.lower()]
    if isinstance(cell, bool):
        return float(cell)
    if not is_no_number(cell):
        raise ValueError(cell)
    return math.nan


def read_number(cell: object, way: Writing | None) -> float:
    """The number in a cell, NaN if it is missing.

    Raises:
        TypeError, ValueError, OverflowError: The cell holds no number that is written in this way.
    """
    if is_no_number(cell):
        return math.nan
    if isinstance(cell, bool | bytes) or (isinstance(cell, str) and "_" in cell):
        raise ValueError(cell)  # Python reads 1_0 as ten
    return way.read(cell) if way is not None and isinstance(cell, str) else float(cell)  # type: ignore[arg-type]


def _date(cell: object, order: str) -> float:
    return math.nan if is_no_number(cell) else read_date(cell, order)


NOT_OF_THE_KIND = (TypeError, ValueError, OverflowError)
#: Which numpy types need no reading, and what a cell must be.
_KINDS = {
    "boolean": ("b", "true or false"),
    "number": ("iuf", "a number"),
    "date": ("", "a date"),
}
_ORDER_WORDS = {"ymd": "year, month, day", "dmy": "day, month, year", "mdy": "month, day, year"}


def _reader(rule: Mapping[str, Any]) -> Callable[[object], float]:
    """How a cell of a column becomes a number; NaN if it is missing."""
    if rule["kind"] == "boolean":
        return _truth
    if rule["kind"] == "date":
        return partial(_date, order=rule["order"])
    way = Writing(rule["decimal"], tuple(rule["unit"])) if "decimal" in rule else None
    return partial(read_number, way=way)


def cell_numbers(table: Table, rule: Mapping[str, Any]) -> Numbers | None:
    """The cells as numbers, missing ones as NaN; None if any cell does not fit the rule."""
    name, cells = rule["name"], table.columns[rule["name"]]
    if cells.dtype.kind in _KINDS[rule["kind"]][0]:
        values = cells.astype(np.float64)
    elif cells.dtype.kind != "O":
        return None
    else:
        try:
            values = np.fromiter(map(_reader(rule), cells.tolist()), np.float64, len(cells))
        except NOT_OF_THE_KIND:
            return None
    too_large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(too_large):
        row = int(too_large[0])
        raise table.error(row, name, f"{shown(cells[row])} is too large for a feature")
    return values


def _required_numbers(table: Table, rule: ColumnRule) -> Numbers:
    """The cells as numbers, which all must be."""
    values = cell_numbers(table, rule)
    if values is not None:
        return values
    name, kind = rule["name"], rule["kind"]
    row = _first_misfit(table, rule)
    written = f" written as {_ORDER_WORDS[rule['order']]}" if kind == "date" else ""
    if "decimal" in rule:
        written = f" with '{rule['decimal']}' before decimals" + _unit_words(rule)
    cell = shown(table.columns[name][row])
    raise table.error(row, name, f"{cell} must be {_KINDS[kind][1]}{written}")


def _first_misfit(table: Table, rule: ColumnRule) -> int:
    """Row of the first cell that does not fit the rule."""
    read = _reader(rule)
    for row, cell in enumerate(table.columns[rule["name"]].tolist()):
        try:
            read(cell)
        except NOT_OF_THE_KIND:
            return row
    return 0


# ---- features ----------------------------------------------------------------------------------


def _encode_number(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    _add_scaled(rule, _required_numbers(table, rule), [rule["name"]], encoded)


def _encode_date(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    seconds = _required_numbers(table, rule)
    numbers = date_numbers(seconds, rule["reference"], has_time=rule["time"])
    names = date_names(rule["name"], day_of(rule["reference"]), has_time=rule["time"])
    _add_scaled(rule, numbers[:, 0], names[:1], encoded)
    encoded.add(numbers[:, 1:], names[1:])


def _add_scaled(
    rule: ColumnRule, values: Numbers, names: Sequence[str], encoded: EncodedColumns
) -> None:
    """Add numbers, missing ones as the mean, and where asked for the places of these."""
    name, missing = rule["name"], np.isnan(values)
    filled = np.where(missing, rule["mean"], values)
    if missing.any():
        where = ", marked in a feature of its own" if rule["indicator"] else ""
        what = f"{int(missing.sum())} missing values became the mean"
        encoded.notes.append(f"column {name}: {what}{where}")
    with np.errstate(over="ignore"):  # infinity is refused later, when the graph is assembled
        encoded.add((filled - rule["center"]) / rule["scale"], names)
    if rule["indicator"]:
        encoded.add(missing.astype(np.float64), [f"{name} is missing"])


def _encode_category(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    categories = rule["categories"]
    place = places_of_words(categories)
    unknown: set[str] = set()

    def find(word: str) -> int:
        found = place.get(word, -1)
        unknown.update([word] if found < 0 else [])
        return found

    # A model from before these words were missing values may know them as categories.
    places = _places(table, rule, find, encoded.notes, kept=place)
    encoded.add_places(places, [f"{rule['name']} = {category}" for category in categories])
    if unknown:
        what = f"{len(unknown)} unknown words became zeros ({shown(min(unknown))} for one)"
        encoded.notes.append(f"column {rule['name']}: {what}")


def _encode_hashed(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    name, size = rule["name"], rule["size"]
    places = _places(table, rule, cache(partial(hash_of_word, size=size)), encoded.notes)
    encoded.add_places(places, [f"{name}: hash {index}" for index in range(size)])


def _places(
    table: Table,
    rule: ColumnRule,
    find: Callable[[str], int],
    notes: list[str],
    kept: Container[str] = (),
) -> NDArray[np.int32]:
    """The number of the feature that each cell sets to 1, -1 for none."""
    places, missing = np.full(len(table), -1, dtype=np.int32), []
    for row, cell in enumerate(table.columns[rule["name"]].tolist()):
        if is_no_word(cell) and (is_missing(cell) or cell not in kept):
            missing.append(cell)
        else:
            places[row] = find(str(cell))
    _note_missing(rule["name"], missing, notes)
    return places


def _note_missing(name: str, cells: Sequence[Any], notes: list[str]) -> None:
    if cells:
        words = sorted({cell for cell in cells if isinstance(cell, str) and not is_missing(cell)})
        such = f" (also {listed([shown(word) for word in words])})" if words else ""
        notes.append(f"column {name}: {len(cells)} missing words became zeros{such}")


def _encode_text(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    name, weights = rule["name"], rule["idf"]
    cells = table.columns[name].tolist()
    _note_missing(name, [cell for cell in cells if is_no_word(cell)], encoded.notes)
    texts = ["" if is_no_word(cell) else str(cell) for cell in cells]
    x = encoded.new_array((len(texts), len(weights)), np.float32)
    encode_texts(texts, weights, x)
    encoded.add(x, [f"{name}: hash {index}" for index in range(len(weights))])


def _encode_vector(table: Table, rule: ColumnRule, encoded: EncodedColumns) -> None:
    name, size = rule["name"], rule["size"]
    values = encoded.new_array((len(table), size), np.float32)
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
    "date": _encode_date,
    "category": _encode_category,
    "hashed": _encode_hashed,
    "text": _encode_text,
    "vector": _encode_vector,
}


# ---- words -------------------------------------------------------------------------------------


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
    if rule["kind"] == "hashed":
        return f"words, {rule['different']} different ones hashed to {rule['size']} features"
    if rule["kind"] == "text":
        return f"text, its words hashed to {len(rule['idf'])} features (TF-IDF)"
    words = _KINDS[rule["kind"]][1]
    if rule["kind"] == "date":
        parts = "year, week and day" if rule["time"] else "year and week"
        words += f": years before {day_of(rule['reference'])}, place in the {parts}"
    if "decimal" in rule:
        words += (" with decimal comma" if rule["decimal"] == "," else "") + _unit_words(rule)
    scaled = ", standardized" if _is_scaled(rule) else ""
    return words + scaled + (", with a mark where it is missing" if rule["indicator"] else "")


def _unit_words(rule: Mapping[str, Any]) -> str:
    unit = "".join(rule["unit"])
    return f" in {unit}" if unit else ""


def _is_scaled(rule: Mapping[str, Any]) -> bool:
    return bool(rule.get("scale", 1) != 1 or rule.get("center", 0) != 0)


def is_standardized(schema: Mapping[str, Any]) -> bool:
    """Whether a schema shifts or scales numbers."""
    return schema.get("scale") is not None or any(map(_is_scaled, schema["columns"] or ()))


def feature_count(rule: Mapping[str, Any]) -> int:
    """How many features a rule makes.

    Example:
        >>> feature_count({"kind": "category", "categories": ["blue", "red"]})
        2
    """
    wide = {"category": "categories", "text": "idf"}
    if rule["kind"] in wide:
        return len(rule[wide[rule["kind"]]])
    if rule["kind"] in ("vector", "hashed"):
        return int(rule["size"])
    more = len(date_names("", "", has_time=rule["time"])) if rule["kind"] == "date" else 1
    return more + int(rule["indicator"])


def column_places(rules: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], slice]]:
    """The rule of each column of a table, and which features it made."""
    start = 0
    for rule in rules:
        stop = start + feature_count(rule)
        yield rule, slice(start, stop)
        start = stop
