import pytest
import torch

from argnn.functional.precision import accumulation_dtype, default_eps, safe_sqrt

from .cases import DTYPES


@pytest.mark.parametrize("dtype", DTYPES)
def test_floor_is_seen_by_the_type_it_is_added_in(dtype):
    floor = default_eps(dtype)
    assert floor > 0
    # It separates a denominator from zero, and is lost in one of size one.
    wide = accumulation_dtype(dtype)
    assert torch.tensor(floor, dtype=wide) > torch.finfo(wide).tiny
    assert torch.tensor(1.0, dtype=torch.float32) + floor == 1.0


@pytest.mark.parametrize("dtype", DTYPES)
def test_accumulation_is_never_in_a_half_type(dtype):
    expected = torch.float64 if dtype == torch.float64 else torch.float32
    assert accumulation_dtype(dtype) == expected


@pytest.mark.parametrize("function", [default_eps, accumulation_dtype])
@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.complex64])
def test_types_without_a_floor_are_refused(function, dtype):
    with pytest.raises(ValueError, match=rf"expected a floating point tensor \(got {dtype}\)"):
        function(dtype)


def test_safe_sqrt_is_the_square_root():
    x = torch.tensor([0.0, 1e-300, 1e-12, 2.0, 1e300], dtype=torch.float64)
    assert torch.equal(safe_sqrt(x), x.sqrt())


def test_safe_sqrt_gradient_at_zero_is_zero():
    x = torch.tensor([0.0, 4.0, 1e-30], dtype=torch.float64, requires_grad=True)
    safe_sqrt(x).sum().backward()
    assert x.grad.tolist() == pytest.approx([0.0, 0.25, 5e14])


def test_safe_sqrt_gradcheck():
    x = torch.tensor([0.5, 4.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(safe_sqrt, (x,))
    assert torch.autograd.gradgradcheck(safe_sqrt, (x,))


def test_safe_sqrt_second_derivative_at_zero_is_finite():
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    (first,) = torch.autograd.grad(safe_sqrt(x).sum(), x, create_graph=True)
    if first.requires_grad:
        (second,) = torch.autograd.grad(first.sum(), x)
        assert second.isfinite().all()
