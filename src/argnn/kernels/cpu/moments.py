# mypy: disable-error-code="no-untyped-def"
"""Mean and dispersion of the neighbours."""

from torch import Tensor

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.launch import floats, launch
from argnn.kernels.cpu.memory import prefetch_ahead, prefetch_row
from argnn.kernels.csr import Csr


@over_rows
def _moments(first, last, rowptr, column, h, mean, dispersion):
    width = h.shape[1]
    end = rowptr[last]
    for i in range(first, last):
        own, m, v = h[i], mean[i], dispersion[i]
        m[:] = 0
        v[:] = 0
        for e in range(rowptr[i], rowptr[i + 1]):
            prefetch_ahead(h, column, e, end)
            other = h[column[e]]
            for k in range(width):
                difference = other[k] - own[k]
                m[k] += other[k]
                v[k] += difference * difference
        share = h.dtype.type(1) / h.dtype.type(max(rowptr[i + 1] - rowptr[i], 1))
        for k in range(width):
            m[k] *= share
            v[k] *= share


def moments(csr: Csr, h: Tensor) -> tuple[Tensor, Tensor]:
    """Mean of the neighbours, and their mean squared difference to the node, per channel."""
    mean, dispersion = floats(h, *h.shape), floats(h, *h.shape)
    launch(_moments, csr, h, mean, dispersion)
    return mean.to(h.dtype), dispersion.to(h.dtype)


@over_rows
def _moments_backward(first, last, rowptr, column, share, h, mean, grad_mean, grad_dispersion, out):
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
    launch(_moments_backward, transpose, share, h, mean, grad_mean, grad_dispersion, out)
    return out.to(h.dtype)
