"""The columns of a table of edges, which may come in parts: both ends, weights and times."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.data.import_options import ImportOptions
from argnn.data.node_ids import shown
from argnn.data.tables import Table, is_missing, listed
from argnn.data.written_numbers import Writing, looks_like_number
from argnn.errors import DataError

#: Names of the two ends of an edge.
ENDS = (("source", "target"), ("src", "dst"), ("from", "to"))
_WEIGHT = "weight"

Numbers = NDArray[np.float64]


@dataclass
class EdgeColumns:
    """The columns of both ends, and how weights and times are read where they are asked for."""

    ends: tuple[str, str]
    options: ImportOptions
    _kinds_of_time: list[str] = field(default_factory=list)

    def values(self, edges: Table) -> dict[str, Numbers]:
        """The weights and times of the next edges, by ``edge_weight`` and ``edge_time``."""
        weight, time, found = self.options.weight, self.options.time, {}
        if weight is not None:
            column = edges.require(weight, "edge weights")
            found["edge_weight"] = _weights(edges, column, self.options.decimal)
        if time is not None:
            column = edges.require(time, "times of edges")
            found["edge_time"] = read_times(edges, column, self._kinds_of_time)
        return found


def edge_columns(
    edges: Table, options: ImportOptions, notes: list[str], *, has_nodes: bool
) -> EdgeColumns:
    """The columns of a table, found in its first part; what is left out is noted."""
    ends = end_columns(edges, notes, taken=(options.weight, options.time))
    if not has_nodes:
        notes.append("no table of nodes: the nodes are those of the edges")
    asked = (*ends, options.weight, options.time)
    others = [name for name in edges.columns if name not in asked]
    if _WEIGHT in others:
        notes.append(f"{edges.origin}: column {_WEIGHT} ignored (not asked for)")
        others.remove(_WEIGHT)
    if others:
        notes.append(f"{edges.origin}: columns left out: {listed(others)}")
    return EdgeColumns(ends, options)


def end_columns(
    edges: Table, notes: list[str], taken: Sequence[str | None] = ()
) -> tuple[str, str]:
    """The columns of both ends of an edge; those that are ``taken``, or of weights, are none."""
    names = [name for name in edges.columns if name not in taken and name.lower() != _WEIGHT]
    for plain in (str, plain_name):  # exact names first
        by_name = {plain(name): name for name in reversed(names)}
        for source, target in ENDS:
            if source in by_name and target in by_name:
                return by_name[source], by_name[target]
    if len(names) < 2:
        raise DataError(f"{edges.origin}: an edge needs two columns, source and target")
    notes.append(f"{edges.origin}: edges go from column {names[0]} to column {names[1]}")
    return names[0], names[1]


def plain_name(name: str) -> str:
    """A name of a column in small letters, without what says that it holds ids of nodes.

    Example:
        >>> [plain_name(name) for name in ("Source", "source_id", "FromNodeId")]
        ['source', 'source', 'from']
    """
    return re.sub(r"[_ ]?(node)?[_ ]?(id)?$", "", name.lower())


def _weights(edges: Table, column: str, decimal: str | None) -> Numbers:
    """Finite numbers; edges come in parts, so that only the user can say which decimals they have.

    The sign before decimals is a point if not given.
    """
    weights, way = np.empty(len(edges)), None if decimal is None else Writing(decimal)
    for row, cell in enumerate(edges.columns[column].tolist()):
        try:
            read = way.read if way is not None and isinstance(cell, str) else float
            weights[row] = np.nan if is_missing(cell) else read(cell)
        except (TypeError, ValueError, OverflowError):
            weights[row] = np.nan
        if not np.isfinite(weights[row]):
            hint = "; --decimal , reads it" if way is None and looks_like_number(cell) else ""
            wrong = f"a weight must be a finite number (got {shown(cell)}){hint}"
            raise edges.error(row, column, wrong)
        if weights[row] < 0:
            raise edges.error(row, column, f"a weight must not be negative (got {shown(cell)})")
    return weights


def read_times(edges: Table, column: str, kinds: list[str] | None = None) -> Numbers:
    """The time of each edge; dates as seconds since 1970, without a time zone in UTC.

    ``kinds`` keeps whether the first time of all parts is a number or a date: all must be the same.

    Raises:
        DataError: A time is missing or cannot be read, or some are numbers and others dates.
    """
    times, kinds = np.empty(len(edges)), [] if kinds is None else kinds
    for row, cell in enumerate(edges.columns[column].tolist()):
        if is_missing(cell):
            raise edges.error(row, column, "the time is missing")
        kind, value = _moment(cell)
        if value is None or not math.isfinite(value):
            expected = "a time must be a number or a date such as 2024-05-31"
            raise edges.error(row, column, f"{expected} (got {shown(cell)})")
        if not kinds:
            kinds.append(kind)
        if kind != kinds[0]:
            mixed = f"a {kind}, but the first time is a {kinds[0]}"
            raise edges.error(row, column, f"{mixed} (got {shown(cell)})")
        times[row] = value
    return times


def _moment(cell: Any) -> tuple[str, float | None]:
    """Whether a cell is a number or a date, and its value; None if it is neither."""
    if isinstance(cell, date) and not isinstance(cell, datetime):
        cell = cell.isoformat()
    if isinstance(cell, datetime):
        return "date", _seconds(cell)
    if isinstance(cell, bool):
        return "number", None
    try:
        return "number", float(cell)
    except (TypeError, ValueError, OverflowError):
        pass
    try:
        return "date", _seconds(datetime.fromisoformat(str(cell).strip()))
    except ValueError:
        return "date", None


def _seconds(moment: datetime) -> float:
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return known.timestamp()
