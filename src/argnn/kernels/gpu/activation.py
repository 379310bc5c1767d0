# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Layer normalisation, ReLU and dropout of each row, in one pass."""

import torch
import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]
from torch import Tensor

from argnn.kernels.gpu.launch import floats
from argnn.kernels.gpu.pointwise import over_nodes, programs, row_block
from argnn.kernels.gpu.tiles import channels


def norm_relu_dropout(
    x: Tensor, weight: Tensor, bias: Tensor, eps: float, drawn: Tensor | None, limit: int
) -> tuple[Tensor, Tensor]:
    """Normalised rows without negative entries, some left out; mean and factor of each row.

    Args:
        x: Node values, ``[N, D]``.
        weight: Of each channel, ``[D]``.
        bias: Of each channel, ``[D]``.
        eps: Added to variances.
        drawn: Random bytes, ``[N, D]`` uint8; all entries are kept where None.
        limit: Entries whose byte is less are kept, times 256 / limit.
    """
    out, statistics = torch.empty_like(x), floats(x, x.size(0), 2)
    over_nodes(
        norm_relu_dropout_kernel,
        x,
        x=x,
        weight=weight,
        bias=bias,
        drawn=drawn,
        out=out,
        statistics=statistics,
        eps=eps,
        limit=limit,
        scale=256 / limit,
    )
    return out, statistics


@triton.jit
def norm_relu_dropout_kernel(
    x,
    weight,
    bias,
    drawn,
    out,
    statistics,
    eps,
    limit,
    scale,
    num_nodes,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Some rows of the result, and two numbers for each of them."""
    row, at, mask = row_block(num_nodes, D, BLOCK_D, BLOCK_N)
    d, d_mask = channels(D, BLOCK_D)
    own = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(own, axis=1) / D
    rest = tl.where(mask, own - mean[:, None], 0.0)
    factor = 1 / tl.sqrt(tl.sum(rest * rest, axis=1) / D + eps)
    is_row = row < num_nodes
    tl.store(statistics + 2 * row, mean, mask=is_row)
    tl.store(statistics + 2 * row + 1, factor, mask=is_row)
    w = tl.load(weight + d, mask=d_mask, other=0.0).to(tl.float32)
    b = tl.load(bias + d, mask=d_mask, other=0.0).to(tl.float32)
    y = rest * factor[:, None] * w[None, :] + b[None, :]
    y = tl.where(y <= 0, 0.0, y)  # what is not a number stays so
    if drawn is not None:
        y = tl.where(tl.load(drawn + at, mask=mask, other=0).to(tl.int32) < limit, y * scale, 0.0)
    tl.store(out + at, y.to(out.dtype.element_ty), mask=mask)


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
    to_x = torch.empty_like(x)
    sums = floats(x, programs(x), 2, x.size(1))
    over_nodes(
        norm_relu_dropout_backward_kernel,
        x,
        x=x,
        weight=weight,
        statistics=statistics,
        out=out,
        grad=grad,
        to_x=to_x,
        sums=sums,
        scale=scale,
    )
    to_weight, to_bias = sums.sum(0)
    return to_x, to_weight, to_bias


@triton.jit
def norm_relu_dropout_backward_kernel(
    x,
    weight,
    statistics,
    out,
    grad,
    to_x,
    sums,
    scale,
    num_nodes,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Some rows of the gradient, and what these add to the gradients of the weights."""
    row, at, mask = row_block(num_nodes, D, BLOCK_D, BLOCK_N)
    d, d_mask = channels(D, BLOCK_D)
    is_row = row < num_nodes
    mean = tl.load(statistics + 2 * row, mask=is_row, other=0.0)
    factor = tl.load(statistics + 2 * row + 1, mask=is_row, other=0.0)
    own = tl.load(x + at, mask=mask, other=0.0).to(tl.float32)
    normal = tl.where(mask, (own - mean[:, None]) * factor[:, None], 0.0)
    kept = tl.load(out + at, mask=mask, other=0.0).to(tl.float32) > 0
    pushed = scale * tl.load(grad + at, mask=mask, other=0.0).to(tl.float32)
    pushed = tl.where(kept, pushed, 0.0)
    place = sums + tl.program_id(0).to(tl.int64) * 2 * D + d
    tl.store(place, tl.sum(pushed * normal, axis=0), mask=d_mask)
    tl.store(place + D, tl.sum(pushed, axis=0), mask=d_mask)
    pushed *= tl.load(weight + d, mask=d_mask, other=0.0).to(tl.float32)[None, :]
    total = tl.sum(pushed, axis=1) / D
    inner = tl.sum(pushed * normal, axis=1) / D
    result = factor[:, None] * (pushed - total[:, None] - normal * inner[:, None])
    tl.store(to_x + at, result.to(to_x.dtype.element_ty), mask=mask)
