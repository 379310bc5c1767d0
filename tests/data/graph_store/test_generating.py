"""Drawn graphs: as many edges as asked for, classes that can be learned, the same every time."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from argnn.data import load
from argnn.data.graph_store.generating import GraphRecipe, generate
from argnn.data.graph_store.opening import check_store
from argnn.errors import ConfigError
from argnn.functional import edge_homophily
from argnn.runs.prepare import graph_facts

SMALL = {"nodes": 1500, "edges": 9000, "features": 8, "classes": 4}


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["communities", "rmat"])
def test_counts_and_contract(tmp_path, kind):
    store = generate(tmp_path / "store", GraphRecipe(**SMALL, kind=kind))
    check_store(store)
    graph = load(store.path)
    source, target = graph.edge_index
    key = source * 1500 + target
    assert len(key) == 2 * 9000
    assert (key[1:] > key[:-1]).all()  # sorted, no duplicates
    assert (source != target).all()
    assert torch.equal(key, (target * 1500 + source).sort().values)  # in both directions
    assert graph.x.shape == (1500, 8)
    assert torch.bincount(graph.y).tolist() == [375] * 4
    masks = torch.cat([graph.train_mask, graph.val_mask, graph.test_mask], dim=1)
    assert (masks.sum(dim=1) == 1).all()
    shares = masks.double().mean(dim=0)
    assert torch.allclose(shares, torch.tensor([0.6, 0.2, 0.2]).double(), atol=0.05)
    again = load(graph)
    assert graph_facts(again)["digest"] == store.header.content
    assert again.notes == [note for note in graph.notes if not note.startswith("drawn")]


@pytest.mark.parametrize("kind", ["communities", "rmat"])
def test_same_seed_same_bytes_whatever_the_memory(tmp_path, kind, monkeypatch):
    monkeypatch.setattr("argnn.data.graph_store.generating._EDGES_AT_ONCE", 1000)
    recipe = GraphRecipe(**SMALL, kind=kind, seed=5)
    first = content(generate(tmp_path / "a" / "graph", recipe).path)
    assert first == content(generate(tmp_path / "b" / "graph", recipe, memory=3000).path)
    other = GraphRecipe(**SMALL, kind=kind, seed=6)
    changed = content(generate(tmp_path / "c" / "graph", other).path)
    assert {name for name in first if first[name] != changed[name]} >= {"into_other.npy", "x.npy"}


@pytest.mark.parametrize("homophily", [0.0, 0.3, 0.8, 1.0])
def test_homophily_is_as_asked_for(tmp_path, homophily):
    recipe = GraphRecipe(**SMALL, homophily=homophily)
    graph = load(generate(tmp_path / "store", recipe).path)
    # The deviation of a share of 9000 edges is at most 0.0053.
    assert edge_homophily(graph.edge_index, graph.y) == pytest.approx(homophily, abs=0.03)


def test_rmat_has_hubs_and_communities_have_none(tmp_path):
    most = {}
    for kind in ("communities", "rmat"):
        graph = load(generate(tmp_path / kind, GraphRecipe(**SMALL, kind=kind)).path)
        most[kind] = int(torch.bincount(graph.edge_index[0]).max())
    # Degrees of communities are about Poisson with mean 12.
    assert most["communities"] < 36
    assert most["rmat"] > 150


def accuracy(graph, x):
    train, test = graph.train_mask[:, 0].numpy(), graph.test_mask[:, 0].numpy()
    model = LogisticRegression(max_iter=500).fit(x[train], graph.y[train])
    return model.score(x[test], graph.y[test])


def test_classes_are_learned_from_features_and_better_with_the_edges(tmp_path):
    graph = load(generate(tmp_path / "store", GraphRecipe(**SMALL)).path)
    x = graph.x.numpy()
    source, target = graph.edge_index.numpy()
    near = np.zeros_like(x)
    np.add.at(near, target, x[source])
    mean = near / np.maximum(1, np.bincount(target, minlength=1500))[:, None]
    alone, together = accuracy(graph, x), accuracy(graph, np.concatenate([x, mean], axis=1))
    assert 0.4 < alone < 0.9  # chance is 0.25
    assert together > alone + 0.05


def test_rmat_classes_are_learned_from_features(tmp_path):
    graph = load(generate(tmp_path / "store", GraphRecipe(**SMALL, kind="rmat")).path)
    assert accuracy(graph, graph.x.numpy()) > 0.4


def test_dense_and_empty_graphs_have_the_number_of_edges(tmp_path):
    for name, edges in (("dense", 40 * 39 // 8), ("empty", 0)):
        recipe = GraphRecipe(40, edges, "rmat", features=2, classes=2)
        assert generate(tmp_path / name, recipe).num_edges == 2 * edges


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": 7}, "nodes must be from 8, two of each class"),
        ({"nodes": 2**31}, "nodes must be from 8"),
        ({"edges": 1500 * 1499 // 8 + 1}, "edges must be from 0 to 281062, a quarter of all"),
        ({"kind": "grid"}, "kind must be one of communities, rmat"),
        ({"kind": "rmat", "homophily": 0.5}, "homophily belongs to communities, not to rmat"),
        ({"homophily": 1.5}, "homophily must be from 0 to 1"),
        ({"noise": float("nan")}, "noise must be from 0"),
        ({"features": 0}, "features must be from 1"),
        ({"classes": 1}, "classes must be from 2"),
        ({"train_share": 1.0}, "train_share must be between 0 and 1"),
        ({"seed": -1}, "seed must be from 0"),
    ],
)
def test_impossible_recipe(changes, message):
    with pytest.raises(ConfigError, match=message):
        GraphRecipe(**{**SMALL, **changes})
