# mypy: disable-error-code="no-untyped-def"
"""Modulated and attended messages: the backward pass.

The target pass walks the rows of the graph and leaves five numbers on each edge, with which the
source pass walks the rows of the transpose.
"""

import numpy as np
from torch import Tensor

from argnn.kernels.cpu.compiling import exact_jit, jit, over_rows
from argnn.kernels.cpu.launch import SCRATCH, floats, launch, scratch
from argnn.kernels.cpu.memory import prefetch_ahead, prefetch_row
from argnn.kernels.cpu.modulation import modulation
from argnn.kernels.cpu.propagate import BLOCK, edge_terms
from argnn.kernels.cpu.vectors import add_four, add_one, dot
from argnn.kernels.csr import Csr
from argnn.kernels.edge_weights import EdgeWeights

# What the pass over targets leaves on every edge for the pass over sources.
_WEIGHT, _ALONG, _ACROSS, _INNER, _NORM = range(5)


@exact_jit
def _edge_gradient(one, dw, scale, base, s, q, p, own_norm, other_norm, eps, attention):
    """Weight of an edge and the gradients of its scalars, all for the gradient of the weight.

    Returns the weight, the factors of ``t * difference`` and ``difference`` in the gradient of
    the difference, the gradients of the inner product and of both norms, and of ``eps0``.
    """
    zero = one - one
    root = np.sqrt(s)
    length = root + eps
    inverse_square = one / (length * length)
    tau = q * inverse_square
    modulation = base + (one - base) * tau
    gate, inner, own, other = one, zero, zero, zero
    if attention:
        floor = own_norm * other_norm + eps
        alpha = p / floor
        gate = one / (one + np.exp(-alpha))
        inner = dw * scale * modulation * gate * (one - gate) / floor
        own = -inner * alpha * other_norm
        other = -inner * alpha * own_norm
    weight = scale * modulation * gate
    dtau = dw * scale * gate * (one - base)
    along, across = zero, zero
    if s > zero:
        along = (one + one) * dtau * inverse_square
        across = along * q / (length * root)
    return weight, along, across, inner, own, other, dw * scale * gate * (one - tau)


@jit
def _copy(row, other):
    for k in range(row.shape[0]):  # assigning a slice would compile numba's error messages, too
        row[k] = other[k]


@jit
def _pack(row, own, metric, arriving):
    """Side by side what the sources gather of a node: one place in memory instead of three."""
    width = own.shape[0]
    _copy(row[:width], own)
    _copy(row[width : 2 * width], metric)
    _copy(row[2 * width :], arriving)


# A vector loop may not write to too many arrays that might overlap: one sum per function.


@jit
def _pull_four(row, own, t, a, b, c, d, w, x, y, z):
    ta, tb, tc, td = w[_ALONG], x[_ALONG], y[_ALONG], z[_ALONG]
    sa, sb, sc, sd = w[_ACROSS], x[_ACROSS], y[_ACROSS], z[_ACROSS]
    for k in range(row.shape[0]):
        o, u = own[k], t[k]
        row[k] -= ((ta * u - sa) * (a[k] - o) + (tb * u - sb) * (b[k] - o)) + (
            (tc * u - sc) * (c[k] - o) + (td * u - sd) * (d[k] - o)
        )


@jit
def _square_four(total, own, a, b, c, d, wa, wb, wc, wd):
    for k in range(total.shape[0]):
        x = own[k]
        u, v, w, z = a[k] - x, b[k] - x, c[k] - x, d[k] - x
        total[k] += (wa * u * u + wb * v * v) + (wc * w * w + wd * z * z)


@jit
def _pull_one(row, own, t, a, ta, sa):
    for k in range(row.shape[0]):
        row[k] -= (ta * t[k] - sa) * (a[k] - own[k])


@jit
def _square_one(total, own, a, wa):
    for k in range(total.shape[0]):
        u = a[k] - own[k]
        total[k] += wa * u * u


