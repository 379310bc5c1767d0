# mypy: disable-error-code="no-untyped-def"
"""The edge sums on a CPU: one pass over the edges, rows shared out among threads by work.

Every function loops over the rows of a :class:`~argnn.kernels.csr.Csr` and writes each row
once, so the result does not depend on the number of threads. A gathered row is asked for some
edges ahead of its use: at a random place in memory it is latency, not bandwidth, that costs.

All compiled functions stand in this one file: the cache notices a change of the file of the
function that is called, not of the files of those that it calls.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numba
import numpy as np
import torch
from numba import njit, prange
from numba.core import cgutils, types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array
from torch import Tensor

from argnn.kernels.choice import num_saved
from argnn.kernels.csr import Csr
from argnn.kernels.kept import KeptKernel

# Sums may be reordered for vector units; NaN and infinity keep their meaning.
_OPTIONS: dict[str, Any] = {
    "fastmath": {"reassoc", "contract", "nsz", "arcp", "afn"},
    "error_model": "numpy",
    "nogil": True,
}
#: Edges between asking for a row and using it.
_AHEAD = 4
#: Edges whose weights are computed before their messages are added, while rows are in cache.
_BLOCK = 32
#: More parts than threads, so that a thread that is held up does not hold up the others.
_PARTS_PER_THREAD = 4

# Where squares still fit into float32, and tanh(-log g) is -1 to the last bit.
_LARGEST = 1e18

# What numba started with; it cannot take more.
_MAX_THREADS: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]

# Numba's simplest thread pool may not be entered by two Python threads at once.
_LAUNCH = threading.Lock()
# The two passes of a gradient share memory that is kept with the graph.
_SCRATCH = threading.Lock()
# Whether this process was forked from one whose threads are GNU OpenMP's, which end such a process.
_is_forked = False


def _note_fork() -> None:
    global _is_forked
    try:
        _is_forked = numba.threading_layer() == "omp"  # type: ignore[attr-defined]
    except ValueError:  # no thread was started yet
        _is_forked = False


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_note_fork)


def _jit(function: Callable[..., Any]) -> Any:
    """For what a loop over edges calls: without inlining, the calls take as long as the sums."""
    return _kept(function, forceinline=True, **_OPTIONS)


def _exact_jit(function: Callable[..., Any]) -> Any:
    """For the few operations per edge: reordered products of large factors might overflow."""
    return _kept(function, forceinline=True, **(_OPTIONS | {"fastmath": False}))


def _parallel(function: Callable[..., Any]) -> Any:
    return _kept(function, parallel=True, **_OPTIONS)


def _kept(function: Callable[..., Any], **options: Any) -> Any:
    kernel = njit(**options)(function)
    kernel._cache = KeptKernel(
        function
    )  # what numba's option cache=True does with a cache of its own
    return kernel


def _intrinsic(function: Callable[..., Any]) -> Any:
    """For what numba has no word for: a function that writes the compiler's own instructions."""
    return intrinsic(function)


@_intrinsic
def _prefetch(typing_context, flat, index):
    """Ask for one cache line of a flat array."""

    def generate(context, builder, signature, arguments):
        from llvmlite import ir  # type: ignore[import-untyped]

        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        byte_pointer, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        address = builder.bitcast(builder.gep(data, [arguments[1]]), byte_pointer)
        name = "llvm.prefetch.p0"
        declared = builder.module.globals.get(name)
        if declared is None:
            kind = ir.FunctionType(ir.VoidType(), [byte_pointer, int32, int32, int32])
            declared = ir.Function(builder.module, kind, name)
        read, keep, data_cache = int32(0), int32(3), int32(1)
        builder.call(declared, [address, read, keep, data_cache])
        return context.get_dummy_value()

    return types.void(flat, index), generate


@_intrinsic
def _borrowed(typing_context, *arrays):
    """The same arrays without their reference counts, which every view of a row would raise."""

    def generate(context, builder, signature, arguments):
        borrowed = []
        values = cgutils.unpack_tuple(builder, arguments[0])
        for kind, argument in zip(signature.args[0], values, strict=True):
            array = make_array(kind)(context, builder, argument)
            for name in ("meminfo", "parent"):
                setattr(array, name, cgutils.get_null_value(getattr(array, name).type))
            borrowed.append(array._getvalue())
        return context.make_tuple(builder, signature.return_type, borrowed)

    return types.Tuple(arrays)(types.StarArgTuple(arrays)), generate


@_jit
def _prefetch_row(flat, row, width):
    per_line = 64 // flat.itemsize
    offset = np.int64(row) * width
    stop = offset + width
    while offset < stop:  # a `for` with a step compiles to many more instructions
        _prefetch(flat, offset)
        offset += per_line


# --- constant weights ---------------------------------------------------------------------


