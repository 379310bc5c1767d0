# mypy: disable-error-code="no-untyped-def"
"""Sums over the channels of a row, and weighted sums of rows."""

from argnn.kernels.cpu.compiling import jit


@jit
def dot(a, b):
    """Inner product."""
    total = a.dtype.type(0)
    for k in range(a.shape[0]):
        total += a[k] * b[k]
    return total


@jit
def square_norm(x, g):
    """Squared norm of ``x`` in the metric ``g``."""
    total = g.dtype.type(0)
    for k in range(g.shape[0]):
        total += g[k] * x[k] * x[k]
    return total


@jit
def add_one(out, a, wa):
    """Add a weighted row."""
    for k in range(out.shape[0]):
        out[k] += wa * a[k]


@jit
def add_four(out, a, b, c, d, wa, wb, wc, wd):
    """Add four weighted rows."""
    for k in range(out.shape[0]):
        out[k] += (wa * a[k] + wb * b[k]) + (wc * c[k] + wd * d[k])
