import pytest
import torch
from torch.nn import functional as F

from argnn.functional import features as FE
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.input_linear import InputLinear

ROWS, COLUMNS = 300, 400


def bag_of_words():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(ROWS, COLUMNS, generator=generator)
    return torch.where(torch.rand(ROWS, COLUMNS, generator=generator) < 0.02, x, 0.0)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("normalize", [True, False])
def test_map_is_linear_in_the_scaled_features(normalize, bias):
    x, lin = bag_of_words(), InputLinear(COLUMNS, 7, normalize=normalize, bias=bias)
    rows = normalized_rows(x) if normalize else x
    torch.testing.assert_close(lin(x), F.linear(rows, lin.weight, lin.bias), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("normalize", [True, False])
def test_zeros_are_looked_for_once(normalize, monkeypatch):
    x, lin = bag_of_words(), InputLinear(COLUMNS, 7, normalize=normalize)
    lin(x)

    def again(_):
        raise AssertionError("searched for zeros again")

    monkeypatch.setattr(FE.SparseFeatures, "of", staticmethod(again))
    lin(x)


def test_dropout_acts_in_training_only():
    x, lin = bag_of_words(), InputLinear(COLUMNS, 7, dropout=0.5)
    assert not torch.equal(lin(x), lin(x))
    lin.eval()
    assert torch.equal(lin(x), lin(x))


def test_weights_start_by_the_named_rule():
    bound = (6 / (COLUMNS + 7)) ** 0.5
    weight = InputLinear(COLUMNS, 7, weight_initializer="glorot").weight
    assert 0.95 * bound < weight.abs().max() <= bound
