"""Rows scaled to sum one."""

import gc
import weakref

import torch

from argnn.functional.features import sparse_features
from argnn.functional.row_normalization import normalized_rows


def bag(rows=300, columns=400):
    generator = torch.Generator().manual_seed(0)
    counts = torch.randint(1, 5, (rows, columns), generator=generator).float()
    return torch.where(torch.rand(rows, columns, generator=generator) < 0.02, counts, 0.0)


def test_rows_sum_to_one_and_zero_rows_stay_zero():
    x = bag()
    x[3] = 0
    rows = normalized_rows(x)
    torch.testing.assert_close(rows.sum(1), (x != 0).any(1).float())
    assert torch.equal(rows != 0, x != 0)


def test_rows_with_both_signs_have_absolute_sum_one():
    x = torch.tensor([[1.0, -1.0], [3.0, 1.0]])
    assert normalized_rows(x).tolist() == [[0.5, -0.5], [0.75, 0.25]]


def test_result_is_kept_until_the_features_change():
    x = bag()
    rows = normalized_rows(x)
    assert normalized_rows(x) is rows
    assert sparse_features(rows) is sparse_features(normalized_rows(x)) is not None
    x[0] = 1.0
    assert normalized_rows(x) is not rows
    torch.testing.assert_close(normalized_rows(x)[0].sum(), torch.tensor(1.0))


def test_cache_does_not_keep_features_alive():
    x = bag()
    kept = weakref.ref(normalized_rows(x))
    del x
    gc.collect()
    assert kept() is None


def test_features_made_for_inference_can_be_trained_on_later():
    x = torch.rand(3, 4)
    with torch.inference_mode():
        normalized_rows(x)
    weight = torch.ones(4, 2, requires_grad=True)
    (normalized_rows(x) @ weight).sum().backward()
    assert weight.grad.isfinite().all()


def test_gradcheck():
    x = torch.tensor([[1.0, 2.0], [3.0, 0.5]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(normalized_rows, (x,))
