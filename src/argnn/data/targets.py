"""Classes and splits from the columns of a node table."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.data.node_ids import shown
from argnn.data.splits import MASK_NAMES
from argnn.data.tables import Table, is_missing
from argnn.errors import DataError

SPLIT_COLUMN = "split"
_LABEL_NAMES = ("label", "y")
_PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}
_YES, _NO = ("1", "true", "yes"), ("0", "false", "no", "")

LabelRule = dict[str, Any]
Labels = NDArray[np.int64]
Masks = dict[str, NDArray[np.bool_]]


def label_column(table: Table, asked: str | None) -> tuple[str | None, list[str]]:
    """The column of classes, or None, and a note on columns that could be meant as well."""
    if asked is not None:
        return table.require(asked, "labels"), []
    name = next((name for name in _LABEL_NAMES if name in table.columns), None)
    if name is None:
        return None, []
    present = [cell for cell in table.columns[name].tolist() if not is_missing(cell)]
    if name == "y" and any(_is_fraction(cell) for cell in present):
        return None, ["column y: fractions, so a feature and not the classes"]
    if name != "y" and "y" in table.columns:
        return name, [
            f"column y: a feature, as {name} holds the classes; drop it if it says the same"
        ]
    return name, []


def is_a_name(table: Table, column: str) -> bool:
    """Whether a column holds a different word in every row, so that it cannot be a class."""
    present = [cell for cell in table.columns[column].tolist() if not is_missing(cell)]
    words = [cell for cell in present if isinstance(cell, str) and _whole(cell) is None]
    return len(present) > 2 and len(words) == len(set(words)) == len(table)


def learned_classes(table: Table, column: str) -> LabelRule:
    """The classes of a column: sorted numbers, or sorted words."""
    values = {_class(cell, table, row, column) for row, cell in _labelled(table, column)}
    numbers = [value for value in values if isinstance(value, int)]
    if len(numbers) == len(values):
        classes = [str(number) for number in sorted(numbers)]
    else:
        classes = sorted(str(value) for value in values)
    return {"column": column, "classes": classes}


def encoded_labels(table: Table, rule: Mapping[str, Any]) -> tuple[Labels, list[str]]:
    """The number of each node's class, ``-1`` if it has none or an unknown one."""
    labels = np.full(len(table), -1, dtype=np.int64)
    column = rule.get("column")
    if column not in table.columns:
        return labels, []
    number = {name: index for index, name in enumerate(rule["classes"])}
    unknown = set()
    for row, cell in _labelled(table, column):
        name = str(_class(cell, table, row, column))
        if name in number:
            labels[row] = number[name]
        else:
            unknown.add(name)
    if not unknown:
        return labels, []
    return labels, [f"column {column}: {len(unknown)} unknown classes left out"]


def _labelled(table: Table, column: str) -> list[tuple[int, Any]]:
    cells = enumerate(table.columns[column].tolist())
    return [(row, cell) for row, cell in cells if not is_missing(cell) and _whole(cell) != -1]


def _class(cell: Any, table: Table, row: int, column: str) -> int | str:
    if isinstance(cell, str) and _is_fraction(cell):
        cell = float(cell)
    whole = _whole(cell)
    if whole is not None:
        return whole
    if isinstance(cell, str | bool):
        return str(cell)
    raise DataError(
        f"{table.place(row, column)}: a label must be a word or an integer (got {shown(cell)})"
    )


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
    if isinstance(cell, str):
        if "." not in cell:
            return False
        try:
            cell = float(cell)
        except ValueError:
            return False
    return isinstance(cell, float) and not cell.is_integer()


def target_columns(table: Table) -> list[str]:
    """The columns of splits, which are no features."""
    return [name for name in (*MASK_NAMES, SPLIT_COLUMN) if name in table.columns]


def read_masks(table: Table, labels: Labels) -> tuple[Masks, list[str]]:
    """The three masks, or none, and notes.

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
    if not given and SPLIT_COLUMN not in table.columns:
        return {}, []
    masks = _mask_columns(table) if given else _split_column(table)
    _check_labelled(table, masks, labels, given)
    unscored = masks["test_mask"] & (labels < 0)
    masks["test_mask"] &= ~unscored
    count = int(unscored.sum())
    return masks, [f"{count} test nodes have no label and are not scored"] if count else []


def _mask_columns(table: Table) -> Masks:
    masks = {}
    for name in MASK_NAMES:
        mask = np.zeros(len(table), dtype=bool)
        for row, cell in enumerate(table.columns[name].tolist()):
            word = "" if is_missing(cell) else str(cell).lower().removesuffix(".0")
            if word not in _YES + _NO:
                raise DataError(f"{table.place(row, name)}: must be 0 or 1 (got {shown(cell)})")
            mask[row] = word in _YES
        masks[name] = mask
    return masks


def _split_column(table: Table) -> Masks:
    parts = np.zeros((3, len(table)), dtype=bool)
    for row, cell in enumerate(table.columns[SPLIT_COLUMN].tolist()):
        if is_missing(cell):
            continue
        word = str(cell).lower()
        if word not in _PARTS:
            raise DataError(
                f"{table.place(row, SPLIT_COLUMN)}: must be train, val, test or empty "
                f"(got {shown(cell)})"
            )
        parts[_PARTS[word], row] = True
    return dict(zip(MASK_NAMES, parts, strict=True))


def _check_labelled(table: Table, masks: Masks, labels: Labels, given: list[str]) -> None:
    for name in MASK_NAMES[:2]:
        bare = np.flatnonzero(masks[name] & (labels < 0))
        if len(bare):
            column = name if given else SPLIT_COLUMN
            part = name.removesuffix("_mask")
            raise DataError(
                f"{table.place(int(bare[0]), column)}: a node of the {part} part has no label"
            )
