"""The user's names of nodes, and their row numbers."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from argnn.data.tables import Table, is_missing

NodeId = str | int

# 18 digits always fit into 64 bits; 007 and 7 are two texts, but would be one number.
INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_LONGEST_SHOWN = 40


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
                raise edges.error(row, column, f"unknown node {shown(cell)}")
            ends[side, row] = found
    return ends


def nodes_of_edges(
    edges: Table, columns: tuple[str, str]
) -> tuple[list[NodeId], NDArray[np.int64]]:
    """The ids in a table of edges, and the ends of the edges as row numbers, ``[2, E]``.

    Integers are sorted; other ids are in the order of their first appearance.
    """
    cells = [edges.columns[column] for column in columns]
    if all(part.dtype.kind in "iu" for part in cells):
        return _sorted_integers(np.stack(cells).astype(np.int64))
    keys = [
        node_key(cell, edges, row, column)
        for column, part in zip(columns, cells, strict=True)
        for row, cell in enumerate(part.tolist())
    ]
    # Source and target of the first edge come before those of the second.
    count = len(edges)
    pairs = zip(keys[:count], keys[count:], strict=True)
    rows = {
        key: row for row, key in enumerate(dict.fromkeys(key for pair in pairs for key in pair))
    }
    ids = _plain(list(rows))
    if all(isinstance(node, int) for node in ids):
        return _sorted_integers(np.array([int(str(key)) for key in keys]).reshape(2, count))
    return ids, np.array([rows[key] for key in keys], dtype=np.int64).reshape(2, count)


def _sorted_integers(ends: NDArray[np.int64]) -> tuple[list[NodeId], NDArray[np.int64]]:
    ids, inverse = np.unique(ends, return_inverse=True)
    return ids.tolist(), inverse.reshape(2, -1).astype(np.int64)


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
