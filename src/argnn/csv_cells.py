"""CSV files, and their cells that a spreadsheet would take for a formula, and run."""

import csv
import io
from collections.abc import Iterable
from typing import Any, TypeVar

T = TypeVar("T")

_MARK = "'"
_STARTS = ("=", "+", "-", "@", "\t", "\n")


def csv_text(rows: Iterable[Iterable[Any]]) -> str:
    r"""Rows, the header among them, as the text of a file that is safe to open.

    Example:
        >>> csv_text([("name", "value"), ("=1+1", None)])
        "name,value\n'=1+1,\n"
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(safe_cell, row) for row in rows)
    return text.getvalue()


def safe_cell(value: T) -> T | str:
    """A value as it is written: a text that begins like a formula gets an apostrophe before it.

    Numbers stay numbers. A carriage return, which would end a row, becomes a line feed, which is
    what our reader makes of it.

    Example:
        >>> [safe_cell(value) for value in ("=1+1", "-1.5", "a-b", -2, "'=x")]
        ["'=1+1", '-1.5', 'a-b', -2, "''=x"]
    """
    if not isinstance(value, str):
        return value
    text = value.replace("\r", "\n")
    begins = text.lstrip(_MARK).startswith(_STARTS)
    return _MARK + text if begins and not is_number(text) else text


def plain_cell(text: str) -> str:
    """The text that :func:`safe_cell` was given.

    Example:
        >>> [plain_cell(text) for text in ("'=1+1", "-1.5", "'a'", "''=x")]
        ['=1+1', '-1.5', "'a'", "'=x"]
    """
    marked = text.startswith(_MARK) and text.lstrip(_MARK).startswith(_STARTS)
    return text[1:] if marked else text


def is_number(text: str) -> bool:
    """Whether Python reads a text as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
