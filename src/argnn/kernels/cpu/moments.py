# mypy: disable-error-code="no-untyped-def"
"""Mean and dispersion of the neighbours."""

import numpy as np
from torch import Tensor

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.launch import SCRATCH, edge_weight, floats, launch, launch_rows, scratch
from argnn.kernels.cpu.memory import AHEAD, prefetch_ahead, prefetch_row
from argnn.kernels.cpu.vectors import add_one
from argnn.kernels.csr import Csr


@over_rows
def _moments(first, last, rowptr, column, h, edge, shares, mean, dispersion):
    width = h.shape[1]
    end = rowptr[last]
    for i in range(first, last):
        own, m, v = h[i], mean[i], dispersion[i]
        m[:] = 0
        v[:] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            prefetch_ahead(h, column, e, end)
            other = h[column[e]]
            if edge is None:
                for k in range(width):
                    difference = other[k] - own[k]
                    m[k] += other[k]
                    v[k] += difference * difference
            else:
                weight = edge[e]
                for k in range(width):
                    difference = other[k] - own[k]
                    m[k] += weight * other[k]
                    v[k] += weight * difference * difference
        if shares is None:
            share = h.dtype.type(1) / h.dtype.type(max(rowptr[i + 1] - rowptr[i], 1))
        else:
            share = shares[i]
        for k in range(width):
            m[k] *= share
            v[k] *= share


def moments(csr: Csr, h: Tensor, share: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Mean of the neighbours, and their mean squared difference to the node, per channel.

    ``share`` is one over the weighted degree or 0; without weights None.
    """
    mean, dispersion = floats(h, *h.shape), floats(h, *h.shape)
    launch(_moments, csr, h, edge_weight(csr, h), share, mean, dispersion)
    return mean.to(h.dtype), dispersion.to(h.dtype)


@over_rows
def _pack(first, last, share, h, grad_mean, grad_dispersion, packed):
    """What the neighbours of a node gather of it, side by side in one place of the memory."""
    width = h.shape[1]
    for i in range(first, last):
        own, gm, gv, row, weight = h[i], grad_mean[i], grad_dispersion[i], packed[i], share[i]
        double = weight + weight
        for k in range(width):
            row[k] = weight * gm[k] - double * gv[k] * own[k]
        for k in range(width):
            row[width + k] = double * gv[k]


@over_rows
def _moments_backward(
    first, last, rowptr, column, edge, share, h, mean, grad_dispersion, packed, out
):
    width = h.shape[1]
    end = rowptr[last]
    two = h.dtype.type(2)
    total = np.empty(2 * width, h.dtype)
    for j in range(first, last):
        own, row = h[j], out[j]
        total[:] = 0
        for e in range(rowptr[j], rowptr[j + 1]):
            prefetch_row(packed, column[min(e + AHEAD, end - 1)])
            add_one(total, packed[column[e]], h.dtype.type(1) if edge is None else edge[e])
        has_neighbors = two * h.dtype.type(share[j] > 0)
        for k in range(width):
            apart = has_neighbors * grad_dispersion[j, k] * (mean[j, k] - own[k])
            row[k] = total[k] + own[k] * total[width + k] - apart


def moments_backward(
    transpose: Csr,
    share: Tensor,
    h: Tensor,
    mean: Tensor,
    grad_mean: Tensor,
    grad_dispersion: Tensor,
) -> Tensor:
    r"""Gradient of :func:`moments` for the features; ``share`` is one over the degree or 0.

    With :math:`\mathbf{p}_i = s_i (\bar{\mathbf{a}}_i - 2 \bar{\mathbf{v}}_i \mathbf{h}_i)` and
    :math:`\mathbf{q}_i = 2 s_i \bar{\mathbf{v}}_i` of each node, prepared once and side by side,
    the sources get :math:`\sum_i \mathbf{p}_i + \mathbf{h}_j \sum_i \mathbf{q}_i`.
    """
    out = floats(h, *h.shape)
    weight = edge_weight(transpose, h)
    with SCRATCH:
        packed = scratch(transpose, "moments", h.size(0), 2 * h.size(1), h)
        launch_rows(_pack, share, h, grad_mean, grad_dispersion, packed)
        launch(
            *(_moments_backward, transpose, weight, share, h, mean, grad_dispersion, packed, out)
        )
    return out.to(h.dtype)
