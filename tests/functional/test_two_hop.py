"""Nodes at distance exactly two."""

import itertools
import math

import pytest
import torch

import reference
from argnn.functional.neighborhood import neighborhood
from argnn.functional.two_hop import two_hop

from .cases import both_ways, edge_tensor, every_graph


def pairs_of(hood):
    return sorted(map(tuple, hood.edge_index.t().tolist()))


@every_graph
def test_two_hop_pairs_are_those_at_distance_two(graph):
    """Walks listed by hand from the undirected graph, whatever was listed of it."""
    distance = reference.hop_distances(graph.edges, graph.num_nodes)
    expected = [(j, i) for i, near in enumerate(distance) for j, hops in near.items() if hops == 2]
    assert pairs_of(two_hop(graph.edge_index, graph.num_nodes)) == sorted(expected)


def test_path_of_three_joins_its_ends_with_weight_one():
    hood = two_hop(edge_tensor(both_ways([(0, 1), (1, 2)])), 3)
    assert pairs_of(hood) == [(0, 2), (2, 0)]
    assert hood.edge_weight("sym", torch.float64).tolist() == [1.0, 1.0]


def test_complete_graph_has_no_pair_two_apart():
    hood = two_hop(edge_tensor(both_ways(itertools.combinations(range(5), 2))), 5)
    assert hood.num_edges == 0


@pytest.mark.parametrize("leaves", [2, 5])
def test_leaves_of_a_star_form_a_clique_without_the_center(leaves):
    hood = two_hop(edge_tensor(both_ways((0, leaf) for leaf in range(1, leaves + 1))), leaves + 1)
    assert pairs_of(hood) == sorted(itertools.permutations(range(1, leaves + 1), 2))
    weight = hood.edge_weight("sym", torch.float64)
    assert all(math.isclose(w, 1 / (leaves - 1)) for w in weight.tolist())


def test_two_hop_is_prepared_once():
    edge_index = edge_tensor(both_ways([(0, 1), (1, 2)]))
    assert two_hop(edge_index, 3) is two_hop(edge_index, 3)
    assert two_hop(neighborhood(edge_index, 3), 3) is two_hop(edge_index, 3)


COUNTS = {"cora": 86_332, "texas": 11_462}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_known_graphs(name, benchmark_root):
    from argnn.data import load

    graph = load(name, root=benchmark_root)
    assert two_hop(graph.edge_index, graph.x.size(0)).num_edges == COUNTS[name]
