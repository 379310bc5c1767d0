"""The first layer on bag-of-words features: the sparse path is the dense path."""

import pytest
import torch

from argnn.functional import features as FE
from argnn.nn import ARGNN

ROWS, COLUMNS = 300, 400  # 120,000 entries: above the size from which the sparse path is taken


def bag_of_words(density=0.02, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand(ROWS, COLUMNS, generator=generator)
    return torch.where(torch.rand(ROWS, COLUMNS, generator=generator) < density, x, 0.0)


def edges():
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, ROWS, (2, 900), generator=generator)


def model_of(**options):
    torch.manual_seed(0)
    return ARGNN(COLUMNS, 16, 3, num_layers=2, **options)


@pytest.fixture
def only_dense(monkeypatch):
    """Switch the sparse path off for part of a test."""

    def switch():
        monkeypatch.setattr(FE, "_MIN_ENTRIES", 10**12)

    return switch


def test_bag_of_words_take_the_sparse_path_and_dense_features_do_not():
    assert FE.sparse_features(bag_of_words()) is not None
    assert FE.sparse_features(bag_of_words(density=0.5)) is None
    assert FE.sparse_features(bag_of_words()[:100].clone()) is None, "too small to pay"


@pytest.mark.parametrize("preset", ["default", "reference"])
def test_sparse_path_gives_the_scores_of_the_dense_path(preset, only_dense):
    x, edge_index, model = bag_of_words(), edges(), model_of(preset=preset).eval()
    sparse = model(x, edge_index)
    only_dense()
    torch.testing.assert_close(sparse, model(x, edge_index), rtol=1e-5, atol=1e-5)


def test_sparse_path_gives_the_gradients_of_the_dense_path(only_dense):
    x, edge_index, model = bag_of_words(), edges(), model_of().eval()

    def gradients():
        model.zero_grad()
        model(x, edge_index).square().sum().backward()
        return {name: p.grad.clone() for name, p in model.named_parameters()}

    sparse = gradients()
    only_dense()
    for name, gradient in gradients().items():
        torch.testing.assert_close(sparse[name], gradient, rtol=1e-4, atol=1e-4, msg=name)
    assert sparse["encoder.weight"].abs().max() > 0


def test_features_changed_in_place_are_read_again():
    x, edge_index, model = bag_of_words(), edges(), model_of().eval()
    before = model(x, edge_index)
    x[0] = 1.0
    after = model(x, edge_index)
    assert not torch.equal(before[0], after[0])
    torch.testing.assert_close(after, model(x.clone(), edge_index))
    x.zero_()
    assert torch.equal(model(x, edge_index), model(torch.zeros_like(x), edge_index))


def test_input_dropout_on_the_sparse_path_keeps_the_share_and_the_mean():
    x = bag_of_words(density=0.1)
    identity = torch.eye(COLUMNS)
    torch.manual_seed(0)
    dropped = FE.input_linear(x, identity, None, dropout=0.5, training=True)
    stored = x != 0
    kept = dropped[stored] != 0
    assert kept.double().mean().item() == pytest.approx(0.5, abs=0.02)
    assert (dropped[~stored] == 0).all()
    torch.testing.assert_close(dropped[stored][kept], 2 * x[stored][kept])
    assert dropped.mean().item() == pytest.approx(x.mean().item(), rel=0.03)


def test_input_dropout_on_the_sparse_path_repeats_with_the_seed_and_is_off_in_evaluation():
    x, edge_index = bag_of_words(), edges()
    model = model_of(dropout=0.0, input_dropout=0.5).train()

    def drawn(seed):
        torch.manual_seed(seed)
        return model(x, edge_index)

    assert torch.equal(drawn(3), drawn(3))
    assert not torch.equal(drawn(3), drawn(4))
    model.eval()
    assert torch.equal(drawn(3), drawn(4))
    without = model_of(dropout=0.0, input_dropout=0.0).train()
    assert torch.equal(without(x, edge_index), without(x, edge_index))
    assert torch.equal(without(x, edge_index), model(x, edge_index))


def test_nan_features_are_not_hidden_by_the_sparse_path():
    x, edge_index = bag_of_words(), edges()
    x[5, 5] = float("nan")
    assert FE.sparse_features(x) is not None
    assert model_of().eval()(x, edge_index)[5].isnan().all()
