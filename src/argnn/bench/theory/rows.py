"""Rows of measured values, and straight lines through their columns."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

#: Rows of a table, each with its cells by the names of their columns.
MeasuredRows = Sequence[Mapping[str, Any]]


def column(rows: MeasuredRows, name: str) -> list[Any]:
    """The cells of one column."""
    return [row[name] for row in rows]


def grouped(rows: MeasuredRows, name: str) -> dict[Any, list[Mapping[str, Any]]]:
    """The rows by their cells in one column."""
    return {value: [row for row in rows if row[name] == value] for value in column(rows, name)}


def slope(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Slope of a straight line through points, and half the width of its 95 % interval.

    Example:
        >>> [round(value, 3) for value in slope([0, 1, 2], [1, 3, 5])]
        [2.0, 0.0]
    """
    fit = stats.linregress(x, y)
    return float(fit.slope), float(stats.t.ppf(0.975, np.size(x) - 2) * fit.stderr)


def power(rows: MeasuredRows, x: str, y: str) -> tuple[float, float]:
    """The exponent p in y ~ x^p for two columns, and half the width of its 95 % interval."""
    return slope(np.log(column(rows, x)), np.log(column(rows, y)))
