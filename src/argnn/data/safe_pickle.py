"""Read the pickles of the Planetoid files without running what they might contain.

The ``ind.*`` files were written by Python 2 in 2016. A pickle is a program: whoever can replace
the file can run code in the process that opens it. Here only the few names that the real files use
are known, each stands for a harmless constructor of ours, and anything else ends the reading.
"""

import io
import pickle
from collections import defaultdict
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from argnn.errors import DataError

Array = NDArray[Any]

_CSR_STATE = {"_shape", "data", "indices", "indptr"}


class _FrozenClass(type):
    """Pickles can set attributes of a class they name; this class has none to set."""

    def __setattr__(cls, name: str, value: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it changes the attribute '{name}' of a class")


class _CsrState(metaclass=_FrozenClass):
    """What a pickled CSR matrix holds, before any of it is believed."""


def _fresh_dtype(code: str, align: int = 0, copy: int = 1) -> np.dtype[Any]:
    # Always a copy: the state that follows in the pickle would change numpy's own object.
    dtype = np.dtype(code, align=bool(align), copy=True)
    if dtype.kind not in "biuf":
        raise pickle.UnpicklingError(f"it holds values of type '{code}'")
    return dtype


def _ndarray(*args: object) -> NoReturn:
    raise pickle.UnpicklingError("it builds an array in an unknown way")


def _empty_array(kind: object, shape: object, code: object) -> Array:
    # The state that follows sets shape, type and values; no size is taken from the file here.
    if kind is not _ndarray:
        raise pickle.UnpicklingError("it builds an array of an unknown kind")
    return np.empty(0, dtype=np.int8)


_KNOWN: dict[tuple[str, str], Callable[..., Any]] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): _fresh_dtype,
    ("numpy", "ndarray"): _ndarray,
    ("numpy.core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("scipy.sparse.csr", "csr_matrix"): _CsrState,
    ("scipy.sparse._csr", "csr_matrix"): _CsrState,
}


class _RestrictedUnpickler(pickle.Unpickler):
    def __init__(self, content: bytes, origin: str) -> None:
        super().__init__(io.BytesIO(content), encoding="latin1")
        self._origin = origin

    def find_class(self, module: str, name: str) -> Any:
        known = _KNOWN.get((module, name))
        if known is None:
            raise DataError(
                f"{self._origin}: refused: the pickle asks for '{module}.{name}', "
                "which no file of this data set needs"
            )
        return known


def decode_pickle(content: bytes, origin: str) -> Array | csr_matrix | dict[int, list[int]]:
    """Decode a pickle that may hold a numeric array, a CSR matrix or adjacency lists only.

    Args:
        content: The bytes of the file.
        origin: The file, for error messages.

    Raises:
        DataError: The pickle names anything else (refused before that is looked up), is damaged,
            or holds a matrix whose indices lie outside of it.
    """
    try:
        decoded = _RestrictedUnpickler(content, origin).load()
        return _believed(decoded)
    except DataError:
        raise
    except Exception as error:  # a damaged pickle can fail in any of its instructions
        raise DataError(f"{origin}: not a readable pickle ({_one_line(error)})") from error


def _believed(decoded: object) -> Array | csr_matrix | dict[int, list[int]]:
    if isinstance(decoded, np.ndarray):
        return decoded
    if isinstance(decoded, _CsrState):
        return _csr_from_state(vars(decoded))
    if isinstance(decoded, dict):
        return _adjacency(decoded)
    raise ValueError(f"expected an array, a matrix or adjacency lists, got {type(decoded)}")


def _csr_from_state(state: dict[str, Any]) -> csr_matrix:
    missing = _CSR_STATE - state.keys()
    if missing:
        raise ValueError(f"the matrix lacks {', '.join(sorted(missing))}")
    matrix = csr_matrix((state["data"], state["indices"], state["indptr"]), shape=state["_shape"])
    # Without this check, an index outside of the matrix would be written to foreign memory.
    matrix.check_format(full_check=True)
    return matrix


def _adjacency(decoded: dict[Any, Any]) -> dict[int, list[int]]:
    for node, neighbors in decoded.items():
        if type(node) is not int or not isinstance(neighbors, list):
            raise ValueError(f"the entry of node {node!r} is not a list of neighbors")
        if any(type(neighbor) is not int for neighbor in neighbors):
            raise ValueError(f"a neighbor of node {node} is not a number")
    return dict(decoded)


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__
