"""Tables in CSV files, and lists of edges with comments, as SNAP writes them."""

import csv
import io
import re
import warnings
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from argnn.csv_cells import is_number, plain_cell
from argnn.data.edge_columns import ENDS, plain_name
from argnn.data.formats.plain_files import read_text, read_text_parts
from argnn.data.node_ids import NoIntegersError, shown
from argnn.data.tables import GIVE_FOLDER, GraphTables, Table, object_cells
from argnn.errors import DataError

#: Endings of the names of edge lists.
SUFFIXES = (".txt", ".tsv", ".csv", ".edges", ".edgelist")
_DELIMITERS = (",", ";", "\t", "|")
_COMMENT = re.compile(r"^\s*[#%].*$", re.MULTILINE)
_HEADER_WORDS = {name for pair in ENDS for name in pair}
#: How files begin that look like lists of edges and mean something else, and what to do.
_OTHER_FORMATS = (
    (
        re.compile(r"%%MatrixMarket\b", re.IGNORECASE),
        "a Matrix Market file and no list of edges: give scipy.io.mmread(path) in Python",
    ),
    (
        re.compile(r"%[ \t]*bip\b"),
        "a bipartite graph of KONECT, where 1 on the left and 1 on the right are two nodes: write "
        "other ids to the right, such as b1",
    ),
)
_BEGINNING = 100
#: Bytes of a list of edges in which names of columns would not come again.
_LOOKED_AT = 1 << 16
_COLUMNS = ("source", "target", "weight")
#: Columns of lists of edges in the wild: two ids, weight and time.
_MOST_EDGE_COLUMNS = 4

_NumberedLine = tuple[int, list[str]]


def read_csv(path: Path) -> Table:
    """A table with a header; commas, semicolons or tabs stand between the cells."""
    (table,) = _csv_tables(path, [(0, read_text(path))])
    return table


def read_csv_parts(path: Path, size: int, *, integers: bool = False) -> Iterator[Table]:
    """:func:`read_csv` part by part, each of about ``size`` bytes; at least one.

    If ``integers``, two columns of digits are read as integers, which is fast.
    """
    yield from _csv_tables(path, read_text_parts(path, size), integers=integers)


def _csv_tables(
    path: Path, parts: Iterable[tuple[int, str]], *, integers: bool = False
) -> Iterator[Table]:
    header, delimiter = None, ""
    for before, text in parts:
        delimiter = delimiter or _delimiter(text)
        rows = _csv_rows(text, delimiter, path, before)
        if header is None:
            line, header = next(rows, (0, None))
            if header is None:
                delimiter = ""
                continue
            _check_header(header, path, line)
            yield _table(rows, header, path)
            continue
        pairs = _digit_pairs(text, delimiter) if integers and len(header) == 2 else None
        if pairs is None:
            yield _table(rows, header, path)
        else:
            lines = np.arange(before + 1, before + 1 + len(pairs))
            yield Table(str(path), dict(zip(header, pairs.T, strict=True)), lines)
    if header is None:
        raise DataError(f"{path}: the file is empty")


def _digit_pairs(text: str, delimiter: str) -> NDArray[np.int64] | None:
    r"""The numbers of lines that hold nothing but two of them, ``[lines, 2]``; else nothing.

    Numbers with more than 18 digits, or with zeros before them, are nothing, too.

    Example:
        >>> _digit_pairs("1,20\n3,0\n", ",").tolist()
        [[1, 20], [3, 0]]
        >>> _digit_pairs("1,20\n03,0\n", ",")
    """
    if not text.isascii():
        return None
    letters = np.frombuffer(
        text.encode() if text.endswith("\n") else f"{text}\n".encode(), np.uint8
    )
    is_end = (letters < ord("0")) | (letters > ord("9"))
    ends = np.flatnonzero(is_end)
    signs = letters[ends]
    first, second = signs[::2], signs[1::2]
    if len(ends) % 2 or not ((first == ord(delimiter)).all() and (second == ord("\n")).all()):
        return None
    begins = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - begins
    has_zero = (letters[begins] == ord("0")) & (sizes > 1)
    if not len(ends) or sizes.min() < 1 or sizes.max() > 18 or has_zero.any():
        return None
    return np.fromstring(text.replace(delimiter, " "), dtype=np.int64, sep=" ").reshape(-1, 2)


