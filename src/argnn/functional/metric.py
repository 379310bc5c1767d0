r"""Diagonal metrics: positivity, inner product, norm, distance, and their closed forms.

A metric is given by its diagonal ``g`` with :math:`\mathbf{G} = \mathrm{diag}(\mathbf{g})`.
"""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

from argnn.functional.precision import accumulation_dtype, safe_sqrt
from argnn.kernels import fused
from argnn.kernels.choice import is_fused


def positive_diagonal(
    raw: Tensor,
    *,
    floor: float = 1e-6,
    ceiling: float | None = None,
    sharpness: float = 1.0,
    clamp: bool = False,
) -> Tensor:
    r"""Metric diagonal from unconstrained values (:eq:`metric`).

    .. math:: g = \min(\mathrm{softplus}_\beta(r) + \epsilon,\; M)

    Args:
        raw: Unconstrained values, any shape.
        floor: :math:`\epsilon`, the smallest metric.
        ceiling: :math:`M`, the largest metric; none by default.
        sharpness: :math:`\beta` of the softplus.
        clamp: Whether the floor is a lower limit, as in the public code, or is added, as in the
            paper.
    """
    if raw.is_cuda and is_fused(raw) and not torch.compiler.is_compiling():
        return fused.softplus_diagonal(raw, floor, ceiling, sharpness, clamp)
    g = softplus(raw, beta=sharpness)
    g = g.clamp(min=floor) if clamp else g.add_(floor)  # in place: no gradient needs it
    return g if ceiling is None else g.clamp(max=ceiling)


def raw_from_diagonal(
    g: Tensor, *, floor: float = 1e-6, sharpness: float = 1.0, clamp: bool = False
) -> Tensor:
    """The values that :func:`positive_diagonal` maps to ``g``; needs ``g > floor``.

    Example:
        >>> raw = raw_from_diagonal(torch.tensor([0.5]))
        >>> round(float(positive_diagonal(raw)), 6)
        0.5
    """
    scaled = sharpness * (g if clamp else g - floor)
    return (scaled + torch.log(-torch.expm1(-scaled))) / sharpness


def inner_product(u: Tensor, v: Tensor, g: Tensor) -> Tensor:
    r"""Metric inner product :math:`\langle u, v\rangle_G = \sum_k g_k u_k v_k`, ``[...]``."""
    dtype = accumulation_dtype(u.dtype)
    return (g.to(dtype) * u.to(dtype) * v.to(dtype)).sum(-1).to(u.dtype)


def norm(u: Tensor, g: Tensor) -> Tensor:
    r"""Metric norm :math:`\|u\|_G = \sqrt{\sum_k g_k u_k^2}`, zero gradient at zero."""
    dtype = accumulation_dtype(u.dtype)
    u_, g_ = u.to(dtype), g.to(dtype)
    return safe_sqrt(inner_product(u_, u_, g_)).to(u.dtype)


def geodesic_distance(x: Tensor, y: Tensor, g: Tensor) -> Tensor:
    r"""Distance of two points under a locally constant diagonal metric (:eq:`geodesic`).

    .. math:: d_{\mathbf{G}}(\mathbf{x}, \mathbf{y}) = \sqrt{\textstyle\sum_k g_k (x_k - y_k)^2}

    The gradient at ``x = y`` is zero.

    Args:
        x: Points, ``[..., D]``.
        y: Points, ``[..., D]``.
        g: Metric diagonals, ``[..., D]``.

    Example:
        >>> x, y = torch.zeros(2), torch.tensor([3.0, 4.0])
        >>> geodesic_distance(x, y, torch.ones(2)).item()
        5.0
    """
    dtype = accumulation_dtype(x.dtype)
    return norm(x.to(dtype) - y.to(dtype), g.to(dtype)).to(x.dtype)


def expmap(h: Tensor, v: Tensor) -> Tensor:
    r"""Exponential map :math:`\exp_h(v) = h + v` (:eq:`expmap`)."""
    return h + v


def logmap(h: Tensor, other: Tensor) -> Tensor:
    r"""Logarithmic map :math:`\log_h(h') = h' - h` (:eq:`expmap`)."""
    return other - h


def inverse(g: Tensor) -> Tensor:
    r"""Diagonal of :math:`\mathbf{G}^{-1}`."""
    return g.reciprocal()


def log_determinant(g: Tensor) -> Tensor:
    r""":math:`\log\det\mathbf{G} = \sum_k \log g_k`, ``[..., D] -> [...]``.

    The determinant itself leaves the range of float32 at about a hundred channels.
    """
    return g.log().sum(-1)


def determinant(g: Tensor) -> Tensor:
    r""":math:`\det\mathbf{G} = \prod_k g_k`, ``[..., D] -> [...]``."""
    return g.prod(-1)


def eigenpairs(g: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues ``[..., D]`` and eigenvectors ``[D, D]``: the diagonal, and the axes."""
    return g, torch.eye(g.size(-1), dtype=g.dtype, device=g.device)


def xavier_half_width(num_channels: int) -> float:
    r"""Half width :math:`\sqrt{3/D}` of the Xavier-style start, at most 0.99.

    At :math:`D \le 3` the interval :math:`1 \pm \sqrt{3/D}` of the paper would contain zero or
    negative metrics.
    """
    return min(math.sqrt(3 / num_channels), 0.99)
