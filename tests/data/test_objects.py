"""Graphs in memory: networkx, pandas, arrays, sparse matrices."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

from argnn.data import load
from argnn.errors import ConfigError, DataError

X = np.arange(12.0).reshape(4, 3)
EDGE_INDEX = np.array([[0, 1, 3], [1, 2, 3]])
BOTH_WAYS = [[0, 1, 1, 2], [1, 0, 2, 1]]


def test_networkx_graph_with_attributes():
    graph = nx.DiGraph()
    graph.add_node("a", size=1.0, label="u", vector=[1.0, 2.0])
    graph.add_node(("b", 1), label="v", vector=np.array([3.0, 4.0]))
    graph.add_node("c", size=np.float64(5), vector=torch.tensor([5.0, 6.0]), label="u")
    graph.add_node("d", size=3, vector=(7, 8), label="v")
    graph.add_edge("a", ("b", 1), weight=0.5)
    loaded = load(graph, directed=True, weight="weight", standardize=False)
    assert loaded.node_ids == ["a", "('b', 1)", "c", "d"]
    assert loaded.feature_names == ["size", "size is missing", "vector[0]", "vector[1]"]
    assert loaded.x.tolist() == [[1, 0, 1, 2], [3, 1, 3, 4], [5, 0, 5, 6], [3, 0, 7, 8]]
    assert loaded.edge_index.tolist() == [[0], [1]]
    assert loaded.edge_weight.tolist() == [0.5]
    assert loaded.class_names == ["u", "v"]


def test_undirected_networkx_graph_has_no_directions():
    graph = load(nx.path_graph(4), features="degree", directed=True)
    assert graph.edge_rule.endswith("(the source is undirected)")
    assert graph.node_ids == [0, 1, 2, 3]


def test_multigraph_merges_its_parallel_edges():
    graph = load(nx.MultiGraph([(0, 1), (0, 1), (1, 2)]), features="degree")
    assert graph.edge_index.tolist() == BOTH_WAYS
    assert "1 duplicate edges merged" in graph.notes


def test_networkx_attribute_called_id_does_not_hide_the_nodes():
    graph = nx.Graph()
    graph.add_node("n", id=7)
    graph.add_node("m", id=9)
    assert load(graph).node_ids == ["n", "m"]


def test_empty_networkx_graph_is_refused():
    with pytest.raises(DataError, match="there are no nodes"):
        load(nx.Graph())


def frames():
    edges = pd.DataFrame({"source": ["a", "b"], "target": ["b", "c"]})
    nodes = pd.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "size": [1.0, None, 3.0, 5.0],
            "kind": pd.Categorical(["x", "y", "x", None]),
            "flag": pd.array([True, False, None, True], dtype="boolean"),
            "label": [0, 1, None, 1],
        },
        index=[9, 9, 9, 9],
    )
    return edges, nodes


def test_pandas_tables():
    graph = load(frames(), standardize=False)
    assert graph.node_ids == list("abcd")
    assert graph.edge_index.tolist() == BOTH_WAYS
    assert graph.y.tolist() == [0, 1, -1, 1]
    assert graph.class_names == ["0", "1"]
    assert graph.x[1].tolist() == [3, 1, 0, 1, 0, 0]
    assert graph.x[3].tolist() == [5, 0, 0, 0, 1, 0]


def test_pandas_edges_alone():
    edges = pd.DataFrame({"from": [3, 1], "to": [1, 2]})
    assert load(edges, features="degree").node_ids == [1, 2, 3]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        ([5, 3, 5, 9], [3, 5, 9]),
        (["5", "3", "5", "9"], [3, 5, 9]),
        ([5, "3", 5, 9], [3, 5, 9]),
        ([2**70, 3, 2**70, 9], [3, 9, 2**70]),
        (["b", "a", "b", "c"], ["b", "a", "c"]),
        ([5, "3", "5", 9], [5, "3", "5", 9]),
    ],
)
def test_ids_of_edges_alone_are_sorted_if_all_are_integers(ids, expected):
    ends = {"source": ids, "target": [*ids[1:], ids[0]]}
    graph = load(pd.DataFrame(ends, dtype=object), features="degree")
    assert graph.node_ids == expected


def test_pandas_ids_that_a_gap_made_floats():
    edges = pd.DataFrame({"source": [1.0, 2.0], "target": [2, 3]})
    nodes = pd.DataFrame({"id": [1, 2, 3], "x": [1, 2, 3]})
    assert load((edges, nodes)).node_ids == [1, 2, 3]


def test_pandas_row_is_named():
    edges, nodes = frames()
    edges.loc[1, "target"] = "z"
    with pytest.raises(DataError, match="edges table, row 1, column target: unknown node 'z'"):
        load((edges, nodes))
    nodes["when"] = pd.Timedelta("1 day")
    with pytest.raises(
        DataError, match="nodes table, row 0, column when: a value of type Timedelta"
    ):
        load((frames()[0], nodes))


@pytest.mark.parametrize("x", [X, X.tolist(), torch.tensor(X), sp.csr_matrix(X), sp.coo_array(X)])
@pytest.mark.parametrize("edges", [EDGE_INDEX, EDGE_INDEX.tolist(), torch.tensor(EDGE_INDEX)])
def test_features_and_edges(x, edges):
    graph = load((x, edges))
    assert torch.equal(graph.x, torch.tensor(X, dtype=torch.float32))
    assert graph.edge_index.tolist() == BOTH_WAYS
    assert graph.node_ids == [0, 1, 2, 3]
    assert "1 self-loops removed" in graph.notes


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.coo_matrix, sp.csc_array])
@pytest.mark.parametrize("x", [X, sp.csr_matrix(X), torch.tensor(X)])
def test_adjacency_matrix(kind, x):
    adjacency = kind(([1, 1, 2], ([0, 1, 3], [1, 2, 3])), shape=(4, 4))
    graph = load((adjacency, x), weight="weight")
    assert graph.edge_index.tolist() == BOTH_WAYS
    assert torch.equal(graph.x, torch.tensor(X, dtype=torch.float32))
    assert graph.edge_weight.tolist() == [1, 1, 1, 1]
    ignored = load((adjacency, x))
    assert ignored.get("edge_weight") is None
    assert "edge weights ignored (not asked for)" in ignored.notes


def test_adjacency_alone_and_square_sparse_features():
    adjacency = sp.csr_matrix(([1, 1], ([0, 1], [1, 2])), shape=(4, 4))
    assert load(adjacency, features="degree").edge_index.tolist() == BOTH_WAYS
    square = load((sp.eye(4).tocsr(), EDGE_INDEX))
    assert torch.equal(square.x, torch.eye(4))


def test_stored_zeros_of_an_adjacency_are_no_edges():
    adjacency = sp.csr_matrix(([1.0, 0.0], ([0, 1], [1, 2])), shape=(3, 3))
    assert load(adjacency, features="degree").edge_index.tolist() == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (sp.csr_matrix((2, 3)), "must be square"),
        (sp.csr_matrix(np.eye(3) * 1j), "must hold real numbers"),
        ((X, np.array([[0], [9]])), r"edge_index\[1, 0\] is 9"),
        ((X, [[0.5], [1]]), "edge_index must hold integers"),
        (([[1], [2, 3]], EDGE_INDEX), "x: rows must be of equal length|x: must hold numbers"),
        ((np.array([["a"]]), EDGE_INDEX), "x: must hold numbers"),
        ((sp.csr_matrix((10**6, 10**6)), EDGE_INDEX), "do not fit into the memory"),
        ((X * np.nan, EDGE_INDEX), r"x\[0, 0\] is not finite"),
        (Data(edge_index=torch.tensor(EDGE_INDEX)), "the nodes have no features"),
    ],
)
def test_bad_arrays(source, message):
    with pytest.raises(DataError, match=message):
        load(source)


@pytest.mark.parametrize("option", [{"label": "a"}, {"node_id": "a"}, {"drop": ["a"]}])
def test_arrays_have_no_named_columns(option):
    with pytest.raises(ConfigError, match="needs a table with named columns"):
        load((X, EDGE_INDEX), **option)


def test_one_wrong_edge_does_not_make_a_billion_nodes():
    with pytest.raises(DataError, match="edge_index holds 1000000000"):
        load(Data(edge_index=torch.tensor([[0], [10**9]])), features="degree")


def test_source_objects_are_not_changed():
    edges, nodes = frames()
    copies = edges.copy(), nodes.copy()
    load((edges, nodes))
    pd.testing.assert_frame_equal(edges, copies[0])
    pd.testing.assert_frame_equal(nodes, copies[1])
    data = Data(x=torch.tensor(X), edge_index=torch.tensor(EDGE_INDEX), edge_weight=torch.ones(3))
    before = data.clone()
    load(data, features="degree", standardize=True, weight="edge_weight")
    assert data.keys() == before.keys()
    assert torch.equal(data.x, before.x)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"features": "pagerank"}, "features must be one of degree, onehot, random, laplacian"),
        ({"max_categories": 0}, "max_categories must be at least 1"),
        ({"seed": -1, "features": "random"}, "seed must not be negative"),
    ],
)
def test_impossible_options(option, message):
    with pytest.raises(ConfigError, match=message):
        load((X, EDGE_INDEX), **option)
