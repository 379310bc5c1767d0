r"""The pseudo-hyperboloid: a space of constant curvature with several time-like directions.

.. math::
    \mathcal{Q}_\beta^{s,t} = \{x = (x_t, x_s) \in \mathbb{R}^{t+s} :
    \langle x, x\rangle = -\|x_t\|^2 + \|x_s\|^2 = \beta\}, \qquad \beta < 0

One time-like coordinate makes it a hyperboloid, no space-like coordinate a sphere. Maps as in
Xiong, Zhu, Potyka, Pan, Zhou, Staab, *Pseudo-Riemannian graph convolutional networks*, NeurIPS
2022: the logarithm is that of the product of a sphere and a Euclidean space, since two points of a
pseudo-hyperboloid need not have a geodesic between them.

Conventions: the last dimension holds the ``time`` time-like coordinates and then the space-like
ones, ``beta`` is a negative scalar tensor, :math:`b = \sqrt{|\beta|}`, and the origin is
:math:`o = (b, 0, \ldots)`. The first coordinate of a tangent vector at the origin is zero; a value
given there is ignored.
"""

import math

import torch
from torch import Tensor

from argnn.functional.analytic import asin_ratio, atan_ratio, cos_root, sin_ratio, squared_length

#: Largest angle around the sphere of a tangent vector; the antipode of the origin is at pi.
MAX_ANGLE = 3.0

_FLOOR = {torch.float32: 1e-6, torch.float64: 1e-13}
# For larger arguments the hyperbolic functions overflow in float32.
_MAX_ARGUMENT = 15.0


def inner_product(x: Tensor, y: Tensor, time: int) -> Tensor:
    r"""The form :math:`-\langle x_t, y_t\rangle + \langle x_s, y_s\rangle`, ``[..., 1]``.

    Example:
        >>> x = torch.tensor([1.0, 2.0, 3.0])
        >>> inner_product(x, x, 2).tolist()
        [4.0]
    """
    product = x * y
    of_time, of_space = product[..., :time], product[..., time:]
    return of_space.sum(-1, keepdim=True) - of_time.sum(-1, keepdim=True)


def clip_tangent(z: Tensor, beta: Tensor, time: int, max_angle: float = MAX_ANGLE) -> Tensor:
    r"""Tangent vectors at the origin whose time-like part is at most ``max_angle`` long over b.

    Beyond :math:`\pi` the exponential map would run past the antipode and come back. The first
    coordinate becomes zero.
    """
    first, of_time, of_space = z[..., :1], z[..., 1:time], z[..., time:]
    angle = squared_length(of_time) / -beta
    outside = angle > max_angle**2
    factor = torch.where(outside, max_angle * torch.where(outside, angle, 1.0).rsqrt(), 1.0)
    return torch.cat([torch.zeros_like(first), of_time * factor, of_space], dim=-1)


def expmap0(z: Tensor, beta: Tensor, time: int) -> Tensor:
    r"""Points from tangent vectors at the origin, ``[..., D]``.

    .. math::
        \exp_0(z) = \bigl(\sqrt{1 + \|z_s\|^2}\,u,\; b\,z_s\bigr), \qquad
        u = \cos(\|z_t\|/b)\,o + b\sin(\|z_t\|/b)\,z_t/\|z_t\|

    Example:
        >>> expmap0(torch.tensor([0.0, 3.0, 4.0]), torch.tensor(-1.0), 1).tolist()
        [5.099019527435303, 3.0, 4.0]
    """
    b = (-beta).sqrt()
    of_time, of_space = z[..., 1:time], z[..., time:]
    angle = squared_length(of_time) / -beta
    stretch = (1 + squared_length(of_space)).sqrt()
    first = b * cos_root(angle)
    return torch.cat([stretch * first, stretch * sin_ratio(angle) * of_time, b * of_space], dim=-1)


def logmap0(x: Tensor, beta: Tensor, time: int) -> Tensor:
    r"""The inverse of :func:`expmap0` for :math:`\|z_t\| < \pi b`, ``[..., D]``.

    Written with the half angle, :math:`\theta = 2\arctan(\|w\|/(1+c))` for
    :math:`(c, w) = x_t/\|x_t\|`, which is smooth everywhere but at the antipode.
    """
    b = (-beta).sqrt()
    length = squared_length(x[..., :time]).sqrt()
    c, w = x[..., :1] / length, x[..., 1:time] / length
    below = (1 + c).clamp_min(_FLOOR[x.dtype])
    half_tangent = squared_length(w) / below.square()
    of_time = (2 * b * atan_ratio(half_tangent) / below) * w
    return torch.cat([torch.zeros_like(c), of_time, x[..., time:] / b], dim=-1)


def transport0(x: Tensor, u: Tensor, beta: Tensor, time: int) -> Tensor:
    r"""Parallel transport of tangent vectors from the origin to ``x``, ``[..., D]``.

    .. math:: u + \frac{\langle x, u\rangle}{b^2 - \langle o, x\rangle}\,(o + x)

    The first coordinate of the points must be positive.
    """
    b = (-beta).sqrt()
    u = torch.cat([torch.zeros_like(u[..., :1]), u[..., 1:]], dim=-1)
    below = b * (b + x[..., :1]).clamp_min(_FLOOR[x.dtype])
    along = inner_product(x, u, time) / below
    shifted = torch.cat([x[..., :1] + b, x[..., 1:]], dim=-1)
    return u + along * shifted


def expmap(x: Tensor, w: Tensor, beta: Tensor, time: int) -> Tensor:
    r"""Points that geodesics from ``x`` reach, ``[..., D]``.

    .. math:: \cos(\sqrt y)\,x + \frac{\sin\sqrt y}{\sqrt y}\,w, \qquad
        y = -\langle w, w\rangle / b^2

    which is a hyperbola for space-like :math:`w`, a circle for time-like, a line between.
    """
    y = (inner_product(w, w, time) / beta).clamp_min(-(_MAX_ARGUMENT**2))
    return cos_root(y) * x + sin_ratio(y) * w


def squared_distance(x: Tensor, y: Tensor, beta: Tensor, time: int) -> Tensor:
    r"""Squared length of the geodesic, broken where there is none, ``[...]``.

    .. math::
        d(x, y) = b \begin{cases}
        \mathrm{arcosh}(-K) & K < -1 \\
        \arccos(-K) & |K| \le 1 \\
        \pi + \mathrm{arcosh}(K) & K > 1
        \end{cases}, \qquad K = \langle x, y\rangle / |\beta|

    The last case goes through the antipode :math:`-x`. The first two are
    :math:`4 b^2 |h| (\arcsin(\sqrt h)/\sqrt h)^2` with
    :math:`h = (1 + K)/2 = \langle x-y, x-y\rangle/4\beta`, with a finite gradient where they meet.
    """
    floor = _FLOOR[x.dtype]
    gap = x - y
    h = (inner_product(gap, gap, time) / (4 * beta)).squeeze(-1)
    joined = 4 * h.abs() * asin_ratio(h.clamp_max(1 - floor)).square()
    far = torch.where(h > 1, h, 2.0).clamp_min(1 + floor)
    broken = (math.pi + 2 * far.sqrt().acosh()).square()
    return -beta * torch.where(h > 1, broken, joined)
