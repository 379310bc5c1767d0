# mypy: disable-error-code="no-untyped-def"
"""Sums over neighbours with constant weights."""

from torch import Tensor

from argnn.kernels.cpu.compiling import jit, over_rows
from argnn.kernels.cpu.launch import edge_weight, floats, launch, scale_or_ones
from argnn.kernels.cpu.memory import AHEAD, prefetch_ahead, prefetch_row
from argnn.kernels.cpu.vectors import add_four, add_one
from argnn.kernels.csr import Csr


@jit
def sum_row(row, column, start, stop, end, x, weight, edge):
    """Weighted sum of the rows that the entries from ``start`` to ``stop`` name.

    ``weight`` is one of each row of ``x``, and ``edge`` one of each entry, or None.
    """
    row[:] = 0
    e = start
    while e + 4 <= stop:
        for f in range(e + AHEAD, min(e + AHEAD + 4, end)):
            prefetch_row(x, column[f])
        a, b, c, d = column[e], column[e + 1], column[e + 2], column[e + 3]
        wa, wb, wc, wd = weight[a], weight[b], weight[c], weight[d]
        if edge is not None:
            wa, wb, wc, wd = wa * edge[e], wb * edge[e + 1], wc * edge[e + 2], wd * edge[e + 3]
        add_four(row, x[a], x[b], x[c], x[d], wa, wb, wc, wd)
        e += 4
    while e < stop:
        prefetch_ahead(x, column, e, end)
        wa = weight[column[e]]
        if edge is not None:
            wa = wa * edge[e]
        add_one(row, x[column[e]], wa)
        e += 1


@over_rows
def _gather_sum(first, last, rowptr, column, x, left, right, edge, diagonal, out):
    for i in range(first, last):
        row, own = out[i], x[i]
        sum_row(row, column, rowptr[i], rowptr[i + 1], rowptr[last], x, right, edge)
        if diagonal.shape[0] > 0:
            for k in range(row.shape[0]):
                row[k] = left[i] * row[k] + diagonal[i] * own[k]
        else:
            for k in range(row.shape[0]):
                row[k] *= left[i]


def gather_sum(
    csr: Csr,
    x: Tensor,
    left: Tensor | None,
    right: Tensor | None,
    diagonal: Tensor | None = None,
) -> Tensor:
    r""":math:`\mathbf{y}_i = d_i \mathbf{x}_i + l_i \sum_j w_{ij} r_j \mathbf{x}_j`, ``[N, D]``."""
    out = floats(x, csr.num_rows, x.size(1))
    scales = scale_or_ones(left, csr, x), scale_or_ones(right, csr, x)
    own = floats(x, 0) if diagonal is None else diagonal
    launch(_gather_sum, csr, x, *scales, edge_weight(csr, x), own, out)
    return out.to(x.dtype)
