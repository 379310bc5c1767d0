# mypy: disable-error-code="no-untyped-def"
"""Differences of the metric between neighbours, and their energies."""

from torch import Tensor

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.gather import sum_row
from argnn.kernels.cpu.launch import (
    array,
    edge_weight,
    floats,
    launch,
    numbers,
    scale_or_ones,
)
from argnn.kernels.cpu.memory import prefetch_ahead
from argnn.kernels.cpu.vectors import dot
from argnn.kernels.csr import Csr


@over_rows
def _laplacian(first, last, rowptr, column, g, edge, scale, factors, out, energy):
    width = g.shape[1]
    end = rowptr[last]
    for i in range(first, last):
        own, row = g[i], out[i]
        row[:] = 0
        squares = g.dtype.type(0)
        for e in range(rowptr[i], rowptr[i + 1]):
            prefetch_ahead(g, column, e, end)
            other = g[column[e]]
            square = g.dtype.type(0)
            if edge is None:
                for k in range(width):
                    difference = own[k] - other[k]
                    row[k] += difference
                    square += difference * difference
            else:
                weight = edge[e]
                for k in range(width):
                    difference = own[k] - other[k]
                    row[k] += weight * difference
                    square += weight * difference * difference
            squares += square
        for k in range(width):
            row[k] *= scale[i]
        energy[i, 0] = factors[0] * dot(row, row)
        energy[i, 1] = factors[1] * squares


def laplacian(
    csr: Csr, g: Tensor, scale: Tensor | None, factors: tuple[float, float] = (1.0, 1.0)
) -> tuple[Tensor, Tensor]:
    r"""Differences :math:`y_i = s_i \sum_j w_{ij} (g_i - g_j)`, ``[N, D]``; energies ``[N, 2]``.

    The energies of a node are :math:`|y_i|^2` and :math:`\sum_j w_{ij} |g_i - g_j|^2`, times
    ``factors``.
    """
    out, energy = floats(g, *g.shape), floats(g, csr.num_rows, 2)
    scales = edge_weight(csr, g), scale_or_ones(scale, csr, g), numbers(factors, g)
    launch(_laplacian, csr, g, *scales, out, energy)
    return out.to(g.dtype), energy


@over_rows
def _energy_gradient(first, last, rowptr, column, y, edge, degree, share, coefficients, out):
    ricci, smooth = coefficients[0], coefficients[1]
    for i in range(first, last):
        row, own = out[i], y[i]
        sum_row(row, column, rowptr[i], rowptr[i + 1], rowptr[last], y, share, edge)
        factor = ricci + smooth * degree[i]
        for k in range(row.shape[0]):
            row[k] = factor * own[k] - ricci * row[k]


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
        degree: Weighted number of neighbours of each node, ``[N]``.
        share: One over it, ``[N]``.
        grad: Gradient at the two summed energies, ``[2]``.
        factors: As given to :func:`laplacian`.
    """
    out = floats(y, *y.shape)
    coefficients = array(grad) * numbers((factors[0], 8 * factors[1]), y)
    weight = edge_weight(transpose, y)
    launch(_energy_gradient, transpose, y, weight, degree, share, coefficients, out)
    return out.to(y.dtype)
