"""Which implementation of an edge sum runs."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor

from argnn.errors import require

P = ParamSpec("P")
R = TypeVar("R")

MODES = ("auto", "plain", "fused")

#: Widest features the GPU kernels hold in registers.
MAX_GPU_CHANNELS = 512
#: Numbers, of nodes or edges times channels, below which a CPU does without kernels: plain torch
#: is about as fast there, and a first run need not compile anything.
MIN_CPU_NUMBERS = 2**17
_BACKENDS = {"cpu": "argnn.kernels.cpu", "cuda": "argnn.kernels.gpu"}
_SINGLE = (torch.float32, torch.bfloat16, torch.float16)

_mode = "auto"


class use:  # noqa: N801 - reads like the function it is used as
    """Choose the implementation from here on, or for the length of a ``with`` block.

    Args:
        mode: ``"auto"``, ``"plain"`` or ``"fused"``.

    Example:
        >>> with use("plain"):
        ...     current_mode()
        'plain'
        >>> current_mode()
        'auto'
    """

    def __init__(self, mode: str) -> None:
        global _mode
        require(mode in MODES, "mode", f"one of {MODES}", repr(mode))
        self._before, _mode = _mode, mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        global _mode
        _mode = self._before


def current_mode() -> str:
    """The mode that :class:`use` chose last."""
    return _mode


def is_fused(*tensors: Tensor, num_edges: int = 0, learns_weight: bool = False) -> bool:
    """Whether a kernel computes with these node tensors, ``[N, D]`` each.

    Args:
        *tensors: What the kernel would read.
        num_edges: How many edges it would visit.
        learns_weight: Whether the weights of the edges need a gradient.

    Raises:
        RuntimeError: Kernels are forced, but there is none for this device, dtype or shape, or
            for gradients of edge weights.
    """
    if _mode == "plain":
        return False
    obstacle = "gradients of edge weights" if learns_weight else _obstacle(tensors)
    if _mode == "fused":
        if obstacle is not None:
            raise RuntimeError(f"no fused kernel for {obstacle}; use('auto') or use('plain')")
        return True
    if obstacle is not None or any(t.dtype == torch.float64 for t in tensors):
        return False
    # A compiler cannot look into the plain path.
    return torch.compiler.is_compiling() or not _is_small(tensors, num_edges)


def _is_small(tensors: tuple[Tensor, ...], num_edges: int) -> bool:
    if any(t.device.type != "cpu" for t in tensors):
        return False
    return all(max(t.size(0), num_edges) * t.size(-1) < MIN_CPU_NUMBERS for t in tensors)


def _obstacle(tensors: tuple[Tensor, ...]) -> str | None:
    for t in tensors:
        device = t.device.type
        if device not in _BACKENDS:
            return f"device {device}"
        if t.dtype not in _SINGLE and not (t.dtype == torch.float64 and device == "cpu"):
            return f"{t.dtype} on {device}"
        if device == "cuda" and t.size(-1) > MAX_GPU_CHANNELS:
            return f"{t.size(-1)} channels on {device} (at most {MAX_GPU_CHANNELS})"
        if t.dim() != 2 or t.size(0) != tensors[0].size(0):  # kernels check no bounds
            return "shapes " + ", ".join(str(list(t.shape)) for t in tensors)
    return None


def backend(tensor: Tensor) -> ModuleType:
    """The kernels of a tensor's device, imported on first use."""
    return _imported(tensor.device.type)


@cache
def _imported(device_type: str) -> ModuleType:
    return import_module(_BACKENDS[device_type])


def plain_path(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a function that needs prepared edges: a compiler calls it, but does not look inside."""
    return torch.compiler.disable(function)