@jit
def _add_targets(
    row, grad_t, grad_inner, own, t, h, column, start, stop, by_edge, attention, need_h
):
    """Add up what the edges of a block give to the features and the metric of their target."""
    e = start
    while e + 4 <= stop:
        a, b, c, d = h[column[e]], h[column[e + 1]], h[column[e + 2]], h[column[e + 3]]
        w, x, y, z = by_edge[e], by_edge[e + 1], by_edge[e + 2], by_edge[e + 3]
        if need_h:
            _pull_four(row, own, t, a, b, c, d, w, x, y, z)
        _square_four(grad_t, own, a, b, c, d, w[_ALONG], x[_ALONG], y[_ALONG], z[_ALONG])
        if attention:
            add_four(grad_inner, a, b, c, d, w[_INNER], x[_INNER], y[_INNER], z[_INNER])
        e += 4
    while e < stop:
        a, w = h[column[e]], by_edge[e]
        if need_h:
            _pull_one(row, own, t, a, w[_ALONG], w[_ACROSS])
        _square_one(grad_t, own, a, w[_ALONG])
        if attention:
            add_one(grad_inner, a, w[_INNER])
        e += 1


@over_rows
def _target_pass(
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
    need_h,
    saved,
    grad_out,
    packed,
    by_edge,
    grad_h,
    grad_g,
    grad_norm,
    grad_eps0,
):
    width = h.shape[1]
    end = rowptr[last]
    one, base = h.dtype.type(1), eps0[0]
    zero, half = one - one, h.dtype.type(0.5)
    t, grad_t = np.empty(width, h.dtype), np.empty(width, h.dtype)
    grad_inner = np.empty(width, h.dtype)
    for i in range(first, last):
        own, metric, row, metric_row = h[i], g[i], grad_h[i], grad_g[i]
        if need_h:
            _pack(packed[i], own, metric, grad_out[i])
        for k in range(width):
            t[k] = modulation(metric[k], one)
            grad_t[k] = grad_inner[k] = metric_row[k] = zero
        if need_h:
            row[:] = 0
        own_norm = norm[i] if attention else zero
        norm_total = eps0_total = zero
        for start in range(rowptr[i], rowptr[i + 1], BLOCK):
            stop = min(start + BLOCK, rowptr[i + 1])
            for e in range(start, stop):
                prefetch_ahead(h, column, e, end)
                if separate:
                    prefetch_ahead(m, column, e, end)
                j = column[e]
                inner_product = other_norm = square = zero
                if attention:
                    inner_product = saved[e, 2]
                    other_norm = norm[j]
                    if target_norm:
                        square = saved[e, 3]
                        other_norm = np.sqrt(square)
                scale = left[i] * right[j]
                if edge is not None:
                    scale *= edge[e]
                weight, along, across, inner, own_part, other_part, eps0_part = _edge_gradient(
                    one,
                    dot(grad_out[i], m[j]),
                    scale,
                    base,
                    saved[e, 0],
                    saved[e, 1],
                    inner_product,
                    own_norm,
                    other_norm,
                    eps,
                    attention,
                )
                if target_norm:
                    other_part = other_part / other_norm if square > zero else zero
                    factor = half * other_part
                    other = h[j]
                    for k in range(width):
                        metric_row[k] += factor * other[k] * other[k]
                norm_total += own_part
                eps0_total += eps0_part
                by_edge[e, _WEIGHT] = weight
                by_edge[e, _ALONG] = along
                by_edge[e, _ACROSS] = across
                by_edge[e, _INNER] = inner
                by_edge[e, _NORM] = other_part
            _add_targets(
                row,
                grad_t,
                grad_inner,
                own,
                t,
                h,
                column,
                start,
                stop,
                by_edge,
                attention,
                need_h,
            )
        for k in range(width):
            slope = -(one - t[k] * t[k]) / metric[k]
            metric_row[k] += half * grad_t[k] * slope + grad_inner[k] * own[k]
        if need_h:
            for k in range(width):
                row[k] += grad_inner[k] * metric[k]
        grad_norm[i] = norm_total
        grad_eps0[i] = eps0_total


