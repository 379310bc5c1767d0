import pytest
import torch

from argnn.functional.dropout import dropout

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
