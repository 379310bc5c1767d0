"""Dates as people write them, and the numbers that a model sees of them."""

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Orders of year, month and day; where several fit, the first is taken.
DATE_ORDERS = ("ymd", "dmy", "mdy")
_LONGEST = 40
_TIME = (
    r"(?:[T ] ?(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})"
    r"(?::(?P<second>[0-9]{2})(?:[.,][0-9]{1,9})?)? ?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_YEAR_FIRST = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})" + _TIME)
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})" + _TIME)
_DAY = 86_400
_YEAR = 365.2425 * _DAY


def read_date(cell: Any, order: str) -> float:
    """Seconds from 1970 to a date, or to a time of a day; without a time zone in UTC.

    Example:
        >>> read_date("31.12.1970", "dmy") == read_date("1970-12-31T00:00Z", "ymd")
        True

    Raises:
        ValueError: The cell holds no date in this order.
    """
    if isinstance(cell, date):
        moment = cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)
    else:
        moment = _parsed(cell, order)
    known = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return (known - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def _parsed(cell: Any, order: str) -> datetime:
    pattern = _YEAR_FIRST if order == "ymd" else _YEAR_LAST
    found = pattern.fullmatch(cell) if isinstance(cell, str) and len(cell) <= _LONGEST else None
    # Only Americans write the month first, and they do not write dots.
    if found is None or (order == "mdy" and found[2] == "."):
        raise ValueError(cell)
    parts = dict(zip(order, (found[1], found[3], found[4]), strict=True))
    hour, minute, second = (int(found[name] or 0) for name in ("hour", "minute", "second"))
    year, month, day = (int(parts[name]) for name in "ymd")
    return datetime(year, month, day, hour, minute, second, tzinfo=_zone(found["zone"]))


def _zone(text: str | None) -> timezone | None:
    if text in (None, "Z"):
        return None if text is None else UTC
    assert text is not None
    minutes = 60 * int(text[1:3]) + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))


def date_orders(cells: Sequence[Any]) -> list[str]:
    """The orders in which all cells are dates.

    Example:
        >>> date_orders(["03/04/2024", "31/12/2024"]), date_orders(["03/04/2024"])
        (['dmy'], ['dmy', 'mdy'])
    """
    return [order for order in DATE_ORDERS if cells and all(is_date(cell, order) for cell in cells)]


def is_date(cell: Any, order: str) -> bool:
    """Whether a cell is a date in this order."""
    try:
        read_date(cell, order)
    except (ValueError, OverflowError):
        return False
    return True


def date_names(name: str, day: str, *, has_time: bool) -> list[str]:
    """Names of the numbers that :func:`date_numbers` gives, with the day of the reference."""
    circles = ["year", "week", *(["day"] if has_time else [])]
    places = [f"{name}: {wave} of {circle}" for circle in circles for wave in ("sine", "cosine")]
    return [f"{name}: years before {day}", *places]


def date_numbers(
    seconds: NDArray[np.float64], reference: float, *, has_time: bool
) -> NDArray[np.float64]:
    """Years before ``reference``, then the place in the year, the week and the day, ``[N, k]``.

    A place is a point on a circle, on which the last day is beside the first. Of a missing date,
    NaN, the years are NaN and the places 0.
    """
    known = np.where(np.isnan(seconds), 0.0, seconds)
    days = np.floor(known / _DAY)
    moments = days.astype("datetime64[D]")
    year = (moments - moments.astype("datetime64[Y]")).astype(np.float64) / 366
    turns = [year, (days + 3) % 7 / 7, *([(known / _DAY) % 1] if has_time else [])]
    places = [wave(2 * math.pi * turn) for turn in turns for wave in (np.sin, np.cos)]
    marked = [np.where(np.isnan(seconds), 0.0, place) for place in places]
    return np.stack([(reference - seconds) / _YEAR, *marked], axis=1)


def day_of(seconds: float) -> str:
    """The day of a moment, as ISO writes it."""
    return str(np.datetime64(math.floor(seconds / _DAY), "D"))
