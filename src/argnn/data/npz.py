"""A user's graph in one ``.npz`` file."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.splits import MASK_NAMES
from argnn.errors import DataError

_REQUIRED = ("x", "edge_index")
_OPTIONAL = ("y", *MASK_NAMES)


def load_npz(path: Path) -> Data:
    """Read ``x``, ``edge_index`` and, where present, ``y`` and the three masks.

    Only the types are checked here; shapes and values are checked where every graph is assembled.
    """
    try:
        # numpy leaves a file open that it cannot read, unless it was opened here.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            _check_names(archive.files, path)
            fields = {name: _field(archive, name, path) for name in archive.files}
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file") from error
    except DataError:
        raise
    except Exception as error:  # zip, zlib and numpy each have their own way to fail
        raise DataError(f"{path}: not a readable npz file") from error
    return Data(**fields)


def _check_names(names: list[str], path: Path) -> None:
    for name in _REQUIRED:
        if name not in names:
            raise DataError(f"{path}: {name} is missing (found: {', '.join(names) or 'nothing'})")
    for name in names:
        if name not in _REQUIRED + _OPTIONAL:
            known = ", ".join(_REQUIRED + _OPTIONAL)
            raise DataError(f"{path}: unknown field {name} (known fields: {known})")


def _field(archive: Any, name: str, path: Path) -> Tensor:
    try:
        array: NDArray[Any] = archive[name]
    except ValueError as error:
        if "Object arrays" in str(error):
            raise DataError(
                f"{path}: {name} is an object array, which could run code when read; "
                "save it with a number type"
            ) from error
        raise DataError(f"{path}: {name} cannot be read ({error})") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path}: {name} must hold numbers (got {array.dtype})")
    kept = {"f": np.float64, "b": np.bool_}.get(array.dtype.kind, np.int64)
    return torch.from_numpy(np.ascontiguousarray(array, dtype=kept))
