import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from argnn.data import load, with_edges
from argnn.data import structural_features as module
from argnn.errors import DataError


def test_degree_says_how_large_it_is():
    graph = load(nx.star_graph(5), features="degree")
    assert graph.feature_names[:4] == [
        "log(1 + degree)",
        "degree is 0",
        "degree from 1",
        "degree from 2",
    ]
    center, leaf = graph.x[0], graph.x[1]
    assert center[0] == pytest.approx(np.log(6))
    assert leaf[0] == pytest.approx(np.log(2))
    assert graph.feature_names[1 + int(center[1:].argmax())] == "degree from 4"
    assert graph.feature_names[1 + int(leaf[1:].argmax())] == "degree from 1"
    assert graph.x[:, 1:].sum(dim=1).eq(1).all()


def test_degree_of_isolated_and_of_very_large_nodes():
    star = nx.star_graph(100_000)
    star.add_node("alone")
    graph = load(star, features="degree")
    assert graph.feature_names[1 + int(graph.x[-1, 1:].argmax())] == "degree is 0"
    assert graph.feature_names[1 + int(graph.x[0, 1:].argmax())] == "degree from 32768"


def test_directed_graph_has_two_degrees():
    graph = load(nx.DiGraph([(0, 1), (0, 2)]), features="degree", directed=True)
    incoming, outgoing = (graph.feature_names.index(f"log(1 + {s}-degree)") for s in ("in", "out"))
    assert graph.x[0, incoming] == 0
    assert graph.x[0, outgoing] == pytest.approx(np.log(3))


def test_one_hot_is_refused_for_many_nodes(monkeypatch):
    assert torch.equal(load(nx.path_graph(4), features="onehot").x, torch.eye(4))
    monkeypatch.setattr(module, "MOST_ONE_HOT", 3)
    with pytest.raises(DataError, match="4 are more than 3; choose degree, random or laplacian"):
        load(nx.path_graph(4), features="onehot")


def test_random_features_follow_their_seed():
    first, again = (load(nx.path_graph(9), features="random", seed=3).x for _ in range(2))
    assert torch.equal(first, again)
    assert not torch.equal(first, load(nx.path_graph(9), features="random", seed=4).x)


@pytest.mark.parametrize("size", [30, 300])
def test_laplacian_features_are_eigenvectors(size):
    graph = nx.random_regular_graph(4, size, seed=1)
    x = load(graph, features="laplacian").x.double().numpy() / np.sqrt(size)
    laplacian = nx.normalized_laplacian_matrix(graph, nodelist=range(size)).toarray()
    loaded = load(graph, features="laplacian")
    laplacian = laplacian[np.ix_(loaded.node_ids, loaded.node_ids)]
    expected = np.linalg.eigvalsh(laplacian)[1 : x.shape[1] + 1]
    found = np.einsum("ik,ij,jk->k", x, laplacian, x)
    assert found == pytest.approx(expected, abs=1e-4)
    assert np.allclose(laplacian @ x, x * found, atol=1e-3)
    assert (np.take_along_axis(x, np.abs(x).argmax(axis=0)[None], axis=0) > 0).all()


@pytest.mark.parametrize("graph", [nx.empty_graph(1), nx.empty_graph(2), nx.complete_graph(3)])
def test_laplacian_of_tiny_graphs_is_finite(graph):
    x = load(graph, features="laplacian").x
    assert x.size(0) == len(graph)
    assert x.isfinite().all()


def test_features_are_added_to_those_of_the_nodes():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 5.0, 1: 6.0, 2: 7.0}, "size")
    loaded = load(graph, features="degree", standardize=False)
    assert loaded.feature_names[0] == "size"
    assert loaded.x[:, 0].tolist() == [5, 6, 7]
    assert loaded.notes == ["18 features made from the edges (degree)"]


def test_weights_of_a_directed_graph_are_found_in_either_direction():
    """An edge that is there in one direction only was given the weight of another edge."""
    ends, weight = torch.tensor([[0, 2, 2, 3], [1, 0, 1, 2]]), torch.tensor([1.0, 2.0, 3.0, 4.0])
    source = Data(x=torch.eye(4), edge_index=ends, edge_weight=weight)
    graph = load(source, directed=True, weight="weight")
    known = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    assert with_edges(graph, known).edge_weight.tolist() == [1, 1, 3, 3, 4, 4]
    with pytest.raises(DataError, match="no edge from 0 to 3"):
        with_edges(graph, torch.tensor([[0], [3]]))
