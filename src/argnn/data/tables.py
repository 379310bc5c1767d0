"""Tables with named columns; each knows where its rows are in the file."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.errors import DataError
from argnn.registry import suggestion

Cells = NDArray[Any]

#: What to do where a table of nodes lies beside a list of edges.
GIVE_FOLDER = "give the folder to read both"
_MOST_CHOICES = 50


@dataclass(frozen=True)
class Table:
    """Columns of equal length.

    Attributes:
        origin: The file or object, for error messages.
        columns: Cells by name of the column: numbers, booleans, or objects of which ``None`` and an
            empty text are missing.
        lines: Line of each row in a text file; if not given, rows are counted.
        first: Number of the first row, where this is a part of a table.
    """

    origin: str
    columns: Mapping[str, Cells]
    lines: Sequence[int] | NDArray[np.int64] | None = None
    first: int = 0

    def __post_init__(self) -> None:
        for name in self.columns:
            # Names are printed, and control characters could change the terminal.
            if not name.isprintable():
                raise DataError(f"{self.origin}: unprintable name of a column, {name[:40]!r}")

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.columns else 0

    def place(self, row: int, column: str) -> str:
        """The file, row and column of a cell: the beginning of an error message."""
        where = f"row {self.first + row}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.origin}, {where}, column {column}"

    def error(self, row: int, column: str, problem: str) -> DataError:
        """An error that begins with the place of a cell."""
        return DataError(f"{self.place(row, column)}: {problem}")

    def present(self, column: str) -> Iterator[tuple[int, Any]]:
        """Row and content of every cell of a column that is not missing."""
        cells = enumerate(self.columns[column].tolist())
        return ((row, cell) for row, cell in cells if not is_missing(cell))

    def require(self, column: str, what: str) -> str:
        """The name of a column that a user asked for, which must be there."""
        if column not in self.columns:
            names = list(self.columns)
            if len(names) > _MOST_CHOICES:
                names = difflib.get_close_matches(column, names, n=5)
            hint = suggestion(column, names)
            raise DataError(f"{self.origin}: no column '{column}' for the {what}; {hint}")
        return column


@dataclass(frozen=True)
class GraphTables:
    """A graph as tables.

    Attributes:
        edges: One row per edge.
        nodes: One row per node; without it, the nodes are those of the edges.
        undirected: The source says that its edges have no directions.
        directed: The source says that its edges have directions.
        notes: What the user should know about the reading.
    """

    edges: Table
    nodes: Table | None = None
    undirected: bool = False
    directed: bool = False
    notes: tuple[str, ...] = ()


def too_large(place: object) -> DataError:
    """The error for a file that needs more memory than allowed."""
    return DataError(
        f"{place}: takes more memory than a file of its size may; set ARGNN_READ_GIB to allow more"
    )


def check_unique(names: Sequence[str], origin: str) -> None:
    """Raise unless there are columns, each with a name of its own."""
    if len(set(names)) < len(names) or not names:
        raise DataError(f"{origin}: every column needs a name of its own")


def object_cells(values: Sequence[Any]) -> Cells:
    """An array of objects of any type."""
    cells = np.empty(len(values), dtype=object)
    cells[:] = values
    return cells


def plain_cells(values: Sequence[Any]) -> Cells:
    """:func:`object_cells` without white space around texts, as in CSV files."""
    return object_cells([value.strip() if isinstance(value, str) else value for value in values])


def places_of_words(words: Sequence[str]) -> dict[str, int]:
    """The place of each word, also without the white space that an older model may know around it.

    Example:
        >>> places_of_words(["red ", "blue"])
        {'red': 0, 'blue': 1, 'red ': 0}
    """
    stripped = {word.strip(): place for place, word in enumerate(words)}
    return stripped | {word: place for place, word in enumerate(words)}


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are.

    Example:
        >>> listed(["a", "b", "c"], most=2)
        'a, b and 1 more'
    """
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def is_missing(cell: object) -> bool:
    """Whether a cell is empty or not a number.

    Example:
        >>> [is_missing(cell) for cell in (None, "", float("nan"), "NaN", 0, "none")]
        [True, True, True, True, False, False]
    """
    if isinstance(cell, str):
        return cell in ("", "nan", "NaN")
    if isinstance(cell, list | tuple | np.ndarray):
        return False
    # The missing values of pandas, and NaN, which is not equal to itself.
    return cell is None or type(cell).__name__ in ("NAType", "NaTType") or bool(cell != cell)
