"""Targets that are no classes: numbers to predict, or several labels of one node.

A graph holds them as ``targets`` ``[N, T]``, NaN in the rows of nodes without any.
"""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argnn.csv_cells import is_number
from argnn.data.node_ids import shown
from argnn.data.tables import Table, listed
from argnn.data.written_numbers import Writing, ways_of_writing
from argnn.errors import DataError

#: Tasks whose targets are no classes.
TARGET_TASKS = ("regression", "multilabel")
#: Tasks of nodes, as ``load`` takes them; ``auto`` looks at the targets.
NODE_TASKS = ("node", *TARGET_TASKS, "auto")
#: What stands between the labels of one cell.
_SEPARATORS = (";", "|", ",")
_SURE_SEPARATORS = _SEPARATORS[:2]
_LABEL_NAMES = ("label", "y")
_TRUTH = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), 1.0),
    **dict.fromkeys(("0", "0.0", "false", "no"), 0.0),
}

Numbers = NDArray[np.float64]
TargetRule = dict[str, Any]


# ---- arrays ------------------------------------------------------------------------------------


def task_of_array(y: Any) -> str:
    """The task that an array of targets means, by its type and shape.

    Example:
        >>> [task_of_array(torch.tensor(y)) for y in ([0, 1], [0.5, 2.0], [[0, 1], [1, 1]])]
        ['node', 'regression', 'multilabel']
    """
    if not isinstance(y, Tensor) or not y.numel():
        return "node"
    if y.dim() == 2 and y.size(1) > 1:
        known = y[~y.isnan()] if y.is_floating_point() else y
        is_label = (known == 0) | (known == 1) | (known == -1)
        return "multilabel" if bool(is_label.all()) else "regression"
    return "regression" if y.is_floating_point() else "node"


def array_targets(y: Tensor, task: str, num_nodes: int) -> Tensor:
    """Targets ``[N, T]`` from an array ``[N]`` or ``[N, T]``, which must fit the task.

    NaN marks what is not known; where labels are 0 and 1, so does -1.
    """
    values = y.detach().cpu()
    if values.layout != torch.strided or values.is_complex() or values.dim() not in (1, 2):
        raise DataError("y must be a dense array of real numbers, [nodes] or [nodes, targets]")
    if values.size(0) != num_nodes or 0 in values.shape:
        raise DataError(f"y must have {num_nodes} rows, one per node (got {list(values.shape)})")
    values = values.double().view(num_nodes, -1)
    if task == "multilabel":
        values = torch.where(values == -1, torch.nan, values)
        _refuse(~values.isnan() & (values != 0) & (values != 1), values, "must be 0 or 1")
    _refuse(values.isinf(), values, "is not finite")
    return _whole_rows(values)


def _refuse(wrong: Tensor, values: Tensor, problem: str) -> None:
    places = wrong.nonzero()
    if len(places):
        row, column = places[0].tolist()
        raise DataError(f"y[{row}, {column}] {problem} (got {values[row, column].item():g})")


def _whole_rows(values: Tensor) -> Tensor:
    missing = values.isnan()
    partly = (missing.any(1) & ~missing.all(1)).nonzero()
    if len(partly):
        row = int(partly[0])
        column = int(missing[row].nonzero()[0])
        raise DataError(f"y[{row}, {column}] is missing; a node has all targets or none")
    return values.float()


def check_targets(targets: Tensor, names: Sequence[str], task: str) -> None:
    """Raise unless there is something to learn of every target."""
    known = targets[~targets.isnan().any(1)]
    if not len(known):
        raise DataError("no node has a target")
    if task == "multilabel" and not bool(known.any()):
        raise DataError("no node has any of the labels")
    low, high = known.amin(0), known.amax(0)
    same = [name for name, a, b in zip(names, low, high, strict=True) if a == b]
    if same:
        value = known[0, list(names).index(same[0])].item()
        raise DataError(f"target {same[0]} is {value:g} for all nodes: nothing can be learned")


def target_names(given: Any, count: int) -> list[str]:
    """Names of targets, ``target 0`` and so on where there are none."""
    if given is not None and len(given) == count:
        return [str(name) for name in given]
    return [f"target {index}" for index in range(count)]


# ---- tables ------------------------------------------------------------------------------------


def label_columns(table: Table, asked: str | None) -> list[str]:
    """The columns that hold targets: one, or several that were named with commas."""
    if asked is None:
        return [name for name in _LABEL_NAMES if name in table.columns][:1]
    if asked in table.columns:
        return [asked]
    return [table.require(name.strip(), "labels") for name in asked.split(",")]


