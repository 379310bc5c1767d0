"""Classes and splits from the columns of a node table."""

from collections.abc import Collection, Container, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.csv_cells import is_number
from argnn.data.columns import is_no_word
from argnn.data.node_ids import shown
from argnn.data.splits import MASK_NAMES
from argnn.data.tables import Table, is_missing, listed, places_of_words
from argnn.data.written_numbers import are_codes
from argnn.errors import DataError

SPLIT_COLUMN = "split"
_LABEL_NAMES = ("label", "y")
#: Words of a cell, and the numbers that they stand for.
_TRUTH = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), 1),
    **dict.fromkeys(("0", "0.0", "false", "no", ""), 0),
}
_PARTS = {"": -1, "train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}

LabelRule = dict[str, Any]
Integers = NDArray[np.int64]
Masks = dict[str, NDArray[np.bool_]]


def learned_label(
    table: Table, asked: str | None, notes: list[str]
) -> tuple[LabelRule | None, str | None]:
    """The rule of the classes, if there are any, and the column that is no feature for it."""
    column = _label_column(table, asked, notes)
    if column is not None and asked is None and _is_a_name(table, column):
        notes.append(f"column {column}: differs in every row, so a name and not the class")
    elif column is not None:
        return {"column": column, "classes": _classes(table, column)}, column
    if target_columns(table):
        notes.append("there are no labels, so the splits were not read")
    return None, column


def _label_column(table: Table, asked: str | None, notes: list[str]) -> str | None:
    if asked is not None:
        return table.require(asked, "labels")
    name = next((name for name in _LABEL_NAMES if name in table.columns), None)
    if name == "y" and any(_is_fraction(cell) for _, cell in table.present(name)):
        notes.append("column y: fractions, so a feature and not the classes")
        return None
    if name == "label" and "y" in table.columns:
        notes.append("column y: a feature, as label holds the classes; drop it if it says the same")
    return name


def _is_a_name(table: Table, column: str) -> bool:
    """Whether a column holds a different word in every row, so that it cannot be a class."""
    present = [cell for _, cell in table.present(column)]
    words = [cell for cell in present if isinstance(cell, str) and _whole(cell) is None]
    return len(present) > 2 and len(words) == len(set(words)) == len(table)


def _classes(table: Table, column: str) -> list[str]:
    """Sorted numbers, or sorted words; codes with leading zeros are words."""
    labelled = _labelled(table, column)
    values = {_class(cell, table, row, column, codes=True) for row, cell in labelled}
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values):
        return [str(number) for number in sorted(numbers)]
    return sorted(str(value) for value in values)


def encoded_labels(table: Table, rule: Mapping[str, Any], notes: list[str]) -> Integers:
    """The number of each node's class, ``-1`` if it has none or an unknown one."""
    labels = np.full(len(table), -1, dtype=np.int64)
    column = rule.get("column")
    if column is None or column not in table.columns:
        return labels
    number = places_of_words(rule["classes"])
    # Models from before codes were words have numbers instead, and read 01 as 1.
    codes = any(map(_is_code, number))
    unknown = set()
    labelled = _labelled(table, column, kept=number)
    for row, cell in labelled:
        name = str(_class(cell, table, row, column, codes=codes))
        labels[row] = number.get(name, -1)
        unknown.update({name} - number.keys())
    if unknown:
        notes.append(f"column {column}: {len(unknown)} unknown classes left out")
    words = {cell for _, cell in table.present(column) if is_no_word(cell) and cell not in number}
    note_no_labels(column, words, notes)
    return labels


def note_no_labels(column: str, words: Collection[str], notes: list[str]) -> None:
    """Note the words of a column that stand for missing labels, if there are any."""
    if words:
        which = listed([shown(word) for word in sorted(words)])
        notes.append(f"column {column}: {which} count as no label")


def _labelled(table: Table, column: str, kept: Container[str] = ()) -> list[tuple[int, Any]]:
    """Cells that hold a class; words for missing values are none, unless a model knows them."""
    return [
        (row, cell)
        for row, cell in table.present(column)
        if _whole(cell) != -1 and (not is_no_word(cell) or cell in kept)
    ]


def _class(cell: Any, table: Table, row: int, column: str, *, codes: bool) -> int | str:
    if codes and _is_code(cell):
        return str(cell)
    if isinstance(cell, str) and _is_fraction(cell):
        cell = float(cell)
    whole = _whole(cell)
    if whole is not None:
        return whole
    if isinstance(cell, str | bool):
        return str(cell)
    raise table.error(row, column, f"a label must be a word or an integer (got {shown(cell)})")


def _is_code(cell: Any) -> bool:
    """Whether a label is a code that begins with a zero: 01 is another class than 1."""
    return isinstance(cell, str) and cell[:1] == "0" and are_codes([cell])


def _whole(cell: Any) -> int | None:
    """The integer in a cell, also if pandas made it a float; None if it is no integer."""
    if isinstance(cell, bool):
        return None
    if isinstance(cell, int):
        return cell
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() else None
    try:
        # Texts such as 1_000 and numbers of thousands of digits count as words.
        return int(cell.removesuffix(".0")) if len(cell) < 19 and "_" not in cell else None
    except (AttributeError, TypeError, ValueError):
        return None


def _is_fraction(cell: Any) -> bool:
    if isinstance(cell, str) and "." in cell and is_number(cell):
        cell = float(cell)
    return isinstance(cell, float) and not cell.is_integer()


def target_columns(table: Table) -> list[str]:
    """The columns of splits, which are no features."""
    return [name for name in (*MASK_NAMES, SPLIT_COLUMN) if name in table.columns]


def read_masks(table: Table, labels: Integers, notes: list[str]) -> Masks:
    """The three masks, or none.

    A training or validation node must have a label. A test node without one is not scored.
    """
    given = [name for name in MASK_NAMES if name in table.columns]
    if given and SPLIT_COLUMN in table.columns:
        raise DataError(
            f"{table.origin}: there are columns {SPLIT_COLUMN} and {given[0]}; keep one"
        )
    if given and len(given) < len(MASK_NAMES):
        missing = next(name for name in MASK_NAMES if name not in given)
        raise DataError(f"{table.origin}: no column '{missing}'; give all three masks or none")
    if given:
        masks = {name: _numbers(table, name, _TRUTH, "0 or 1") == 1 for name in MASK_NAMES}
    elif SPLIT_COLUMN in table.columns:
        parts = _numbers(table, SPLIT_COLUMN, _PARTS, "train, val, test or empty")
        masks = {name: parts == number for number, name in enumerate(MASK_NAMES)}
    else:
        return {}
    for name in MASK_NAMES[:2]:
        bare = np.flatnonzero(masks[name] & (labels < 0))
        if len(bare):
            problem = f"a node of the {name.removesuffix('_mask')} part has no label"
            raise table.error(int(bare[0]), name if given else SPLIT_COLUMN, problem)
    unscored = masks["test_mask"] & (labels < 0)
    masks["test_mask"] &= ~unscored
    if unscored.any():
        notes.append(f"{int(unscored.sum())} test nodes have no label and are not scored")
    return masks


def _numbers(table: Table, column: str, known: Mapping[str, int], expected: str) -> Integers:
    """The number that the word in each cell stands for."""
    numbers = np.empty(len(table), dtype=np.int64)
    for row, cell in enumerate(table.columns[column].tolist()):
        word = "" if is_missing(cell) else str(cell).lower()
        if word not in known:
            raise table.error(row, column, f"must be {expected} (got {shown(cell)})")
        numbers[row] = known[word]
    return numbers
