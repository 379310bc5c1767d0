"""A list of edges in one text file, with comments, as SNAP writes them."""

import io
import re
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from argnn.data.formats.csv_files import NumberedLine, csv_rows, delimiter_of, table_of
from argnn.data.formats.plain_files import read_text
from argnn.data.tables import GraphTables, Table
from argnn.errors import DataError

SUFFIXES = (".txt", ".tsv", ".csv", ".edges", ".edgelist")
_COMMENT = re.compile(r"^\s*[#%].*$", re.MULTILINE)
_HEADER_WORDS = {"source", "target", "src", "dst", "from", "to", "fromnodeid", "tonodeid"}
_COLUMNS = ("source", "target", "weight")


def read_edge_list(path: Path) -> GraphTables:
    """Two columns of node ids, then perhaps a weight and others; a header is optional."""
    # Comments become empty lines, so that line numbers do not change.
    text = _COMMENT.sub("", read_text(path))
    edges = _integer_pairs(text, path) or _any_edges(text, path)
    beside = path.parent / "nodes.csv"
    notes = [f"{beside} was not read: give the folder to read both"] if beside.exists() else []
    return GraphTables(edges=edges, notes=tuple(notes))


def _integer_pairs(text: str, path: Path) -> Table | None:
    """The common case, fast: nothing but pairs of integers between spaces or tabs."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    if not re.fullmatch(r"\s*\d{1,18}[ \t]+\d{1,18}\s*", first):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pairs = np.loadtxt(io.StringIO(text), dtype=np.int64, comments=None, ndmin=2)
    except (ValueError, Warning):
        return None
    source, target = pairs.T
    return Table(str(path), {"source": source, "target": target})


def _any_edges(text: str, path: Path) -> Table:
    rows = _rows(text, path)
    try:
        line, first = next(rows)
    except StopIteration:
        raise DataError(f"{path}: there are no edges") from None
    if len(first) < 2:
        raise DataError(f"{path}, line {line}: an edge needs two node ids (got {len(first)} cells)")
    if {cell.lower() for cell in first[:2]} <= _HEADER_WORDS:
        return table_of(rows, [cell.lower() for cell in _unique(first, path, line)], path)
    more = [f"column {number}" for number in range(4, len(first) + 1)]
    header = [*_COLUMNS, *more][: len(first)]
    return table_of(chain([(line, first)], rows), header, path)


def _unique(header: list[str], path: Path, line: int) -> list[str]:
    if len({name.lower() for name in header}) < len(header):
        raise DataError(f"{path}, line {line}: there are two columns of one name")
    return header


def _rows(text: str, path: Path) -> Iterator[NumberedLine]:
    first = next((line for line in text.split("\n") if line.strip()), "")
    if any(delimiter in first for delimiter in ",;\t"):
        for line, cells in csv_rows(text, delimiter_of(first), path):
            if any(cells):
                yield line, cells
        return
    for number, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            yield number, content.split()
