"""Labels, masks and weights that come with ids of nodes, and labels in other types."""

import networkx
import numpy as np
import pytest
import torch
from torch import tensor
from torch_geometric.data import Data

from argnn import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor
from argnn.errors import ConfigError
from argnn.estimators.reading import by_id

pandas = pytest.importorskip("pandas")

NODES = 40
#: Node n has row ORDER.index(n).
ORDER = np.random.default_rng(0).permutation(NODES).tolist()


@pytest.fixture
def graph():
    """Integers as ids, in an order of their own."""
    made = networkx.Graph()
    made.add_nodes_from((node, {"value": float(node % 7)}) for node in ORDER)
    made.add_edges_from((node, (node * 3 + 1) % NODES) for node in range(NODES))
    return made


@pytest.fixture
def named(graph):
    """The same graph with texts as ids."""
    return networkx.relabel_nodes(graph, {node: f"n{node:02}" for node in graph})


def label(node):
    return "ab"[int(node) // 5 % 2]


def fast(**more):
    return ARGNNClassifier("gcn", epochs=2, device="cpu", **more)


def by_name(values):
    """A pandas column by the ids of ``named``, sorted, which is not the order of the nodes."""
    return pandas.Series(values, index=[f"n{node:02}" for node in range(NODES)])


def known(clf):
    table = clf.predict_frame()
    return dict(zip(table["id"], table["known"], strict=True))


def learned_from(clf):
    table = clf.predict_frame()
    return set(table["id"][table["split"].isin(["train", "val"])])


def test_a_dictionary_of_labels_is_by_id(graph):
    labels = {node: label(node) for node in range(NODES)}
    assert known(fast().fit(graph, labels)) == labels
    part = {node: labels[node] for node in range(0, NODES, 2)}
    assert learned_from(fast().fit(graph, part)) == set(part)


def test_an_index_that_counts_rows_or_holds_ids_is_refused(graph):
    labels = pandas.Series([label(node) for node in range(NODES)])
    with pytest.raises(ConfigError, match=r"index of y may count rows or hold ids.*dict\(y\)"):
        fast().fit(graph, labels)
    in_rows = fast().fit(graph, labels.to_numpy())
    by_id = fast().fit(graph, dict(labels))
    assert known(in_rows) == {node: label(row) for row, node in enumerate(ORDER)}
    assert known(by_id) == {node: label(node) for node in range(NODES)}
    train = pandas.Series([node < 20 for node in range(NODES)])
    with pytest.raises(ConfigError, match="index of train_mask may count rows or hold ids"):
        fast().fit(graph, dict(labels), train_mask=train)
    with pytest.raises(ConfigError, match="index of mask may count rows or hold ids"):
        by_id.score(graph, dict(labels), mask=train)


def test_an_index_of_texts_finds_ids_that_are_numbers(graph):
    labels = pandas.Series({str(node): label(node) for node in range(NODES)})
    assert known(fast().fit(graph, labels)) == {node: label(node) for node in range(NODES)}


def test_an_index_of_pairs_finds_the_nodes_of_a_grid():
    grid = networkx.grid_2d_graph(5, 6)
    networkx.set_node_attributes(grid, {node: node[0] / 7 for node in grid}, "value")
    labels = pandas.Series(
        {(row, column): "ab"[column > 2] for column in range(6) for row in range(5)}
    )
    assert list(labels.index) != list(grid)
    assert known(fast().fit(grid, labels)) == {str(node): "ab"[node[1] > 2] for node in grid}


def test_an_index_without_an_id_is_refused(named):
    labels = pandas.Series([label(node) for node in range(NODES)], index=range(100, 100 + NODES))
    with pytest.raises(ConfigError, match=r"row for 100, which is no node; .*y\.to_numpy\(\)"):
        fast().fit(named, labels)


def test_masks_and_weights_are_found_by_id(named):
    labels = by_name([label(node) for node in range(NODES)])
    train, val = by_name([node < 20 for node in range(NODES)]), {"n30": True, "n31": np.True_}
    weight = by_name(np.arange(NODES) + 1.0)
    clf = fast().fit(named, labels, train, val, weight)
    parts = dict(zip(clf.predict_frame()["id"], clf.predict_frame()["split"], strict=True))
    assert {node for node, part in parts.items() if part == "train"} == set(train.index[:20])
    assert {node for node, part in parts.items() if part == "val"} == {"n30", "n31"}
    rows = [int(node[1:]) for node in named]
    same = fast().fit(
        named,
        labels.to_numpy()[rows],
        np.array(rows) < 20,
        np.isin(rows, [30, 31]),
        weight.to_numpy()[rows],
    )
    np.testing.assert_array_equal(same.predict_proba(named), clf.predict_proba(named))


def test_scores_are_found_by_id(named):
    labels = by_name([label(node) for node in range(NODES)])
    values = by_name([node % 7 + node / 9 for node in range(NODES)])
    rows, held = [int(node[1:]) for node in named], by_name([node >= 30 for node in range(NODES)])
    for model, y in ((fast(), labels), (ARGNNRegressor("gcn", epochs=2, device="cpu"), values)):
        model.fit(named, y, train_mask=range(20))
        in_rows = y.to_numpy()[rows]
        expected = model.score(named, in_rows, mask=held.to_numpy()[rows])
        assert model.score(named, y, mask=held) == expected
        assert model.score(named, dict(y), mask=dict(held)) == expected
        assert model.score(named, y) == model.score(named, in_rows)


def test_a_mask_of_zeros_and_ones_is_a_mask(graph):
    labels = {node: label(node) for node in range(NODES)}
    mask = np.array([node < 20 for node in ORDER])
    assert learned_from(fast().fit(graph, labels, train_mask=mask.astype(int))) == set(range(20))
    clf = fast().fit(graph, labels, train_mask=list(mask.astype(int)))
    assert clf.score(graph, labels, mask=tensor(~mask).int()) == clf.score(
        graph, labels, mask=~mask
    )


def test_a_column_of_labels_may_be_a_matrix_or_a_table(named):
    column = np.array([label(node) for node in range(NODES)])
    flat = fast().fit(named, column)
    for y in (column[:, None], pandas.DataFrame({"label": column})):
        assert known(fast().fit(named, y)) == known(flat)


def test_labels_that_are_numbers_stay_numbers(tmp_path):
    """Else a comparison with the user's own column finds no label right, without a word."""
    numbers = [(1, 2, 10)[node // 5 % 3] for node in range(NODES)]
    nodes = pandas.DataFrame({"id": [f"n{node}" for node in range(NODES)], "label": numbers})
    nodes["value"] = np.array(numbers) + np.arange(NODES) / 100
    edges = pandas.DataFrame({"source": nodes["id"], "target": nodes["id"].to_numpy()[::-1]})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    everything = range(NODES)
    for source in ((edges, nodes), tmp_path):
        clf = ARGNNClassifier("mlp", epochs=60, device="cpu").fit(source)
        assert clf.classes_.tolist() == [1, 2, 10]
        right = (clf.predict(source) == nodes["label"].to_numpy()).mean()
        assert right > 0.9
        for y in (None, numbers, nodes["label"].astype(str), nodes["label"].astype(float)):
            assert clf.score(source, y, mask=everything) == right


def test_answers_for_pairs_must_fit_them(graph):
    links = ARGNNLinkPredictor("gcn", epochs=1, device="cpu").fit(graph)
    pairs = [(0, 1), (2, 3)]
    assert links.score(pairs, pandas.Series([1, 0], index=[7, 9])) in (0, 0.5, 1)
    for wrong in ([1], [1, 0, 1], ["1", "0"], [[1], [0]], [1, 2]):
        with pytest.raises(ConfigError, match="y must hold 0 or 1 for each of the 2 pairs"):
            links.score(pairs, wrong)


def test_dictionary_of_a_graph_without_ids_goes_by_row():
    """Its keys were read as the labels."""
    graph = Data(x=torch.zeros(3, 1), edge_index=torch.tensor([[0, 1], [1, 2]]))
    assert by_id({2: "c", 0: "a"}, graph, graph) == ["a", None, "c"]
    with pytest.raises(ConfigError, match="is no node"):
        by_id({3: "d"}, graph, graph)
