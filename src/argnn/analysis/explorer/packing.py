"""Arrays as short JSON: base64 of integers; floats are rounded to equal steps."""

import base64
from typing import Any

import numpy as np
from numpy.typing import NDArray

Packed = dict[str, Any]

_WIDTHS: tuple[tuple[str, Any], ...] = (("u8", np.uint8), ("u16", np.uint16), ("u32", np.uint32))


def pack_integers(values: NDArray[Any]) -> Packed:
    """Whole numbers from -1 up; -1 stands for nothing."""
    shifted = np.asarray(values, dtype=np.int64) + 1
    if shifted.size and shifted.min() < 0:
        raise ValueError(f"values must be at least -1 (got {shifted.min() - 1})")
    most = int(shifted.max()) if shifted.size else 0
    kind, dtype = next(pair for pair in _WIDTHS if most <= np.iinfo(pair[1]).max)
    return {"type": kind, "shift": -1, "bytes": _base64(shifted.astype(dtype))}


def pack_floats(values: NDArray[Any], kind: str = "u16") -> Packed:
    """Numbers in equal steps between smallest and largest; the last code is NaN or infinity.

    Args:
        values: The numbers, ``[N]`` or ``[N, K]``.
        kind: ``"u8"`` for 254 steps, ``"u16"`` for 65,534.
    """
    dtype = dict(_WIDTHS)[kind]
    nothing = int(np.iinfo(dtype).max)
    numbers = np.asarray(values, dtype=np.float64)
    known = np.isfinite(numbers)
    low = float(numbers[known].min()) if known.any() else 0.0
    high = float(numbers[known].max()) if known.any() else 0.0
    step = (high - low) / (nothing - 1) or 1.0
    codes = np.full(numbers.shape, nothing, dtype=dtype)
    codes[known] = np.rint((numbers[known] - low) / step).astype(dtype)
    return {"type": kind, "low": low, "step": step, "bytes": _base64(codes)}


def pack_columns(values: NDArray[Any]) -> Packed:
    """Finite numbers ``[N, K]`` in 254 equal steps between the extremes of each column."""
    numbers = np.asarray(values, dtype=np.float64)
    low, span = numbers.min(0), np.ptp(numbers, axis=0)
    step = np.where(span == 0, 1.0, span / 254)
    found = np.rint((numbers - low) / step).astype(np.uint8)
    return {"type": "u8", "low": low.tolist(), "step": step.tolist(), "bytes": _base64(found)}


def _base64(array: NDArray[Any]) -> str:
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return base64.b64encode(np.ascontiguousarray(little).tobytes()).decode()
