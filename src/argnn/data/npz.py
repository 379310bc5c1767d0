"""A user's graph in one ``.npz`` file.

The sizes that the file declares are compared with what it holds before any memory is used.
"""

import math
import zipfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch_geometric.data import Data

from argnn.data.formats.plain_files import check_expansion, check_regular
from argnn.data.splits import MASK_NAMES
from argnn.data.tables import too_large
from argnn.errors import DataError
from argnn.wording import printable

_TEXTS = ("node_ids", "feature_names", "class_names")
_KNOWN = ("x", "edge_index", "y", *MASK_NAMES, "edge_weight", "edge_time", "groups", *_TEXTS)
_LONGEST_HEADER = 10_000


def load_npz(path: Path) -> Data:
    """Read ``edge_index``, and where present ``x``, ``y``, masks, weights and names.

    Only the types are checked here; shapes and values are checked where every graph is assembled.
    """
    check_regular(path)
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            _check_names(list(members), path)
            size = sum(info.file_size for info in archive.infolist())
            advice = " (np.savez, which does not compress, gives a file that is accepted)"
            check_expansion(path, size, advice=advice)
            fields = {name: _field(archive, info, name, path) for name, info in members.items()}
    except (DataError, MemoryError):
        raise
    except Exception as error:  # zip, zlib and numpy each have their own way to fail
        raise DataError(f"{path}: not a readable npz file") from error
    return Data(**fields)


def _check_names(names: list[str], path: Path) -> None:
    if "edge_index" not in names:
        found = printable(", ".join(names[:10])) or "nothing"
        raise DataError(f"{path}: edge_index is missing (found: {found[:200]})")
    for name in names:
        if name not in _KNOWN:
            known, unknown = ", ".join(_KNOWN), printable(name[:40])
            raise DataError(f"{path}: unknown field {unknown} (known fields: {known})")


def _field(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, path: Path) -> Any:
    with archive.open(info) as file:
        _check_header(file, info, name, path)  # type: ignore[arg-type]
    try:
        with archive.open(info) as file:
            return _converted(npy.read_array(file, allow_pickle=False), name, path)
    except MemoryError:
        raise too_large(f"{path}: {name}") from None


def _check_header(file: BinaryIO, info: zipfile.ZipInfo, name: str, path: Path) -> None:
    """The size that an array declares must be the size that the archive holds for it."""
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, _, dtype = read(file, max_header_size=_LONGEST_HEADER)
    if dtype.hasobject:
        raise DataError(
            f"{path}: {name} is an object array, which could run code when read; "
            "save it with a number type"
        )
    declared = math.prod(shape) * dtype.itemsize
    if declared != info.file_size - file.tell():
        raise DataError(
            f"{path}: {name} declares the shape {list(shape)[:4]}, but does not hold as much"
        )


def _converted(array: NDArray[Any], name: str, path: Path) -> Any:
    if name in _TEXTS:
        return _texts(array, name, path)
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path}: {name} must hold numbers (got {array.dtype})")
    kept = {"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int64)
    if name == "x" and np.can_cast(array.dtype, np.float32):
        kept = np.float32  # the final type of features
    return torch.from_numpy(np.ascontiguousarray(array, dtype=kept))


def _texts(array: NDArray[Any], name: str, path: Path) -> list[str | int]:
    kinds = "Uiu" if name == "node_ids" else "U"
    if array.dtype.kind not in kinds or array.ndim != 1:
        raise DataError(f"{path}: {name} must be a list of texts (got {array.dtype})")
    values: list[str | int] = array.tolist()
    if len(set(values)) < len(values):
        raise DataError(f"{path}: {name} holds a value twice")
    return values
