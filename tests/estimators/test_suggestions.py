"""The best new links: against all pairs one by one, for every decoder, in little memory."""

import itertools

import numpy as np
import pytest
import torch

import argnn
from argnn import ARGNNLinkPredictor
from argnn.errors import ConfigError
from argnn.estimators import suggestions
from argnn.nn import DECODERS
from estimators.conftest import planted


def brute_force(links, known, node=None):
    """All pairs that are no edges with their probability, the best first."""
    nodes = range(len(links.node_ids_))
    pairs = [(a, b) for a, b in itertools.combinations(nodes, 2) if node in (None, a, b)]
    pairs = [pair for pair in pairs if pair not in known]
    chances = links.predict_proba(pairs)[:, 1]
    return pairs, np.sort(chances)[::-1]


def edges_of(graph):
    return {(min(a, b), max(a, b)) for a, b in graph.edge_index.t().tolist()}


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.parametrize("node", [None, 7])
def test_suggestions_are_those_of_all_pairs(graph, decoder, node, monkeypatch):
    # Small blocks, so that there are several.
    monkeypatch.setattr(suggestions, "_PRODUCTS", 700)
    monkeypatch.setattr(suggestions, "_PAIRS", 300)
    links = ARGNNLinkPredictor("argnn", decoder=decoder, epochs=3).fit(graph)
    pairs, chances = brute_force(links, edges_of(graph), node)
    table = links.suggest(k=25, node=node)
    found = list(zip(table["source"], table["target"], strict=True))
    # The products of a network are rounded by the size of the block: 32 bits, 64 terms.
    assert table["probability"].to_numpy() == pytest.approx(chances[:25], abs=64 * 2**-24)
    assert {(min(pair), max(pair)) for pair in found} <= set(pairs)
    assert len({frozenset(pair) for pair in found}) == 25
    assert (table["link"] == links.predict(found)).all()
    if node is not None:
        assert set(table["source"]) == {node}


def test_pairs_that_are_left_are_few(graph):
    links = ARGNNLinkPredictor("gcn", epochs=1).fit(graph)
    pairs, _ = brute_force(links, edges_of(graph), 7)
    table = links.suggest(k=1000, node=7)
    assert len(table) == len(pairs)
    assert 7 not in set(table["target"])


def test_held_out_links_are_not_new_and_ids_are_named(graph, tmp_path):
    graph.node_ids = [f"n{node}" for node in range(90)]
    links = ARGNNLinkPredictor("gcn", epochs=2).fit(graph)
    known = {frozenset((f"n{a}", f"n{b}")) for a, b in edges_of(graph)}
    table = links.suggest(k=200)
    assert not known & {
        frozenset(pair) for pair in zip(table["source"], table["target"], strict=True)
    }
    links.save(tmp_path / "model")
    again = argnn.load(tmp_path / "model")
    with pytest.raises(ConfigError, match="give graph="):
        again.suggest()
    assert len(again.suggest(graph, k=3, node="n3")) == 3
    for bad in (0, -1, True, 2.5):
        with pytest.raises(ConfigError, match="k must be a whole number"):
            links.suggest(k=bad)
    with pytest.raises(ConfigError, match="unknown node 'x'"):
        links.suggest(node="x")


def test_few_pairs_are_scored_at_a_time(monkeypatch):
    links = ARGNNLinkPredictor("gcn", decoder="mlp", epochs=1).fit(planted(300))
    monkeypatch.setattr(suggestions, "_PAIRS", 1000)
    sizes = []
    whole = type(links.model_).pair_scores

    def counted(self, embedding, pairs):
        sizes.append(pairs.size(1))
        return whole(self, embedding, pairs)

    monkeypatch.setattr(type(links.model_), "pair_scores", counted)
    links.suggest(k=5)
    assert max(sizes) <= 1000
    assert sum(sizes) >= 300 * 300
    assert torch.is_grad_enabled()
