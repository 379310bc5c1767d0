"""A table before it is printed in some format: cells with marks, and notes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from argnn.runs.tables import SCORE_NAMES

TASK_NAMES = {"node": "Node classification", "link": "Link prediction"}


@dataclass(frozen=True)
class Entry:
    """One place of a grid.

    Attributes:
        lines: Its text; lines are joined where there is room.
        mark: ``"best"``, ``"second"``, ``"strong"`` or nothing.
    """

    lines: tuple[str, ...]
    mark: str = ""


@dataclass(frozen=True)
class GridRow:
    """One row; ``quoted`` ones hold what others have published."""

    entries: tuple[Entry, ...]
    quoted: bool = False


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        title: What it shows.
        header: Names of the columns.
        rows: The rows; without any, only the notes are shown.
        notes: Sentences below it.
        legend: What the marks mean.
        joint: What stands between the lines of an entry that are written on one line.
        names: How many columns at the left hold names, not numbers.
        level: 1 for the table of a score, 2 for what belongs to the one before.
    """

    title: str
    header: tuple[Entry, ...] = ()
    rows: tuple[GridRow, ...] = ()
    notes: tuple[str, ...] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    joint: str = " "
    names: int = 1
    level: int = 1


def text(*lines: str, mark: str | None = None) -> Entry:
    """An entry of some lines."""
    return Entry(lines, mark or "")


def texts(*cells: str) -> tuple[Entry, ...]:
    """Entries of a row or a header; a cell may have several lines."""
    return tuple(text(*cell.split("\n")) for cell in cells)


def board_title(board: Mapping[str, Any]) -> str:
    """Task and score in words."""
    return f"{TASK_NAMES[board['task']]}, {SCORE_NAMES[board['score']]}"


def letters(published: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """A letter for each source and protocol; two letters after z."""
    keys = list(dict.fromkeys((entry["source"], entry["protocol"]) for entry in published))
    names = [*ascii_lowercase, *(a + b for a in ascii_lowercase for b in ascii_lowercase)]
    return dict(zip(keys, names, strict=False))


def p_text(p: float) -> str:
    """A p-value with three decimals.

    Example:
        >>> p_text(0.0421), p_text(0.0004), p_text(1.0)
        ('0.042', '<0.001', '1.000')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def points(share: float) -> str:
    """A difference of shares in per cent points, with its sign.

    Example:
        >>> points(0.0123), points(-0.1)
        ('+1.23', '-10.00')
    """
    return f"{100 * share:+.2f}"
