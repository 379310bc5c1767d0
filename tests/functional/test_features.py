import gc

import pytest
import torch
from torch.nn.functional import linear

from argnn.functional import features as FE


@pytest.fixture(autouse=True)
def _sparse_at_any_size(monkeypatch):
    monkeypatch.setattr(FE, "_MIN_ENTRIES", 1)


def bag_of_words(density=0.1, rows=12, columns=20, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(rows, columns, generator=generator, dtype=dtype)
    x[torch.rand(rows, columns, generator=generator) >= density] = 0
    x[3] = 0  # a node without words and a word without nodes
    x[:, 5] = 0
    return x


def weights(columns=20, dtype=torch.float64):
    generator = torch.Generator().manual_seed(1)
    return (
        torch.randn(4, columns, generator=generator, dtype=dtype),
        torch.randn(4, generator=generator, dtype=dtype),
    )


@pytest.mark.parametrize("density", [0.0, 0.1, 0.9])
@pytest.mark.parametrize("with_bias", [True, False])
def test_input_linear_is_the_linear_map(density, with_bias):
    x, (weight, bias) = bag_of_words(density), weights()
    bias = bias if with_bias else None
    assert (FE.sparse_features(x) is None) == (density > FE.MAX_DENSITY)
    torch.testing.assert_close(FE.input_linear(x, weight, bias), linear(x, weight, bias))


def test_input_linear_gradients_are_those_of_the_linear_map():
    x, (weight, bias) = bag_of_words(), weights()
    weight.requires_grad_()
    bias.requires_grad_()
    assert torch.autograd.gradcheck(lambda w, b: FE.input_linear(x, w, b), (weight, bias))


def test_input_linear_drops_entries_of_the_features():
    torch.manual_seed(0)
    x = bag_of_words()
    identity = torch.eye(20, dtype=torch.float64)
    dropped = FE.input_linear(x, identity, None, dropout=0.5, training=True)
    assert ((dropped == 0) | (dropped - 2 * x).abs().le(1e-12)).all()
    assert (dropped == 0)[x != 0].any()
    assert dropped.any()
    kept = FE.input_linear(x, identity, None, dropout=0.5, training=False)
    torch.testing.assert_close(kept, x)


def test_input_linear_gradient_uses_the_entries_that_were_kept():
    torch.manual_seed(0)
    x, (weight, _) = bag_of_words(), weights()
    weight.requires_grad_()
    out = FE.input_linear(x, weight, None, dropout=0.5, training=True)
    torch.testing.assert_close(  # linear without a bias: <dW, W> = sum of the output
        torch.autograd.grad(out.sum(), weight)[0].mul(weight).sum(), out.sum()
    )


def test_sparse_features_are_prepared_once_and_anew_after_a_change():
    x, (weight, bias) = bag_of_words(), weights()
    first = FE.sparse_features(x)
    assert FE.sparse_features(x) is first
    x[0, 0] = 7.0
    assert FE.sparse_features(x) is not first
    torch.testing.assert_close(FE.input_linear(x, weight, bias), linear(x, weight, bias))


def test_sparse_features_die_with_their_tensor():
    gc.collect()
    before = len(FE._CACHE)
    x = bag_of_words()
    FE.sparse_features(x)
    assert len(FE._CACHE) == before + 1
    del x
    gc.collect()
    assert len(FE._CACHE) == before


def test_features_that_learn_take_the_dense_product():
    x, (weight, bias) = bag_of_words().requires_grad_(), weights()
    assert FE.sparse_features(x) is None
    FE.input_linear(x, weight, bias).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_features_take_the_dense_product(dtype):
    assert FE.sparse_features(bag_of_words(dtype=dtype)) is None


def test_features_first_met_in_inference_mode_can_be_trained_on():
    x, (weight, bias) = bag_of_words(), weights()
    with torch.inference_mode():
        expected = FE.input_linear(x, weight, bias, dropout=0.0)
    weight.requires_grad_()
    out = FE.input_linear(x, weight, bias, dropout=0.0, training=True)
    out.sum().backward()
    torch.testing.assert_close(out.detach(), expected.clone())
    dropped = FE.input_linear(x, weight, bias, dropout=0.5, training=True)
    dropped.sum().backward()
    assert weight.grad.isfinite().all()


def test_features_made_in_inference_mode_work():
    weight, bias = weights()
    expected = linear(bag_of_words(), weight, bias)
    with torch.inference_mode():
        torch.testing.assert_close(FE.input_linear(bag_of_words(), weight, bias), expected)
