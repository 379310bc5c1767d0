# mypy: disable-error-code="no-untyped-def, untyped-decorator"
"""Modulated and attended messages: the forward pass."""

from typing import Any

import torch
import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]
from torch import Tensor

from argnn.kernels.csr import Csr
from argnn.kernels.edge_weights import EdgeWeights, num_saved
from argnn.kernels.gpu.launch import edge_weight, floats, over_rows, padded
from argnn.kernels.gpu.tiles import (
    add_tile,
    channels,
    empty_sum,
    finish_sum,
    gather,
    load_row,
    load_tile,
    modulation,
    part_or_whole,
    segment,
    tile_count,
)


def propagate(
    csr: Csr, h: Tensor, g: Tensor, m: Tensor | None, weights: EdgeWeights, save: bool
) -> tuple[Tensor, Tensor | None]:
    r"""Sum of weighted messages, ``[N, C]``, and what the backward pass needs.

    .. math::
        o_i = \sum_j l_i r_j w_{ij} (\epsilon_0 + (1-\epsilon_0)\tau_{ij})\,\sigma(\alpha_{ij})\,m_j

    Args:
        csr: Who hears from whom.
        h: Node features, ``[N, D]``.
        g: Metric diagonals, ``[N, D]``.
        m: Messages, ``[N, C]``; the features where None.
        weights: Of the edges; its tensors are float32.
        save: Whether to keep the sums over channels of each edge.

    Returns:
        The sums, and s, q, p, v of every edge, ``[E, 4]`` float32 (two without attention), or
        None.
    """
    messages = h if m is None else m
    out = torch.empty_like(messages)
    saved = floats(h, csr.num_entries, num_saved(weights.attention)) if save else None
    over_rows(
        "propagate",
        propagate_kernel,
        csr,
        h,
        channels=max(h.size(1), messages.size(1)),
        width=messages.size(1),
        h=h,
        g=g,
        m=m,
        saved=saved,
        out=out,
        **edge_terms(csr, weights, messages.size(1)),
    )
    return out, saved


def edge_terms(csr: Csr, weights: EdgeWeights, num_sent: int) -> dict[str, Any]:
    """What the kernels of both passes take of the weights and the ``num_sent`` channels."""
    return {
        "norm": weights.norm,
        "left": weights.left,
        "right": weights.right,
        "edge_weight": edge_weight(csr),
        "eps0": weights.eps0,
        "eps": weights.eps,
        "C": num_sent,
        "BLOCK_C": padded(num_sent),
        "ATTENTION": weights.attention,
        "TARGET_NORM": weights.attention and weights.target_norm,
    }


@triton.jit
def edge_modulation(s, q, eps):
    """Modulation of edges from their sums over channels; length, and length plus floor.

    An edge of length 0 is given length 1: its ``q`` is 0, and so is all that follows from it.
    """
    root = tl.sqrt(tl.where(s > 0, s, 1.0))
    length = root + eps
    return q / (length * length), root, length


@triton.jit
def sigmoid(x):
    """The logistic function; what the bound changes is below 1e-34."""
    return tl.sigmoid(tl.maximum(x, -80.0))


@triton.jit
def propagate_kernel(
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
    out,
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
    COMBINE: tl.constexpr,
):
    """Messages of one row: per edge the sums s, q, p, v over channels, then the weight."""
    row, start, stop, program = segment(rows, starts, stops)
    c, c_mask = channels(C, BLOCK_C)
    total = empty_sum(BLOCK_E, BLOCK_C, FOLD)
    place = start + tl.arange(0, BLOCK_E)
    tiles = tile_count(start, stop, BLOCK_E)
    if COMBINE:
        for _ in tl.range(0, tiles, num_stages=STAGES):
            part = load_tile(partial + place.to(tl.int64) * C, c, place < stop, c_mask)
            total = add_tile(total, part, FOLD)
            place += BLOCK_E
    else:
        index = tl.load(column + place, mask=place < stop, other=0)
        d, d_mask = channels(D, BLOCK_D)
        own = load_row(h, row, d, d_mask, D)
        metric = load_row(g, row, d, d_mask, D)
        t = modulation(metric)
        base = tl.load(eps0)
        if ATTENTION:
            lowered = metric * own
            own_norm = tl.load(norm + row)
        for _ in tl.range(0, tiles, num_stages=STAGES):
            mask = place < stop
            ahead = place + BLOCK_E
            following = tl.load(column + ahead, mask=ahead < stop, other=0)
            tile = gather(h, index, d, mask, d_mask, D)
            delta = tile - own[None, :]
            square = delta * delta
            s = tl.sum(square, axis=1)
            q = tl.sum(square * t[None, :], axis=1)
            tau, _root, _length = edge_modulation(s, q, eps)
            weight = base + (1 - base) * tau
            if ATTENTION:
                p = tl.sum(tile * lowered[None, :], axis=1)
                if TARGET_NORM:
                    v = tl.sum(tile * tile * metric[None, :], axis=1)
                    other_norm = tl.sqrt(v)
                else:
                    v = p
                    other_norm = tl.load(norm + index, mask=mask, other=0.0)
                weight *= sigmoid(p / (own_norm * other_norm + eps))
            if saved is not None:
                # In one store: each store of numbers per edge has to move them between threads.
                if ATTENTION:
                    sums = tl.reshape(tl.join(tl.join(s, p), tl.join(q, v)), (BLOCK_E, 4))
                    at = saved + 4 * place[:, None] + tl.arange(0, 4)[None, :]
                else:
                    sums = tl.join(s, q)
                    at = saved + 2 * place[:, None] + tl.arange(0, 2)[None, :]
                tl.store(at, sums, mask=mask[:, None])
            if right is not None:
                weight *= tl.load(right + index, mask=mask, other=0.0)
            if edge_weight is not None:
                weight *= tl.load(edge_weight + place, mask=mask, other=0.0)
            weight = tl.where(mask, weight, 0.0)
            sent = tile if m is None else gather(m, index, c, mask, c_mask, C)
            total = add_tile(total, weight[:, None] * sent, FOLD)
            place = ahead
            index = following
    result = finish_sum(total, FOLD)
    if slots is not None:
        slot = tl.load(slots + program).to(tl.int64)
        part_mask, c_mask = part_or_whole(slot, c, c_mask)
        tl.store(partial + slot * C + c, result, mask=part_mask)
    if left is not None:
        result *= tl.load(left + row)
    tl.store(out + row * C + c, result.to(out.dtype.element_ty), mask=c_mask)
