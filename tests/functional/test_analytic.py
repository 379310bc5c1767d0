import math

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

from argnn.functional.analytic import asin_ratio, atan_ratio, cos_root, sin_ratio, tan_ratio

#: Function, its value for a positive and for a negative argument, and the arguments it is for.
FUNCTIONS = {
    "tan": (tan_ratio, lambda s: math.tan(s) / s, lambda s: math.tanh(s) / s, (-200.0, 2.0)),
    "atan": (atan_ratio, lambda s: math.atan(s) / s, lambda s: math.atanh(s) / s, (-0.999, 1e4)),
    "asin": (asin_ratio, lambda s: math.asin(s) / s, lambda s: math.asinh(s) / s, (-1e4, 0.999)),
    "sin": (sin_ratio, lambda s: math.sin(s) / s, lambda s: math.sinh(s) / s, (-50.0, 90.0)),
    "cos": (cos_root, math.cos, math.cosh, (-50.0, 90.0)),
}
every_function = pytest.mark.parametrize("name", FUNCTIONS)


def arguments(name, dtype=torch.float64):
    """From the lowest to the highest argument, close to zero, and around the seam of the series."""
    low, high = FUNCTIONS[name][3]
    wide = torch.linspace(low, high, 41, dtype=torch.float64)
    near = torch.logspace(-20, -1, 39, dtype=torch.float64)
    seam = torch.tensor([0.03, 0.03 * (1 - 1e-12), 0.03 * (1 + 1e-12)], dtype=torch.float64)
    every = torch.cat([wide, near, -near, seam, -seam, torch.zeros(1, dtype=torch.float64)])
    return every[(every >= low) & (every <= high)].to(dtype)


def exact(name, y):
    _, positive, negative, _ = FUNCTIONS[name]
    if y == 0:
        return 1.0
    return positive(math.sqrt(y)) if y > 0 else negative(math.sqrt(-y))


@every_function
def test_values(name):
    y = arguments(name)
    expected = torch.tensor([exact(name, float(v)) for v in y], dtype=torch.float64)
    torch.testing.assert_close(FUNCTIONS[name][0](y), expected, rtol=2e-14, atol=2e-14)


@every_function
def test_float32_keeps_its_digits_in_value_and_gradient(name):
    function = FUNCTIONS[name][0]
    single = arguments(name, torch.float32).requires_grad_()
    double = single.detach().double().requires_grad_()
    for y in (single, double):
        function(y).sum().backward()
    torch.testing.assert_close(function(single).double(), function(double), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(single.grad.double(), double.grad, rtol=2e-4, atol=3e-6)


@every_function
def test_derivatives(name):
    function, *_, (low, high) = FUNCTIONS[name]
    points = [-5.0, -0.9, -0.03, -0.02, -1e-9, 0.0, 1e-9, 0.02, 0.03, 0.9]
    y = torch.tensor([p for p in points if low < p < high], dtype=torch.float64, requires_grad=True)
    assert gradcheck(function, y)
    assert gradgradcheck(function, y)


@every_function
def test_gradient_is_finite_where_the_other_branch_would_overflow(name):
    function, *_, (low, high) = FUNCTIONS[name]
    for y in (low, high):
        value = torch.tensor([y, 0.0], requires_grad=True)
        function(value).sum().backward()
        assert value.grad.isfinite().all()
