"""Tables in CSV files."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

from argnn.csv_cells import is_number, plain_cell
from argnn.data.formats.plain_files import read_text
from argnn.data.node_ids import shown
from argnn.data.tables import Table, object_cells
from argnn.errors import DataError

_DELIMITERS = (",", ";", "\t")

NumberedLine = tuple[int, list[str]]


def read_csv(path: Path) -> Table:
    """A table with a header; commas, semicolons or tabs stand between the cells."""
    text = read_text(path)
    rows = csv_rows(text, delimiter_of(text), path)
    try:
        line, header = next(rows)
    except StopIteration:
        raise DataError(f"{path}: the file is empty") from None
    check_header(header, path, line)
    return table_of(rows, header, path)


def delimiter_of(text: str) -> str:
    """The sign between the cells: the most frequent one in the first line.

    Example:
        >>> delimiter_of("source;target")
        ';'
    """
    first = text.lstrip("\n").split("\n", 1)[0]
    return max(_DELIMITERS, key=first.count)


def csv_rows(text: str, delimiter: str, path: Path) -> Iterator[NumberedLine]:
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


def check_header(header: list[str], path: Path, line: int) -> None:
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


def table_of(rows: Iterator[NumberedLine], header: list[str], path: Path) -> Table:
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
