"""Numeric floors per dtype, and square roots that can be differentiated at zero.

The names of :mod:`argnn.kernels.wide` can also be imported from here.
"""

import torch
from torch import Tensor

from argnn.kernels.wide import at_wide, is_wide, moved, widened

__all__ = [
    "EPS", "accumulation_dtype", "at_wide", "default_eps", "in_autocast_dtype", "is_wide", "moved",
    "safe_sqrt", "widened",
]  # fmt: skip

#: Added to every denominator. Half types are computed in float32, hence their value.
EPS: dict[torch.dtype, float] = {
    torch.float64: 1e-12,
    torch.float32: 1e-8,
    torch.bfloat16: 1e-8,
    torch.float16: 1e-8,
}
#: Devices that autocast knows here. Asked once: torch 2.11 cannot compile the question.
_AUTOCAST_DEVICES = frozenset(
    name for name in ("cpu", "cuda", "mps") if torch.amp.is_autocast_available(name)
)


def default_eps(dtype: torch.dtype) -> float:
    """The default floor of denominators of this dtype."""
    try:
        return EPS[dtype]
    except KeyError:
        raise ValueError(f"expected a floating point tensor (got {dtype})") from None


def accumulation_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: float32 for the half types, else the type itself.

    Squares of half-precision features overflow at 256 and vanish at 2e-4, so no
    formula of this package is evaluated in a half type.
    """
    default_eps(dtype)
    return torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype


def in_autocast_dtype(x: Tensor) -> Tensor:
    """A float32 tensor in the type that ``torch.autocast`` computes in; any other as it is.

    Sums over edges gather their rows in this type, which halves the bytes of an edge. They are
    added up in float32.

    Example:
        >>> with torch.autocast("cpu", torch.bfloat16):
        ...     in_autocast_dtype(torch.ones(1)).dtype
        torch.bfloat16
        >>> in_autocast_dtype(torch.ones(1)).dtype
        torch.float32
    """
    device = x.device.type
    if x.dtype != torch.float32 or device not in _AUTOCAST_DEVICES:
        return x
    if torch.is_autocast_enabled(device):
        return x.to(torch.get_autocast_dtype(device))
    return x


def safe_sqrt(x: Tensor) -> Tensor:
    """Square root of a non-negative tensor whose gradient at zero is zero, not infinite.

    Example:
        >>> x = torch.tensor([0.0, 4.0], requires_grad=True)
        >>> safe_sqrt(x).sum().backward()
        >>> x.grad.tolist()
        [0.0, 0.25]
    """
    positive = x > 0
    return torch.where(positive, torch.where(positive, x, 1.0).sqrt(), 0.0)
