# mypy: disable-error-code="no-untyped-def"
"""Modulated and attended messages: the forward pass."""

from typing import Any

import numpy as np
from torch import Tensor

from argnn.kernels.cpu.compiling import exact_jit, jit, over_rows
from argnn.kernels.cpu.launch import edge_weight, floats, launch, numbers, scale_or_ones
from argnn.kernels.cpu.memory import prefetch_ahead
from argnn.kernels.cpu.modulation import modulation
from argnn.kernels.cpu.vectors import add_four, add_one, square_norm
from argnn.kernels.csr import Csr
from argnn.kernels.edge_weights import EdgeWeights, num_saved

#: Edges whose weights are computed before their messages are added, while rows are in cache.
BLOCK = 32


@jit
def _edge_sums(other, own, t, weighted):
    s = q = p = own.dtype.type(0)
    for k in range(own.shape[0]):
        difference = other[k] - own[k]
        square = difference * difference
        s += square
        q += square * t[k]
        p += weighted[k] * other[k]
    return s, q, p


@exact_jit
def _tau(s, q, eps):
    length = np.sqrt(s) + eps
    return q / (length * length)


@exact_jit
def _gate(one, p, own_norm, other_norm, eps):
    return one / (one + np.exp(-p / (own_norm * other_norm + eps)))


@over_rows
def _propagate(
    first,
    last,
    rowptr,
    column,
    h,
    g,
    m,
    separate,
    norm,
    left,
    right,
    edge,
    eps0,
    eps,
    attention,
    target_norm,
    out,
    saved,
):
    width = h.shape[1]
    end = rowptr[last]
    one, base = h.dtype.type(1), eps0[0]
    t, weighted = np.empty(width, h.dtype), np.empty(width, h.dtype)
    weight = np.empty(BLOCK, h.dtype)
    for i in range(first, last):
        own, metric, row = h[i], g[i], out[i]
        row[:] = 0
        for k in range(width):
            t[k] = modulation(metric[k], one)
            weighted[k] = metric[k] * own[k]
        for start in range(rowptr[i], rowptr[i + 1], BLOCK):
            stop = min(start + BLOCK, rowptr[i + 1])
            for e in range(start, stop):
                prefetch_ahead(h, column, e, end)
                if separate:
                    prefetch_ahead(m, column, e, end)
                j = column[e]
                s, q, p = _edge_sums(h[j], own, t, weighted)
                saved[e, 0], saved[e, 1] = s, q
                value = left[i] * right[j] * (base + (one - base) * _tau(s, q, eps))
                if attention:
                    other_norm = norm[j]
                    saved[e, 2] = p
                    if target_norm:
                        saved[e, 3] = square_norm(h[j], metric)
                        other_norm = np.sqrt(saved[e, 3])
                    value *= _gate(one, p, norm[i], other_norm, eps)
                if edge is not None:
                    value *= edge[e]
                weight[e - start] = value
            _add_weighted(row, m, column, start, stop, weight)


@jit
def _add_weighted(row, m, column, start, stop, weight):
    e = start
    while e + 4 <= stop:
        a, b, c, d = column[e], column[e + 1], column[e + 2], column[e + 3]
        w = weight[e - start : e - start + 4]
        add_four(row, m[a], m[b], m[c], m[d], w[0], w[1], w[2], w[3])
        e += 4
    while e < stop:
        add_one(row, m[column[e]], weight[e - start])
        e += 1


def edge_terms(csr: Csr, h: Tensor, weights: EdgeWeights) -> tuple[Any, ...]:
    """What both passes take of the weights, with an array in each place."""
    return (
        h.new_empty(0) if weights.norm is None else weights.norm,
        scale_or_ones(weights.left, csr, h),
        scale_or_ones(weights.right, csr, h),
        edge_weight(csr, h),
        weights.eps0,
        numbers((weights.eps,), h)[0],
        weights.attention,
        weights.target_norm,
    )


def propagate(
    csr: Csr, h: Tensor, g: Tensor, m: Tensor | None, weights: EdgeWeights, save: bool
) -> tuple[Tensor, Tensor | None]:
    """Sum of modulated and attended messages, and the scalars of each edge its gradient needs.

    The scalars are :math:`|h_j - h_i|^2`, the same weighed by the modulation of each axis, with
    attention the inner product, and with ``target_norm`` the squared norm of the neighbour.
    """
    sent = h if m is None else m
    out = floats(h, csr.num_rows, sent.size(1))
    saved = floats(h, csr.num_entries, num_saved(weights.attention))
    terms = edge_terms(csr, h, weights)
    launch(_propagate, csr, h, g, sent, m is not None, *terms, out, saved)
    return out.to(sent.dtype), saved if save else None
