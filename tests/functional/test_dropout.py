import pytest
import torch

from argnn.functional.dropout import dropout, norm_relu_dropout
from argnn.kernels import use

from .cases import DTYPES

MANY = 200_000


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
def test_dropout_drops_the_share_and_keeps_the_mean(p):
    torch.manual_seed(0)
    out = dropout(torch.ones(MANY, dtype=torch.float64), p, training=True)
    rounded = round(256 * p) / 256
    assert (out == 0).double().mean().item() == pytest.approx(rounded, abs=0.006)
    assert out.mean().item() == pytest.approx(1, abs=0.02)
    kept = out[out != 0]
    assert torch.equal(kept, torch.full_like(kept, 1 / (1 - rounded)))


def test_dropout_decides_over_every_entry_alike():
    # One random word decides over eight entries: all eight must be fair and independent.
    torch.manual_seed(0)
    kept = (dropout(torch.ones(MANY // 8, 8), 0.5, training=True) != 0).double()
    torch.testing.assert_close(kept.mean(0), torch.full((8,), 0.5).double(), rtol=0, atol=0.02)
    together = torch.corrcoef(kept.t()) - torch.eye(8)
    assert together.abs().max() < 0.03


def test_dropout_is_inactive_when_not_training_or_without_probability():
    x = torch.randn(5, 3)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x


def test_dropout_repeats_with_the_seed():
    x = torch.randn(50, 3)
    first, again, other = (
        (torch.manual_seed(seed), dropout(x, 0.4, training=True))[1] for seed in (1, 1, 2)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("shape", [(0, 4), (1,), (3, 3), (2, 5, 7)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_dropout_keeps_shape_and_dtype(shape, dtype):
    out = dropout(torch.ones(shape, dtype=dtype), 0.5, training=True)
    assert out.shape == shape
    assert out.dtype == dtype


def test_dropout_gradient_is_the_mask():
    torch.manual_seed(0)
    x = torch.randn(40, dtype=torch.float64, requires_grad=True)
    out = dropout(x, 0.5, training=True)
    out.sum().backward()
    torch.testing.assert_close(x.grad * x.detach(), out.detach())


def test_dropout_of_a_tensor_that_is_not_contiguous():
    x = torch.arange(1.0, 13.0).view(3, 4).t()
    out = dropout(x, 0.5, training=True)
    assert (((out - 2 * x).abs() < 1e-6) | (out == 0)).all()


def normalized(mode, dtype=torch.float32, p=0.3, autocast=False):
    """Result and gradients of the joint function, and the random state after it."""
    torch.manual_seed(1)
    x, grad = torch.randn(130, 12).to(dtype), torch.randn(130, 12)
    weight, bias = torch.randn(12).to(dtype), torch.randn(12).to(dtype)
    leaves = [t.requires_grad_() for t in (x, weight, bias)]
    with use(mode), torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        out = norm_relu_dropout(*leaves, 1e-5, p, training=True)
    out.backward(grad.to(out.dtype))
    return [out.detach(), *(leaf.grad for leaf in leaves)], torch.get_rng_state()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("autocast", [True, False])
def test_one_pass_drops_the_same_entries_and_has_the_same_gradients(dtype, autocast):
    (one, state), (other, plain_state) = (
        normalized(mode, dtype, autocast=autocast) for mode in ("fused", "plain")
    )
    assert torch.equal(state, plain_state)
    assert torch.equal(one[0] == 0, other[0] == 0)
    # Sums of 12 and of 130 terms; plain operations round to bfloat16 after each of them.
    close = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2}[dtype]
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        assert (a - b).double().norm() <= close * b.double().norm()


def test_one_pass_is_for_training_only():
    x, weight, bias = torch.randn(20, 8), torch.ones(8), torch.zeros(8)
    expected = torch.nn.functional.layer_norm(x, (8,)).relu()
    with use("fused"):
        assert torch.equal(norm_relu_dropout(x, weight, bias, 1e-5, 0.5, False), expected)
        assert torch.equal(norm_relu_dropout(x, weight, bias, 1e-5, 0.0, True), expected)
        x.requires_grad_()
        out = norm_relu_dropout(x, weight, bias, 1e-5, 0.5, True)
        (grad,) = torch.autograd.grad(out.sum(), x, create_graph=True)
        with pytest.raises(RuntimeError, match="only once differentiable"):
            grad.sum().backward()


@pytest.mark.parametrize(("weight", "bias"), [(4, 8), (8, 4), (16, 16)])
def test_one_pass_refuses_weights_of_another_size(weight, bias):
    x, weight, bias = torch.randn(20, 8), torch.ones(weight), torch.zeros(bias)
    for mode in ("fused", "plain"):
        with use(mode), pytest.raises(RuntimeError, match="normalized_shape"):
            norm_relu_dropout(x, weight, bias, 1e-5, 0.5, True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("autocast", [True, False])
def test_one_pass_on_a_gpu(autocast):
    torch.manual_seed(1)
    x, weight, bias = (torch.randn(*size, device="cuda") for size in ((999, 48), (48,), (48,)))
    found = {}
    for mode in ("fused", "plain"):
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
        with use(mode), torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            out = norm_relu_dropout(*leaves, 1e-5, 0.0, True)
            dropped = norm_relu_dropout(*leaves, 1e-5, 0.4, True)
        out.square().sum().backward()
        found[mode] = [out.detach(), *(leaf.grad for leaf in leaves)]
        kept = dropped[out > 0]
        # 24,000 draws: four standard deviations are 0.013.
        assert (kept == 0).double().mean().item() == pytest.approx(102 / 256, abs=0.015)
        again = norm_relu_dropout(*leaves, 1e-5, 0.4, True)
        assert not torch.equal(again == 0, dropped == 0)
    for a, b in zip(found["fused"], found["plain"], strict=True):
        assert a.dtype == b.dtype
        assert (a - b).norm() <= 1e-5 * b.norm()
