# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Sums over neighbours with constant weights: means, dispersions, differences and energies."""

import torch
import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]
from torch import Tensor

from argnn.kernels.csr import Csr
from argnn.kernels.gpu.launch import edge_weight, floats, over_rows
from argnn.kernels.gpu.pointwise import moment_terms
from argnn.kernels.gpu.tiles import (
    add_tile,
    channels,
    empty_sum,
    finish_sum,
    gather,
    load_row,
    load_tile,
    part_or_whole,
    segment,
    tile_count,
)


def gather_sum(
    csr: Csr,
    x: Tensor,
    left: Tensor | None,
    right: Tensor | None,
    diagonal: Tensor | None = None,
) -> Tensor:
    r"""Weighted sum over neighbours, :math:`c_i x_i + l_i \sum_j w_{ij} r_j x_j`, ``[N, D]``.

    Args:
        csr: Who hears from whom.
        x: Node values, ``[N, D]``.
        left: Weight of each row, ``[N]`` float32; 1 where None.
        right: Weight of each column, ``[N]`` float32; 1 where None.
        diagonal: Weight of a node's own value, ``[N]`` float32; 0 where None.
    """
    return _weighted_sum(csr, x, left, right, diagonal)


def energy_gradient(
    transpose: Csr,
    y: Tensor,
    degree: Tensor,
    share: Tensor,
    grad: Tensor,
    factors: tuple[float, float],
) -> Tensor:
    """Gradient of the summed energies of :func:`laplacian` on a symmetric graph, ``[N, D]``.

    Args:
        transpose: The graph, reversed.
        y: What :func:`laplacian` returned first, with scale one over twice the degree.
        degree: Weighted number of neighbours of each node, ``[N]`` float32.
        share: One over it, ``[N]`` float32.
        grad: Gradient at the two summed energies, ``[2]`` float32.
        factors: As given to :func:`laplacian`.
    """
    return _weighted_sum(transpose, y, None, share, degree, grad.contiguous(), factors)


def _weighted_sum(
    csr: Csr,
    x: Tensor,
    left: Tensor | None,
    right: Tensor | None,
    diagonal: Tensor | None,
    grad: Tensor | None = None,
    factors: tuple[float, float] = (1.0, 1.0),
) -> Tensor:
    out = torch.empty_like(x)
    over_rows(
        "gather_sum",
        sum_kernel,
        csr,
        x,
        x=x,
        weight=edge_weight(csr),
        left=left,
        right=right,
        diagonal=diagonal,
        grad=grad,
        ricci_factor=factors[0],
        smooth_factor=factors[1],
        out=out,
    )
    return out


@triton.jit
def sum_kernel(
    rows,
    starts,
    stops,
    slots,
    partial,
    column,
    x,
    weight,
    left,
    right,
    diagonal,
    grad,
    ricci_factor,
    smooth_factor,
    out,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    STAGES: tl.constexpr,
    FOLD: tl.constexpr,
    COMBINE: tl.constexpr,
):
    """Weighted sum of gathered rows and the own row.

    With ``grad`` the weights are those of :func:`energy_gradient`, which are known to the
    device alone.
    """
    row, start, stop, program = segment(rows, starts, stops)
    d, d_mask = channels(D, BLOCK_D)
    total = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            part = load_tile(partial + place.to(tl.int64) * D, d, place < stop, d_mask)
            total = add_tile(total, part, FOLD)
            place += BLOCK_E
    else:
        index = tl.load(column + place, mask=place < stop, other=0)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            tile = gather(x, index, d, mask, d_mask, D)
            if right is not None:
                tile *= tl.load(right + index, mask=mask, other=0.0)[:, None]
            if weight is not None:
                tile *= tl.load(weight + place, mask=mask, other=0.0)[:, None]
            total = add_tile(total, tile, FOLD)
            place = ahead
            index = following
    result = finish_sum(total, FOLD)
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        part_mask, d_mask = part_or_whole(slot, d, d_mask)
        tl.store(partial + slot * D + d, result, mask=part_mask)
    if left is not None:
        result *= tl.load(left + row)
    if diagonal is not None:
        own_weight = tl.load(diagonal + row)
        if grad is not None:
            ricci = tl.load(grad) * ricci_factor
            own_weight = ricci + 8 * tl.load(grad + 1) * smooth_factor * own_weight
            result *= -ricci
        result += own_weight * load_row(x, row, d, d_mask, D)
    tl.store(out + row * D + d, result.to(out.dtype.element_ty), mask=d_mask)


