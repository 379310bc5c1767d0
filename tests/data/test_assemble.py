import pytest
import torch
from torch_geometric.data import Data

from argnn.data.assemble import assemble
from argnn.errors import ConfigError, DataError


def source(**changes) -> Data:
    fields = {
        "x": torch.arange(20.0).view(10, 2),
        "edge_index": torch.tensor([[0, 0, 1, 2, 3, 3], [1, 1, 0, 2, 4, 5]]),
        "y": torch.tensor([0, 1] * 5),
    } | changes
    return Data(**{name: value for name, value in fields.items() if value is not None})


def assembled(graph: Data, **options) -> Data:
    return assemble(graph, origin="g", name="g", **options)


def pairs(graph: Data) -> list[tuple[int, int]]:
    return [tuple(pair) for pair in graph.edge_index.T.tolist()]


def test_edges_are_simple_and_listed_both_ways():
    graph = assembled(source())
    assert pairs(graph) == [(0, 1), (1, 0), (3, 4), (3, 5), (4, 3), (5, 3)]
    assert graph.edge_rule == "self-loops removed, both directions listed, duplicates merged"
    assert graph.edge_index.is_contiguous()


def test_directions_are_kept_on_request():
    graph = assembled(source(), directed=True)
    assert pairs(graph) == [(0, 1), (1, 0), (3, 4), (3, 5)]
    assert graph.edge_rule == "self-loops removed, directions kept, duplicates merged"


def test_undirected_source_says_that_it_has_no_directions():
    graph = assembled(source(), directed=True, undirected_source=True)
    assert "the source is undirected" in graph.edge_rule
    assert (1, 0) in pairs(graph)


def test_types_and_shapes_of_the_contract():
    graph = assembled(source(x=torch.ones(10, 2, dtype=torch.int16)))
    assert graph.x.dtype == torch.float32
    assert graph.edge_index.dtype == graph.y.dtype == torch.int64
    assert graph.train_mask.dtype == torch.bool
    assert graph.train_mask.shape == graph.val_mask.shape == graph.test_mask.shape == (10, 1)
    assert graph.class_count == 2
    assert graph.class_names == ["class 0", "class 1"]


def test_drawn_split_is_announced():
    graph = assembled(source())
    assert graph.split_rule == "one stratified 60/20/20 split drawn with seed 0"
    assert [int(mask.sum()) for mask in (graph.train_mask, graph.val_mask, graph.test_mask)] == [
        6,
        2,
        2,
    ]


def test_masks_of_one_dimension_become_one_split():
    train = torch.arange(10) < 4
    val = (torch.arange(10) >= 4) & (torch.arange(10) < 6)
    graph = assembled(source(train_mask=train, val_mask=val, test_mask=~(train | val)))
    assert torch.equal(graph.train_mask, train.unsqueeze(1))
    assert graph.split_rule == "masks of the source"


def test_graph_without_labels_has_no_split():
    graph = assembled(source(y=None))
    assert graph.y.eq(-1).all()
    assert graph.class_count == 0
    assert not graph.train_mask.any()
    assert graph.split_rule == "no split: the graph has no labels"


def test_source_is_not_changed():
    graph = source(train_mask=None)
    before = graph.clone()
    assembled(graph, row_normalize=True)
    assert graph.keys() == before.keys()
    assert all(torch.equal(graph[key], before[key]) for key in before.keys())  # noqa: SIM118


def test_assembling_twice_changes_nothing():
    once = assembled(source())
    twice = assembled(once)
    assert all(torch.equal(once[k], twice[k]) for k in ("x", "edge_index", "y", "train_mask"))


def test_rows_are_normalized_and_zero_rows_kept():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0]]).repeat(5, 1)
    graph = assembled(source(x=x), row_normalize=True)
    assert graph.x[:2].tolist() == [[0.25, 0.75], [0.0, 0.0]]
    assert graph.feature_rule == "rows scaled to sum 1, zero rows kept"
    assert assembled(source(x=x)).feature_rule == "as stored"