@_jit
def _add_four(out, a, b, c, d, wa, wb, wc, wd):
    for k in range(out.shape[0]):
        out[k] += (wa * a[k] + wb * b[k]) + (wc * c[k] + wd * d[k])


@_jit
def _add_one(out, a, wa):
    for k in range(out.shape[0]):
        out[k] += wa * a[k]


@_jit
def _sum_row(row, flat, column, start, stop, end, x, weight):
    """Weighted sum of the rows that the entries from ``start`` to ``stop`` name."""
    width = x.shape[1]
    row[:] = 0
    e = start
    while e + 4 <= stop:
        for f in range(e + _AHEAD, min(e + _AHEAD + 4, end)):
            _prefetch_row(flat, column[f], width)
        a, b, c, d = column[e], column[e + 1], column[e + 2], column[e + 3]
        _add_four(row, x[a], x[b], x[c], x[d], weight[a], weight[b], weight[c], weight[d])
        e += 4
    while e < stop:
        _prefetch_row(flat, column[min(e + _AHEAD, end - 1)], width)
        _add_one(row, x[column[e]], weight[column[e]])
        e += 1


@_jit
def _gather_rows(first, last, rowptr, column, x, left, right, diagonal, out):
    x, out = _borrowed(x, out)
    flat = x.reshape(-1)
    end = rowptr[last]
    for i in range(first, last):
        row, own = out[i], x[i]
        _sum_row(row, flat, column, rowptr[i], rowptr[i + 1], end, x, right)
        if diagonal.shape[0] > 0:
            for k in range(row.shape[0]):
                row[k] = left[i] * row[k] + diagonal[i] * own[k]
        else:
            for k in range(row.shape[0]):
                row[k] *= left[i]


@_parallel
def _gather_sum(bounds, rowptr, column, x, left, right, diagonal, out):
    for part in prange(bounds.shape[0] - 1):
        _gather_rows(bounds[part], bounds[part + 1], rowptr, column, x, left, right, diagonal, out)


def gather_sum(
    csr: Csr,
    x: Tensor,
    left: Tensor | None,
    right: Tensor | None,
    diagonal: Tensor | None = None,
) -> Tensor:
    r""":math:`\mathbf{y}_i = d_i \mathbf{x}_i + l_i \sum_j r_j \mathbf{x}_j`, ``[N, D]``."""
    out = torch.empty(csr.num_rows, x.size(1), dtype=_wide(x))
    scales = _scale(left, csr, x), _scale(right, csr, x)
    own = torch.empty(0, dtype=_wide(x)) if diagonal is None else diagonal
    _launch(_gather_sum, csr, x, *scales, own, out)
    return out.to(x.dtype)


# --- mean and dispersion of the neighbours ------------------------------------------------


@_jit
def _moment_rows(first, last, rowptr, column, h, mean, dispersion):
    h, mean, dispersion = _borrowed(h, mean, dispersion)
    width = h.shape[1]
    flat = h.reshape(-1)
    end = rowptr[last]
    for i in range(first, last):
        own, m, v = h[i], mean[i], dispersion[i]
        m[:] = 0
        v[:] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            _prefetch_row(flat, column[min(e + _AHEAD, end - 1)], width)
            other = h[column[e]]
            for k in range(width):
                difference = other[k] - own[k]
                m[k] += other[k]
                v[k] += difference * difference
        share = h.dtype.type(1) / h.dtype.type(max(rowptr[i + 1] - rowptr[i], 1))
        for k in range(width):
            m[k] *= share
            v[k] *= share


@_parallel
def _moments(bounds, rowptr, column, h, mean, dispersion):
    for part in prange(bounds.shape[0] - 1):
        _moment_rows(bounds[part], bounds[part + 1], rowptr, column, h, mean, dispersion)


