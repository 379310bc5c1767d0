"""Tables in Parquet files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from argnn.data.formats.plain_files import check_expansion, check_regular
from argnn.data.tables import Cells, Table, check_unique, object_cells, plain_cells, too_large
from argnn.errors import DataError, package_needed

#: Most bytes of all columns after decompression, as the file itself declares them.
_LARGEST = 4 << 30
#: How pandas calls an index without a name, such as the rows that are left of a larger table.
_ROW_NUMBERS = re.compile(r"__index_level_[0-9]+__")


def read_parquet(path: Path) -> Table:
    """A table of plain columns."""
    with _opened(path, _LARGEST) as file:
        columns = {name: _column(file, own, path) for name, own in _names(file).items()}
        return Table(str(path), columns)


def read_parquet_parts(path: Path, rows: int) -> Iterator[Table]:
    """:func:`read_parquet` part by part, each of so many rows; at least one, perhaps empty."""
    with _opened(path, None) as file:
        names, first = _names(file), 0
        for batch in file.iter_batches(rows, use_threads=False):
            yield Table(str(path), _batch_columns(batch, names, path), first=first)
            first += batch.num_rows
        if not first:
            yield Table(str(path), {name: object_cells([]) for name in names})


class ColumnsOnDisk(Mapping[str, Cells]):
    """The columns of a Parquet file, one of which is in memory at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _opened(path, None) as file:
            self._names = _names(file)
        self._last: tuple[str, Cells] | None = None

    def __getitem__(self, name: str) -> Cells:
        if name not in self._names:
            raise KeyError(name)
        if self._last is None or self._last[0] != name:
            self._last = None  # before the next one is read
            with _opened(self.path, None) as file:
                self._last = name, _column(file, self._names[name], self.path)
        return self._last[1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def write_texts(path: Path, tables: Iterable[Table]) -> Table:
    """Put the parts of a table of texts into a Parquet file; gives the table, which lies there."""
    writer, lines, origin = None, [], ""
    try:
        for table in tables:
            origin = table.origin
            pq = _library(Path(origin), "a table of this size")
            import pyarrow as pa

            kinds = pa.schema([(name, pa.string()) for name in table.columns])
            writer = writer or pq.ParquetWriter(path, kinds)
            columns = [pa.array(cells.tolist(), pa.string()) for cells in table.columns.values()]
            writer.write_table(pa.Table.from_arrays(columns, schema=kinds))
            lines.append(np.asarray(table.lines, dtype=np.int64))
    finally:
        if writer is not None:
            writer.close()
    return Table(origin, ColumnsOnDisk(path), np.concatenate(lines))


def _library(path: Path, what: str) -> Any:
    advice = f"{path}: {what} needs pyarrow; install it with pip install pyarrow"
    with package_needed(advice, DataError):
        import pyarrow.parquet as pq
    return pq


@contextmanager
def _opened(path: Path, most: int | None) -> Iterator[Any]:
    """An open file of at most so many bytes after decompression."""
    pq = _library(path, "reading Parquet")
    check_regular(path, any_size=most is None)
    try:
        with path.open("rb") as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            _check_size(file, path, most)
            names = file.schema_arrow.names
            check_unique(
                [name.strip() for name in names if not _ROW_NUMBERS.fullmatch(name)], str(path)
            )
            yield file
    except (DataError, MemoryError):
        raise
    except Exception as error:  # damaged files fail in many ways deep inside
        raise DataError(f"{path}: not a readable Parquet file") from error


def _names(file: Any) -> dict[str, str]:
    """The names of the columns in a file, by what they are without blanks around them."""
    names: list[str] = file.schema_arrow.names
    return {name.strip(): name for name in names if not _ROW_NUMBERS.fullmatch(name)}


def _batch_columns(batch: Any, names: Mapping[str, str], path: Path) -> dict[str, Cells]:
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    return {name: _cells(table.column(own), own, path) for name, own in names.items()}


def _column(file: Any, name: str, path: Path) -> Cells:
    try:
        # A thread that runs out of memory would end the process.
        return _cells(file.read([name], use_threads=False).column(name), name, path)
    except MemoryError:
        raise too_large(f"{path}, column {name}") from None


def _check_size(file: Any, path: Path, most: int | None) -> None:
    metadata = file.metadata
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    # Runs of equal values take no space in the file, so that rows have to be counted as well.
    size = max(size, 8 * metadata.num_rows * metadata.num_columns)
    check_expansion(path, size, most=most)


def _cells(column: Any, name: str, path: Path) -> Cells:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    is_plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if is_plain and not column.null_count:
        return column.to_numpy()  # type: ignore[no-any-return]
    if types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us", kind.tz), safe=False)  # as Python has them
    values = column.to_pylist()
    if types.is_decimal(kind):
        values = [None if value is None else float(value) for value in values]
    return plain_cells(values)