def test_negative_features_cannot_be_row_normalized():
    with pytest.raises(ConfigError, match=r"x\[0, 0\] is -1"):
        assembled(source(x=-torch.ones(10, 2)), row_normalize=True)


def test_dropped_edge_values_are_announced():
    assert "edge_attr dropped" in assembled(source(edge_attr=torch.ones(6, 1))).edge_rule


def with_value(tensor: torch.Tensor, index: tuple[int, ...], value: float) -> torch.Tensor:
    changed = tensor.clone()
    changed[index] = value
    return changed


FULL = torch.ones(10, dtype=torch.bool)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": None}, r"g: x must be an array \(got nothing\)"),
        ({"x": torch.ones(10)}, r"g: x must have shape \[nodes, features\]"),
        ({"x": torch.ones(10, 0)}, r"x must have shape"),
        ({"x": torch.ones(0, 2)}, r"x must have shape"),
        ({"x": torch.eye(10).to_sparse()}, "x must be a dense array"),
        (
            {"x": with_value(torch.ones(10, 4), (7, 3), float("nan"))},
            r"^g: x\[7, 3\] is not finite \(got nan\)$",
        ),
        ({"x": with_value(torch.ones(10, 4), (1, 2), float("-inf"))}, r"x\[1, 2\] .*\(got -inf\)"),
        ({"x": torch.full((10, 2), 1e300, dtype=torch.float64)}, r"x\[0, 0\] .*\(got 1e\+300\)"),
        ({"edge_index": None}, "edge_index must be an array"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.long)}, r"edge_index must .*\(got \[3, 2\]"),
        ({"edge_index": torch.zeros(2, 3)}, r"edge_index must hold integers \(got float32\)"),
        (
            {"edge_index": torch.tensor([[0, 1], [1, 10]])},
            r"edge_index\[1, 1\] is 10, but node ids go from 0 to 9",
        ),
        ({"edge_index": torch.tensor([[-1], [0]])}, r"edge_index\[0, 0\] is -1"),
        ({"y": torch.zeros(9, dtype=torch.long)}, r"y must have shape \[10\].*\(got \[9\]\)"),
        ({"y": torch.zeros(10)}, "y must hold integers"),
        ({"y": torch.tensor([0] * 9 + [-2])}, r"y\[9\] is -2; labels start at 0"),
        ({"y": torch.tensor([0] * 9 + [10**9])}, r"y\[9\] is 1000000000"),
        ({"y": torch.tensor([0] + [-1] * 9)}, "too few labels to draw a split"),
        ({"train_mask": FULL}, "val_mask is missing; give all three masks or none"),
        (
            {"train_mask": FULL, "val_mask": FULL, "test_mask": ~FULL},
            "node 0 is in train_mask and in val_mask",
        ),
        (
            {"train_mask": ~FULL, "val_mask": FULL, "test_mask": ~FULL},
            "train_mask of split 0 is empty",
        ),
        (
            {"train_mask": FULL[:9], "val_mask": FULL, "test_mask": FULL},
            r"train_mask must have shape \[10\] or \[10, splits\] \(got \[9\]\)",
        ),
        (
            {"train_mask": 2 * FULL.long(), "val_mask": FULL, "test_mask": FULL},
            r"train_mask\[0, 0\] must be 0 or 1 \(got 2\)",
        ),
        (
            {
                "y": torch.full((10,), -1),
                "train_mask": FULL,
                "val_mask": ~FULL,
                "test_mask": ~FULL,
            },
            r"train_mask\[0, 0\] is set, but node 0 has no label",
        ),
        ({"class_names": ["only one"]}, "class_names has 1 entries for 2 classes"),
    ],
)
def test_bad_field_is_named(changes, message):
    with pytest.raises(DataError, match=message) as caught:
        assembled(source(**changes))
    assert "\n" not in str(caught.value)


def test_graph_without_edges_is_allowed():
    assert assembled(source(edge_index=torch.zeros(2, 0))).edge_index.shape == (2, 0)
