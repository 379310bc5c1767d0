# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Modulated and attended messages: the backward pass.

The target pass walks the rows of the graph, turns the saved sums of each edge into the five
coefficients of its gradient and keeps them; the source pass walks the transpose and needs no
sum over channels any more.
"""

from typing import Any

import torch
import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]
from torch import Tensor

from argnn.kernels.csr import Csr
from argnn.kernels.edge_weights import EdgeWeights
from argnn.kernels.gpu.launch import floats, over_rows
from argnn.kernels.gpu.propagate import edge_modulation, edge_terms, sigmoid
from argnn.kernels.gpu.tiles import (
    add_tile,
    channels,
    empty_sum,
    finish_sum,
    gather,
    load_row,
    load_tile,
    modulation,
    modulation_slope,
    part_or_whole,
    segment,
    tile_count,
)


def propagate_backward(
    csr: Csr,
    transpose: Csr,
    h: Tensor,
    g: Tensor,
    m: Tensor | None,
    weights: EdgeWeights,
    saved: Tensor,
    grad_out: Tensor,
    need_h: bool,
    need_eps0: bool,
) -> tuple[Tensor | None, Tensor, Tensor | None, Tensor | None]:
    """Gradients of :func:`argnn.kernels.gpu.propagate`.

    Without that of the features, as in a first layer, no source has to gather rows.

    Args:
        csr: Who hears from whom.
        transpose: Its transpose, with the position of each entry in ``csr``.
        h: Node features, ``[N, D]``.
        g: Metric diagonals, ``[N, D]``.
        m: Messages, ``[N, C]``; the features where None.
        weights: As in the forward pass.
        saved: What the forward pass kept.
        grad_out: Gradient at the sums, ``[N, C]``.
        need_h: Whether the gradient of ``h`` is wanted.
        need_eps0: Whether the gradient of ``eps0`` is wanted.

    Returns:
        Gradients of ``h`` or None, of ``g``, and of ``m``, None where ``m`` is; and the part of
        each node in the gradient of ``eps0``, ``[N]`` float32, or None.
    """
    need_h = need_h or m is not None  # messages of their own come by the same pass
    attention = weights.attention
    target_norm = attention and weights.target_norm
    own_norm = attention and not target_norm
    num_nodes, num_channels = h.shape
    # The target side of sums that the source pass finishes stays in float32 until then.
    part_h = floats(h, num_nodes, num_channels) if need_h else None
    part_g = floats(g, num_nodes, num_channels) if own_norm else torch.empty_like(g)
    part_norm = floats(h, num_nodes) if own_norm else None
    grad_eps0 = floats(h, num_nodes) if need_eps0 else None
    target_width = (2 + attention + target_norm) * num_channels + 2
    source_width = num_channels + 1 + (0 if m is None else m.size(1))
    terms = edge_terms(csr, weights, grad_out.size(1))
    both: dict[str, Any] = {
        "channels": max(num_channels, grad_out.size(1)),
        "h": h,
        "g": g,
        "grad_out": grad_out,
        "part_h": part_h,
        "part_g": part_g,
        "part_norm": part_norm,
        "force": floats(h, csr.num_entries, 4),
        "stretch": floats(h, csr.num_entries) if attention else None,
    }
    over_rows(
        "propagate_target",
        target_kernel,
        csr,
        h,
        width=target_width,
        m=m,
        saved=saved,
        grad_eps0=grad_eps0,
        WIDTH=target_width,
        **both,
        **terms,
    )
    if not (need_h or own_norm):
        return None, part_g, None, grad_eps0
    grad_h = part_h if h.dtype == torch.float32 or not need_h else torch.empty_like(h)
    grad_g = part_g if g.dtype == part_g.dtype else torch.empty_like(g)
    grad_m = None if m is None else torch.empty_like(m)
    shapes = {name: value for name, value in terms.items() if name.isupper()}
    over_rows(
        "propagate_source",
        source_kernel,
        transpose,
        h,
        width=source_width,
        edge=transpose.edge,
        norm=weights.norm if own_norm else None,
        grad_h=grad_h,
        grad_g=grad_g,
        grad_m=grad_m,
        WIDTH=source_width,
        **both,
        **shapes,
    )
    return grad_h, grad_g, grad_m, grad_eps0


@triton.jit
def target_kernel(
    rows,
    starts,
    stops,
    slots,
    partial,
    column,
    h,
    g,
    m,
    norm,
    left,
    right,
    edge_weight,
    eps0,
    saved,
    grad_out,
    part_h,
    part_g,
    part_norm,
    grad_eps0,
    force,
    stretch,
    eps,
    D: tl.constexpr,
    C: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_E: tl.constexpr,
    STAGES: tl.constexpr,
    FOLD: tl.constexpr,
    ATTENTION: tl.constexpr,
    TARGET_NORM: tl.constexpr,
    WIDTH: tl.constexpr,
    COMBINE: tl.constexpr,
):
    """Target side of the gradient, and the coefficients of every edge for the source side.

    With a = 2 dtau / length^2, b = 2 dtau tau / (length root), dp, w and the gradient of the
    norm of the source (or of its square, divided by that, under the metric of the target):
    the gradient of delta is (a t - b) delta.
    """
    row, start, stop, program = segment(rows, starts, stops)
    d, d_mask = channels(D, BLOCK_D)
    own = load_row(h, row, d, d_mask, D)
    metric = load_row(g, row, d, d_mask, D)
    pull = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    twist = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    product = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    square = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    d_own_norm = tl.zeros((BLOCK_E,), tl.float32)
    d_eps0 = tl.zeros((BLOCK_E,), tl.float32)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            at = partial + place.to(tl.int64) * WIDTH
            pull = add_tile(pull, load_tile(at, d, mask, d_mask), FOLD)
            twist = add_tile(twist, load_tile(at + D, d, mask, d_mask), FOLD)
            if ATTENTION:
                product = add_tile(product, load_tile(at + 2 * D, d, mask, d_mask), FOLD)
            if TARGET_NORM:
                square = add_tile(square, load_tile(at + 3 * D, d, mask, d_mask), FOLD)
            d_own_norm += tl.load(at + (WIDTH - 2), mask=mask, other=0.0)
            d_eps0 += tl.load(at + (WIDTH - 1), mask=mask, other=0.0)
            place += BLOCK_E
    else:
        index = tl.load(column + place, mask=place < stop, other=0)
        c, c_mask = channels(C, BLOCK_C)
        t = modulation(metric)
        pushed = load_row(grad_out, row, c, c_mask, C)
        base = tl.load(eps0)
        if left is not None:
            own_weight = tl.load(left + row)
        if ATTENTION:
            own_norm = tl.load(norm + row)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            tile = gather(h, index, d, mask, d_mask, D)
            sent = tile if m is None else gather(m, index, c, mask, c_mask, C)
            at = saved + (4 if ATTENTION else 2) * place
            s = tl.load(at, mask=mask, other=0.0)
            q = tl.load(at + 1, mask=mask, other=0.0)
            # Everything below is a multiple of this, so masked edges are zero by it.
            d_weight = tl.sum(sent * pushed[None, :], axis=1)
            constant = tl.where(mask, 1.0, 0.0)
            if left is not None:
                constant *= own_weight
            if right is not None:
                constant *= tl.load(right + index, mask=mask, other=0.0)
            if edge_weight is not None:
                constant *= tl.load(edge_weight + place, mask=mask, other=0.0)
            tau, root, length = edge_modulation(s, q, eps)
            weight = base + (1 - base) * tau
            if ATTENTION:
                p = tl.load(at + 2, mask=mask, other=0.0)
                if TARGET_NORM:
                    v = tl.load(at + 3, mask=mask, other=0.0)
                    other_norm = tl.sqrt(v)
                else:
                    other_norm = tl.load(norm + index, mask=mask, other=0.0)
                inverse = 1 / (own_norm * other_norm + eps)
                alpha = p * inverse
                attended = sigmoid(alpha)
                d_product = d_weight * constant * weight * attended * (1 - attended) * inverse
                d_own_norm -= d_product * alpha * other_norm
                d_other_norm = -d_product * alpha * own_norm
                if TARGET_NORM:
                    d_other_norm *= 0.5 / tl.where(v > 0, other_norm, 1.0)
                    square = add_tile(square, d_other_norm[:, None] * tile * tile, FOLD)
                product = add_tile(product, d_product[:, None] * tile, FOLD)
                tl.store(force + 4 * place + 2, d_product, mask=mask)
                tl.store(stretch + place, d_other_norm, mask=mask)
                constant *= attended
            d_eps0 += d_weight * constant * (1 - tau)
            d_tau = d_weight * constant * (1 - base)
            a = 2 * d_tau / (length * length)
            b = 2 * d_tau * tau / (length * root)
            tl.store(force + 4 * place, a, mask=mask)
            tl.store(force + 4 * place + 1, b, mask=mask)
            tl.store(force + 4 * place + 3, constant * weight, mask=mask)
            delta = tile - own[None, :]
            if part_h is not None:
                pull = add_tile(pull, (b[:, None] - a[:, None] * t[None, :]) * delta, FOLD)
            twist = add_tile(twist, 0.5 * a[:, None] * delta * delta, FOLD)
            place = ahead
            index = following
    pull = finish_sum(pull, FOLD)
    twist = finish_sum(twist, FOLD)
    product = finish_sum(product, FOLD)
    square = finish_sum(square, FOLD)
    own_norm_total = tl.sum(d_own_norm, axis=0)
    eps0_total = tl.sum(d_eps0, axis=0)
    is_whole = row >= 0
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        is_whole = slot < 0
        is_part = slot >= 0
        part_mask, d_mask = part_or_whole(slot, d, d_mask)
        at = partial + slot * WIDTH
        tl.store(at + d, pull, mask=part_mask)
        tl.store(at + D + d, twist, mask=part_mask)
        if ATTENTION:
            tl.store(at + 2 * D + d, product, mask=part_mask)
        if TARGET_NORM:
            tl.store(at + 3 * D + d, square, mask=part_mask)
        tl.store(at + (WIDTH - 2), own_norm_total, mask=is_part)
        tl.store(at + (WIDTH - 1), eps0_total, mask=is_part)
    to_h = pull
    to_g = twist * modulation_slope(metric)
    if ATTENTION:
        to_h += metric * product
        to_g += own * product
    if TARGET_NORM:
        total_norm = tl.load(norm + row)
        share = own_norm_total / tl.where(total_norm > 0, total_norm, 1.0)
        to_h += share * metric * own
        to_g += square + 0.5 * share * own * own
    if part_norm is not None:
        tl.store(part_norm + row, own_norm_total, mask=is_whole)
    if grad_eps0 is not None:
        tl.store(grad_eps0 + row, eps0_total, mask=is_whole)
    if part_h is not None:
        tl.store(part_h + row * D + d, to_h, mask=d_mask)
    tl.store(part_g + row * D + d, to_g.to(part_g.dtype.element_ty), mask=d_mask)


@triton.jit
def source_kernel(
    rows,
    starts,
    stops,
    slots,
    partial,
    column,
    edge,
    h,
    g,
    norm,
    grad_out,
    part_h,
    part_g,
    part_norm,
    force,
    stretch,
    grad_h,
    grad_g,
    grad_m,
    D: tl.constexpr,
    C: tl.constexpr,
    BLOCK_D: tl.constexpr,
    BLOCK_C: tl.constexpr,
    BLOCK_E: tl.constexpr,
    STAGES: tl.constexpr,
    FOLD: tl.constexpr,
    ATTENTION: tl.constexpr,
    TARGET_NORM: tl.constexpr,
    WIDTH: tl.constexpr,
    COMBINE: tl.constexpr,
):
    """Source side of the gradient, added to what the target pass left.

    Without the gradient of the features this is one number per edge, that of the source's norm.
    """
    row, start, stop, program = segment(rows, starts, stops)
    d, d_mask = channels(D, BLOCK_D)
    c, c_mask = channels(C, BLOCK_C)
    own = load_row(h, row, d, d_mask, D)
    total = empty_sum(BLOCK_E, BLOCK_D, FOLD)
    received = empty_sum(BLOCK_E, BLOCK_C, FOLD)
    d_norm = tl.zeros((BLOCK_E,), tl.float32)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            at = partial + place.to(tl.int64) * WIDTH
            total = add_tile(total, load_tile(at, d, mask, d_mask), FOLD)
            d_norm += tl.load(at + D, mask=mask, other=0.0)
            if grad_m is not None:
                received = add_tile(received, load_tile(at + (D + 1), c, mask, c_mask), FOLD)
            place += BLOCK_E
    else:
        index = tl.load(column + place, mask=place < stop, other=0)
        entry = tl.load(edge + place, mask=place < stop, other=0)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            following_entry = tl.load(edge + ahead, mask=ahead < stop, other=0)
            d_own_norm = tl.zeros((BLOCK_E,), tl.float32)
            if ATTENTION:
                d_own_norm = tl.load(stretch + entry, mask=mask, other=0.0)
                if not TARGET_NORM:
                    d_norm += d_own_norm
            if grad_h is not None:
                pushed = gather(grad_out, index, c, mask, c_mask, C)
                tile = gather(h, index, d, mask, d_mask, D)
                metric = gather(g, index, d, mask, d_mask, D)
                at = force + 4 * entry
                a = tl.load(at, mask=mask, other=0.0)[:, None]
                b = tl.load(at + 1, mask=mask, other=0.0)[:, None]
                weight = tl.load(at + 3, mask=mask, other=0.0)[:, None]
                pulled = (a * modulation(metric) - b) * (own[None, :] - tile)
                if ATTENTION:
                    d_product = tl.load(at + 2, mask=mask, other=0.0)[:, None]
                    both = d_product * tile
                    if TARGET_NORM:
                        both += 2 * d_own_norm[:, None] * own[None, :]
                    pulled += both * metric
                if grad_m is None:
                    pulled += weight * pushed
                else:
                    received = add_tile(received, weight * pushed, FOLD)
                total = add_tile(total, pulled, FOLD)
            place = ahead
            index = following
            entry = following_entry
    result = finish_sum(total, FOLD)
    received = finish_sum(received, FOLD)
    norm_total = tl.sum(d_norm, axis=0)
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        is_part = slot >= 0
        part_mask, d_mask = part_or_whole(slot, d, d_mask)
        c_part_mask, c_mask = part_or_whole(slot, c, c_mask)
        at = partial + slot * WIDTH
        tl.store(at + d, result, mask=part_mask)
        tl.store(at + D, norm_total, mask=is_part)
        if grad_m is not None:
            tl.store(at + (D + 1) + c, received, mask=c_part_mask)
    if part_h is not None:
        result += load_row(part_h, row, d, d_mask, D)
    if norm is not None:
        metric = load_row(g, row, d, d_mask, D)
        length = tl.load(norm + row)
        d_length = norm_total + tl.load(part_norm + row)
        share = d_length / tl.where(length > 0, length, 1.0)
        result += share * metric * own
        to_g = load_row(part_g, row, d, d_mask, D) + 0.5 * share * own * own
        tl.store(grad_g + row * D + d, to_g.to(grad_g.dtype.element_ty), mask=d_mask)
    if grad_h is not None:
        tl.store(grad_h + row * D + d, result.to(grad_h.dtype.element_ty), mask=d_mask)
    if grad_m is not None:
        tl.store(grad_m + row * C + c, received.to(grad_m.dtype.element_ty), mask=c_mask)
