"""Time stamps of edges: numbers, or dates."""

import math
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.data.node_ids import shown
from argnn.data.tables import Table, is_missing


def read_times(edges: Table, column: str) -> NDArray[np.float64]:
    """The time of each edge; dates as seconds since 1970, without a time zone in UTC.

    Raises:
        DataError: A time is missing or cannot be read, or some are numbers and others dates.
    """
    times, first_kind = np.empty(len(edges)), None
    for row, cell in enumerate(edges.columns[column].tolist()):
        if is_missing(cell):
            raise edges.error(row, column, "the time is missing")
        kind, value = _moment(cell)
        if value is None or not math.isfinite(value):
            expected = "a time must be a number or a date such as 2024-05-31"
            raise edges.error(row, column, f"{expected} (got {shown(cell)})")
        first_kind = first_kind or kind
        if kind != first_kind:
            mixed = f"a {kind}, but the first time is a {first_kind}"
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
