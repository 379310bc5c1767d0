"""Tables in Parquet files."""

from pathlib import Path
from typing import Any

from argnn.data.formats.plain_files import check_expansion, check_regular
from argnn.data.tables import Cells, Table, check_unique, object_cells, too_large
from argnn.errors import DataError

#: Most bytes of all columns after decompression, as the file itself declares them.
_LARGEST = 4 << 30


def read_parquet(path: Path) -> Table:
    """A table of plain columns."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise DataError(
            f"{path}: reading Parquet needs pyarrow; install it with pip install pyarrow"
        ) from error
    check_regular(path)
    try:
        with path.open("rb") as opened, pq.ParquetFile(opened, pre_buffer=False) as file:
            _check_size(file, path)
            names = file.schema_arrow.names
            check_unique(names, str(path))
            return Table(str(path), {name: _column(file, name, path) for name in names})
    except (DataError, MemoryError):
        raise
    except Exception as error:  # damaged files fail in many ways deep inside
        raise DataError(f"{path}: not a readable Parquet file") from error


def _column(file: Any, name: str, path: Path) -> Cells:
    try:
        # A thread that runs out of memory would end the process.
        return _cells(file.read([name], use_threads=False).column(name), name, path)
    except MemoryError:
        raise too_large(f"{path}, column {name}") from None


def _check_size(file: Any, path: Path) -> None:
    metadata = file.metadata
    groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
    size = sum(group.total_byte_size for group in groups)
    # Runs of equal values take no space in the file, so that rows have to be counted as well.
    size = max(size, 8 * metadata.num_rows * metadata.num_columns)
    check_expansion(path, size, most=_LARGEST)


def _cells(column: Any, name: str, path: Path) -> Cells:
    import pyarrow as pa

    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    is_plain = types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
    if is_plain and not column.null_count:
        return column.to_numpy()  # type: ignore[no-any-return]
    is_list = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    of = kind.value_type if is_list else None
    is_vector = is_list and (types.is_integer(of) or types.is_floating(of))
    is_text = types.is_string(kind) or types.is_large_string(kind)
    if is_plain or is_text or is_vector or types.is_null(kind):
        return object_cells(column.to_pylist())
    if types.is_decimal(kind):
        return object_cells([float(value) for value in column.to_pylist()])
    raise DataError(f"{path}, column {name}: values of type {kind} are not supported")
