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
from argnn.data.columns import NOT_OF_THE_KIND, is_no_number, is_no_word, read_number
from argnn.data.learned_columns import decimal_sign, learned_writing, number_texts
from argnn.data.node_ids import shown
from argnn.data.tables import Table, listed
from argnn.data.targets import note_no_labels
from argnn.data.written_numbers import Writing
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


def task_of_table(
    table: Table, asked: str | None, decimal: str | None = None, others: Sequence[str] = ()
) -> str:
    """The task that the columns of targets mean, where they leave no doubt; else classes.

    Args:
        table: Of the nodes.
        asked: The columns of targets, as the user named them.
        decimal: The sign before decimals, where both fit.
        others: The columns of features, which else tell this sign.
    """
    columns = label_columns(table, asked)
    cells = [
        cell for name in columns for cell in table.columns[name].tolist() if not is_no_number(cell)
    ]
    if len(columns) > 1:
        return "multilabel" if all(_truth(cell) is not None for cell in cells) else "regression"
    way = _writing(table, columns, decimal, others, [])
    try:
        numbers = [read_number(cell, way) for cell in cells]
    except NOT_OF_THE_KIND:
        numbers = []
    if numbers:
        # What Python would read as another number has thousands: it was counted, and is no class.
        counts = (
            is_number(str(cell)) and float(cell) != number
            for cell, number in zip(cells, numbers, strict=True)
        )
        return "regression" if any(counts) or any(number % 1 for number in numbers) else "node"
    words = [word for name in columns for word in _label_words(table, name)]
    separator = _separator(words, _SURE_SEPARATORS)
    if separator is None:
        return "node"
    labels = {label for word in words for label in _split(word, separator)}
    return "multilabel" if len(labels) < len(set(words)) else "node"


def _label_words(table: Table, name: str) -> list[str]:
    """The cells of a column that hold labels; words for missing values are none."""
    return [str(cell) for _, cell in table.present(name) if not is_no_word(cell)]


def _writing(
    table: Table,
    columns: Sequence[str],
    decimal: str | None,
    others: Sequence[str],
    notes: list[str],
) -> Writing | None:
    """How the numbers of targets are written, found as for features; None if as Python does."""
    texts = [text for name in columns for text in number_texts(table, name)]

    def note(words: str) -> None:
        notes.append(f"column {listed(columns)}: {words}")

    way, is_unsure = learned_writing(texts, decimal, note)
    if is_unsure:
        way, _ = learned_writing(texts, decimal_sign(table, others), note)
    return way


def learned_targets(
    table: Table,
    asked: str | None,
    task: str,
    notes: list[str],
    decimal: str | None = None,
    others: Sequence[str] = (),
) -> TargetRule:
    """How the targets of a table are read, for the schema."""
    columns = label_columns(table, asked)
    if not columns:
        raise DataError(f"{table.origin}: no column of targets: name it with label (--label)")
    names, separator = columns, None
    if task == "multilabel" and len(columns) == 1:
        words = _label_words(table, columns[0])
        separator = _separator(words, _SEPARATORS) or _SEPARATORS[0]
        labels = {label for word in words for label in _split(word, separator)}
        names = sorted(label for label in labels if not is_no_word(label))
    way = None
    if task == "regression":
        way = _writing(table, columns, decimal, others, notes)
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
    values = np.stack([_column(table, name, read, notes) for name in columns], axis=1)
    missing = np.isnan(values)
    for row in np.flatnonzero(missing.any(1) & ~missing.all(1))[:1]:
        name = columns[int(missing[row].argmax())]
        raise table.error(int(row), name, "is empty; a node has all targets or none")
    return torch.from_numpy(values).float()


def _column(table: Table, name: str, read: Any, notes: list[str]) -> Numbers:
    values, missing = np.full(len(table), np.nan), set()
    for row, cell in table.present(name):
        if is_no_number(cell):
            missing.add(cell)
        else:
            values[row] = read(table, row, name, cell)
    note_no_labels(name, missing, notes)
    return values


def _number_cell(table: Table, row: int, name: str, cell: Any, way: Writing | None) -> float:
    try:
        number = read_number(cell, way)
    except NOT_OF_THE_KIND:
        number = math.nan
    if not math.isfinite(number):
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
    missing: set[str] = set()
    for row, cell in table.present(column):
        if is_no_word(cell) and cell not in place:  # a model from before may know it as a label
            missing.add(cell)
            continue
        labels = _split(str(cell), separator)
        if not labels:
            raise table.error(row, column, f"names no label (got {shown(cell)})")
        values[row] = 0
        values[row, [place[label] for label in labels if label in place]] = 1
        unknown.update(label for label in labels if label not in place)
    if unknown:
        notes.append(f"column {column}: unknown labels left out: {listed(sorted(unknown))}")
    note_no_labels(column, missing, notes)
    return values


def _separator(words: Sequence[str], known: Sequence[str]) -> str | None:
    return next((mark for mark in known if any(mark in word for word in words)), None)


def _split(word: str, separator: str) -> list[str]:
    return [label for label in (part.strip() for part in word.split(separator)) if label]
