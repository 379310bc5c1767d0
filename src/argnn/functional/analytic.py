r"""Trigonometric functions of a squared argument, which become hyperbolic ones below zero.

:math:`\tan(\sqrt y)/\sqrt y` is a power series in :math:`y`: for negative :math:`y` it is
:math:`\tanh(\sqrt{-y})/\sqrt{-y}`, and at zero it is 1. With :math:`y = \kappa\|x\|^2` this is all
that the maps of constant-curvature spaces need. So neither the sign of a curvature, nor flat space,
nor a zero vector is a special case, and gradients are correct there, also in float32.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

#: Below this size of the argument the series is used, since the closed form loses digits.
_SMALL = 0.03
#: How many terms of the series are needed for full precision.
_TERMS = {torch.float32: 6, torch.float64: 12}


@dataclass(frozen=True)
class _AnalyticFunction:
    """A function of y, and its derivative.

    Attributes:
        series: Its power series at zero.
        positive: Its value as a function of the root of a positive argument.
        negative: Its value as a function of the root of minus a negative one.
        slope: Its derivative from argument and value, away from zero.
    """

    series: Sequence[float]
    positive: Callable[[Tensor], Tensor]
    negative: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]

    def value(self, y: Tensor) -> Tensor:
        # Each branch gets only arguments that it is defined for.
        above = self.positive(torch.where(y >= _SMALL, y, _SMALL).sqrt())
        below = self.negative(torch.where(y <= -_SMALL, -y, _SMALL).sqrt())
        near = _polynomial(self.series[: _TERMS[y.dtype]], y)
        return torch.where(y.abs() < _SMALL, near, torch.where(y > 0, above, below))

    def derivative(self, y: Tensor, value: Tensor) -> Tensor:
        terms = self.series[: _TERMS[y.dtype]]
        near = _polynomial([n * term for n, term in enumerate(terms)][1:], y)
        small = y.abs() < _SMALL
        return torch.where(small, near, self.slope(torch.where(small, _SMALL, y), value))


def _polynomial(terms: Sequence[float], y: Tensor) -> Tensor:
    y = torch.where(y.abs() < _SMALL, y, 0.0)
    total = torch.full_like(y, terms[-1])
    for term in reversed(terms[:-1]):
        total = total * y + term
    return total


class _Apply(torch.autograd.Function):
    """The function with its own gradient; autograd would store every step of all branches."""

    @staticmethod
    def forward(ctx, y, function):  # type: ignore[no-untyped-def]
        value = function.value(y)
        ctx.save_for_backward(y, value)
        ctx.function = function
        return value

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        y, value = ctx.saved_tensors
        return grad * ctx.function.derivative(y, value), None


def _applied(function: _AnalyticFunction, y: Tensor) -> Tensor:
    return _Apply.apply(y, function)


_LENGTH = max(_TERMS.values())


def _tan_series() -> list[float]:
    # T = tan(s) / s solves 2 y T' = 1 + y T^2 - T.
    terms = [1.0]
    for n in range(1, _LENGTH):
        square = sum(terms[i] * terms[n - 1 - i] for i in range(n))
        terms.append(square / (2 * n + 1))
    return terms


_TAN = _AnalyticFunction(
    _tan_series(),
    lambda s: s.tan() / s,
    lambda s: s.tanh() / s,
    lambda y, f: (1 + y * f.square() - f) / (2 * y),
)
_ATAN = _AnalyticFunction(
    [(-1) ** n / (2 * n + 1) for n in range(_LENGTH)],
    lambda s: s.atan() / s,
    lambda s: s.atanh() / s,
    lambda y, f: (1 / (1 + y) - f) / (2 * y),
)
_ASIN = _AnalyticFunction(
    [math.comb(2 * n, n) / (4**n * (2 * n + 1)) for n in range(_LENGTH)],
    lambda s: s.asin() / s,
    lambda s: s.asinh() / s,
    lambda y, f: ((1 - y).rsqrt() - f) / (2 * y),
)
_SIN = _AnalyticFunction(
    [(-1) ** n / math.factorial(2 * n + 1) for n in range(_LENGTH)],
    lambda s: s.sin() / s,
    lambda s: s.sinh() / s,
    lambda y, f: (cos_root(y) - f) / (2 * y),
)
_COS = _AnalyticFunction(
    [(-1) ** n / math.factorial(2 * n) for n in range(_LENGTH)],
    torch.cos,
    torch.cosh,
    lambda y, f: -sin_ratio(y) / 2,
)


def tan_ratio(y: Tensor) -> Tensor:
    r""":math:`\tan(\sqrt y)/\sqrt y`; below zero :math:`\tanh(\sqrt{-y})/\sqrt{-y}`.

    Args:
        y: Below :math:`\pi^2/4`, any shape.

    Example:
        >>> tan_ratio(torch.tensor([-4.0, 0.0, 1.0])).round(decimals=4).tolist()
        [0.4819999933242798, 1.0, 1.5573999881744385]
    """
    return _applied(_TAN, y)


def atan_ratio(y: Tensor) -> Tensor:
    r""":math:`\arctan(\sqrt y)/\sqrt y`; below zero :math:`\mathrm{artanh}(\sqrt{-y})/\sqrt{-y}`.

    Args:
        y: Above -1, any shape.
    """
    return _applied(_ATAN, y)


def asin_ratio(y: Tensor) -> Tensor:
    r""":math:`\arcsin(\sqrt y)/\sqrt y`; below zero :math:`\mathrm{arsinh}(\sqrt{-y})/\sqrt{-y}`.

    Args:
        y: Below 1, any shape.
    """
    return _applied(_ASIN, y)


def sin_ratio(y: Tensor) -> Tensor:
    r""":math:`\sin(\sqrt y)/\sqrt y`; below zero :math:`\sinh(\sqrt{-y})/\sqrt{-y}`."""
    return _applied(_SIN, y)


def cos_root(y: Tensor) -> Tensor:
    r""":math:`\cos\sqrt y`; below zero :math:`\cosh\sqrt{-y}`."""
    return _applied(_COS, y)


def squared_length(x: Tensor) -> Tensor:
    r""":math:`\|x\|^2` along the last dimension, ``[..., D] -> [..., 1]``.

    Example:
        >>> squared_length(torch.tensor([3.0, 4.0])).tolist()
        [25.0]
    """
    return _SquaredLength.apply(x)


class _SquaredLength(torch.autograd.Function):
    """Its gradient takes one pass over the features, where autograd would take several."""

    @staticmethod
    def forward(ctx, x):  # type: ignore[no-untyped-def]
        ctx.save_for_backward(x)
        return (x * x).sum(-1, keepdim=True)

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        (x,) = ctx.saved_tensors
        return x * (2 * grad)
