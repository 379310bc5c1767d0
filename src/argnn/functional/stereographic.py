r"""The :math:`\kappa`-stereographic model: spaces of constant curvature of either sign.

The Poincaré ball of radius :math:`1/\sqrt{-\kappa}` for :math:`\kappa < 0`, Euclidean space for
:math:`\kappa = 0`, the sphere without one pole for :math:`\kappa > 0`. Formulas as in Bachmann,
Bécigneul, Ganea, *Constant curvature graph convolutional networks*, ICML 2020, and in geoopt,
which gives the same values. geoopt's functions are not used for three reasons. A learned curvature
has to pass through zero in float32, where their gradient with respect to the curvature is wrong
(for the logarithm 2138 instead of -0.036 at :math:`\kappa = -2\cdot 10^{-8}`). The distance to a
hyperplane has a gradient of NaN at the rim of a hemisphere. And the choice between the three cases
waits for the GPU. With sums of squares and :mod:`argnn.functional.analytic` there are no cases, and
a zero vector is no special point.

Conventions:

* the last dimension holds the coordinates, and the curvature ``k`` is a tensor that broadcasts
  against the other ones with a last dimension of size 1: a scalar, or ``[Q, 1]`` for points
  ``[N, Q, D]`` in a product of ``Q`` spaces;
* distances are **twice** the Euclidean ones at :math:`\kappa = 0`, and
  :math:`d(0, \exp_0 u) = 2\|u\|`, as in geoopt and in HGCN's Poincaré ball;
* points keep a distance from the boundary of the ball, of 0.4 % of its radius in float32 and of
  0.001 % in float64, and tangent vectors from the pole of the sphere: :func:`clip_tangent`.
"""

import math

import torch
from torch import Tensor

from argnn.functional.analytic import asin_ratio, atan_ratio, squared_length, tan_ratio
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import safe_sqrt
from argnn.functional.self_loops import closed_aggregate

#: Largest angle :math:`\sqrt\kappa\|u\|` of a tangent vector; the pole is at :math:`\pi/2`.
MAX_ANGLE = 1.4
#: Angle within which points lie in the hemisphere around the origin, with a margin.
HEMISPHERE = 0.99 * math.pi / 4

_MARGIN = {torch.float32: 4e-3, torch.float64: 1e-5}
_FLOOR = {torch.float32: 1e-6, torch.float64: 1e-13}


def clip_tangent(u: Tensor, k: Tensor, max_angle: float = MAX_ANGLE) -> Tensor:
    r"""Tangent vectors at the origin, shortened to where :func:`expmap0` is safe.

    For :math:`\kappa < 0` this is the same as projecting :math:`\exp_0(u)` into the ball, less its
    margin; for :math:`\kappa > 0` it keeps :math:`\sqrt\kappa\|u\|` below ``max_angle``.

    Points that stay in one hemisphere need :data:`HEMISPHERE`.
    """
    return u * shortening(k * squared_length(u), u.dtype, max_angle)[0]


def shortening(y: Tensor, dtype: torch.dtype, max_angle: float) -> tuple[Tensor, Tensor]:
    r"""Factor that shortens a vector, and :math:`y = \kappa\|u\|^2` of the shortened one."""
    lowest = -(math.atanh(1 - _MARGIN[dtype]) ** 2)
    limit = y.clamp(lowest, max_angle**2)
    outside = limit != y
    # One where nothing is shortened, since the root of 0 / 1 would have an infinite gradient.
    ratio = torch.where(outside, limit, 1.0) / torch.where(outside, y, 1.0)
    return ratio.sqrt(), limit


def expmap0(u: Tensor, k: Tensor) -> Tensor:
    r"""The point that a geodesic from the origin reaches, ``[..., D]``.

    .. math:: \exp_0(u) = \tan_\kappa(\|u\|)\,u/\|u\|

    Tangent vectors beyond the limits of :func:`clip_tangent` are shortened first.

    Example:
        >>> expmap0(torch.tensor([1.0, 0.0]), torch.tensor(-1.0)).round(decimals=4).tolist()
        [0.7616000175476074, 0.0]
    """
    factor, y = shortening(k * squared_length(u), u.dtype, MAX_ANGLE)
    return u * (factor * tan_ratio(y))


def logmap0(x: Tensor, k: Tensor) -> Tensor:
    r"""The tangent vector at the origin whose geodesic reaches ``x``, ``[..., D]``.

    .. math:: \log_0(x) = \mathrm{arctan}_\kappa(\|x\|)\,x/\|x\|
    """
    y = k * squared_length(x)
    return x * atan_ratio(y.clamp_min(_FLOOR[x.dtype] - 1))


def project(x: Tensor, k: Tensor) -> Tensor:
    """Points; those beyond the margin of the ball are moved to it, ``[..., D]``."""
    y = k * squared_length(x)
    lowest = -((1 - _MARGIN[x.dtype]) ** 2)
    outside = y < lowest
    return x * torch.where(outside, (lowest / torch.where(outside, y, -1.0)).sqrt(), 1.0)


def conformal_factor(x: Tensor, k: Tensor) -> Tensor:
    r""":math:`\lambda_x = 2 / (1 + \kappa\|x\|^2)`, ``[..., 1]``."""
    return 2 / (1 + k * squared_length(x))


def mobius_add(x: Tensor, y: Tensor, k: Tensor) -> Tensor:
    r"""Möbius addition, projected into the ball, ``[..., D]``.

    .. math::
        x \oplus y = \frac{(1 - 2\kappa\langle x,y\rangle - \kappa\|y\|^2)\,x
        + (1 + \kappa\|x\|^2)\,y}
        {1 - 2\kappa\langle x,y\rangle + \kappa^2\|x\|^2\|y\|^2}
    """
    xx, yy, xy = squared_length(x), squared_length(y), (x * y).sum(-1, keepdim=True)
    below = (1 - 2 * k * xy + k.square() * xx * yy).clamp_min(_FLOOR[x.dtype])
    of_x, of_y = (1 - 2 * k * xy - k * yy) / below, (1 + k * xx) / below
    return project(of_x * x + of_y * y, k)


