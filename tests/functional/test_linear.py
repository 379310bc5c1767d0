import pytest
import torch
from torch.nn import functional as F

from argnn import functional as AF

SIZES = {"one part": (3,), "two parts": (3, 2), "four parts": (1, 4, 2, 5)}
every_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES.keys())
with_and_without_bias = pytest.mark.parametrize("bias", [True, False])


def leaves(sizes, bias, num_rows=6, out=4, dtype=torch.float64):
    """Parts, weights and bias, all to be differentiated."""
    generator = torch.Generator().manual_seed(0)

    def draw(*shape):
        values = torch.randn(shape, generator=generator, dtype=torch.float64)
        return values.to(dtype).requires_grad_()

    parts = [draw(num_rows, size) for size in sizes]
    weights = [draw(out, size) for size in sizes]
    return parts, weights, draw(out) if bias else None


def concatenated(parts, weights, bias):
    return F.linear(torch.cat(parts, -1), torch.cat(weights, -1), bias)


def gradients(function, parts, weights, bias):
    """The value, and the gradient of every leaf under a fixed cotangent."""
    out = function(parts, weights, bias)
    cotangent = torch.sin(torch.arange(out.numel())).view_as(out).to(out.dtype)
    inputs = [*parts, *weights, *([] if bias is None else [bias])]
    return [out.detach(), *torch.autograd.grad(out, inputs, cotangent)]


@every_size
@with_and_without_bias
@pytest.mark.parametrize("num_rows", [6, 1, 0])
def test_joint_linear_is_the_linear_map_of_the_concatenation(sizes, bias, num_rows):
    given = leaves(sizes, bias, num_rows)
    actual, expected = gradients(AF.joint_linear, *given), gradients(concatenated, *given)
    for a, b in zip(actual, expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


@every_size
@with_and_without_bias
def test_joint_linear_gradcheck(sizes, bias):
    parts, weights, added = leaves(sizes, bias, num_rows=3, out=2)
    inputs = [*parts, *weights, *([] if added is None else [added])]
    count = len(parts)

    def function(*tensors):
        rest = tensors[2 * count :]
        return AF.joint_linear(tensors[:count], tensors[count : 2 * count], *rest)

    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


@every_size
@with_and_without_bias
def test_joint_linear_under_autocast_is_a_linear_map_in_half(sizes, bias):
    given = leaves(sizes, bias, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        actual, expected = gradients(AF.joint_linear, *given), gradients(concatenated, *given)
    assert actual[0].dtype == expected[0].dtype == torch.bfloat16
    # Each product is rounded before it is added: an ulp of the largest for every part.
    for a, b in zip(actual, expected, strict=True):
        assert a.dtype == b.dtype
        slack = len(sizes) * torch.finfo(torch.bfloat16).eps * float(b.abs().max())
        torch.testing.assert_close(a.float(), b.float(), rtol=0, atol=slack)


@pytest.mark.parametrize("frozen", ["parts", "weights", "bias"])
def test_joint_linear_gives_no_gradient_to_what_needs_none(frozen):
    parts, weights, bias = leaves((3, 2), bias=True)
    named = {"parts": parts, "weights": weights, "bias": [bias]}
    for tensor in named[frozen]:
        tensor.requires_grad_(False)
    AF.joint_linear(parts, weights, bias).sum().backward()
    for name, tensors in named.items():
        assert all((tensor.grad is None) == (name == frozen) for tensor in tensors)


def test_joint_linear_takes_views_of_one_weight():
    parts, _, bias = leaves((3, 2), bias=True)
    weight = torch.randn(4, 5, dtype=torch.float64, requires_grad=True)
    AF.joint_linear(parts, weight.split([3, 2], dim=-1), bias).square().sum().backward()
    actual = weight.grad.clone()
    weight.grad = None
    F.linear(torch.cat(parts, -1), weight, bias).square().sum().backward()
    torch.testing.assert_close(actual, weight.grad, rtol=1e-12, atol=1e-12)


def test_joint_linear_does_not_change_its_inputs():
    parts, weights, bias = leaves((3, 2), bias=True)
    before = [t.detach().clone() for t in (*parts, *weights, bias)]
    AF.joint_linear(parts, weights, bias)
    assert all(torch.equal(a, b) for a, b in zip(before, (*parts, *weights, bias), strict=True))