@jit
def _add_source(row, own, target, scalars, target_norm, separate):
    """Add what an edge gives to the features of its source; ``target`` is what was packed."""
    width = own.shape[0]
    one = own.dtype.type(1)
    other, metric, arriving = target[:width], target[width : 2 * width], target[2 * width :]
    weight, along = scalars[_WEIGHT], scalars[_ALONG]
    across, inner = scalars[_ACROSS], scalars[_INNER]
    if separate:
        weight = one - one
        arriving = metric
    for k in range(width):
        t = modulation(metric[k], one)
        row[k] += (
            weight * arriving[k]
            + (along * t - across) * (own[k] - other[k])
            + inner * metric[k] * other[k]
        )
    if target_norm:
        for k in range(width):
            row[k] += scalars[_NORM] * metric[k] * own[k]


@over_rows
def _source_pass(
    first,
    last,
    rowptr,
    column,
    edge,
    h,
    g,
    separate,
    norm,
    attention,
    target_norm,
    need_h,
    packed,
    by_edge,
    grad_h,
    grad_g,
    grad_m,
    grad_norm,
):
    width = h.shape[1]
    end = rowptr[last]
    one = h.dtype.type(1)
    zero, half = one - one, h.dtype.type(0.5)
    for j in range(first, last):
        own, metric, row = h[j], g[j], grad_h[j]
        norm_total = grad_norm[j]
        if separate:
            grad_m[j][:] = 0
        for e in range(rowptr[j], rowptr[j + 1]):
            prefetch_row(by_edge, edge[min(e + 8, end - 1)])
            scalars = by_edge[edge[e]]
            if need_h:
                prefetch_row(packed, column[min(e + 2, end - 1)])
                target = packed[column[e]]
                if separate:
                    add_one(grad_m[j], target[2 * width :], scalars[_WEIGHT])
                _add_source(row, own, target, scalars, target_norm, separate)
            if not target_norm:
                norm_total += scalars[_NORM]
        if attention and norm[j] > zero:
            factor = norm_total / norm[j]
            for k in range(width):
                grad_g[j, k] += half * factor * own[k] * own[k]
            if need_h:
                for k in range(width):
                    row[k] += factor * metric[k] * own[k]


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
    """Gradients of :func:`propagate` for features, metric, messages and, per node, ``eps0``.

    Without that of the features, as in a first layer, no source has to gather rows.
    """
    separate = m is not None
    need_h = need_h or separate  # messages of their own come by the same pass
    sent = h if m is None else m
    grad_h, grad_g = floats(h, *h.shape), floats(h, *h.shape)
    grad_m = floats(h, *sent.shape) if separate else grad_h
    grad_norm, grad_eps0 = floats(h, csr.num_rows), floats(h, csr.num_rows)
    terms = edge_terms(csr, h, weights)
    norm, *_, attention, target_norm = terms
    with SCRATCH:
        by_edge = scratch(csr, "edges", csr.num_entries, 5, h)
        packed = scratch(csr, "nodes", csr.num_rows, 2 * h.size(1) + sent.size(1), h)
        inputs = h, g, sent, separate, *terms, need_h, saved, grad_out, packed, by_edge
        launch(_target_pass, csr, *inputs, grad_h, grad_g, grad_norm, grad_eps0)
        if need_h or attention:
            options = separate, norm, attention, target_norm, need_h
            results = grad_h, grad_g, grad_m, grad_norm
            launch(
                _source_pass,
                transpose,
                transpose.edge,
                h,
                g,
                *options,
                packed,
                by_edge,
                *results,
            )
    return (
        grad_h.to(h.dtype) if need_h else None,
        grad_g.to(g.dtype),
        grad_m.to(sent.dtype) if separate else None,
        grad_eps0 if need_eps0 else None,
    )
