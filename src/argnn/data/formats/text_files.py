"""Tables in CSV files, and lists of edges with comments, as SNAP writes them."""

import csv
import io
import re
import warnings
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import numpy as np

from argnn.csv_cells import is_number, plain_cell
from argnn.data.formats.plain_files import read_text
from argnn.data.node_ids import shown
from argnn.data.tables import GraphTables, Table, object_cells
from argnn.errors import DataError

#: Endings of the names of edge lists.
SUFFIXES = (".txt", ".tsv", ".csv", ".edges", ".edgelist")
_DELIMITERS = (",", ";", "\t")
_COMMENT = re.compile(r"^\s*[#%].*$", re.MULTILINE)
_HEADER_WORDS = {"source", "target", "src", "dst", "from", "to", "fromnodeid", "tonodeid"}
_COLUMNS = ("source", "target", "weight")

_NumberedLine = tuple[int, list[str]]


def read_csv(path: Path) -> Table:
    """A table with a header; commas, semicolons or tabs stand between the cells."""
    text = read_text(path)
    rows = _csv_rows(text, _delimiter(text), path)
    line, header = next(rows, (0, []))
    if not line:
        raise DataError(f"{path}: the file is empty")
    _check_header(header, path, line)
    return _table(rows, header, path)


def _delimiter(text: str) -> str:
    """The sign between the cells: the most frequent one in the first line."""
    first = text.lstrip("\n").split("\n", 1)[0]
    return max(_DELIMITERS, key=first.count)


def _csv_rows(text: str, delimiter: str, path: Path) -> Iterator[_NumberedLine]:
    """Line number and cells of every row that is not empty.

    Cells are stripped of spaces, and of the mark that :mod:`argnn.csv_cells` writes.
    """
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{path}, line {line}: not readable as CSV ({error})") from error
        if cells:
            yield line, [plain_cell(cell.strip()) for cell in cells]


def _check_header(header: list[str], path: Path, line: int) -> None:
    """Raise unless every column has a name of its own."""
    seen: set[str] = set()
    for number, name in enumerate(header, start=1):
        if not name:
            raise DataError(f"{path}, line {line}: column {number} has no name")
        if name in seen:
            raise DataError(f"{path}, line {line}: there are two columns {shown(name)}")
        seen.add(name)
    if all(is_number(name) for name in header):
        raise DataError(
            f"{path}, line {line}: expected a header such as source,target "
            f"(got {shown(','.join(header))})"
        )


def _table(rows: Iterator[_NumberedLine], header: list[str], path: Path) -> Table:
    """The rows below a header, which must all be as long as it is."""
    lines, table = [], []
    for line, cells in rows:
        if len(cells) != len(header):
            raise DataError(
                f"{path}, line {line}: expected {len(header)} columns (got {len(cells)})"
            )
        lines.append(line)
        table.append(cells)
    columns = zip(*table, strict=True) if table else ([] for _ in header)
    cells_by_name = zip(header, columns, strict=True)
    return Table(str(path), {name: object_cells(list(part)) for name, part in cells_by_name}, lines)


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
    rows = _edge_rows(text, path)
    line, first = next(rows, (0, []))
    if not line:
        raise DataError(f"{path}: there are no edges")
    if len(first) < 2:
        raise DataError(f"{path}, line {line}: an edge needs two node ids (got {len(first)} cells)")
    if {cell.lower() for cell in first[:2]} <= _HEADER_WORDS:
        header = [cell.lower() for cell in first]
        if len(set(header)) < len(header):
            raise DataError(f"{path}, line {line}: there are two columns of one name")
        return _table(rows, header, path)
    more = [f"column {number}" for number in range(4, len(first) + 1)]
    header = [*_COLUMNS, *more][: len(first)]
    return _table(chain([(line, first)], rows), header, path)


def _edge_rows(text: str, path: Path) -> Iterator[_NumberedLine]:
    first = next((line for line in text.split("\n") if line.strip()), "")
    if any(delimiter in first for delimiter in ",;\t"):
        for line, cells in _csv_rows(text, _delimiter(first), path):
            if any(cells):
                yield line, cells
        return
    for number, content in enumerate(text.split("\n"), start=1):
        if content.strip():
            yield number, content.split()
