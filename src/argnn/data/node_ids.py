"""The user's names of nodes, and their row numbers; tables of edges may come part by part."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.csv_cells import is_number
from argnn.data.graph_store.sorting import distinct
from argnn.data.tables import Cells, Table, is_missing
from argnn.errors import DataError

NodeId = str | int
Integers = NDArray[np.int64]
#: Names of the nodes; integers take less memory in an array.
Ids = Sequence[NodeId] | Integers

# 18 digits always fit into 64 bits; 007 and 7 are two texts, but would be one number.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_LONGEST_SHOWN = 40
#: Most ids that are texts: they are kept in memory, with about 200 bytes for each.
MOST_TEXTS = 50_000_000
_MOST_WAITING = 4_000_000
_MOST_GAPS = 8
#: Below it, every whole number is a float.
_LARGEST_FLOAT = 2.0**53
_LARGEST = 2**63


class NoIntegersError(Exception):
    """A list of edges holds something else than pairs of integers."""


def shown(value: object) -> str:
    """A value for an error message: texts in quotes, long ones cut off."""
    text = repr(value[: _LONGEST_SHOWN + 1]) if isinstance(value, str) else str(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def rows_of_nodes(nodes: Table, column: str) -> tuple[list[NodeId], dict[Hashable, int]]:
    """The ids of a node table, and the row of each; no id may be missing or appear twice."""
    rows: dict[Hashable, int] = {}
    for row, cell in enumerate(nodes.columns[column].tolist()):
        key = node_key(cell, nodes, row, column)
        if key in rows:
            first = nodes.place(rows[key], column).removeprefix(f"{nodes.origin}, ")
            first = first.rsplit(", column", 1)[0]
            raise nodes.error(row, column, f"duplicate id {shown(key)} (also in {first})")
        rows[key] = row
    return _plain(list(rows)), rows


def rows_by_id(ids: Iterable[NodeId], first: int) -> dict[Hashable, int]:
    """Row of each id, and of its text, as it stands in a file; rows are counted from ``first``.

    Example:
        >>> rows_by_id([7, "b"], 10)
        {'7': 10, 'b': 11, 7: 10}
    """
    numbered = list(enumerate(ids, start=first))
    return {str(name): row for row, name in numbered} | {name: row for row, name in numbered}


def ends_of_edges(
    edges: Table, columns: tuple[str, str], rows: Mapping[Hashable, int]
) -> NDArray[np.int64]:
    """Row numbers of both ends of each edge, ``[2, E]``; every end must be a known node."""
    ends = np.empty((2, len(edges)), dtype=np.int64)
    for side, column in enumerate(columns):
        for row, cell in enumerate(edges.columns[column].tolist()):
            found = rows.get(node_key(cell, edges, row, column))
            if found is None:
                raise _unknown_node(cell, edges, row, column, rows)
            ends[side, row] = found
    return ends


def _unknown_node(
    cell: Any, edges: Table, row: int, column: str, ids: Iterable[Hashable]
) -> DataError:
    """The error for an end of an edge that is no node; it names an id that means the same."""
    meant = _meaning(cell)
    alike = next((shown(name) for name in ids if _meaning(name) == meant), None)
    hint = "" if alike is None else f"; there is {alike}: write ids in the same way in both tables"
    return edges.error(row, column, f"unknown node {shown(cell)}{hint}")


def _meaning(name: Hashable) -> Hashable:
    """An id without what spreadsheets and programs change: 7, 7.0 and 007, or Ann and ann."""
    text = str(name).strip().casefold()
    return float(text) if is_number(text) else text


def node_key(cell: Any, table: Table, row: int, column: str) -> Hashable:
    """A value that is equal for two cells if they mean the same node."""
    if type(cell) is str and cell:  # the common case, fast
        return cell
    if isinstance(cell, bool) or is_missing(cell):
        raise table.error(row, column, "a node id is missing")
    # pandas turns a column of integers with a missing value into floats.
    if isinstance(cell, float) and cell.is_integer():
        return int(cell)
    if not isinstance(cell, str | int):
        problem = f"a node id must be a text or an integer (got {shown(cell)})"
        raise table.error(row, column, problem)
    return cell


def _plain(keys: Sequence[Any]) -> list[NodeId]:
    """Ids as they are shown to the user: integers where all of them read as such."""
    if all(isinstance(key, int) or INTEGER.fullmatch(key) for key in keys):
        numbers = [int(key) for key in keys]
        if len(set(numbers)) == len(numbers):
            return list(numbers)
    return [key if isinstance(key, int) else str(key) for key in keys]


class NodeRows:
    """The rows of nodes by their ids, which are of any kind and kept in memory."""

    def __init__(self, ids: Ids, rows: Mapping[Hashable, int]) -> None:
        #: The user's names of the nodes, in the order of the rows.
        self.ids, self._rows = ids, rows

    def ends(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """Rows of both ends of each edge, ``[2, E]``."""
        return ends_of_edges(edges, columns, self._rows)


def rows_of_table(nodes: Table, column: str, *, is_plain: bool = False) -> NodeRows:
    """The rows of a table of nodes; integers need little memory.

    ``is_plain`` says whether it comes from a text file.
    """
    cells = nodes.columns[column]
    numbers = as_integers(cells)
    if numbers is not None and len(distinct(numbers)) == len(numbers):
        return IntegerRows(numbers, are_texts=_are_texts(cells), is_plain=is_plain)
    _check_count(len(cells), nodes.origin)
    return NodeRows(*rows_of_nodes(nodes, column))


def as_integers(cells: Cells) -> Integers | None:
    """Cells as integers, if all are such, or texts that can be read in one way only."""
    if cells.dtype.kind in "iu":
        return cells.astype(np.int64)
    if cells.dtype.kind == "f" and bool((np.abs(cells) < _LARGEST_FLOAT).all()):
        numbers = cells.astype(np.int64)  # pandas makes floats of integers with gaps
        return numbers if np.array_equal(numbers, cells) else None
    objects = cells.tolist() if cells.dtype.kind == "O" else [None]
    is_number = all(type(cell) is int and abs(cell) < _LARGEST for cell in objects)
    if not is_number and not all(type(c) is str and INTEGER.fullmatch(c) for c in objects):
        return None
    return np.fromiter(map(int, objects), np.int64, len(objects))


def _are_texts(cells: Cells) -> bool:
    return cells.dtype.kind == "O" and isinstance(next(iter(cells), ""), str)


def _check_count(count: int, origin: str) -> None:
    if count > MOST_TEXTS:
        raise DataError(
            f"{origin}: more than {MOST_TEXTS} ids that are no integers do not fit into memory; "
            "number the nodes"
        )


class IntegerRows(NodeRows):
    """Ids that are integers.

    Args:
        ids: In the order of the rows, each once.
        are_texts: Whether the table holds them as texts; then edges must do so, too.
        is_plain: Whether the tables are text files: there numbers and texts are the same.
    """

    def __init__(self, ids: Integers, *, are_texts: bool, is_plain: bool) -> None:
        super().__init__(ids, {})
        self._are_texts, self._is_plain = are_texts, is_plain
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]
        self._places = _Places(self._sorted)

    def ends(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """As of :class:`NodeRows`."""
        return np.stack([self._found(edges, column) for column in columns])

    def _found(self, edges: Table, column: str) -> Integers:
        cells = edges.columns[column]
        fits = self._is_plain or _are_texts(cells) == self._are_texts
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
                raise _unknown_node(cell, edges, row, column, self.ids)
            rows[row] = place[0]
        return rows

    def find(self, keys: Integers) -> Integers | None:
        """Rows of some ids; none if any is unknown."""
        if not len(keys):
            return keys
        if not len(self.ids) or keys.min() < self._sorted[0] or keys.max() > self._sorted[-1]:
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


class FoundNodes:
    """Nodes that are found in edges, which come part by part; ``are_integers`` is for all ids."""

    def __init__(self, *, are_integers: bool) -> None:
        self._are_integers = are_integers
        self._integers, self._waiting = np.empty(0, dtype=np.int64), [np.empty(0, dtype=np.int64)]
        self._rows: dict[Hashable, int] = {}
        self._order: Integers | None = None

    def add(self, edges: Table, columns: tuple[str, str]) -> Integers:
        """Both ends of each edge ``[2, E]``, for :meth:`rows`.

        Raises:
            NoIntegersError: An id is no integer, but all should be.
        """
        cells = [edges.columns[column] for column in columns]
        if self._are_integers:
            found = [numbers for part in cells if (numbers := as_integers(part)) is not None]
            if len(found) < len(cells) or len(set(map(_are_texts, cells))) > 1:
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
        _check_count(len(self._rows), edges.origin)
        return ends

    def _join(self) -> None:
        self._integers = distinct(np.concatenate([self._integers, *self._waiting]))
        self._waiting = self._waiting[:1]

    def rows(self, ends: Integers) -> Integers:
        """Row numbers of what :meth:`add` gave, after :meth:`ids`."""
        if self._are_integers:
            return self._places.find(ends)
        return ends if self._order is None else self._order[ends]

    def ids(self) -> Ids:
        """The ids: sorted integers, or others in the order of their first appearance."""
        if self._are_integers:
            self._join()
            self._places = _Places(self._integers)
            return self._integers
        ids = _plain(list(self._rows))
        if all(isinstance(node, int) for node in ids):  # of several types, or of many digits
            places = sorted(range(len(ids)), key=ids.__getitem__)
            self._order, ids = np.argsort(places), [ids[place] for place in places]
        return ids


def nodes_of_edges(edges: Table, columns: tuple[str, str]) -> tuple[Ids, Integers]:
    """The ids in a whole table of edges, and the ends of the edges as row numbers, ``[2, E]``."""
    try:
        nodes = FoundNodes(are_integers=True)
        ends = nodes.add(edges, columns)
    except NoIntegersError:
        nodes = FoundNodes(are_integers=False)
        ends = nodes.add(edges, columns)
    ids = nodes.ids()
    return ids, nodes.rows(ends)
