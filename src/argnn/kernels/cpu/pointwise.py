# mypy: disable-error-code="no-untyped-def"
"""Kernels without edges: norms, and the channel-wise modulation."""

import numpy as np
import torch
from torch import Tensor

from argnn.kernels.cpu.compiling import over_rows
from argnn.kernels.cpu.launch import floats, launch_rows
from argnn.kernels.cpu.modulation import modulation
from argnn.kernels.cpu.vectors import square_norm


@over_rows
def _metric_norm(first, last, h, g, norm):
    for i in range(first, last):
        norm[i] = np.sqrt(square_norm(h[i], g[i]))


def metric_norm(h: Tensor, g: Tensor) -> Tensor:
    """Norm of every node's features in its own metric, ``[N]``."""
    norm = floats(h, h.size(0))
    launch_rows(_metric_norm, h, g, norm)
    return norm


@over_rows
def _modulate(first, last, z, g, eps0, added, out):
    one, base = z.dtype.type(1), eps0[0]
    for i in range(first, last):
        row, metric, own, start = out[i], g[i], z[i], added[i]
        for k in range(row.shape[0]):
            t = modulation(metric[k], one)
            row[k] = start[k] + (base + (one - base) * t) * own[k]


def modulate(z: Tensor, g: Tensor, eps0: Tensor, added: Tensor | None = None) -> Tensor:
    r""":math:`a + (\epsilon_0 + (1-\epsilon_0)\tanh(-\log g))\,z`, ``[N, D]``."""
    out = floats(z, *z.shape)
    start = torch.zeros_like(out) if added is None else added
    launch_rows(_modulate, z, g, eps0, start, out)
    return out.to(z.dtype)


@over_rows
def _modulate_backward(first, last, z, g, eps0, grad, grad_z, grad_g, grad_eps0):
    one, base = z.dtype.type(1), eps0[0]
    for i in range(first, last):
        own, metric, arriving, row, metric_row = z[i], g[i], grad[i], grad_z[i], grad_g[i]
        total = one - one
        for k in range(row.shape[0]):
            t = modulation(metric[k], one)
            row[k] = (base + (one - base) * t) * arriving[k]
            product = arriving[k] * own[k]
            metric_row[k] = (base - one) * product * (one - t * t) / metric[k]
            total += product * (one - t)
        grad_eps0[i] = total


def modulate_backward(
    z: Tensor, g: Tensor, eps0: Tensor, grad_out: Tensor, need_eps0: bool
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Gradients of :func:`modulate` for ``z``, for ``g`` and, per node, for ``eps0``."""
    grad_z, grad_g = floats(z, *z.shape), floats(z, *z.shape)
    grad_eps0 = floats(z, z.size(0))
    launch_rows(_modulate_backward, z, g, eps0, grad_out, grad_z, grad_g, grad_eps0)
    return grad_z.to(z.dtype), grad_g.to(g.dtype), grad_eps0 if need_eps0 else None
