"""What is learned of nodes: classes, numbers, or several labels of one node; and the splits.

A graph holds targets that are no classes as ``targets`` ``[N, T]``, NaN in the rows of nodes
without any.
"""

import math
from collections.abc import Collection, Container, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.csv_cells import is_number
from argnn.data.columns import NOT_OF_THE_KIND, is_no_number, is_no_word, read_number
from argnn.data.import_options import NODE_TASKS, ImportOptions
from argnn.data.learned_columns import decimal_sign, learned_writing, number_texts
from argnn.data.node_ids import INTEGER, shown
from argnn.data.splits import MASK_NAMES
from argnn.data.tables import Table, is_missing, listed, places_of_words
from argnn.data.written_numbers import Writing, are_codes
from argnn.errors import DataError

SPLIT_COLUMN = "split"
#: Tasks whose targets are no classes.
TARGET_TASKS = NODE_TASKS[1:3]
#: What stands between the labels of one cell.
_SEPARATORS = (";", "|", ",")
_SURE_SEPARATORS = _SEPARATORS[:2]
_LABEL_NAMES = ("label", "y")
#: Words of a cell, and the numbers that they stand for.
_TRUTH = {
    **dict.fromkeys(("1", "1.0", "true", "yes"), 1),
    **dict.fromkeys(("0", "0.0", "false", "no"), 0),
}
#: Largest error of a target in single precision, as a share of the range of all targets.
_ROUNDED = 0.01
#: A number that is no label.
_UNLABELLED = -1
_PARTS = {"": -1, "train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}

LabelRule = dict[str, Any]
Integers = NDArray[np.int64]
Numbers = NDArray[np.float64]
_MasksByName = dict[str, NDArray[np.bool_]]


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
    single, lost = _in_single_precision(values)
    _refuse(lost, values, _LOST)
    return single


#: What is wrong with targets of which single precision leaves too little.
_LOST = "is equal to others in single precision: subtract the mean of all, or change the unit"


def _in_single_precision(values: Tensor) -> tuple[Tensor, Tensor]:
    """Targets ``[N, T]`` as they are learned, and which have lost what tells them apart."""
    single, unknown = values.float(), values.isnan()
    high, low = values.masked_fill(unknown, -torch.inf), values.masked_fill(unknown, torch.inf)
    spread = high.amax(0) - low.amin(0)
    lost = ((single.double() - values).abs() > _ROUNDED * spread) & (spread > 0)
    return single, ~unknown & (lost | single.isinf())


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
        name = same[0].removeprefix("target ")
        raise DataError(f"target {name} is {value:g} for all nodes: nothing can be learned")


def label_values(class_names: Sequence[str]) -> list[Any]:
    """The labels that names of classes stand for: numbers, if all are whole numbers.

    Example:
        >>> label_values(["2", "10"]), label_values(["class 0", "class 1"]), label_values(["01"])
        ([2, 10], [0, 1], ['01'])
    """
    names = [str(name) for name in class_names]
    # What load calls classes without a name.
    if names == [f"class {number}" for number in range(len(names))]:
        return list(range(len(names)))
    are_numbers = all(INTEGER.fullmatch(name) for name in names) and str(_UNLABELLED) not in names
    return [int(name) for name in names] if are_numbers else names


def target_names(given: Any, count: int) -> list[str]:
    """Names of targets, ``target 0`` and so on where there are none."""
    if given is not None and len(given) == count:
        return [str(name) for name in given]
    return [f"target {index}" for index in range(count)]


# ---- the rule of a table -----------------------------------------------------------------------


def learned_label(
    nodes: Table, options: ImportOptions, others: Sequence[str], notes: list[str]
) -> tuple[LabelRule | None, set[str | None]]:
    """The rule of the targets, and the columns that are no features for it.

    ``others`` are the columns of features, which may tell the sign before decimals.
    """
    task = options.task
    if task == "auto":
        task = _task_of_table(nodes, options, others)
    if task in TARGET_TASKS:
        rule = _learned_targets(nodes, options, task, others, notes)
        if options.task == "auto":
            notes.append(f"column {listed(rule['columns'])}: read for --task {task}")
        return rule, set(rule["columns"])
    column = _label_column(nodes, options.label, notes)
    if column is not None and options.label is None and _is_a_name(nodes, column):
        notes.append(f"column {column}: differs in every row, so a name and not the class")
    elif column is not None:
        return {"column": column, "classes": _classes(nodes, column)}, {column}
    if target_columns(nodes):
        notes.append("there are no labels, so the splits were not read")
    return None, {column}


def label_columns(table: Table, asked: str | None) -> list[str]:
    """The columns that hold targets: one, or several that were named with commas."""
    if asked is None:
        return [name for name in _LABEL_NAMES if name in table.columns][:1]
    if asked in table.columns:
        return [asked]
    return [table.require(name.strip(), "labels") for name in asked.split(",")]


def _task_of_table(table: Table, options: ImportOptions, others: Sequence[str]) -> str:
    """The task that the columns of targets mean, where they leave no doubt; else classes."""
    columns = label_columns(table, options.label)
    cells = [
        cell for name in columns for cell in table.columns[name].tolist() if not is_no_number(cell)
    ]
    if len(columns) > 1:
        return "multilabel" if all(_truth(cell) is not None for cell in cells) else "regression"
    way = _writing(table, columns, options.decimal, others, [])
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


def _learned_targets(
    table: Table, options: ImportOptions, task: str, others: Sequence[str], notes: list[str]
) -> LabelRule:
    """How targets that are no classes are read, for the schema."""
    columns = label_columns(table, options.label)
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
        way = _writing(table, columns, options.decimal, others, notes)
    return {
        **({} if way is None else {"decimal": way.decimal, "unit": list(way.unit)}),
        "column": columns[0],
        "classes": [],
        "kind": task,
        "columns": columns,
        "separator": separator,
        "names": names,
    }


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
    numbers = "; --task regression reads numbers" if isinstance(cell, float) else ""
    problem = f"a label must be a word or an integer (got {shown(cell)}){numbers}"
    raise table.error(row, column, problem)


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


# ---- the cells of a table ----------------------------------------------------------------------


def read_targets(
    data: Data, nodes: Table, label: dict[str, Any], only_predicts: bool, notes: list[str]
) -> None:
    """Targets and splits; where only prediction is asked for, unusable splits are left out."""
    if "kind" in label:
        values = _encoded_targets(nodes, label, notes)
        if values is None:
            return
        data.targets, data.target_names = values, list(label["names"])
        data.target_kind = label["kind"]
        labels = np.where(values.isnan().any(1).numpy(), -1, 0)
    else:
        labels = _encoded_labels(nodes, label, notes)
        data.y, data.class_names = torch.from_numpy(labels), list(label["classes"])
    try:
        masks = _read_masks(nodes, labels, notes)
    except DataError as error:
        if not only_predicts:
            raise
        masks = {}
        notes.append(f"the splits were not read ({error})")
    for name, mask in masks.items():
        data[name] = torch.from_numpy(mask)


def _encoded_labels(table: Table, rule: Mapping[str, Any], notes: list[str]) -> Integers:
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
    _note_no_labels(column, words, notes)
    return labels


def _note_no_labels(column: str, words: Collection[str], notes: list[str]) -> None:
    """Note the words of a column that stand for missing labels, if there are any."""
    if words:
        which = listed([shown(word) for word in sorted(words)])
        notes.append(f"column {column}: {which} count as no label")


def _encoded_targets(table: Table, rule: Mapping[str, Any], notes: list[str]) -> Tensor | None:
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
    single, lost = _in_single_precision(torch.from_numpy(values))
    for row, column in lost.nonzero()[:1].tolist():
        raise table.error(row, columns[column], _LOST)
    return single


def _column(table: Table, name: str, read: Any, notes: list[str]) -> Numbers:
    values, missing = np.full(len(table), np.nan), set()
    for row, cell in table.present(name):
        if is_no_number(cell):
            missing.add(cell)
        else:
            values[row] = read(table, row, name, cell)
    _note_no_labels(name, missing, notes)
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
    _note_no_labels(column, missing, notes)
    return values


def _separator(words: Sequence[str], known: Sequence[str]) -> str | None:
    return next((mark for mark in known if any(mark in word for word in words)), None)


def _split(word: str, separator: str) -> list[str]:
    return [label for label in (part.strip() for part in word.split(separator)) if label]


def _read_masks(table: Table, labels: Integers, notes: list[str]) -> _MasksByName:
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
        masks = {
            name: _numbers(table, name, {**_TRUTH, "": 0}, "0 or 1") == 1 for name in MASK_NAMES
        }
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
