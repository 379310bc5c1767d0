"""The rows of nodes by their ids, for tables of edges that come part by part."""

from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from argnn.data.formats.text_files import NoIntegersError
from argnn.data.graph_store.sorting import distinct
from argnn.data.node_ids import (
    INTEGER,
    NodeId,
    ends_of_edges,
    node_key,
    rows_of_nodes,
    shown,
)
from argnn.data.tables import Cells, Table
from argnn.errors import DataError

Integers = NDArray[np.int64]
#: Names of the nodes; integers take less memory in an array.
Ids = Sequence[NodeId] | Integers
#: Most ids that are texts: they are kept in memory, with about 200 bytes for each.
MOST_TEXTS = 50_000_000
_MOST_WAITING = 4_000_000
_MOST_GAPS = 8
#: Below it, every whole number is a float.
_LARGEST_FLOAT = 2.0**53


class NodeRows(Protocol):
    """Ids of nodes in the order of their rows."""

    def ids(self) -> Ids:
        """The user's names of the nodes."""

    def ends(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """Rows of both ends of each edge, ``[2, E]``."""


def rows_of_table(nodes: Table, column: str, *, is_plain: bool) -> NodeRows:
    """The rows of a table of nodes; integers need little memory.

    ``is_plain`` says whether it comes from a text file.
    """
    cells = nodes.columns[column]
    numbers = as_integers(cells)
    if numbers is not None and len(distinct(numbers)) == len(numbers):
        return IntegerRows(numbers, are_texts=cells.dtype.kind == "O", is_plain=is_plain)
    check_count(len(cells), nodes.origin)
    return TextRows(*rows_of_nodes(nodes, column))


def as_integers(cells: Cells) -> Integers | None:
    """Cells as integers, if all are such, or texts that can be read in one way only."""
    if cells.dtype.kind in "iu":
        return cells.astype(np.int64)
    if cells.dtype.kind == "f" and bool((np.abs(cells) < _LARGEST_FLOAT).all()):
        numbers = cells.astype(np.int64)  # pandas makes floats of integers with gaps
        return numbers if np.array_equal(numbers, cells) else None
    if cells.dtype.kind != "O":
        return None
    texts = cells.tolist()
    if not all(type(text) is str and INTEGER.fullmatch(text) for text in texts):
        return None
    return np.fromiter(map(int, texts), np.int64, len(texts))


def check_count(count: int, origin: str) -> None:
    """Raise if there are too many texts to keep them all in memory."""
    if count > MOST_TEXTS:
        raise DataError(
            f"{origin}: more than {MOST_TEXTS} ids that are no integers do not fit into memory; "
            "number the nodes"
        )


class IntegerRows:
    """Ids that are integers.

    Args:
        ids: In the order of the rows, each once.
        are_texts: Whether the table holds them as texts; then edges must do so, too.
        is_plain: Whether the tables are text files: there numbers and texts are the same.
    """

    def __init__(self, ids: Integers, *, are_texts: bool, is_plain: bool) -> None:
        self._ids, self._are_texts, self._is_plain = ids, are_texts, is_plain
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        self._places = _Places(self._sorted)

    def ids(self) -> Ids:
        """As of :class:`NodeRows`."""
        return self._ids

    def ends(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """As of :class:`NodeRows`."""
        return np.stack([self._rows(edges, column) for column in columns])

    def _rows(self, edges: Table, column: str) -> Integers:
        cells = edges.columns[column]
        fits = self._is_plain or (cells.dtype.kind == "O") == self._are_texts
        keys = as_integers(cells) if fits else None
        if keys is not None:
            found = self.find(keys)
            if found is not None:
                return found
        # Something is wrong, or a table of numbers has gaps, which make other types of them.
        rows = np.empty(len(cells), dtype=np.int64)
        for row, cell in enumerate(cells.tolist()):
            key = node_key(cell, edges, row, column)
            fits = self._is_plain or isinstance(key, str) == self._are_texts
            number = as_integers(_single(key)) if fits else None
            place = None if number is None else self.find(number)
            if place is None:
                raise edges.error(row, column, f"unknown node {shown(cell)}")
            rows[row] = place[0]
        return rows

    def find(self, keys: Integers) -> Integers | None:
        """Rows of some ids; none if any is unknown."""
        if not len(keys):
            return keys
        if not len(self._ids) or keys.min() < self._sorted[0] or keys.max() > self._sorted[-1]:
            return None
        place = self._places.find(keys)
        return self._order[place] if np.array_equal(self._sorted[place], keys) else None


class _Places:
    """Where numbers are in a sorted list, all of them between its first and last."""

    def __init__(self, numbers: Integers) -> None:
        self._numbers = numbers
        self._table: Integers | None = None
        size = int(numbers[-1]) - int(numbers[0]) + 1 if len(numbers) else 0
        if 0 < size <= _MOST_GAPS * len(numbers):
            # A table of all numbers between is faster than a search.
            counts = np.zeros(size, dtype=np.int64)
            counts[numbers - numbers[0]] = 1
            self._table = counts.cumsum() - 1

    def find(self, keys: Integers) -> Integers:
        """The places of some numbers; those of others mean nothing."""
        if self._table is None:
            return np.searchsorted(self._numbers, keys)
        found: Integers = self._table[keys - self._numbers[0]]
        return found


def _single(value: object) -> Cells:
    cells = np.empty(1, dtype=object)
    cells[0] = str(value)
    return cells


class TextRows:
    """Ids of any kind, in memory."""

    def __init__(self, ids: list[NodeId], rows: dict[Hashable, int]) -> None:
        self._ids, self._rows = ids, rows

    def ids(self) -> Ids:
        """As of :class:`NodeRows`."""
        return self._ids

    def ends(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """As of :class:`NodeRows`."""
        return ends_of_edges(edges, columns, self._rows)


class FoundNodes:
    """Nodes that are found in edges, which come part by part.

    Args:
        are_integers: Whether all ids are integers.
    """

    def __init__(self, *, are_integers: bool) -> None:
        self._are_integers = are_integers
        self._integers, self._waiting = np.empty(0, dtype=np.int64), [np.empty(0, dtype=np.int64)]
        self._rows: dict[Hashable, int] = {}

    def add(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """Both ends of each edge ``[2, E]``, for :meth:`rows`.

        Raises:
            NoIntegersError: An id is no integer, but all should be.
        """
        cells = [edges.columns[column] for column in columns]
        if self._are_integers:
            found = [numbers for part in cells if (numbers := as_integers(part)) is not None]
            if len(found) < len(cells):
                raise NoIntegersError
            self._waiting.append(distinct(np.concatenate(found)))
            # Joined only when they are as many: each time, all have to be sorted.
            if sum(map(len, self._waiting)) > max(_MOST_WAITING, len(self._integers)):
                self._join()
            return np.stack(found)
        ends = np.empty((2, len(edges)), dtype=np.int64)
        for row, pair in enumerate(zip(*(part.tolist() for part in cells), strict=True)):
            for side, cell in enumerate(pair):
                key = node_key(cell, edges, row, columns[side])
                ends[side, row] = self._rows.setdefault(key, len(self._rows))
        check_count(len(self._rows), edges.origin)
        return ends

    def _join(self) -> None:
        self._integers = distinct(np.concatenate([self._integers, *self._waiting]))
        self._waiting = self._waiting[:1]

    def rows(self, ends: Integers) -> Integers:
        """Row numbers of what :meth:`add` gave, after :meth:`ids`."""
        return self._places.find(ends) if self._are_integers else ends

    def ids(self) -> Ids:
        """The ids: sorted integers, or others in the order of their first appearance."""
        if self._are_integers:
            self._join()
            self._places = _Places(self._integers)
            return self._integers
        return [key if isinstance(key, int) else str(key) for key in self._rows]