def moments(csr: Csr, h: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the neighbours, and their mean squared difference to the node, per channel."""
    mean = torch.empty(h.shape, dtype=_wide(h))
    dispersion = torch.empty_like(mean)
    _launch(_moments, csr, h, mean, dispersion)
    return mean.to(h.dtype), dispersion.to(h.dtype)


@_jit
def _moment_gradient_rows(
    first, last, rowptr, column, share, h, mean, grad_mean, grad_dispersion, out
):
    h, mean, grad_mean, grad_dispersion, out = _borrowed(h, mean, grad_mean, grad_dispersion, out)
    width = h.shape[1]
    flats = (h.reshape(-1), grad_mean.reshape(-1), grad_dispersion.reshape(-1))
    end = rowptr[last]
    two = h.dtype.type(2)
    for j in range(first, last):
        own, row = h[j], out[j]
        has_neighbors = h.dtype.type(share[j] > 0)
        for k in range(width):
            row[k] = -two * has_neighbors * grad_dispersion[j, k] * (mean[j, k] - own[k])
        for e in range(rowptr[j], rowptr[j + 1]):
            ahead = column[min(e + 2, end - 1)]
            for flat in flats:
                _prefetch_row(flat, ahead, width)
            i = column[e]
            other, gm, gv, weight = h[i], grad_mean[i], grad_dispersion[i], share[i]
            for k in range(width):
                row[k] += weight * (gm[k] + two * gv[k] * (own[k] - other[k]))


@_parallel
def _moments_backward(bounds, rowptr, column, share, h, mean, grad_mean, grad_dispersion, out):
    for part in prange(bounds.shape[0] - 1):
        _moment_gradient_rows(
            bounds[part],
            bounds[part + 1],
            rowptr,
            column,
            share,
            h,
            mean,
            grad_mean,
            grad_dispersion,
            out,
        )


def moments_backward(
    transpose: Csr,
    share: Tensor,
    h: Tensor,
    mean: Tensor,
    grad_mean: Tensor,
    grad_dispersion: Tensor,
) -> Tensor:
    """Gradient of :func:`moments` for the features; ``share`` is one over the degree or 0."""
    out = torch.empty(h.shape, dtype=_wide(h))
    _launch(_moments_backward, transpose, share, h, mean, grad_mean, grad_dispersion, out)
    return out.to(h.dtype)


# --- differences of the metric ------------------------------------------------------------


@_jit
def _laplacian_rows(first, last, rowptr, column, g, scale, factors, out, energy):
    g, out = _borrowed(g, out)
    width = g.shape[1]
    flat = g.reshape(-1)
    end = rowptr[last]
    for i in range(first, last):
        own, row = g[i], out[i]
        row[:] = 0
        squares = g.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            _prefetch_row(flat, column[min(e + _AHEAD, end - 1)], width)
            other = g[column[e]]
            square = g.dtype.type(0)
            for k in range(width):
                difference = own[k] - other[k]
                row[k] += difference
                square += difference * difference
            squares += square
        for k in range(width):
            row[k] *= scale[i]
        energy[i, 0] = factors[0] * _dot(row, row)
        energy[i, 1] = factors[1] * squares


@_parallel
def _laplacian(bounds, rowptr, column, g, scale, factors, out, energy):
    for part in prange(bounds.shape[0] - 1):
        _laplacian_rows(
            bounds[part], bounds[part + 1], rowptr, column, g, scale, factors, out, energy
        )


def laplacian(
    csr: Csr, g: Tensor, scale: Tensor | None, factors: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    r"""Differences :math:`y_i = s_i \sum_j (g_i - g_j)`, ``[N, D]``, and energies ``[N, 2]``.

    The energies of a node are :math:`|y_i|^2` and :math:`\sum_j |g_i - g_j|^2`, times
    ``factors``.
    """
    out = torch.empty(g.shape, dtype=_wide(g))
    energy = torch.empty(csr.num_rows, 2, dtype=_wide(g))
    _launch(_laplacian, csr, g, _scale(scale, csr, g), _floats(factors, g), out, energy)
    return out.to(g.dtype), energy


@_jit
def _energy_gradient_rows(first, last, rowptr, column, y, degree, share, coefficients, out):
    y, out = _borrowed(y, out)
    flat = y.reshape(-1)
    end = rowptr[last]
    ricci, smooth = coefficients[0], coefficients[1]
    for i in range(first, last):
        row, own = out[i], y[i]
        _sum_row(row, flat, column, rowptr[i], rowptr[i + 1], end, y, share)
        factor = ricci + smooth * degree[i]
        for k in range(row.shape[0]):
            row[k] = factor * own[k] - ricci * row[k]


@_parallel
def _energy_gradient(bounds, rowptr, column, y, degree, share, coefficients, out):
    for part in prange(bounds.shape[0] - 1):
        _energy_gradient_rows(
            bounds[part], bounds[part + 1], rowptr, column, y, degree, share, coefficients, out
        )


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
        degree: Number of neighbours of each node, ``[N]``.
        share: One over it, ``[N]``.
        grad: Gradient at the two summed energies, ``[2]``.
        factors: As given to :func:`laplacian`.
    """
    out = torch.empty(y.shape, dtype=_wide(y))
    coefficients = _array(grad) * _floats((factors[0], 8 * factors[1]), y)
    _launch(_energy_gradient, transpose, y, degree, share, coefficients, out)
    return out.to(y.dtype)


# --- modulated and attended messages ------------------------------------------------------


@_exact_jit
def _modulation(g, one, largest):
    """tanh(-log g) = (1 - g^2) / (1 + g^2), exact near 1; beyond ``largest`` it is -1."""
    bounded = min(g, largest)
    return (one - bounded) * (one + bounded) / (one + bounded * bounded)


@_jit
def _edge_sums(other, own, t, weighted):
    s = q = p = own.dtype.type(0)
    for k in range(own.shape[0]):
        difference = other[k] - own[k]
        square = difference * difference
        s += square
        q += square * t[k]
        p += weighted[k] * other[k]
    return s, q, p


@_jit
def _square_norm(other, g):
    total = g.dtype.type(0)
    for k in range(g.shape[0]):
        total += g[k] * other[k] * other[k]
    return total


@_jit
def _dot(a, b):
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@_exact_jit
def _tau(s, q, eps):
    length = np.sqrt(s) + eps
    return q / (length * length)


@_exact_jit
def _gate(one, p, own_norm, other_norm, eps):
    return one / (one + np.exp(-p / (own_norm * other_norm + eps)))


@_jit
def _metric_norms(first, last, h, g, norm):
    h, g = _borrowed(h, g)
    for i in range(first, last):
        norm[i] = np.sqrt(_square_norm(h[i], g[i]))


@_parallel
def _metric_norm(bounds, h, g, norm):
    for part in prange(bounds.shape[0] - 1):
        _metric_norms(bounds[part], bounds[part + 1], h, g, norm)


def metric_norm(h: Tensor, g: Tensor) -> Tensor:
    """Norm of every node's features in its own metric, ``[N]``."""
    norm = torch.empty(h.size(0), dtype=_wide(h))
    _launch_rows(_metric_norm, h, g, norm)
    return norm


@_jit
def _propagate_rows(
    first,
    last,
    rowptr,
    column,
    h,
    g,
    m,
    norm,
    left,
    right,
    eps0,
    eps,
    attention,
    target_norm,
    separate,
    out,
    saved,
):
    h, g, m, out, saved = _borrowed(h, g, m, out, saved)
    width, sent = h.shape[1], m.shape[1]
    flat_h, flat_m = h.reshape(-1), m.reshape(-1)
    end = rowptr[last]
    one = h.dtype.type(1)
    largest, base = h.dtype.type(_LARGEST), eps0[0]
    t, weighted = np.empty(width, h.dtype), np.empty(width, h.dtype)
    weight = np.empty(_BLOCK, h.dtype)
    for i in range(first, last):
        own, metric, row = h[i], g[i], out[i]
        row[:] = 0
        for k in range(width):
            t[k] = _modulation(metric[k], one, largest)
            weighted[k] = metric[k] * own[k]
        for start in range(rowptr[i], rowptr[i + 1], _BLOCK):
            stop = min(start + _BLOCK, rowptr[i + 1])
            for e in range(start, stop):
                ahead = column[min(e + _AHEAD, end - 1)]
                _prefetch_row(flat_h, ahead, width)
                if separate:
                    _prefetch_row(flat_m, ahead, sent)
                j = column[e]
                s, q, p = _edge_sums(h[j], own, t, weighted)
                saved[e, 0], saved[e, 1] = s, q
                value = left[i] * right[j] * (base + (one - base) * _tau(s, q, eps))
                if attention:
                    other_norm = norm[j]
                    saved[e, 2] = p
                    if target_norm:
                        saved[e, 3] = _square_norm(h[j], metric)
                        other_norm = np.sqrt(saved[e, 3])
                    value *= _gate(one, p, norm[i], other_norm, eps)
                weight[e - start] = value
            _add_weighted(row, m, column, start, stop, weight)


@_jit
def _add_weighted(row, m, column, start, stop, weight):
    e = start
    while e + 4 <= stop:
        place = e - start
        _add_four(
            row,
            m[column[e]],
            m[column[e + 1]],
            m[column[e + 2]],
            m[column[e + 3]],
            weight[place],
            weight[place + 1],
            weight[place + 2],
            weight[place + 3],
        )
        e += 4
    while e < stop:
        _add_one(row, m[column[e]], weight[e - start])
        e += 1


@_parallel
def _propagate(
    bounds,
    rowptr,
    column,
    h,
    g,
    m,
    norm,
    left,
    right,
    eps0,
    eps,
    attention,
    target_norm,
    separate,
    out,
    saved,
):
    for part in prange(bounds.shape[0] - 1):
        _propagate_rows(
            bounds[part],
            bounds[part + 1],
            rowptr,
            column,
            h,
            g,
            m,
            norm,
            left,
            right,
            eps0,
            eps,
            attention,
            target_norm,
            separate,
            out,
            saved,
        )


def propagate(
    csr: Csr,
    h: Tensor,
    g: Tensor,
    m: Tensor | None,
    norm: Tensor | None,
    left: Tensor | None,
    right: Tensor | None,
    eps0: Tensor,
    attention: bool,
    target_norm: bool,
    eps: float,
    save: bool,
) -> tuple[Tensor, Tensor | None]:
    """Sum of modulated and attended messages, and the scalars of each edge its gradient needs.

    The scalars are :math:`|h_j - h_i|^2`, the same weighed by the modulation of each axis, with
    attention the inner product, and with ``target_norm`` the squared norm of the neighbour.
    """
    sent = h if m is None else m
    out = torch.empty(csr.num_rows, sent.size(1), dtype=_wide(h))
    saved = torch.empty(csr.num_entries, num_saved(attention), dtype=_wide(h))
    _launch(
        _propagate,
        csr,
        h,
        g,
        sent,
        h.new_empty(0) if norm is None else norm,
        _scale(left, csr, h),
        _scale(right, csr, h),
        eps0,
        _float(eps, h),
        attention,
        target_norm,
        m is not None,
        out,
        saved,
    )
    return out.to(sent.dtype), saved if save else None


# What the pass over targets leaves on every edge for the pass over sources.
_WEIGHT, _ALONG, _ACROSS, _INNER, _NORM = range(5)


@_exact_jit
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


@_jit
def _copy(row, other):
    for k in range(row.shape[0]):  # assigning a slice would compile numba's error messages, too
        row[k] = other[k]


@_jit
def _pack(row, own, metric, arriving):
    """Side by side what the sources gather of a node: one place in memory instead of three."""
    width = own.shape[0]
    _copy(row[:width], own)
    _copy(row[width : 2 * width], metric)
    _copy(row[2 * width :], arriving)


# A vector loop may not write to too many arrays that might overlap: one sum per function.


@_jit
def _pull_four(row, own, t, a, b, c, d, ta, tb, tc, td, sa, sb, sc, sd):
    for k in range(row.shape[0]):
        x, y = own[k], t[k]
        row[k] -= ((ta * y - sa) * (a[k] - x) + (tb * y - sb) * (b[k] - x)) + (
            (tc * y - sc) * (c[k] - x) + (td * y - sd) * (d[k] - x)
        )


@_jit
def _square_four(total, own, a, b, c, d, wa, wb, wc, wd):
    for k in range(total.shape[0]):
        x = own[k]
        u, v, w, z = a[k] - x, b[k] - x, c[k] - x, d[k] - x
        total[k] += (wa * u * u + wb * v * v) + (wc * w * w + wd * z * z)


@_jit
def _pull_one(row, own, t, a, ta, sa):
    for k in range(row.shape[0]):
        row[k] -= (ta * t[k] - sa) * (a[k] - own[k])


@_jit
def _square_one(total, own, a, wa):
    for k in range(total.shape[0]):
        u = a[k] - own[k]
        total[k] += wa * u * u


@_jit
def _add_targets(
    row, grad_t, grad_inner, own, t, h, column, start, stop, edge_gradient, attention, need_h
):
    """Add up what the edges of a block give to the features and the metric of their target."""
    e = start
    while e + 4 <= stop:
        a, b, c, d = h[column[e]], h[column[e + 1]], h[column[e + 2]], h[column[e + 3]]
        w, x, y, z = (
            edge_gradient[e],
            edge_gradient[e + 1],
            edge_gradient[e + 2],
            edge_gradient[e + 3],
        )
        ta, tb, tc, td = w[_ALONG], x[_ALONG], y[_ALONG], z[_ALONG]
        if need_h:
            _pull_four(
                row,
                own,
                t,
                a,
                b,
                c,
                d,
                ta,
                tb,
                tc,
                td,
                w[_ACROSS],
                x[_ACROSS],
                y[_ACROSS],
                z[_ACROSS],
            )
        _square_four(grad_t, own, a, b, c, d, ta, tb, tc, td)
        if attention:
            _add_four(grad_inner, a, b, c, d, w[_INNER], x[_INNER], y[_INNER], z[_INNER])
        e += 4
    while e < stop:
        a, w = h[column[e]], edge_gradient[e]
        if need_h:
            _pull_one(row, own, t, a, w[_ALONG], w[_ACROSS])
        _square_one(grad_t, own, a, w[_ALONG])
        if attention:
            _add_one(grad_inner, a, w[_INNER])
        e += 1


@_jit
def _target_rows(
    first,
    last,
    rowptr,
    column,
    h,
    g,
    m,
    norm,
    left,
    right,
    eps0,
    eps,
    attention,
    target_norm,
    separate,
    need_h,
    saved,
    grad_out,
    packed,
    edge_gradient,
    grad_h,
    grad_g,
    grad_norm,
    grad_eps0,
):
    h, g, m, saved, grad_out, packed, edge_gradient, grad_h, grad_g = _borrowed(
        h, g, m, saved, grad_out, packed, edge_gradient, grad_h, grad_g
    )
    width, sent = h.shape[1], m.shape[1]
    flat_h, flat_m = h.reshape(-1), m.reshape(-1)
    end = rowptr[last]
    one = h.dtype.type(1)
    zero, half = one - one, h.dtype.type(0.5)
    largest, base = h.dtype.type(_LARGEST), eps0[0]
    t, grad_t = np.empty(width, h.dtype), np.empty(width, h.dtype)
    grad_inner = np.empty(width, h.dtype)
    for i in range(first, last):
        own, metric, row, metric_row = h[i], g[i], grad_h[i], grad_g[i]
        if need_h:
            _pack(packed[i], own, metric, grad_out[i])
        for k in range(width):
            t[k] = _modulation(metric[k], one, largest)
            grad_t[k] = grad_inner[k] = metric_row[k] = zero
        if need_h:
            row[:] = 0
        own_norm = norm[i] if attention else zero
        norm_total = eps0_total = zero
        for start in range(rowptr[i], rowptr[i + 1], _BLOCK):
            stop = min(start + _BLOCK, rowptr[i + 1])
            for e in range(start, stop):
                ahead = column[min(e + _AHEAD, end - 1)]
                _prefetch_row(flat_h, ahead, width)
                if separate:
                    _prefetch_row(flat_m, ahead, sent)
                j = column[e]
                inner_product = other_norm = square = zero
                if attention:
                    inner_product = saved[e, 2]
                    other_norm = norm[j]
                    if target_norm:
                        square = saved[e, 3]
                        other_norm = np.sqrt(square)
                weight, along, across, inner, own_part, other_part, eps0_part = _edge_gradient(
                    one,
                    _dot(grad_out[i], m[j]),
                    left[i] * right[j],
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
                edge_gradient[e, _WEIGHT] = weight
                edge_gradient[e, _ALONG] = along
                edge_gradient[e, _ACROSS] = across
                edge_gradient[e, _INNER] = inner
                edge_gradient[e, _NORM] = other_part
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
                edge_gradient,
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


@_parallel
def _target_pass(
    bounds,
    rowptr,
    column,
    h,
    g,
    m,
    norm,
    left,
    right,
    eps0,
    eps,
    attention,
    target_norm,
    separate,
    need_h,
    saved,
    grad_out,
    packed,
    edge_gradient,
    grad_h,
    grad_g,
    grad_norm,
    grad_eps0,
):
    for part in prange(bounds.shape[0] - 1):
        _target_rows(
            bounds[part],
            bounds[part + 1],
            rowptr,
            column,
            h,
            g,
            m,
            norm,
            left,
            right,
            eps0,
            eps,
            attention,
            target_norm,
            separate,
            need_h,
            saved,
            grad_out,
            packed,
            edge_gradient,
            grad_h,
            grad_g,
            grad_norm,
            grad_eps0,
        )


@_jit
def _add_source(row, own, target, scalars, target_norm, separate):
    """Add what an edge gives to the features of its source; ``target`` is what was packed."""
    width = own.shape[0]
    one = own.dtype.type(1)
    largest = own.dtype.type(_LARGEST)
    other, metric, arriving = target[:width], target[width : 2 * width], target[2 * width :]
    weight, along = scalars[_WEIGHT], scalars[_ALONG]
    across, inner = scalars[_ACROSS], scalars[_INNER]
    if separate:
        weight = one - one
        arriving = metric
    for k in range(width):
        t = _modulation(metric[k], one, largest)
        row[k] += (
            weight * arriving[k]
            + (along * t - across) * (own[k] - other[k])
            + inner * metric[k] * other[k]
        )
    if target_norm:
        for k in range(width):
            row[k] += scalars[_NORM] * metric[k] * own[k]


@_jit
def _source_rows(
    first,
    last,
    rowptr,
    column,
    edge,
    h,
    g,
    norm,
    attention,
    target_norm,
    separate,
    need_h,
    packed,
    edge_gradient,
    grad_h,
    grad_g,
    grad_m,
    grad_norm,
):
    h, g, packed, edge_gradient, grad_h, grad_g, grad_m = _borrowed(
        h, g, packed, edge_gradient, grad_h, grad_g, grad_m
    )
    width, length = h.shape[1], packed.shape[1]
    flat = packed.reshape(-1)
    flat_gradient = edge_gradient.reshape(-1)
    end = rowptr[last]
    one = h.dtype.type(1)
    zero, half = one - one, h.dtype.type(0.5)
    for j in range(first, last):
        own, metric, row = h[j], g[j], grad_h[j]
        norm_total = grad_norm[j]
        if separate:
            grad_m[j][:] = 0
        for e in range(rowptr[j], rowptr[j + 1]):
            _prefetch_row(flat_gradient, edge[min(e + 8, end - 1)], 5)
            scalars = edge_gradient[edge[e]]
            if need_h:
                _prefetch_row(flat, column[min(e + 2, end - 1)], length)
                target = packed[column[e]]
                if separate:
                    _add_one(grad_m[j], target[2 * width :], scalars[_WEIGHT])
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


@_parallel
def _source_pass(
    bounds,
    rowptr,
    column,
    edge,
    h,
    g,
    norm,
    attention,
    target_norm,
    separate,
    need_h,
    packed,
    edge_gradient,
    grad_h,
    grad_g,
    grad_m,
    grad_norm,
):
    for part in prange(bounds.shape[0] - 1):
        _source_rows(
            bounds[part],
            bounds[part + 1],
            rowptr,
            column,
            edge,
            h,
            g,
            norm,
            attention,
            target_norm,
            separate,
            need_h,
            packed,
            edge_gradient,
            grad_h,
            grad_g,
            grad_m,
            grad_norm,
        )


def propagate_backward(
    csr: Csr,
    transpose: Csr,
    h: Tensor,
    g: Tensor,
    m: Tensor | None,
    norm: Tensor | None,
    left: Tensor | None,
    right: Tensor | None,
    eps0: Tensor,
    attention: bool,
    target_norm: bool,
    eps: float,
    saved: Tensor,
    grad_out: Tensor,
    need_h: bool,
    need_eps0: bool,
) -> tuple[Tensor | None, Tensor, Tensor | None, Tensor | None]:
    """Gradients of :func:`propagate` for features, metric, messages and, per node, ``eps0``.

    Without that of the features, as in a first layer, no source has to gather rows.
    """
    dtype = _wide(h)
    separate = m is not None
    need_h = need_h or separate  # messages of their own come by the same pass
    sent = h if m is None else m
    norms = h.new_empty(0) if norm is None else norm
    grad_h, grad_g = (torch.empty(h.shape, dtype=dtype) for _ in range(2))
    grad_m = torch.empty(sent.shape, dtype=dtype) if separate else grad_h
    grad_norm, grad_eps0 = (torch.empty(csr.num_rows, dtype=dtype) for _ in range(2))
    with _SCRATCH:
        edge_gradient = _room(csr, "edges", csr.num_entries, 5, dtype)
        packed = _room(csr, "nodes", csr.num_rows, 2 * h.size(1) + sent.size(1), dtype)
        _launch(
            _target_pass,
            csr,
            h,
            g,
            sent,
            norms,
            _scale(left, csr, h),
            _scale(right, csr, h),
            eps0,
            _float(eps, h),
            attention,
            target_norm,
            separate,
            need_h,
            saved,
            grad_out,
            packed,
            edge_gradient,
            grad_h,
            grad_g,
            grad_norm,
            grad_eps0,
        )
        if need_h or attention:
            _launch(
                _source_pass,
                transpose,
                transpose.edge,
                h,
                g,
                norms,
                attention,
                target_norm,
                separate,
                need_h,
                packed,
                edge_gradient,
                grad_h,
                grad_g,
                grad_m,
                grad_norm,
            )
    return (
        grad_h.to(h.dtype) if need_h else None,
        grad_g.to(g.dtype),
        grad_m.to(sent.dtype) if separate else None,
        grad_eps0 if need_eps0 else None,
    )


# --- the operator form --------------------------------------------------------------------


@_jit
def _modulate_rows(first, last, z, g, eps0, added, out):
    z, g, added, out = _borrowed(z, g, added, out)
    one = z.dtype.type(1)
    largest, base = z.dtype.type(_LARGEST), eps0[0]
    for i in range(first, last):
        row, metric, own, start = out[i], g[i], z[i], added[i]
        for k in range(row.shape[0]):
            t = _modulation(metric[k], one, largest)
            row[k] = start[k] + (base + (one - base) * t) * own[k]


@_parallel
def _modulate(bounds, z, g, eps0, added, out):
    for part in prange(bounds.shape[0] - 1):
        _modulate_rows(bounds[part], bounds[part + 1], z, g, eps0, added, out)


def modulate(z: Tensor, g: Tensor, eps0: Tensor, added: Tensor | None = None) -> Tensor:
    r""":math:`a + (\epsilon_0 + (1-\epsilon_0)\tanh(-\log g))\,z`, ``[N, D]``."""
    out = torch.empty(z.shape, dtype=_wide(z))
    start = torch.zeros_like(out) if added is None else added
    _launch_rows(_modulate, z, g, eps0, start, out)
    return out.to(z.dtype)


@_jit
def _modulate_gradient_rows(first, last, z, g, eps0, grad, grad_z, grad_g, grad_eps0):
    z, g, grad, grad_z, grad_g = _borrowed(z, g, grad, grad_z, grad_g)
    one = z.dtype.type(1)
    largest, base = z.dtype.type(_LARGEST), eps0[0]
    for i in range(first, last):
        own, metric, arriving, row, metric_row = z[i], g[i], grad[i], grad_z[i], grad_g[i]
        total = one - one
        for k in range(row.shape[0]):
            t = _modulation(metric[k], one, largest)
            row[k] = (base + (one - base) * t) * arriving[k]
            product = arriving[k] * own[k]
            metric_row[k] = (base - one) * product * (one - t * t) / metric[k]
            total += product * (one - t)
        grad_eps0[i] = total


@_parallel
def _modulate_backward(bounds, z, g, eps0, grad, grad_z, grad_g, grad_eps0):
    for part in prange(bounds.shape[0] - 1):
        _modulate_gradient_rows(
            bounds[part], bounds[part + 1], z, g, eps0, grad, grad_z, grad_g, grad_eps0
        )


def modulate_backward(
    z: Tensor, g: Tensor, eps0: Tensor, grad_out: Tensor, need_eps0: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of :func:`modulate` for ``z``, for ``g`` and, per node, for ``eps0``."""
    grad_z, grad_g = (torch.empty(z.shape, dtype=_wide(z)) for _ in range(2))
    grad_eps0 = torch.empty(z.size(0), dtype=_wide(z))
    _launch_rows(_modulate_backward, z, g, eps0, grad_out, grad_z, grad_g, grad_eps0)
    return grad_z.to(z.dtype), grad_g.to(g.dtype), grad_eps0 if need_eps0 else None


# --- from tensors to arrays ---------------------------------------------------------------


def _launch(kernel: Any, csr: Csr, *arguments: Any) -> None:
    count = _set_threads() * _PARTS_PER_THREAD
    arrays = [_array(a) if isinstance(a, Tensor) else a for a in arguments]
    _run(kernel, *_structure(csr, count), *arrays)


def _structure(csr: Csr, count: int) -> tuple[Any, Any, Any]:
    """Bounds, row pointers and columns as arrays, made once per matrix and thread count."""
    if count not in csr.arrays:
        csr.arrays[count] = tuple(
            _array(tensor) for tensor in (csr.parts(count), csr.rowptr, csr.column)
        )
    structure: tuple[Any, Any, Any] = csr.arrays[count]
    return structure


def _launch_rows(kernel: Any, *tensors: Tensor) -> None:
    """Launch what has no edges: the rows of the first tensor in parts of equal number."""
    count = _set_threads() * _PARTS_PER_THREAD
    bounds = np.linspace(0, tensors[0].size(0), count + 1).astype(np.int64)
    _run(kernel, bounds, *(_array(tensor) for tensor in tensors))


def _run(kernel: Any, *arrays: Any) -> None:
    with _LAUNCH, _torch_threads_kept():
        kernel(*arrays)


@contextmanager
def _torch_threads_kept() -> Iterator[None]:
    """Undo what numba does to torch.

    Where the two share one OpenMP library, numba's start sets the number of threads of both,
    and torch's results would depend on whether a kernel had run before.
    """
    threads = torch.get_num_threads()
    yield
    if torch.get_num_threads() != threads:
        torch.set_num_threads(threads)


def _room(csr: Csr, kind: str, rows: int, width: int, dtype: torch.dtype) -> Any:
    """Room for what one pass leaves to the next, kept with the graph for the next step.

    Rooms of different kinds are different, also where they have the same size. New memory is what
    costs here; numpy asks for huge pages, which spare most address look-ups where it is gathered
    from.
    """
    key = ("room", kind, width, dtype)
    if key not in csr.arrays:
        wide = np.float64 if dtype == torch.float64 else np.float32
        csr.arrays[key] = np.empty((rows, width), wide)
    return csr.arrays[key]


def _set_threads() -> int:
    """Use as many threads as torch does."""
    if _is_forked:
        raise RuntimeError(
            "this process was forked after argnn's kernels had run, and OpenMP's threads do not "
            "survive that: start processes by 'spawn' or 'forkserver' (the argument "
            "multiprocessing_context of torch's DataLoader, which forks otherwise)"
        )
    count = min(torch.get_num_threads(), _MAX_THREADS)
    with _torch_threads_kept():
        numba.set_num_threads(count)
    return count


def _wide(x: Tensor) -> torch.dtype:
    """The dtype a CPU computes and stores in: numpy knows no bfloat16."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _array(tensor: Tensor) -> Any:
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.dtype in (torch.float16, torch.bfloat16):
        tensor = tensor.float()
    return tensor.contiguous().numpy()


def _float(value: float, like: Tensor) -> Any:
    return _floats((value,), like)[0]


def _floats(values: tuple[float, ...], like: Tensor) -> Any:
    return np.asarray(values, np.float64 if like.dtype == torch.float64 else np.float32)


def _scale(scale: Tensor | None, csr: Csr, like: Tensor) -> Any:
    return _ones(csr.num_rows, _wide(like)) if scale is None else scale


@lru_cache(maxsize=16)
def _ones(size: int, dtype: torch.dtype) -> Any:
    return np.ones(size, np.float64 if dtype == torch.float64 else np.float32)
