"""Rows of results files, sorted by method, data set and run."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from argnn.data import DATASETS
from argnn.errors import RunError
from argnn.nn import MODELS
from argnn.runs.summary import ERRORS, SCORES, Pair, has_twins, without_twins

ResultRow = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """What methods are compared on: a graph, with or without directions, and how it was split.

    Attributes:
        data: Name of the data set, or the path of a file.
        directed: Whether directions of edges were kept.
        ratio: Shares of the edges, for links.
        without_twins: Whether only test nodes without a twin in the training set are scored.
    """

    data: str
    directed: bool = False
    ratio: str | None = None
    without_twins: bool = False

    @property
    def name(self) -> str:
        """How it is written above its column."""
        twins = "without twins" if self.without_twins else ""
        words = (self.data, "directed" if self.directed else "", self.ratio or "", twins)
        return ", ".join(word for word in words if word)


@dataclass(frozen=True)
class Results:
    """All rows of one task.

    Attributes:
        task: ``"node"``, ``"regression"``, ``"multilabel"`` or ``"link"``.
        columns: Every data set, in the order of the registry.
        shown: The same, each followed by its part without twins where it has twins.
        models: The model of every method, in the order in which methods are shown.
        rows: Rows by method and data set, then by run.
    """

    task: str
    columns: tuple[Column, ...]
    shown: tuple[Column, ...]
    models: dict[str, str]
    rows: dict[tuple[str, Column], dict[Pair, ResultRow]]

    def runs(self, method: str, column: Column) -> Mapping[Pair, ResultRow]:
        """The rows of a method on a data set; none if it was not run there."""
        return self.rows.get((method, column), {})

    def finished(self, method: str, column: Column) -> dict[Pair, ResultRow]:
        """Those without an error."""
        runs = self.runs(method, column)
        return {pair: row for pair, row in runs.items() if "error" not in row}

    def on(self, column: Column) -> Iterator[ResultRow]:
        """All rows of a data set."""
        for method in self.models:
            yield from self.runs(method, column).values()

    def tried(self, column: Column) -> set[Pair]:
        """Every run that some method was given on a data set."""
        return {pair for method in self.models for pair in self.runs(method, column)}


def merged(files: Sequence[tuple[str, Sequence[ResultRow]]]) -> list[ResultRow]:
    """The rows of several files; a finished run replaces a failed one."""
    found: dict[tuple[Any, ...], tuple[str, ResultRow]] = {}
    for name, rows in files:
        for row in rows:
            _check(row, name)
            key = (row["task"], row["method"], column_of(row), _pair(row))
            earlier = found.get(key)
            if earlier is None or "error" in earlier[1]:
                found[key] = (name, row)
            elif "error" not in row and row["test"] != earlier[1]["test"]:
                raise RunError(
                    f"{name}: {row['method']} on {column_of(row).name}, split {row['split']}, "
                    f"seed {row['seed']} is in {earlier[0]} too, with other scores"
                )
    return [row for _, row in found.values()]


def _check(row: ResultRow, name: str) -> None:
    """Raise unless the scores of a row are scores; the reader of the file looks at rows only."""
    if row["task"] not in SCORES:
        raise RunError(f"{name}: task must be one of {', '.join(SCORES)} (got {row['task']!r})")
    oracle = row.get("oracle") or {}
    for part in (row.get("test"), row.get("test_without_twins"), oracle.get("test")):
        for score in SCORES[row["task"]]:
            if score in ERRORS:  # no table shows them
                continue
            value = (part or {}).get(score)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            least = -math.inf if score == "r2" else 0
            if value is not None and not (is_number and least <= value <= 1):
                raise RunError(
                    f"{name}: {row['method']} on {row['data']}, split {row['split']}, seed "
                    f"{row['seed']}: {score} must be from 0 to 1 (got {value!r})"
                )


def gathered(rows: Sequence[ResultRow], task: str) -> Results:
    """Sort the rows of a task."""
    ours = [row for row in rows if row["task"] == task]
    by_cell: dict[tuple[str, Column], dict[Pair, ResultRow]] = {}
    models: dict[str, str] = {}
    said: dict[Column, Any] = {}
    for row in ours:
        column, columns = column_of(row), row["config"].get("columns", {})
        if said.setdefault(column, columns) != columns:
            raise RunError(
                f"{column.name}: rows with different options for its columns, such as --label; "
                "make a table of each"
            )
        method = row["method"]
        if models.setdefault(method, row["model"]) != row["model"]:
            raise RunError(
                f"the name '{method}' stands for two models, {models[method]} and {row['model']}; "
                "give one of them a label of its own"
            )
        by_cell.setdefault((method, column), {})[_pair(row)] = row
    ordered = sorted(models, key=lambda method: _method_order(method, models[method]))
    columns = sorted({column for _, column in by_cell}, key=_column_order)
    by_cell |= _cells_without_twins(by_cell)
    shown = sorted({column for _, column in by_cell}, key=_column_order)
    known = {name: models[name] for name in ordered}
    return Results(task, tuple(columns), tuple(shown), known, by_cell)


def _cells_without_twins(
    cells: Mapping[tuple[str, Column], Mapping[Pair, ResultRow]],
) -> dict[tuple[str, Column], dict[Pair, ResultRow]]:
    """The same runs, scored without twins, on the data sets that have any."""
    rows = [(column, row) for (_, column), runs in cells.items() for row in runs.values()]
    with_twins = {column for column, row in rows if has_twins(row)}
    return {
        (method, replace(column, without_twins=True)): {
            pair: row if "error" in row else {**row, "test": without_twins(row)}
            for pair, row in runs.items()
        }
        for (method, column), runs in cells.items()
        if column in with_twins
    }


def column_of(row: ResultRow) -> Column:
    """The data set of a row."""
    link = row["config"].get("link") or {}
    return Column(row["data"], bool(row["directed"]), link.get("ratio"))


def _pair(row: ResultRow) -> Pair:
    return row["split"], row["seed"]


def _method_order(method: str, model: str) -> tuple[Any, ...]:
    known = list(MODELS)
    place = known.index(model) if model in known else len(known)
    return place, model, method != model, method


def _column_order(column: Column) -> tuple[Any, ...]:
    known = list(DATASETS)
    place = known.index(column.data) if column.data in known else len(known)
    return place, column.data, column.directed, column.ratio or "", column.without_twins
