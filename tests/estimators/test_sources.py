"""The estimators on every form of graph that people have, ids and all."""

import numpy as np
import pytest
import scipy.sparse

import argnn
from argnn import ARGNNClassifier, ARGNNLinkPredictor

from .conftest import NAMES, planted

pandas = pytest.importorskip("pandas")
networkx = pytest.importorskip("networkx")


def fast() -> ARGNNClassifier:
    return ARGNNClassifier("gcn", epochs=25, train_options={"patience": 0}, device="cpu")


def tables():
    """Edges and nodes as tables: text ids, a category, missing values, unlabelled nodes."""
    graph = planted()
    ids = [f"n{node}" for node in range(90)]
    nodes = pandas.DataFrame(graph.x.numpy(), columns=["a", "b", "c"])
    nodes.insert(0, "id", ids)
    nodes["color"] = np.array(["red", "blue"])[np.arange(90) % 2]
    nodes["label"] = NAMES[graph.y.numpy()]
    nodes.loc[3, "a"] = np.nan
    nodes.loc[[5, 6, 7], "label"] = None
    source, target = graph.edge_index.numpy()
    edges = pandas.DataFrame({"source": np.take(ids, source), "target": np.take(ids, target)})
    return edges, nodes


def test_pandas_tables():
    edges, nodes = tables()
    clf = fast().fit((edges, nodes))
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert sum(clf.counts_.values()) == 87
    assert clf.score((edges, nodes), mask=range(90)) > 0.7
    assert set(clf.predict((edges, nodes))) <= set(NAMES)
    assert clf.n_features_in_ == len(clf.feature_names_in_)


def test_new_tables_are_encoded_like_the_old_ones(tmp_path):
    edges, nodes = tables()
    clf = fast().fit((edges, nodes))
    clf.save(tmp_path / "model")
    expected = clf.predict_proba((edges, nodes))
    new = nodes.drop(columns="label").iloc[:40]
    new_edges = edges[edges["source"].isin(new["id"]) & edges["target"].isin(new["id"])]
    loaded = argnn.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba((edges, nodes)), expected)
    assert loaded.predict((new_edges, new)).shape == (40,)
    strange = new.assign(color="green")  # never seen: no feature is on
    assert loaded.predict((new_edges, strange)).shape == (40,)


def test_networkx_graph():
    edges, nodes = tables()
    graph = networkx.from_pandas_edgelist(edges)
    graph.add_nodes_from(nodes["id"])
    for row in nodes.to_dict("records"):
        known = {key: value for key, value in row.items() if value == value and value is not None}
        graph.nodes[known.pop("id")].update(known)
    clf = fast().fit(graph)
    assert clf.classes_.tolist() == ["ant", "bee", "cat"]
    assert clf.score(graph, mask=range(90)) > 0.7


@pytest.mark.parametrize("sparse_features", [False, True])
def test_scipy_adjacency(sparse_features):
    graph = planted()
    adjacency = scipy.sparse.coo_array(
        (np.ones(graph.num_edges), graph.edge_index.numpy()), shape=(90, 90)
    ).tocsr()
    adjacency.data[:] = 1
    x = graph.x.numpy()
    features = scipy.sparse.csr_array(x) if sparse_features else x
    clf = fast().fit((adjacency, features), graph.y)
    assert clf.score((adjacency, features), graph.y, mask=range(90)) > 0.7


def test_features_and_edges():
    graph = planted()
    source = (graph.x.numpy(), graph.edge_index.numpy())
    by_tuple, by_data = fast().fit(source, graph.y), fast().fit(graph)
    np.testing.assert_array_equal(by_tuple.predict_proba(source), by_data.predict_proba(graph))


def test_folder_of_csv_files(tmp_path):
    edges, nodes = tables()
    edges.to_csv(tmp_path / "edges.csv", index=False)
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    clf = fast().fit(tmp_path)
    assert clf.score(tmp_path, mask=range(90)) > 0.7
    np.testing.assert_array_equal(clf.predict(tmp_path), fast().fit(tables()).predict(tables()))


def test_links_between_named_nodes():
    edges, nodes = tables()
    lp = ARGNNLinkPredictor("gcn", epochs=5, device="cpu").fit((edges, nodes))
    assert lp.predict_proba([("n0", "n3"), ("n1", "n5")]).shape == (2, 2)


def test_weights_are_used_where_asked_for():
    edges, nodes = tables()
    edges["weight"] = 1.0 + np.arange(len(edges)) % 5
    plain = fast().fit((edges, nodes))
    assert any("weight" in note for note in plain.notes_)
    clf = fast().set_params(load_options={"weight": "weight"}).fit((edges, nodes))
    assert not any("weight" in note for note in clf.notes_)
    assert not np.allclose(clf.predict_proba((edges, nodes)), plain.predict_proba((edges, nodes)))
