import math

import pytest
import torch

import reference
from argnn import functional as AF
from argnn.analysis import properties as P

from .cases import GRAPHS, edge_tensor, labelled, neighbor_sets

every_graph = pytest.mark.parametrize("name", GRAPHS)


@every_graph
def test_degree_counts_different_neighbors(name):
    num_nodes, edges = GRAPHS[name]
    expected = [len(near) for near in neighbor_sets(num_nodes, edges)]
    assert P.degree(edge_tensor(edges), num_nodes).tolist() == expected


@every_graph
def test_local_homophily_is_that_of_the_loops(name):
    graph = labelled(name)
    y, near = graph.y.tolist(), neighbor_sets(*GRAPHS[name])
    expected = []
    for i in range(len(y)):
        known = [j for j in near[i] if y[j] >= 0]
        defined = known and y[i] >= 0
        expected.append(sum(y[j] == y[i] for j in known) / len(known) if defined else math.nan)
    found = P.local_homophily(graph.edge_index, graph.y)
    assert found.tolist() == pytest.approx(expected, nan_ok=True)


def test_mean_local_homophily_is_node_homophily():
    graph = labelled("random")
    found = P.local_homophily(graph.edge_index, graph.y)
    both = torch.cat([graph.edge_index, graph.edge_index.flip(0)], dim=1)
    assert found.nanmean().item() == pytest.approx(AF.node_homophily(both, graph.y))


@every_graph
def test_clustering_is_missing_below_two_neighbors(name):
    num_nodes, edges = GRAPHS[name]
    near = neighbor_sets(num_nodes, edges)
    expected = []
    for around in near:
        pairs = [(a, b) for a in around for b in around if a < b]
        joined = sum(b in near[a] for a, b in pairs)
        expected.append(joined / len(pairs) if pairs else math.nan)
    found = P.clustering(edge_tensor(edges), num_nodes)
    assert found.tolist() == pytest.approx(expected, nan_ok=True)


@every_graph
def test_graph_curvature_is_the_mean_of_the_edges_or_missing(name):
    num_nodes, edges = GRAPHS[name]
    pairs = reference.unordered_pairs(edges)
    curvature = reference.ollivier_ricci(pairs, num_nodes, 0.5)
    found = P.graph_curvature(edge_tensor(edges), num_nodes)
    for node in range(num_nodes):
        at = [k for pair, k in zip(pairs, curvature, strict=True) if node in pair]
        expected = sum(at) / len(at) if at else math.nan
        assert found[node].item() == pytest.approx(expected, abs=1e-9, nan_ok=True)
