"""Where torch has float64 and sparse matrices, and what stands in for them where it has not.

GPUs of Apple (``mps``) have neither. There a graph is prepared on the CPU, in float64, and comes to
the device in float32; sums over edges are dense operations.
"""

from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

T = TypeVar("T")

_WIDE = ("cpu", "cuda", "meta")


def is_wide(device: torch.device) -> bool:
    """Whether torch has float64 and sparse matrices on a device."""
    return device.type in _WIDE


def at_wide(x: Tensor) -> Tensor:
    """A tensor where float64 can be had: as it is, or on the CPU if its device has none."""
    return x if is_wide(x.device) else x.cpu()


def widened(x: Tensor) -> Tensor:
    """A tensor in float64, on the CPU if its device has none."""
    return at_wide(x).double()


def moved(value: T, device: torch.device | str) -> T:
    """What was computed elsewhere on a device: tensors, alone or in a tuple or a dataclass.

    Numbers in float64 become float32 where the device has no float64.
    """
    device = torch.device(device)
    found: Any = value
    if isinstance(value, Tensor):
        narrow = value.dtype == torch.float64 and not is_wide(device)
        found = (value.float() if narrow else value).to(device)
    elif isinstance(value, tuple):
        parts = (moved(part, device) for part in value)
        found = type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    elif is_dataclass(value) and not isinstance(value, type):
        found = replace(
            value, **{f.name: moved(getattr(value, f.name), device) for f in fields(value)}
        )
    return cast(T, found)
