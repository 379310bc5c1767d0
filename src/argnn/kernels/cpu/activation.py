# mypy: disable-error-code="no-untyped-def"
"""Layer normalisation, ReLU and dropout of each row, in one pass."""

import numpy as np
from torch import Tensor

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.launch import floats, launch_rows, numbers

#: Rows that are added up one after the other; the sums do not depend on the number of threads.
_BLOCK = 64


@over_rows
def _norm_relu_dropout(first, last, x, weight, bias, drawn, given, out, statistics):
    eps, limit, scale, share = given
    width, zero = x.shape[1], x.dtype.type(0)
    for i in range(first, last):
        row, own, byte = x[i], out[i], drawn[i]
        total = zero
        for k in range(width):
            total += row[k]
        mean = total * share
        total = zero
        for k in range(width):
            total += (row[k] - mean) * (row[k] - mean)
        factor = x.dtype.type(1) / np.sqrt(total * share + eps)
        statistics[i, 0], statistics[i, 1] = mean, factor
        for k in range(width):
            y = (row[k] - mean) * factor * weight[k] + bias[k]
            y = zero if y <= zero else y  # what is not a number stays so
            own[k] = y * scale if byte[k] < limit else zero


def norm_relu_dropout(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, drawn: Tensor, limit: int
) -> tuple[Tensor, Tensor]:
    """Normalised rows without negative entries, some left out; mean and factor of each row.

    Args:
        x: Node values, ``[N, D]``.
        weight: Of each channel, ``[D]``.
        bias: Of each channel, ``[D]``.
        eps: Added to variances.
        drawn: Random bytes, ``[N, D]`` uint8.
        limit: Entries whose byte is less are kept, times 256 / limit.
    """
    out, statistics = floats(x, *x.shape), floats(x, x.size(0), 2)
    given = numbers((eps, limit, 256 / limit, 1 / x.size(1)), x)
    launch_rows(_norm_relu_dropout, x, weight, bias, drawn, given, out, statistics)
    return out, statistics


@over_rows
def _norm_relu_dropout_backward(first, last, sums, x, weight, statistics, out, grad, scales, to_x):
    scale, share = scales
    zero, width, num_rows = x.dtype.type(0), x.shape[1], x.shape[0]
    for block in range(first, last):
        to_weight, to_bias = sums[block, 0], sums[block, 1]
        to_weight[:] = 0
        to_bias[:] = 0
        for i in range(block * _BLOCK, min((block + 1) * _BLOCK, num_rows)):
            row, result, arriving, back = x[i], out[i], grad[i], to_x[i]
            mean, factor = statistics[i, 0], statistics[i, 1]
            total, inner = zero, zero
            for k in range(width):
                pushed = scale * arriving[k] if result[k] > zero else zero
                normal = (row[k] - mean) * factor
                to_weight[k] += pushed * normal
                to_bias[k] += pushed
                pushed *= weight[k]
                total += pushed
                inner += pushed * normal
                back[k] = pushed
            total *= share
            inner *= share * factor
            for k in range(width):
                back[k] = factor * (back[k] - total - (row[k] - mean) * inner)


def norm_relu_dropout_backward(
    x: Tensor, weight: Tensor, statistics: Tensor, out: Tensor, grad: Tensor, scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of :func:`norm_relu_dropout` for ``x``, ``weight`` and ``bias``.

    Args:
        x: As before.
        weight: As before.
        statistics: As returned before.
        out: As returned before; where it is positive, an entry was kept.
        grad: Gradient there.
        scale: By which kept entries were multiplied.
    """
    to_x = floats(x, *x.shape)
    sums = floats(x, -(-x.size(0) // _BLOCK), 2, x.size(1))
    given = numbers((scale, 1 / x.size(1)), x)
    launch_rows(_norm_relu_dropout_backward, sums, x, weight, statistics, out, grad, given, to_x)
    to_weight, to_bias = sums.sum(0)
    return to_x, to_weight, to_bias