def laplacian(
    csr: Csr, g: Tensor, scale: Tensor | None, factors: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    r"""Sum of differences to the neighbours, and two energies of each node.

    The first is :math:`y_i = c_i \sum_j w_{ij} (g_i - g_j)`, ``[N, D]``, exactly zero for constant
    ``g``; the energies are :math:`|y_i|^2` and :math:`\sum_j w_{ij} |g_i - g_j|^2`, ``[N, 2]``
    float32.

    Args:
        csr: Who hears from whom.
        g: Node values, ``[N, D]``.
        scale: Weight of each row, ``[N]`` float32; 1 where None.
        factors: What to multiply the energies by.
    """
    out, energy = torch.empty_like(g), floats(g, g.size(0), 2)
    over_rows(
        "laplacian",
        laplacian_kernel,
        csr,
        g,
        width=2 * g.size(1),
        g=g,
        weight=edge_weight(csr),
        scale=scale,
        ricci_factor=factors[0],
        smooth_factor=factors[1],
        out=out,
        energy=energy,
    )
    return out, energy


@triton.jit
def laplacian_kernel(
    rows,
    starts,
    stops,
    slots,
    partial,
    column,
    g,
    weight,
    scale,
    ricci_factor,
    smooth_factor,
    out,
    energy,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    STAGES: tl.constexpr,
    FOLD: tl.constexpr,
    COMBINE: tl.constexpr,
):
    """Differences and their squares from one pass over the neighbours."""
    row, start, stop, program = segment(rows, starts, stops)
    d, d_mask = channels(D, BLOCK_D)
    first = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    second = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            at = partial + place.to(tl.int64) * (2 * D)
            first = add_tile(first, load_tile(at, d, mask, d_mask), FOLD)
            second = add_tile(second, load_tile(at + D, d, mask, d_mask), FOLD)
            place += BLOCK_E
    else:
        own = load_row(g, row, d, d_mask, D)
        index = tl.load(column + place, mask=place < stop, other=0)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            tile = gather(g, index, d, mask, d_mask, D)
            delta = tl.where(mask[:, None], own[None, :] - tile, 0.0)
            weighted = delta
            if weight is not None:
                weighted = delta * tl.load(weight + place, mask=mask, other=0.0)[:, None]
            first = add_tile(first, weighted, FOLD)
            second = add_tile(second, weighted * delta, FOLD)
            place = ahead
            index = following
    first = finish_sum(first, FOLD)
    second = finish_sum(second, FOLD)
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        part_mask, d_mask = part_or_whole(slot, d, d_mask)
        at = partial + slot * (2 * D) + d
        tl.store(at, first, mask=part_mask)
        tl.store(at + D, second, mask=part_mask)
        whole = slot < 0
    else:
        whole = row >= 0
    if scale is not None:
        first *= tl.load(scale + row)
    tl.store(energy + 2 * row, ricci_factor * tl.sum(first * first, axis=0), mask=whole)
    tl.store(energy + 2 * row + 1, smooth_factor * tl.sum(second, axis=0), mask=whole)
    tl.store(out + row * D + d, first.to(out.dtype.element_ty), mask=d_mask)


def moments(csr: Csr, h: Tensor, share: Tensor | None = None) -> tuple[Tensor, Tensor]:
    r"""Mean of the neighbours and mean squared difference to them, both ``[N, D]``.

    .. math::
        \mu_i = \frac{1}{d_i}\sum_j w_{ij} h_j, \qquad
        v_i = \frac{1}{d_i}\sum_j w_{ij} (h_j - h_i)^2

    Zero at isolated nodes.

    Args:
        csr: Who hears from whom.
        h: Node values, ``[N, D]``.
        share: One over the weighted degree :math:`d_i` or 0, ``[N]`` float32; without weights
            None.
    """
    mean, dispersion = torch.empty_like(h), torch.empty_like(h)
    over_rows(
        "moments",
        moments_kernel,
        csr,
        h,
        width=2 * h.size(1),
        rowptr=csr.rowptr,
        h=h,
        weight=edge_weight(csr),
        shares=share,
        mean=mean,
        dispersion=dispersion,
    )
    return mean, dispersion


@triton.jit
def moments_kernel(
    rows,
    starts,
    stops,
    slots,
    partial,
    column,
    rowptr,
    h,
    weight,
    shares,
    mean,
    dispersion,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    STAGES: tl.constexpr,
    FOLD: tl.constexpr,
    COMBINE: tl.constexpr,
):
    """Both moments from one pass over the neighbours."""
    row, start, stop, program = segment(rows, starts, stops)
    d, d_mask = channels(D, BLOCK_D)
    first = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    second = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            at = partial + place.to(tl.int64) * (2 * D)
            first = add_tile(first, load_tile(at, d, mask, d_mask), FOLD)
            second = add_tile(second, load_tile(at + D, d, mask, d_mask), FOLD)
            place += BLOCK_E
    else:
        own = load_row(h, row, d, d_mask, D)
        index = tl.load(column + place, mask=place < stop, other=0)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            tile = gather(h, index, d, mask, d_mask, D)
            delta = tl.where(mask[:, None], tile - own[None, :], 0.0)
            weighted = delta
            if weight is not None:
                factor = tl.load(weight + place, mask=mask, other=0.0)[:, None]
                tile *= factor
                weighted = delta * factor
            first = add_tile(first, tile, FOLD)
            second = add_tile(second, weighted * delta, FOLD)
            place = ahead
            index = following
    first = finish_sum(first, FOLD)
    second = finish_sum(second, FOLD)
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        part_mask, d_mask = part_or_whole(slot, d, d_mask)
        at = partial + slot * (2 * D) + d
        tl.store(at, first, mask=part_mask)
        tl.store(at + D, second, mask=part_mask)
    if shares is None:
        degree = (tl.load(rowptr + row + 1) - tl.load(rowptr + row)).to(tl.float32)
        share = 1 / tl.maximum(degree, 1.0)
    else:
        share = tl.load(shares + row)
    tl.store(mean + row * D + d, (first * share).to(mean.dtype.element_ty), mask=d_mask)
    second *= share
    tl.store(dispersion + row * D + d, second.to(dispersion.dtype.element_ty), mask=d_mask)


def moments_backward(
    transpose: Csr,
    share: Tensor,
    h: Tensor,
    mean: Tensor,
    grad_mean: Tensor,
    grad_dispersion: Tensor,
) -> Tensor:
    r"""Gradient of :func:`moments`, ``[N, D]``.

    With the rows :math:`\mathbf{p}_i` and :math:`\mathbf{q}_i` of
    :func:`~argnn.kernels.gpu.pointwise.moment_terms` the sources get
    :math:`\sum_i \mathbf{p}_i + \mathbf{h}_j \sum_i \mathbf{q}_i`.

    Args:
        transpose: The transpose of what :func:`moments` was given.
        share: One over the weighted degree of each node, 0 where it has no neighbour, ``[N]``
            float32.
        h: Node values, ``[N, D]``.
        mean: The first moment, ``[N, D]``.
        grad_mean: Gradient at the first moment, ``[N, D]``.
        grad_dispersion: Gradient at the second, ``[N, D]``.
    """
    grad_h = torch.empty_like(h)
    over_rows(
        "moments_backward",
        moments_backward_kernel,
        transpose,
        h,
        width=2 * h.size(1),
        packed=moment_terms(share, h, grad_mean, grad_dispersion),
        edge_weight=edge_weight(transpose),
        share=share,
        h=h,
        mean=mean,
        grad_dispersion=grad_dispersion,
        grad_h=grad_h,
    )
    return grad_h


@triton.jit
def moments_backward_kernel(
    rows,
    starts,
    stops,
    slots,
    partial,
    column,
    packed,
    edge_weight,
    share,
    h,
    mean,
    grad_dispersion,
    grad_h,
    D: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_E: tl.constexpr,
    STAGES: tl.constexpr,
    FOLD: tl.constexpr,
    COMBINE: tl.constexpr,
):
    """What a node gets back from those it sent to, and from its own dispersion."""
    row, start, stop, program = segment(rows, starts, stops)
    d, d_mask = channels(D, BLOCK_D)
    constant = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    factor = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            at = partial + place.to(tl.int64) * (2 * D)
            constant = add_tile(constant, load_tile(at, d, mask, d_mask), FOLD)
            factor = add_tile(factor, load_tile(at + D, d, mask, d_mask), FOLD)
            place += BLOCK_E
    else:
        index = tl.load(column + place, mask=place < stop, other=0)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            at = packed + index.to(tl.int64) * (2 * D)
            first = load_tile(at, d, mask, d_mask)
            second = load_tile(at + D, d, mask, d_mask)
            if edge_weight is not None:
                weight = tl.load(edge_weight + place, mask=mask, other=0.0)[:, None]
                first *= weight
                second *= weight
            constant = add_tile(constant, first, FOLD)
            factor = add_tile(factor, second, FOLD)
            place = ahead
            index = following
    constant = finish_sum(constant, FOLD)
    factor = finish_sum(factor, FOLD)
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        part_mask, d_mask = part_or_whole(slot, d, d_mask)
        at = partial + slot * (2 * D) + d
        tl.store(at, constant, mask=part_mask)
        tl.store(at + D, factor, mask=part_mask)
    own = load_row(h, row, d, d_mask, D)
    spread = load_row(grad_dispersion, row, d, d_mask, D)
    drift = load_row(mean, row, d, d_mask, D) - own
    result = constant + own * factor
    result -= tl.where(tl.load(share + row) > 0, 2 * spread * drift, 0.0)
    tl.store(grad_h + row * D + d, result.to(grad_h.dtype.element_ty), mask=d_mask)
