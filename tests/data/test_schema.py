"""Another graph, encoded as the first one was."""

import contextlib
import copy
import json
import math

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data

from argnn.data import load
from argnn.errors import ArgnnError, DataError


def people(count=10, **changes):
    nodes = pd.DataFrame(
        {
            "name": [f"p{i}" for i in range(count)],
            "age": [float(20 + i) for i in range(count - 1)] + [None],
            "job": ["cook", "smith"] * (count // 2),
            "member": [True, False] * (count // 2),
            "label": ["u", "v"] * (count // 2),
        }
    ).assign(**changes)
    ids = nodes["name"].tolist()
    return pd.DataFrame({"source": ids[:-1], "target": ids[1:]}), nodes


def without(frames, column):
    return frames[0], frames[1].drop(columns=column)


@pytest.fixture
def trained():
    return load(people(), standardize=True, features="degree")


def test_schema_is_plain_json(trained):
    assert json.loads(json.dumps(trained.schema, allow_nan=False)) == trained.schema


def test_same_graph_gets_the_same_features(trained):
    schema = json.loads(json.dumps(trained.schema))
    again = load(people(), schema=schema)
    assert torch.equal(again.x, trained.x)
    assert torch.equal(again.y, trained.y)
    assert (again.feature_names, again.node_ids) == (trained.feature_names, trained.node_ids)
    assert again.schema == trained.schema


def test_statistics_are_those_of_the_first_graph(trained):
    ages = [24.0, None] + [24.0] * 8
    other = load(people(age=ages), schema=trained.schema)
    column, marked = (trained.feature_names.index(name) for name in ("age", "age is missing"))
    assert other.x[:, column].tolist() == [0] * 10  # 24 is the mean of the first graph
    assert other.x[:, marked].tolist() == [0, 1] + [0] * 8


def test_unknown_words_become_zeros_with_a_note(trained):
    other = load(people(job=["pilot"] + ["cook"] * 9), schema=trained.schema)
    cook = trained.feature_names.index("job = cook")
    assert other.x[0, cook : cook + 2].tolist() == [0, 0]
    assert "column job: 1 unknown words became zeros ('pilot' for one)" in other.notes


def test_missing_column_is_refused(trained):
    with pytest.raises(DataError, match="no column 'job', which the model was trained with"):
        load(without(people(), "job"), schema=trained.schema)


def test_column_of_another_kind_is_refused(trained):
    with pytest.raises(DataError, match="row 2, column age: 'old' must be a number"):
        load(people(age=[1, 2, "old", *range(7)]), schema=trained.schema)
    with pytest.raises(DataError, match="row 1, column member: 'maybe' must be true or false"):
        load(people(member=[True, "maybe"] * 5), schema=trained.schema)


def test_labels_may_be_missing_or_unknown(trained):
    bare = load(without(people(), "label"), schema=trained.schema)
    assert bare.y.eq(-1).all()
    assert bare.class_names == ["u", "v"]
    assert not bare.train_mask.any()
    assert bare.split_rule == "no split was asked for"
    other = load(people(label=["u", "w"] * 5), schema=trained.schema)
    assert other.y.tolist() == [0, -1] * 5
    assert "column label: 1 unknown classes left out" in other.notes


def test_one_labelled_node_needs_no_split(trained):
    labels = ["u"] + [None] * 9
    assert load(people(label=labels), schema=trained.schema).y.tolist() == [0] + [-1] * 9


def test_masks_are_kept_where_they_can_be_used(trained):
    parts = ["train"] * 4 + ["val"] * 3 + ["test"] * 3
    kept = load(people(split=parts), schema=trained.schema)
    assert kept.test_mask.sum() == 3
    unusable = load(people(split=["test"] * 10), schema=trained.schema)
    assert not unusable.test_mask.any()


def test_splits_that_make_no_sense_do_not_stop_a_prediction(trained):
    parts = ["train"] * 10
    other = load(people(split=parts, label=[None] * 10), schema=trained.schema)
    assert not other.train_mask.any()
    assert any(note.startswith("the splits were not read (") for note in other.notes)


def test_directions_and_rows_are_those_of_the_schema():
    directed = load(people(), directed=True).schema
    assert load(people(), schema=directed).edge_index.size(1) == 9


def test_columns_that_were_not_there_are_left_out(trained):
    more = load(people(extra=list(range(10))), schema=trained.schema)
    assert torch.equal(more.x, trained.x)


def test_loaded_graph_is_not_encoded_twice(trained):
    again = load(trained, schema=trained.schema)
    assert torch.equal(again.x, trained.x)
    assert again.node_ids == trained.node_ids


def test_arrays_keep_their_statistics():
    x, edges = np.arange(20.0).reshape(10, 2), np.array([[0, 1], [1, 2]])
    first = load((x, edges), standardize=True, features="degree")
    shifted = load((x + 100, edges), schema=first.schema)
    scale = torch.tensor(first.schema["scale"])
    assert torch.allclose(shifted.x[:, :2] - first.x[:, :2], (100 / scale).expand(10, 2).float())
    assert torch.equal(shifted.x[:, 2:], first.x[:, 2:])
    with pytest.raises(DataError, match="trained with 2 features .got 1."):
        load((x[:, :1], edges), schema=first.schema)


def test_width_of_arrays_is_checked():
    schema = load((np.ones((3, 2)), [[0], [1]])).schema
    with pytest.raises(DataError, match="trained with 2 features .got 3."):
        load((np.ones((3, 3)), [[0], [1]]), schema=schema)


def test_labels_of_arrays_beyond_the_classes_are_forgotten():
    y = torch.tensor([0, 1] * 5)
    edges = torch.tensor([[0], [1]])
    schema = load(Data(x=torch.ones(10, 1), edge_index=edges, y=y)).schema
    other = load(Data(x=torch.ones(10, 1), edge_index=edges, y=y * 3), schema=schema)
    assert other.y.tolist() == [0, -1] * 5
    assert other.class_names == ["class 0", "class 1"]


def test_one_hot_features_belong_to_their_nodes():
    graph = nx.path_graph(6)
    schema = load(graph, features="onehot").schema
    again = load(nx.cycle_graph(6), schema=schema)  # other edges, the same nodes
    assert torch.equal(again.x, torch.eye(6))
    with pytest.raises(DataError, match="hold for the nodes that the model was trained with"):
        load(nx.path_graph(7), schema=schema)


@pytest.mark.parametrize("kind", ["degree", "random"])
def test_structural_features_carry_over_to_another_graph(kind):
    schema = load(nx.path_graph(40), features=kind).schema
    for other in (nx.path_graph(3), nx.path_graph(90)):
        graph = load(other, schema=schema)
        assert graph.x.shape == (len(other), schema["num_features"])


def test_eigenvectors_of_other_edges_are_refused():
    """They are another basis, in which the weights of a model mean nothing."""
    graph = load(nx.path_graph(40), features="laplacian")
    for same in (nx.path_graph(40), graph, (graph.x, graph.edge_index)):
        assert torch.equal(load(same, schema=graph.schema).x, graph.x)
    longer, other = nx.path_graph(90), graph.clone()
    other.edge_index = other.edge_index[:, 2:]
    for source in (longer, load(longer, features="laplacian"), other):
        with pytest.raises(DataError, match="hold only for the edges that the model was trained"):
            load(source, schema=graph.schema)


AGE = {"name": "age", "kind": "number", "mean": 1.0, "center": 0.0, "indicator": False}
AGE["scale"] = 1.0
DAMAGE = [
    ({"version": 99}, r"schema: version must be 1 \(got 99\)"),
    ({"columns": "age"}, r"schema: columns must be a list \(got 'age'\)"),
    ({"columns": [{"name": "age", "kind": "pickle"}]}, "columns, entry 1: .* with 'kind' one of"),
    ({"columns": [{"name": "age"}]}, "columns, entry 1: must be a mapping with 'kind'"),
    ({"columns": [{**AGE, "mean": "x"}]}, r"entry 1: mean must be a number \(got 'x'\)"),
    ({"columns": [{**AGE, "mean": 1e300}]}, "entry 1: mean must be a number up to 3.4"),
    ({"columns": [{**AGE, "mean": math.nan}]}, "entry 1: mean must be a number up to 3.4"),
    ({"columns": [{**AGE, "scale": 0.0}]}, "columns, entry 1: scale must be a number above 0"),
    ({"columns": [{"name": "v", "kind": "vector", "size": 10**12}]}, "size must be a number up to"),
    ({"columns": [{"name": "v", "kind": "vector", "size": -1}]}, "size must be a number from 0"),
    ({"columns": [{**AGE, "scale": 1.0}]}, r"trained with 23 features \(got 19\)"),
    ({"structure": {"kind": "magic"}}, "schema: structure must be a mapping with 'kind' one of"),
    ({"structure": {"kind": "random"}}, "schema: structure has no 'size'"),
    ({"structure": {"kind": "random", "seed": 0, "size": 10**12}}, "structure.size must be"),
    ({"structure": {"kind": "random", "seed": -1, "size": 1}}, "structure.seed must be a number"),
    ({"structure": {"kind": "laplacian", "size": "many"}}, "structure.size must be a whole number"),
    ({"structure": {"kind": "degree", "sides": ["up"]}}, "damaged rule of 'degree' features"),
    ({"structure": {"kind": "onehot", "size": "x"}}, "structure.size must be a whole number"),
    ({"structure": {"kind": "random", "seed": 0, "size": 24}}, "more features than num_features"),
    ({"columns": [{"name": "v", "kind": "vector", "size": 24}]}, "more features than num_feat"),
    ({"num_features": 10**12}, "num_features must be a number up to 1000000"),
    ({"center": ["x"]}, r"schema: center, entry 1: must be a number \(got 'x'\)"),
    ({"directed": 1}, r"schema: directed must be true or false \(got 1\)"),
    ({"label": []}, "schema: label must be a mapping"),
    ({"label": {"column": "label"}}, "schema: label has no 'classes'"),
]


@pytest.mark.parametrize(("change", "message"), DAMAGE)
def test_damaged_schema_is_refused(trained, change, message):
    schema = {**copy.deepcopy(trained.schema), **change}
    with pytest.raises(DataError, match=message):
        load(people(), schema=schema)


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from([[], {}, ["x"], [1], {"kind": "random"}, "number", "vector", "degree", 10**15]),
)


def replaced(node, path, value):
    """A copy of nested values with one of them replaced; the path chooses at each level."""
    if not path or not isinstance(node, dict | list) or not node:
        return value
    keys = sorted(node) if isinstance(node, dict) else range(len(node))
    chosen = list(keys)[path[0] % len(node)]
    changed = copy.copy(node)
    changed[chosen] = replaced(node[chosen], path[1:], value)
    return changed


FIRST = load(people(), standardize=True, features="degree", max_categories=7).schema


@settings(max_examples=300)
@given(path=st.lists(st.integers(0, 20), min_size=1, max_size=5), value=VALUES)
def test_no_change_of_a_schema_does_harm(path, value):
    schema = replaced(FIRST, path, value)
    with contextlib.suppress(ArgnnError):
        load(people(), schema=schema)
    with contextlib.suppress(ArgnnError):
        load((np.ones((10, 5)), [[0], [1]]), schema=schema)