def squared_distance(x: Tensor, y: Tensor, k: Tensor) -> Tensor:
    r"""Squared geodesic distance, ``[...]``; its gradient is finite for equal points, too.

    .. math::
        d(x, y)^2 = 4\,q\,\Bigl(\frac{\arctan\sqrt{\kappa q}}{\sqrt{\kappa q}}\Bigr)^2, \qquad
        q = \|{-x} \oplus y\|^2 = \frac{\|x-y\|^2}
        {(1+\kappa\|x\|^2)(1+\kappa\|y\|^2) - \kappa\|x-y\|^2}

    The sum in the denominator has one sign in the ball, so nothing cancels near its rim.

    Example:
        >>> x, y = torch.tensor([0.0, 0.0]), torch.tensor([3.0, 4.0])
        >>> squared_distance(x, y, torch.tensor(0.0)).item()
        100.0
    """
    floor = _FLOOR[x.dtype]
    gap, xx, yy = squared_length(x - y), squared_length(x), squared_length(y)
    q = gap / ((1 + k * xx) * (1 + k * yy) - k * gap).clamp_min(floor)
    return (4 * q * atan_ratio((k * q).clamp_min(floor - 1)).square()).squeeze(-1)


def ball_distance(gap: Tensor, xx: Tensor, yy: Tensor, k: Tensor) -> Tensor:
    r"""Geodesic distance in a ball from Euclidean lengths, all of one shape.

    .. math::
        d = \operatorname{arcosh}(1 + z)/\sqrt{-\kappa}, \qquad
        z = \frac{-2\kappa\|x-y\|^2}{(1+\kappa\|x\|^2)(1+\kappa\|y\|^2)}

    Fewer steps than :func:`squared_distance` takes, for as many numbers as a graph has edges. Where
    the distance is zero and has no gradient, what is given instead is finite.

    ``gap``, ``xx`` and ``yy`` are :math:`\|x-y\|^2`, :math:`\|x\|^2` and :math:`\|y\|^2`.

    Example:
        >>> zero = torch.tensor(0.0)
        >>> square = torch.tanh(torch.tensor(0.5)) ** 2  # the point is half a unit times two away
        >>> round(ball_distance(square, square, zero, torch.tensor(-1.0)).item(), 4)
        1.0
    """
    z = -2 * k * gap / ((1 + k * xx) * (1 + k * yy))
    return torch.log1p(z + safe_sqrt(z * (z + 2))) * (-k).rsqrt()


def gyromidpoint(x: Tensor, edge_index: Edges, k: Tensor, normalization: str = "sym") -> Tensor:
    r"""Weighted midpoint of each node and its neighbours, ``[N, ..., D]``.

    .. math::
        m_i = \tfrac12 \otimes \frac{\sum_j a_{ij}\,\lambda_j x_j}{\sum_j a_{ij}\,(\lambda_j - 1)}

    with the weights :math:`a_{ij}` of :func:`~argnn.functional.self_loops.closed_aggregate`, whose
    scale does not matter. Two sums over neighbours, and never an ``N x N x D`` tensor.

    For positive curvature, points must lie in the hemisphere around the origin, where no midpoint
    has to be replaced by its antipode.
    """
    factor = conformal_factor(x, k)
    both = torch.cat([factor * x, factor - 1], dim=-1)
    sums = closed_aggregate(both.flatten(1), edge_index, normalization).view_as(both)
    return half(sums[..., :-1] / sums[..., -1:], k)


def half(x: Tensor, k: Tensor) -> Tensor:
    r"""The point half way from the origin, :math:`\tfrac12 \otimes x`, ``[..., D]``.

    .. math:: \tfrac12 \otimes x = x / (1 + \sqrt{1 + \kappa\|x\|^2})
    """
    inside = (1 + k * squared_length(x)).clamp_min(_FLOOR[x.dtype])
    return x * (1 / (1 + inside.sqrt()))


def hyperplane_scores(x: Tensor, points: Tensor, normals: Tensor, k: Tensor) -> Tensor:
    r"""Scores of a stereographic multinomial logistic regression, ``[N, C]``.

    .. math::
        s_c(x) = \lambda_{p_c} \|a_c\| \arcsin_\kappa
        \frac{2\langle z, a_c\rangle}{(1 + \kappa\|z\|^2)\|a_c\|}, \qquad z = (-p_c) \oplus x

    The signed distance from the hyperplane through :math:`p_c` orthogonal to :math:`a_c`, scaled;
    :math:`4\langle x - p_c, a_c\rangle` at :math:`\kappa = 0`. Evaluated with two products of
    matrices, without a point :math:`z` for every node and class.

    ``points`` are :math:`p_c` and ``normals`` are :math:`a_c`, ``[C, D]`` each.
    """
    xx, pp = squared_length(x), squared_length(points).t()
    length = normals.square().sum(-1).clamp_min(torch.finfo(x.dtype).tiny).sqrt()
    direction = normals / length.unsqueeze(-1)
    alpha = 1 + 2 * k * (x @ points.t()) - k * xx
    along = (1 + k * pp) * (x @ direction.t()) - alpha * (points * direction).sum(-1)
    v = 2 * along / ((1 + k * xx) * (1 + k * pp))
    angle = v * asin_ratio((k * v.square()).clamp_max(1 - _FLOOR[x.dtype]))
    return 2 / (1 + k * pp) * length.unsqueeze(0) * angle
