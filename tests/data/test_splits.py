import pytest
import torch
from torch_geometric.data import Data

from argnn.data.splits import check_masks, split_masks, stratified_splits
from argnn.errors import ConfigError, DataError

LABELS = torch.tensor([0] * 50 + [1] * 30 + [2] * 20 + [-1] * 5)


def mask(*nodes: int) -> torch.Tensor:
    result = torch.zeros(4, 1, dtype=torch.bool)
    result[list(nodes)] = True
    return result


def test_shares_hold_in_every_class():
    masks = stratified_splits(LABELS, (0.6, 0.2, 0.2), count=3, seed=1)
    for label, size in enumerate((50, 30, 20)):
        for share, drawn in zip((0.6, 0.2, 0.2), masks, strict=True):
            assert drawn[label == LABELS].sum(dim=0).tolist() == [round(share * size)] * 3


def test_masks_are_disjoint_and_cover_the_labelled_nodes():
    masks = stratified_splits(LABELS, (0.05, 0.15, 0.8), count=4, seed=0)
    used = torch.stack(masks).sum(dim=0)
    assert used[LABELS >= 0].eq(1).all()
    assert used[LABELS < 0].eq(0).all()


def test_same_seed_same_splits_other_seed_others():
    first, again, other = (stratified_splits(LABELS, (0.6, 0.2, 0.2), 2, s)[0] for s in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert not torch.equal(first[:, 0], first[:, 1])


@pytest.mark.parametrize("fractions", [(0.5, 0.5), (0.6, 0.3, 0.3), (1.2, -0.1, -0.1)])
def test_impossible_fractions_are_refused(fractions):
    with pytest.raises(ConfigError, match="sum to 1"):
        stratified_splits(LABELS, fractions, 1, 0)


def test_good_masks_pass():
    check_masks(mask(0), mask(1), mask(), origin="g")


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ((mask(0, 1), mask(1), mask(2)), "g: node 1 is in train_mask and in val_mask of split 0"),
        ((mask(0), mask(1), mask(1)), "g: node 1 is in val_mask and in test_mask"),
        ((mask(0), mask(1), mask(0)), "g: node 0 is in train_mask and in test_mask"),
        ((mask(), mask(1), mask(2)), "g: train_mask of split 0 is empty"),
        ((mask(0), mask(), mask(2)), "g: val_mask of split 0 is empty"),
        ((mask(0), mask(1)[:3], mask(2)), r"g: val_mask has shape \[3, 1\]"),
    ],
)
def test_bad_masks_are_named(masks, message):
    with pytest.raises(DataError, match=message):
        check_masks(*masks, origin="g")


def graph_with(count: int) -> Data:
    train, val, test = stratified_splits(LABELS, (0.6, 0.2, 0.2), count, 0)
    return Data(train_mask=train, val_mask=val, test_mask=test, name="cora")


def test_split_masks_gives_one_column_of_each():
    graph = graph_with(10)
    train, val, test = split_masks(graph, 7)
    assert torch.equal(train, graph.train_mask[:, 7])
    assert torch.equal(val, graph.val_mask[:, 7])
    assert torch.equal(test, graph.test_mask[:, 7])


@pytest.mark.parametrize("split", [12, -1])
def test_split_out_of_range_says_which_there_are(split):
    with pytest.raises(ConfigError, match=f"^split {split} out of range: cora has splits 0 to 9$"):
        split_masks(graph_with(10), split)


def test_split_out_of_range_of_a_single_split():
    with pytest.raises(ConfigError, match="cora has split 0 only"):
        split_masks(graph_with(1), 1)