def _delimiter(text: str) -> str:
    """The sign between the cells: the most frequent one in the first line, outside quotes."""
    first = re.sub(r'"[^"]*"', "", text.lstrip("\n").split("\n", 1)[0])
    return max(_DELIMITERS, key=first.count)


def _csv_rows(text: str, delimiter: str, path: Path, before: int = 0) -> Iterator[_NumberedLine]:
    """Line number and cells of every row that is not empty, after so many lines ``before``.

    Cells are stripped of spaces, and of the mark that :mod:`argnn.csv_cells` writes.
    """
    reader = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    while True:
        line = before + reader.line_num + 1
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
    if header[0].lower() == "sep=":
        raise DataError(f"{path}, line {line}: delete this line, which only spreadsheets read")
    seen: set[str] = set()
    for number, name in enumerate(header, start=1):
        if not name:
            hint = " (pandas writes one unless index=False)" if number == 1 else ""
            unnamed = f"column {number} has no name: name it or delete it{hint}"
            raise DataError(f"{path}, line {line}: {unnamed}")
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
    whole = read_text(path)
    _refuse_other_formats(whole, path)
    text = _without_comments(whole)
    _refuse_matrix(text, path)
    edges = _integer_pairs(text, path)
    if edges is None:
        (edges,) = _edge_tables(path, [(0, text)])
    return GraphTables(edges=edges, notes=edge_list_notes(path))


def read_edge_list_parts(path: Path, size: int, *, integers: bool) -> Iterator[Table]:
    """:func:`read_edge_list` part by part, each of about ``size`` bytes.

    If ``integers``, it must hold pairs of integers, as most such files do.

    Raises:
        NoIntegersError: There is something else in it.
    """
    parts = (
        (before, _without_comments(text) if "#" in text or "%" in text else text)
        for before, text in _checked_parts(path, size)
    )
    if not integers:
        yield from _edge_tables(path, parts)
        return
    is_empty = True
    for _, text in parts:
        if text.strip():
            sign = "\t" if "\t" in text[:_BEGINNING] else " "
            pairs, is_empty = _digit_pairs(text, sign), False
            if pairs is None:
                table = _integer_pairs(text, path)
            else:
                table = Table(str(path), dict(zip(_COLUMNS, pairs.T, strict=False)))
            if table is None:
                raise NoIntegersError
            yield table
    if is_empty:
        raise DataError(f"{path}: there are no edges")


def _checked_parts(path: Path, size: int) -> Iterator[tuple[int, str]]:
    for before, text in read_text_parts(path, size):
        if not before:
            _refuse_other_formats(text, path)
        yield before, text


def _refuse_other_formats(text: str, path: Path) -> None:
    """Raise where the first line says that numbers are not the two ends of edges."""
    for beginning, what in _OTHER_FORMATS:
        if beginning.match(text):
            raise DataError(f"{path}, line 1: {what}")


def _doubtful_header(path: Path) -> tuple[str, ...]:
    """A note where the first line is read as an edge, and may be names of columns.

    Only the beginning of a large file is looked at.
    """
    text = next((_without_comments(part) for _, part in read_text_parts(path, _LOOKED_AT)), "")
    try:
        (edges,) = _edge_tables(path, [(0, text)])
    except DataError:  # told where the whole file is read
        return ()
    lines = text.split("\n")
    begin = next((number for number, line in enumerate(lines, start=1) if line.strip()), 0)
    if edges.lines is None or len(edges) < 2 or edges.lines[0] != begin:  # there is a header
        return ()
    source, target = (cells.tolist() for cells in list(edges.columns.values())[:2])
    others, words = {*source[1:], *target[1:]}, (source[0], target[0])
    if any(word in others or is_number(word) for word in words):
        return ()
    edge = f"an edge from {shown(words[0])} to {shown(words[1])}, which have no other"
    hint = "if these are names of columns, call them source and target"
    return (f"{path}, line {begin} was read as {edge}: {hint}",)


