"""Arrays in ``.npy`` files: written row by row, read through the memory map."""

import hashlib
import math
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy
from numpy.typing import DTypeLike, NDArray

from argnn.data.graph_store.header import FileFacts, file_of, plain_size
from argnn.errors import DataError, naming
from argnn.folders import cache_root

#: Entries that are read or written at once.
CHUNK = 1 << 20
_BLOCK = 8 << 20


class ArrayWriter:
    """Writes the next rows of an array, each of shape ``row``; their number need not be known."""

    def __init__(self, folder: Path, name: str, dtype: DTypeLike, row: tuple[int, ...] = ()):
        self.path, self.name = folder / file_of(name), name
        self.dtype, self.row, self.count = np.dtype(dtype), row, 0
        with naming(self.path):
            self._file: BinaryIO = self.path.open("xb")
        try:
            self._header()
        except BaseException:
            self.abandon()
            raise

    def _header(self) -> None:
        # numpy leaves room for a longer first size, so that the header can be written again.
        shape = (self.count, *self.row)
        header = {"shape": shape, "fortran_order": False, "descr": npy.dtype_to_descr(self.dtype)}
        with naming(self.path):
            npy.write_array_header_1_0(self._file, header)

    def add(self, rows: NDArray[Any]) -> None:
        """Append rows, which are converted to the type of the array."""
        if rows.shape[1:] != self.row:
            raise ValueError(f"{self.name}: rows of shape {self.row} expected (got {rows.shape})")
        with naming(self.path):
            self._file.write(np.ascontiguousarray(rows, dtype=self.dtype).data)
        self.count += len(rows)

    def close(self) -> None:
        """Write the number of rows."""
        with naming(self.path):
            self._file.seek(0)
        self._header()
        with naming(self.path):
            self._file.close()

    def abandon(self) -> None:
        """Close a file that will be removed; what cannot be written any more does not matter."""
        with suppress(OSError):
            self._file.close()


def write_array(folder: Path, name: str, values: NDArray[Any]) -> None:
    """Write a whole array."""
    writer = ArrayWriter(folder, name, values.dtype, values.shape[1:])
    try:
        for rows in row_chunks(values):
            writer.add(rows)
        writer.close()
    finally:
        writer.abandon()


def row_chunks(values: NDArray[Any], entries: int = CHUNK) -> Iterator[NDArray[Any]]:
    """An array in parts of whole rows, each of about so many entries."""
    width = max(1, int(np.prod(values.shape[1:])))
    step = max(1, entries // width)
    for begin in range(0, len(values), step):
        yield values[begin : begin + step]


def read_array(folder: Path, name: str, facts: FileFacts | None = None) -> NDArray[Any]:
    """An array on the disk; changes in memory stay in memory.

    ``facts``, what the header says about it, have to be true.
    """
    path = folder / file_of(name)
    size = plain_size(path)
    if facts is not None and size != facts.size:
        raise DataError(f"{path}: damaged, has {size} bytes, but must have {facts.size}")
    try:
        values = np.load(path, mmap_mode="c", allow_pickle=False)
    except (ValueError, EOFError, SyntaxError) as error:
        raise DataError(f"{path}: damaged, not an array") from error
    if not values.flags.c_contiguous:
        raise DataError(f"{path}: damaged, its rows must follow one another")
    if facts is not None and (str(values.dtype), values.shape) != (facts.dtype, facts.shape):
        found = f"{values.dtype} {list(values.shape)}"
        raise DataError(
            f"{path}: damaged, holds {found}, but must hold {facts.dtype} {list(facts.shape)}"
        )
    return values  # type: ignore[no-any-return]


def array_beside_memory(shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    """A new array whose content is in a file without a name, which vanishes with the array.

    Raises:
        OSError: The file does not fit on the disk.
    """
    size, folder = math.prod(shape) * np.dtype(dtype).itemsize, cache_root()
    with naming(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)  # a full disk is noticed here, not later
            return np.memmap(file, dtype=dtype, mode="r+", shape=shape)


def leave_memory(values: NDArray[Any]) -> None:
    """Let go of what is in memory of an array on the disk; it is read again when it is used.

    Nothing may have been written to an array of a store: this would be lost.
    """
    mapped = getattr(values, "_mmap", None)
    if mapped is not None:
        mapped.madvise(mmap.MADV_DONTNEED)


def read_chunks(folder: Path, name: str) -> Iterator[NDArray[Any]]:
    """An array part by part, without its shape; unlike a map, parts do not stay in memory."""
    path, dtype = folder / file_of(name), read_array(folder, name).dtype
    with naming(path), path.open("rb") as file:
        npy.read_magic(file)
        npy.read_array_header_1_0(file)
        while len(part := np.fromfile(file, dtype, CHUNK)):
            yield part


def array_facts(folder: Path, name: str, tell: Callable[[int], None]) -> FileFacts:
    """What the header says about the file of an array."""
    values, path = read_array(folder, name), folder / file_of(name)
    return FileFacts(path.stat().st_size, sha256_of(path, tell), str(values.dtype), values.shape)


def sha256_of(path: Path, tell: Callable[[int], None]) -> str:
    """The SHA-256 sum of a file; ``tell`` is told the bytes of each part."""
    digest = hashlib.sha256()
    with naming(path), path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            tell(len(block))
    return digest.hexdigest()
