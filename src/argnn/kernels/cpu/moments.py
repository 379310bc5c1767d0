# mypy: disable-error-code="no-untyped-def"
"""Mean and dispersion of the neighbours."""

from torch import Tensor

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.launch import edge_weight, floats, launch
from argnn.kernels.cpu.memory import prefetch_ahead, prefetch_row
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
def _moments_backward(
    first, last, rowptr, column, edge, share, h, mean, grad_mean, grad_dispersion, out
):
    width = h.shape[1]
    end = rowptr[last]
    two = h.dtype.type(2)
    for j in range(first, last):
        own, row = h[j], out[j]
        has_neighbors = h.dtype.type(share[j] > 0)
        for k in range(width):
            row[k] = -two * has_neighbors * grad_dispersion[j, k] * (mean[j, k] - own[k])
        for e in range(rowptr[j], rowptr[j + 1]):
            ahead = column[min(e + 2, end - 1)]
            for gathered in (h, grad_mean, grad_dispersion):
                prefetch_row(gathered, ahead)
            i = column[e]
            other, gm, gv, weight = h[i], grad_mean[i], grad_dispersion[i], share[i]
            if edge is not None:
                weight = weight * edge[e]
            for k in range(width):
                row[k] += weight * (gm[k] + two * gv[k] * (own[k] - other[k]))


def moments_backward(
    transpose: Csr,
    share: Tensor,
    h: Tensor,
    mean: Tensor,
    grad_mean: Tensor,
    grad_dispersion: Tensor,
) -> Tensor:
    """Gradient of :func:`moments` for the features; ``share`` is one over the degree or 0."""
    out = floats(h, *h.shape)
    weight = edge_weight(transpose, h)
    launch(_moments_backward, transpose, weight, share, h, mean, grad_mean, grad_dispersion, out)
    return out.to(h.dtype)
