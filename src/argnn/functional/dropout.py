"""Dropout that is cheap on a CPU, where drawing random numbers costs more than the layers."""

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.errors import require
from argnn.kernels import fused
from argnn.kernels.choice import is_fused, plain_path


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Zero entries with probability ``p`` and scale the others to keep the mean.

    On a CPU one 64-bit random number is used for eight entries, which is five times as fast as
    PyTorch's dropout. This rounds ``p`` to a multiple of 1/256, and the scale is that of the
    rounded value. On other devices this is PyTorch's dropout.
    """
    require(0 <= p < 1, "p", "in [0, 1)", p)
    if not training or p == 0 or x.numel() == 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, p, training)
    kept = _kept(p)
    return x * (_random_bytes(x) < kept).to(x.dtype).mul_(256 / kept)


def norm_relu_dropout(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, p: float, training: bool
) -> Tensor:
    """Dropout of the positive parts of layer-normalised rows, ``[N, D]``.

    Training has a kernel for all three, with the random numbers of :func:`dropout` on a CPU, and
    others on a GPU. What it keeps for the gradient is kept anyway: ``x`` and the result.

    Args:
        x: Node values, ``[N, D]``.
        weight: Of each channel of the normalisation, ``[D]``.
        bias: Of each channel, ``[D]``.
        eps: Added to variances.
        p: Probability to drop an entry.
        training: Whether entries are dropped.
    """
    require(0 <= p < 1, "p", "in [0, 1)", p)
    drops = training and p > 0
    wanted = training and torch.is_grad_enabled() and not torch.compiler.is_compiling()
    wanted = wanted and x.numel() > 0 and x.shape[1:] == weight.shape == bias.shape
    # Without dropout, a CPU is as fast with torch's own operations.
    if wanted and (drops or x.is_cuda) and is_fused(x):
        drawn = _random_bytes(x) if drops else None
        return fused.norm_relu_dropout(x, weight, bias, eps, drawn, _kept(p) if drops else 256)
    return dropout(F.layer_norm(x, weight.shape, weight, bias, eps).relu_(), p, training)


def _kept(p: float) -> int:
    """How many of the 256 values of a byte keep an entry."""
    return min(max(256 - round(256 * p), 1), 255)


@plain_path  # bytes that are words elsewhere break a compiled graph that returns them
def _random_bytes(x: Tensor) -> Tensor:
    """A byte for each entry."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64, device=x.device)
    # Nearly all values of int64, so that every byte takes all 256 values.
    words.random_(-(2**63), 2**63 - 1)
    return words.view(torch.uint8)[: x.numel()].view(x.shape)
