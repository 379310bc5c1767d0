# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Kernels without edges: norms, the channel-wise modulation, and the metric's softplus."""

from typing import Any

import torch
import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]
from torch import Tensor

from argnn.kernels.gpu.launch import check_storage, floats, on_device, padded
from argnn.kernels.gpu.tiles import channels, modulation, modulation_slope

#: Elements that a program of four warps takes.
_BLOCK = 2048


def metric_norm(h: Tensor, g: Tensor) -> Tensor:
    r"""Metric norm of each node, :math:`\sqrt{\sum_k g_{ik} h_{ik}^2}`, ``[N]`` float32.

    Args:
        h: Node features, ``[N, D]``.
        g: Metric diagonals, ``[N, D]``.
    """
    norm = floats(h, h.size(0))
    over_nodes(norm_kernel, h, h=h, g=g, norm=norm)
    return norm


@triton.jit
def norm_kernel(
    h, g, norm, num_nodes, D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr
):
    """One number per row."""
    row, at, mask = row_block(num_nodes, D, BLOCK_D, BLOCK_N)
    x = tl.load(h + at, mask=mask, other=0.0).to(tl.float32)
    metric = tl.load(g + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(norm + row, tl.sqrt(tl.sum(metric * x * x, axis=1)), mask=row < num_nodes)


def modulate(z: Tensor, g: Tensor, eps0: Tensor, added: Tensor | None = None) -> Tensor:
    r"""Channel-wise modulation, :math:`a + (\epsilon_0 + (1-\epsilon_0)\tanh(-\log g))\,z`.

    Args:
        z: Node values, ``[N, D]``.
        g: Metric diagonals, ``[N, D]``.
        eps0: Baseline, one float32 on the device.
        added: What to add, ``[N, D]``; nothing where None.
    """
    out = torch.empty_like(z)
    over_nodes(modulate_kernel, z, z=z, g=g, eps0=eps0, added=added, out=out)
    return out


@triton.jit
def modulate_kernel(
    z,
    g,
    eps0,
    added,
    out,
    num_nodes,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows of the modulated values."""
    _row, at, mask = row_block(num_nodes, D, BLOCK_D, BLOCK_N)
    x = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
    t = modulation(tl.load(g + at, mask=mask, other=1.0).to(tl.float32))
    base = tl.load(eps0)
    result = (base + (1 - base) * t) * x
    if added is not None:
        result += tl.load(added + at, mask=mask, other=0.0).to(tl.float32)
    tl.store(out + at, result.to(out.dtype.element_ty), mask=mask)


def modulate_backward(
    z: Tensor, g: Tensor, eps0: Tensor, grad_out: Tensor, need_eps0: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of :func:`modulate`: of ``z``, of ``g``, and each node's part in ``eps0``'s.

    Args:
        z: Node values, ``[N, D]``.
        g: Metric diagonals, ``[N, D]``.
        eps0: Baseline, one float32 on the device.
        grad_out: Gradient at the result, ``[N, D]``.
        need_eps0: Whether the gradient of ``eps0`` is wanted, ``[N]`` float32.
    """
    grad_z, grad_g = torch.empty_like(z), torch.empty_like(g)
    grad_eps0 = floats(z, z.size(0)) if need_eps0 else None
    over_nodes(
        modulate_backward_kernel,
        z,
        z=z,
        g=g,
        eps0=eps0,
        grad_out=grad_out,
        grad_z=grad_z,
        grad_g=grad_g,
        grad_eps0=grad_eps0,
    )
    return grad_z, grad_g, grad_eps0


@triton.jit
def modulate_backward_kernel(
    z,
    g,
    eps0,
    grad_out,
    grad_z,
    grad_g,
    grad_eps0,
    num_nodes,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows of the gradients."""
    row, at, mask = row_block(num_nodes, D, BLOCK_D, BLOCK_N)
    x = tl.load(z + at, mask=mask, other=0.0).to(tl.float32)
    metric = tl.load(g + at, mask=mask, other=1.0).to(tl.float32)
    pushed = tl.load(grad_out + at, mask=mask, other=0.0).to(tl.float32)
    t = modulation(metric)
    base = tl.load(eps0)
    to_z = (base + (1 - base) * t) * pushed
    to_g = (1 - base) * modulation_slope(metric) * x * pushed
    tl.store(grad_z + at, to_z.to(grad_z.dtype.element_ty), mask=mask)
    tl.store(grad_g + at, to_g.to(grad_g.dtype.element_ty), mask=mask)
    if grad_eps0 is not None:
        tl.store(grad_eps0 + row, tl.sum(pushed * x * (1 - t), axis=1), mask=row < num_nodes)


def moment_terms(share: Tensor, h: Tensor, grad_mean: Tensor, grad_dispersion: Tensor) -> Tensor:
    r"""What the sources gather of a node for the gradient of the moments, ``[N, 2 D]``.

    The rows :math:`\mathbf{p}_i = s_i (\bar{\mathbf{a}}_i - 2 \bar{\mathbf{v}}_i \mathbf{h}_i)` and
    :math:`\mathbf{q}_i = 2 s_i \bar{\mathbf{v}}_i`, side by side.

    Args:
        share: One over the weighted degree of each node or 0, ``[N]`` float32.
        h: Node values, ``[N, D]``.
        grad_mean: Gradient at the mean of the neighbours, ``[N, D]``.
        grad_dispersion: Gradient at their dispersion, ``[N, D]``.
    """
    packed = h.new_empty(h.size(0), 2 * h.size(1))
    gradients = {"grad_mean": grad_mean, "grad_dispersion": grad_dispersion}
    over_nodes(moment_terms_kernel, h, share=share, h=h, **gradients, packed=packed)
    return packed


@triton.jit
def moment_terms_kernel(
    share,
    h,
    grad_mean,
    grad_dispersion,
    packed,
    num_nodes,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """Rows of the constant terms, and of the factors of the source's own values."""
    row, at, mask = row_block(num_nodes, D, BLOCK_D, BLOCK_N)
    weight = tl.load(share + row, mask=row < num_nodes, other=0.0)[:, None]
    x = tl.load(h + at, mask=mask, other=0.0).to(tl.float32)
    pull = tl.load(grad_mean + at, mask=mask, other=0.0).to(tl.float32)
    double = 2 * weight * tl.load(grad_dispersion + at, mask=mask, other=0.0).to(tl.float32)
    first = packed + at + row[:, None] * D
    tl.store(first, (weight * pull - double * x).to(packed.dtype.element_ty), mask=mask)
    tl.store(first + D, double.to(packed.dtype.element_ty), mask=mask)


@triton.jit
def row_block(num_nodes, D: tl.constexpr, BLOCK_D: tl.constexpr, BLOCK_N: tl.constexpr):
    """This program's rows, the places of their elements, and which of those exist."""
    row = tl.program_id(0).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    d, d_mask = channels(D, BLOCK_D)
    return row, row[:, None] * D + d[None, :], (row < num_nodes)[:, None] & d_mask[None, :]


def over_nodes(kernel: Any, like: Tensor, **arguments: Any) -> None:
    """Run a kernel on all rows, in programs of some of them, see :func:`row_block`."""
    check_storage(like)
    num_nodes, num_channels = like.shape
    if num_nodes == 0:
        return
    block_d = padded(num_channels)
    with on_device(like):
        kernel[(programs(like),)](
            **arguments,
            num_nodes=num_nodes,
            D=num_channels,
            BLOCK_D=block_d,
            BLOCK_N=_block_n(block_d),
        )


def programs(like: Tensor) -> int:
    """How many programs :func:`over_nodes` starts."""
    return -(-like.size(0) // _block_n(padded(like.size(1))))


def _block_n(block_d: int) -> int:
    return max(_BLOCK // block_d, 1)


def softplus_diagonal(
    raw: Tensor, floor: float, ceiling: float | None, sharpness: float, clamp: bool
) -> Tensor:
    r"""Metric diagonal from unconstrained values, :math:`\mathrm{softplus}_\beta(r) + \epsilon`.

    Args:
        raw: Unconstrained values, any shape.
        floor: The smallest metric.
        ceiling: The largest metric; none where None.
        sharpness: :math:`\beta` of the softplus.
        clamp: Whether the floor cuts smaller values off instead of being added.
    """
    g = torch.empty_like(raw)
    _over_elements(
        softplus_kernel,
        raw,
        raw=raw,
        g=g,
        floor=floor,
        ceiling=ceiling,
        sharpness=sharpness,
        CLAMP=clamp,
    )
    return g


@triton.jit
def softplus_kernel(
    raw, g, floor, ceiling, sharpness, count, CLAMP: tl.constexpr, BLOCK: tl.constexpr
):
    """max(x, 0) + log1p(exp(-|x|)), the logarithm as 2 artanh(u / (2 + u))."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    x = sharpness * tl.load(raw + at, mask=mask, other=0.0).to(tl.float32)
    u = tl.exp(-tl.abs(x))
    z = u / (2 + u)
    zz = z * z
    series = 1 + zz * (1 / 3 + zz * (1 / 5 + zz * (1 / 7 + zz * (1 / 9 + zz * (1 / 11 + zz / 13)))))
    result = (tl.maximum(x, 0.0) + 2 * z * series) / sharpness
    if CLAMP:
        result = tl.maximum(result, floor)
    else:
        result += floor
    if ceiling is not None:
        result = tl.minimum(result, ceiling)
    tl.store(g + at, result.to(g.dtype.element_ty), mask=mask)


def softplus_diagonal_backward(
    g: Tensor,
    grad_g: Tensor,
    floor: float,
    ceiling: float | None,
    sharpness: float,
    clamp: bool,
) -> Tensor:
    r"""Gradient of :func:`softplus_diagonal` from its result alone.

    The slope of the softplus at height :math:`y` is :math:`1 - e^{-\beta y}`; it is zero where
    the floor or the ceiling cut.

    Args:
        g: What the forward pass returned.
        grad_g: Gradient there.
        floor: The smallest metric.
        ceiling: The largest metric; none where None.
        sharpness: :math:`\beta` of the softplus.
        clamp: Whether the floor cuts smaller values off instead of being added.
    """
    grad_raw = torch.empty_like(g)
    _over_elements(
        softplus_backward_kernel,
        g,
        g=g,
        grad_g=grad_g,
        grad_raw=grad_raw,
        floor=_as_stored(floor, g.dtype) if clamp else floor,
        ceiling=None if ceiling is None else _as_stored(ceiling, g.dtype),
        sharpness=sharpness,
        CLAMP=clamp,
    )
    return grad_raw


@triton.jit
def softplus_backward_kernel(
    g, grad_g, grad_raw, floor, ceiling, sharpness, count, CLAMP: tl.constexpr, BLOCK: tl.constexpr
):
    """1 - exp(-x), by its series where x is small."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = at < count
    height = tl.load(g + at, mask=mask, other=1.0).to(tl.float32)
    pushed = tl.load(grad_g + at, mask=mask, other=0.0).to(tl.float32)
    if CLAMP:
        x = sharpness * height
        pushed = tl.where(height > floor, pushed, 0.0)
    else:
        x = sharpness * tl.maximum(height - floor, 0.0)
    if ceiling is not None:
        pushed = tl.where(height < ceiling, pushed, 0.0)
    inner = 1 - x * (1 / 5) * (1 - x * (1 / 6) * (1 - x * (1 / 7) * (1 - x * (1 / 8))))
    series = x * (1 - x * 0.5 * (1 - x * (1 / 3) * (1 - x * 0.25 * inner)))
    slope = tl.where(x < 0.5, series, 1 - tl.exp(-x))
    tl.store(grad_raw + at, (slope * pushed).to(grad_raw.dtype.element_ty), mask=mask)


def _over_elements(kernel: Any, like: Tensor, **arguments: Any) -> None:
    check_storage(like)
    count = like.numel()
    if count == 0:
        return
    with on_device(like):
        kernel[(-(-count // _BLOCK),)](**arguments, count=count, BLOCK=_BLOCK)


def _as_stored(value: float, dtype: torch.dtype) -> float:
    return torch.tensor(value, dtype=dtype).item()
