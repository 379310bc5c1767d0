"""Edge weights on the way from a graph to a prediction."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from argnn import ARGNNClassifier, ARGNNLinkPredictor, load
from argnn.analysis import explain_node, learned_layers, node_table
from argnn.data import features_and_edges, with_edges
from argnn.data import load as load_graph
from argnn.errors import ConfigError, DataError
from argnn.functional.neighborhood import edges_of
from argnn.nn import GCN, MODELS
from argnn.runs.pool import pack, unpacked
from argnn.runs.prepare import graph_facts
from argnn.runs.train_one import curvature_file


def noisy(num_nodes=120, seed=0):
    """Half of the edges join two classes: only their small weights tell them from the others."""
    rng = np.random.default_rng(seed)
    y = np.arange(num_nodes) % 2
    source, target = rng.integers(0, num_nodes, size=(2, 8 * num_nodes))
    weight = np.where(y[source] == y[target], 1.0, 0.02) * rng.uniform(0.5, 1.5, len(source))
    return Data(
        x=torch.from_numpy(y[:, None] + 2.5 * rng.normal(size=(num_nodes, 8))).float(),
        edge_index=torch.from_numpy(np.stack([source, target])),
        y=torch.from_numpy(y),
        edge_weight=torch.from_numpy(weight),
    )


def fitted(model, graph, weight="edge_weight", **options):
    options = {"hidden_channels": 16, **options}
    return ARGNNClassifier(
        model,
        trial=False,
        epochs=40,
        device="cpu",
        random_state=0,
        model_options=options,
        load_options={"weight": weight},
    ).fit(graph)


@pytest.mark.parametrize("model", ["argnn", "gcn"])
def test_weights_tell_what_edges_do_not(model):
    graph = noisy()
    test = np.arange(120) >= 60
    mask = torch.arange(120) < 40
    graph.train_mask, graph.val_mask = mask, (torch.arange(120) < 60) & ~mask
    scores = [fitted(model, graph, w).score(graph, mask=test) for w in ("edge_weight", None)]
    assert scores[0] > 0.9
    assert scores[0] > scores[1] + 0.15


@pytest.mark.parametrize("model", MODELS)
def test_a_saved_model_gives_the_same_predictions(model, tmp_path):
    graph = noisy(40)
    options = {"hidden_channels": 8} if model != "cusp" else {}
    clf = ARGNNClassifier(
        model,
        epochs=2,
        device="cpu",
        random_state=0,
        model_options=options,
        load_options={"weight": "edge_weight"},
        **({"trial": False} if model == "argnn" else {}),
    ).fit(graph)
    expected = clf.predict_proba(graph)
    clf.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.predict_proba(graph), expected)
    graph.edge_weight = graph.edge_weight.flip(0)
    assert np.allclose(again.predict_proba(graph), expected) == (model == "mlp")


def test_a_model_with_weights_wants_them_again():
    graph = noisy(40)
    clf = fitted("gcn", graph)
    del graph.edge_weight
    with pytest.raises(DataError, match="no edge weights 'edge_weight'; it has none"):
        clf.predict(graph)


def test_wrong_weights_are_named():
    graph = noisy(40)
    graph.edge_weight[3] = -1
    with pytest.raises(DataError, match=r"edge_weight\[3\] is negative"):
        fitted("gcn", graph)
    graph.edge_weight[3] = torch.nan
    with pytest.raises(DataError, match=r"edge_weight\[3\] is not finite"):
        fitted("gcn", graph)


class Own(GCN):
    """A model that does not say that it takes weights."""

    takes_edge_weight = False


def test_a_model_that_takes_no_weights_is_refused():
    with pytest.raises(ConfigError, match="Own takes no edge weights"):
        fitted(Own, noisy(40))


# -- links ----------------------------------------------------------------------------------------


def test_training_edges_keep_their_weights():
    graph = load_graph(noisy(40), weight="edge_weight")
    kept = torch.arange(graph.edge_index.size(1)) % 3 > 0
    seen = with_edges(graph, graph.edge_index[:, kept])
    assert torch.equal(seen.edge_weight, graph.edge_weight[kept])


def test_links_are_predicted_with_weights(tmp_path):
    graph = noisy(40)
    options = {"epochs": 2, "device": "cpu", "random_state": 0}
    options["load_options"] = {"weight": "edge_weight"}
    predictor = ARGNNLinkPredictor("gcn", **options).fit(graph)
    pairs = [[0, 1], [2, 5]]
    expected = predictor.predict_proba(pairs, graph=graph)
    predictor.save(tmp_path / "links")
    assert np.array_equal(load(tmp_path / "links").predict_proba(pairs, graph=graph), expected)
    graph.edge_weight = graph.edge_weight.flip(0)
    assert not np.allclose(predictor.predict_proba(pairs, graph=graph), expected)


# -- what is stored, and what is shown ------------------------------------------------------------


def loaded():
    graph = load_graph(noisy(40), weight="edge_weight")
    plain = load_graph(noisy(40))
    return graph, plain


def test_checksums_know_weights():
    graph, plain = loaded()
    del graph.edge_rule, plain.edge_rule
    graph.edge_rule = plain.edge_rule = "the same"
    assert graph_facts(graph)["digest"] != graph_facts(plain)["digest"]
    ones = load_graph(noisy(40), weight="edge_weight")
    del ones.edge_weight
    assert graph_facts(ones)["digest"] == graph_facts(plain)["digest"]


def test_curvature_files_know_weights():
    graph, plain = loaded()
    names = {curvature_file(edges_of(g), 40, "exact").name for g in (graph, plain)}
    assert len(names) == 2
    plain.edge_weight = torch.ones(plain.edge_index.size(1))
    assert curvature_file(edges_of(plain), 40, "exact").name in names


def test_workers_get_the_weights(tmp_path):
    graph, _ = loaded()
    pack(graph, tmp_path / "graph.safetensors")
    assert torch.equal(unpacked(tmp_path / "graph.safetensors").edge_weight, graph.edge_weight)


def test_what_a_model_sees_has_weights_and_no_labels():
    graph, plain = loaded()
    assert set(features_and_edges(graph).to_dict()) == {"x", "edge_index", "edge_weight"}
    assert set(features_and_edges(plain).to_dict()) == {"x", "edge_index"}


def test_explanations_and_tables_are_of_the_weighted_graph():
    graph, plain = loaded()
    clf = fitted("argnn", noisy(40), metric="both")
    weighted, unweighted = (explain_node(clf.model_, g, 3) for g in (graph, plain))
    chances = clf.proba(graph)[3] ** clf.temperature_
    expected = dict(zip(weighted.probabilities, chances / chances.sum(), strict=True))
    assert weighted.probabilities == pytest.approx(expected, rel=1e-4)
    assert unweighted.probabilities != pytest.approx(expected, rel=1e-3)
    layers = learned_layers(clf.model_, graph)
    tables = [node_table(g, layers, graph_ollivier=True) for g in (graph, plain)]
    for column in ("ricci_norm", "graph_ollivier"):
        assert not np.allclose(tables[0][column], tables[1][column])
