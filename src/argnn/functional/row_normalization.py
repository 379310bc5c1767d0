"""Features whose rows are scaled alike."""

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

_CACHE: WeakTensorKeyDictionary = WeakTensorKeyDictionary()


def normalized_rows(x: Tensor) -> Tensor:
    r"""Rows scaled to absolute sum one, ``[N, F]``; zero rows stay zero.

    .. math:: x_{ik} / \sum_l |x_{il}|

    The absolute values matter only for features that can be negative, whose plain sum may vanish.
    The result for constant features is kept: the same tensor object gives the same result without
    any work, and what is derived from that (its sparse form) is found again as well.

    Args:
        x: Node features, ``[N, F]``.

    Example:
        >>> normalized_rows(torch.tensor([[1.0, 3.0], [0.0, 0.0]])).tolist()
        [[0.25, 0.75], [0.0, 0.0]]
    """
    if x.requires_grad or x.is_inference() or torch.compiler.is_compiling():
        return _scaled(x)
    known = _CACHE.get(x)
    if known is None or known[0] != x._version:
        with torch.inference_mode(False), torch.no_grad():
            known = _CACHE[x] = (x._version, _scaled(x))
    rows: Tensor = known[1]
    return rows


def _scaled(x: Tensor) -> Tensor:
    total = x.abs().sum(-1, keepdim=True)
    return x / torch.where(total > 0, total, 1.0)