def _without_comments(text: str) -> str:
    """Comments become empty lines, so that line numbers do not change."""
    return _COMMENT.sub("", text)


def edge_list_notes(path: Path) -> tuple[str, ...]:
    """What to know about a list of edges."""
    beside = path.parent / "nodes.csv"
    if path.name == beside.name:
        raise DataError(f"{path}: a table of nodes; give the folder, with edges.csv in it")
    unread = (f"{beside} was not read: {GIVE_FOLDER}",) if beside.exists() else ()
    return unread + _doubtful_header(path)


def _refuse_matrix(text: str, path: Path) -> None:
    """Raise where a square of numbers would be read as a list of edges between 0 and 1."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    cells = re.split("[,;|]" if re.search("[,;|]", first) else r"\s+", first.strip())
    is_wide = len(cells) > _MOST_EDGE_COLUMNS and not _is_header(cells)
    lines = sum(1 for line in text.split("\n") if line.strip()) if is_wide else 0
    if is_wide and lines in (len(cells), len(cells) + 1):
        raise DataError(
            f"{path}: {lines} lines of {len(cells)} columns look like an adjacency matrix: write a "
            "line for each edge, or give (A, X) in Python"
        )


def _is_header(cells: list[str]) -> bool:
    return {plain_name(cell) for cell in cells[:2]} <= _HEADER_WORDS


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


def _edge_tables(path: Path, parts: Iterable[tuple[int, str]]) -> Iterator[Table]:
    header, delimiter = None, None
    for before, text in parts:
        if header is None:
            delimiter = _edge_delimiter(text)
        rows = _edge_rows(text, delimiter, path, before)
        if header is None:
            line, first = next(rows, (0, []))
            if not line:
                continue
            header, rows = _edge_header(line, first, rows, path)
        yield _table(rows, header, path)
    if header is None:
        raise DataError(f"{path}: there are no edges")


def _edge_header(
    line: int, first: list[str], rows: Iterator[_NumberedLine], path: Path
) -> tuple[list[str], Iterator[_NumberedLine]]:
    """The names of the columns, and the rows below them."""
    if len(first) < 2:
        raise DataError(f"{path}, line {line}: an edge needs two node ids (got {len(first)} cells)")
    second = next(rows, None)
    rows = rows if second is None else chain([second], rows)
    are_numbers = [cell.isdecimal() for cell in [*first[:2], *(second or (0, []))[1][:2]]]
    if _is_header(first) or are_numbers == [False, False, True, True]:
        header = [cell.lower() for cell in first]
        if len(set(header)) < len(header):
            raise DataError(f"{path}, line {line}: there are two columns of one name")
        return header, rows
    more = [f"column {number}" for number in range(4, len(first) + 1)]
    header = [*_COLUMNS, *more][: len(first)]
    return header, chain([(line, first)], rows)


def _edge_delimiter(text: str) -> str | None:
    """The sign between the cells; none for spaces."""
    first = next((line for line in text.split("\n") if line.strip()), "")
    return _delimiter(first) if any(sign in first for sign in _DELIMITERS) else None


def _edge_rows(
    text: str, delimiter: str | None, path: Path, before: int
) -> Iterator[_NumberedLine]:
    if delimiter is not None:
        for line, cells in _csv_rows(text, delimiter, path, before):
            if any(cells):
                yield line, cells
        return
    for number, content in enumerate(text.split("\n"), start=before + 1):
        if content.strip():
            yield number, content.split()
