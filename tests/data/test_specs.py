import pytest
import torch
from torch_geometric.data import Data

from argnn.data.benchmarks import check_counts
from argnn.data.specs import DATASETS, DatasetSpec
from argnn.errors import DataError

EXPECTED_NAMES = {
    "cora",
    "citeseer",
    "pubmed",
    "actor",
    "chameleon",
    "squirrel",
    "texas",
    "cornell",
    "wisconsin",
    "cornell-old",
    "digits",
    "mixed",
}


def tiny_spec(**changes) -> DatasetSpec:
    facts = {
        "nodes": 3,
        "edges": 2,
        "same_class_edges": 0,
        "stored_edges": 4,
        "features": 2,
        "classes": 2,
        "splits": 1,
    } | changes
    return DatasetSpec("tiny", "Tiny", "made here", "mixed", citation="none", **facts)


def tiny_graph() -> Data:
    return Data(
        x=torch.ones(3, 2),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]]),
        y=torch.tensor([0, 1, 0]),
        train_mask=torch.ones(3, 1, dtype=torch.bool),
    )


def test_table_holds_the_twelve_data_sets_under_their_names():
    assert set(DATASETS) == EXPECTED_NAMES
    assert all(spec.name == name for name, spec in DATASETS.items())
    assert all(spec.citation and spec.source and spec.title for spec in DATASETS.values())


def test_only_digits_and_mixed_are_embedded():
    assert {name for name, spec in DATASETS.items() if spec.embedded} == {"digits", "mixed"}


def test_matching_counts_pass():
    check_counts(tiny_spec(), tiny_graph())


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("nodes", "nodes"),
        ("edges", "undirected edges"),
        ("stored_edges", "stored edges"),
        ("features", "features"),
        ("classes", "classes"),
        ("splits", "splits"),
    ],
)
def test_wrong_count_is_named(field, words):
    spec = tiny_spec(**{field: 77})
    with pytest.raises(DataError, match=rf"tiny: expected 77 {words} \(got \d\)"):
        check_counts(spec, tiny_graph())