def task_of_table(table: Table, asked: str | None) -> str:
    """The task that the columns of targets mean, where they leave no doubt; else classes."""
    columns = label_columns(table, asked)
    cells = [cell for name in columns for _, cell in table.present(name)]
    if len(columns) > 1:
        return "multilabel" if all(_truth(cell) is not None for cell in cells) else "regression"
    words = [str(cell) for cell in cells]
    way = _way_of_writing(words, None)
    if words and (way is not None or all(map(is_number, words))):
        fractions = any((float(word) if way is None else way.read(word)) % 1 for word in words)
        return "regression" if fractions else "node"
    separator = _separator(words, _SURE_SEPARATORS)
    if separator is None:
        return "node"
    labels = {label for word in words for label in _split(word, separator)}
    return "multilabel" if len(labels) < len(set(words)) else "node"


def _way_of_writing(words: Sequence[str], decimal: str | None) -> Writing | None:
    """How numbers are written that Python does not read; None for others and for words."""
    ways = [] if all(map(is_number, words)) else ways_of_writing(words)
    return min(ways, key=lambda way: way.decimal != decimal, default=None)


def learned_targets(
    table: Table, asked: str | None, task: str, decimal: str | None = None
) -> TargetRule:
    """How the targets of a table are read, for the schema."""
    columns = label_columns(table, asked)
    if not columns:
        raise DataError(f"{table.origin}: no column of targets: name it with label (--label)")
    names, separator = columns, None
    if task == "multilabel" and len(columns) == 1:
        words = [str(cell) for _, cell in table.present(columns[0])]
        separator = _separator(words, _SEPARATORS) or _SEPARATORS[0]
        names = sorted({label for word in words for label in _split(word, separator)})
    way = None
    if task == "regression":
        present = [str(cell) for name in columns for _, cell in table.present(name)]
        way = _way_of_writing(present, decimal)
    return {
        **({} if way is None else {"decimal": way.decimal, "unit": list(way.unit)}),
        "column": columns[0],
        "classes": [],
        "kind": task,
        "columns": columns,
        "separator": separator,
        "names": names,
    }


def encoded_targets(table: Table, rule: Mapping[str, Any], notes: list[str]) -> Tensor | None:
    """Targets ``[N, T]`` of a table; None if it has no such columns."""
    columns = rule["columns"]
    if not all(name in table.columns for name in columns):
        return None
    if rule["separator"] is not None:
        return torch.from_numpy(_label_sets(table, rule, notes)).float()
    way = Writing(rule["decimal"], tuple(rule["unit"])) if "decimal" in rule else None
    read = _truth_cell if rule["kind"] == "multilabel" else partial(_number_cell, way=way)
    values = np.stack([_column(table, name, read) for name in columns], axis=1)
    missing = np.isnan(values)
    for row in np.flatnonzero(missing.any(1) & ~missing.all(1))[:1]:
        name = columns[int(missing[row].argmax())]
        raise table.error(int(row), name, "is empty; a node has all targets or none")
    return torch.from_numpy(values).float()


def _column(table: Table, name: str, read: Any) -> Numbers:
    values = np.full(len(table), np.nan)
    for row, cell in table.present(name):
        values[row] = read(table, row, name, cell)
    return values


def _number_cell(table: Table, row: int, name: str, cell: Any, way: Writing | None) -> float:
    try:
        number = way.read(cell) if way is not None and isinstance(cell, str) else float(cell)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if isinstance(cell, bool) or not math.isfinite(number):
        raise table.error(row, name, f"a target must be a finite number (got {shown(cell)})")
    return number


def _truth_cell(table: Table, row: int, name: str, cell: Any) -> float:
    value = _truth(cell)
    if value is None:
        raise table.error(row, name, f"must be 0 or 1 (got {shown(cell)})")
    return value


def _truth(cell: Any) -> float | None:
    return _TRUTH.get(str(cell).lower())


def _label_sets(table: Table, rule: Mapping[str, Any], notes: list[str]) -> Numbers:
    """Zeros and ones from cells with several labels."""
    (column,), separator = rule["columns"], rule["separator"]
    place = {name: index for index, name in enumerate(rule["names"])}
    values = np.full((len(table), len(place)), np.nan)
    unknown: set[str] = set()
    for row, cell in table.present(column):
        labels = _split(str(cell), separator)
        if not labels:
            raise table.error(row, column, f"names no label (got {shown(cell)})")
        values[row] = 0
        values[row, [place[label] for label in labels if label in place]] = 1
        unknown.update(label for label in labels if label not in place)
    if unknown:
        notes.append(f"column {column}: unknown labels left out: {listed(sorted(unknown))}")
    return values


def _separator(words: Sequence[str], known: Sequence[str]) -> str | None:
    return next((mark for mark in known if any(mark in word for word in words)), None)


def _split(word: str, separator: str) -> list[str]:
    return [label for label in (part.strip() for part in word.split(separator)) if label]
