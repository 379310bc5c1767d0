import math
import random

import pytest
import torch

import reference
from argnn.functional import edge_homophily, node_homophily

from .cases import GRAPHS, UNDIRECTED, edge_tensor, every_graph

FUNCTIONS = {
    "edge": (edge_homophily, reference.edge_homophily),
    "node": (node_homophily, reference.node_homophily),
}
both = pytest.mark.parametrize(("function", "loops"), FUNCTIONS.values(), ids=FUNCTIONS.keys())


def labels(graph, lowest=0, seed=0):
    draw = random.Random(seed)
    return [draw.randrange(lowest, 3) for _ in range(graph.num_nodes)]


@both
@every_graph
def test_homophily_matches_loops(function, loops, graph):
    for lowest in (0, -1, -2):  # all labelled, some, fewer
        for seed in (0, 1):
            y = labels(graph, lowest, seed)
            expected = pytest.approx(loops(graph.edges, y), rel=1e-12, nan_ok=True)
            assert function(graph.edge_index, torch.tensor(y)) == expected


@both
def test_homophily_of_one_class_is_one_and_of_two_sides_zero(function, loops):
    star = UNDIRECTED[1]
    assert function(star.edge_index, torch.zeros(6, dtype=torch.int64)) == 1.0
    assert function(star.edge_index, torch.tensor([0, 1, 1, 1, 1, 1])) == 0.0


def test_homophily_of_a_star_by_hand():
    star = UNDIRECTED[1].edge_index
    y = torch.tensor([0, 0, 1, 1, 1, 1])
    assert edge_homophily(star, y) == pytest.approx(1 / 5)
    assert node_homophily(star, y) == pytest.approx((1 / 5 + 1) / 6)


def test_edge_homophily_counts_each_pair_once():
    y = torch.tensor([0, 0, 1])
    expected = 0.5
    assert edge_homophily(edge_tensor([(0, 1), (1, 2)]), y) == expected
    assert edge_homophily(edge_tensor([(0, 1), (1, 0), (0, 1), (2, 1)]), y) == expected


@both
def test_homophily_ignores_self_loops(function, loops):
    y = torch.tensor([0, 1, 1])
    edges = [(0, 1), (1, 0), (1, 2), (2, 1)]
    assert function(edge_tensor([*edges, (0, 0), (1, 1)]), y) == function(edge_tensor(edges), y)


@both
def test_homophily_leaves_unlabelled_nodes_out(function, loops):
    edges = edge_tensor([(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)])
    unlabelled_end = torch.tensor([0, 0, 1, -1])
    shorter = edge_tensor([(0, 1), (1, 0), (1, 2), (2, 1)])
    assert function(edges, unlabelled_end) == function(shorter, torch.tensor([0, 0, 1]))


def test_node_homophily_leaves_nodes_without_labelled_neighbours_out():
    # Node 2 is isolated and node 3 sees only the unlabelled node 4.
    edges = edge_tensor([(0, 1), (1, 0), (3, 4), (4, 3)])
    assert node_homophily(edges, torch.tensor([1, 1, 0, 0, -1])) == 1.0


@both
def test_homophily_without_a_labelled_pair_is_not_a_number(function, loops):
    nothing = GRAPHS[-1]
    assert math.isnan(function(nothing.edge_index, torch.zeros(4, dtype=torch.int64)))
    edges = edge_tensor([(0, 1), (1, 0)])
    assert math.isnan(function(edges, torch.tensor([0, -1])))
    assert math.isnan(function(edges, torch.tensor([-1, -1])))


@both
def test_homophily_checks_the_edges(function, loops):
    with pytest.raises(ValueError, match="edge_index names node 5, but nodes are 0 to 1"):
        function(edge_tensor([(0, 5)]), torch.tensor([0, 1]))
