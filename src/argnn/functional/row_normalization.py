"""Features with rows of sum one."""

import torch
from torch import Tensor

from argnn.kernels.contents import ContentCache, vouch_for

_CACHE: ContentCache[Tensor] = ContentCache()


def normalized_rows(x: Tensor) -> Tensor:
    r"""Rows scaled to absolute sum one, ``[N, F]``; zero rows stay zero.

    .. math:: x_{ik} / \sum_l |x_{il}|

    The absolute values matter only for features that can be negative, whose sum may be zero. For
    constant features on a CPU, the result and its sparse form are cached until the features change;
    do not write to it. On other devices it is computed in each call, which takes no longer than to
    check whether the features have changed.

    Example:
        >>> normalized_rows(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
        [[0.25, 0.75], [0.0, 0.0]]
    """
    if x.requires_grad or x.device.type != "cpu" or torch.compiler.is_compiling():
        return _scaled(x)
    return _CACHE.of(x, lambda: _constant(_scaled(x)))


def _constant(rows: Tensor) -> Tensor:
    vouch_for(rows)
    return rows


def _scaled(x: Tensor) -> Tensor:
    total = x.abs().sum(-1, keepdim=True)
    return x / torch.where(total > 0, total, 1.0)
