"""Twins: nodes with the same neighbours, against loops over sets."""

import pytest
import torch
from hypothesis import given

import reference
from argnn.functional import twin_counts, twin_groups

from .cases import FEW, any_graph, both_ways, edge_tensor, every_graph


def groups_of(edges, num_nodes):
    return twin_groups(edge_tensor(edges), num_nodes).tolist()


@every_graph
def test_twins_match_loops(graph):
    expected = reference.twin_groups(graph.edges, graph.num_nodes)
    assert twin_groups(graph.edge_index, graph.num_nodes).tolist() == expected


@FEW
@given(any_graph())
def test_twins_match_loops_on_drawn_graphs(graph):
    assert groups_of(graph.edges, graph.num_nodes) == reference.twin_groups(
        graph.edges, graph.num_nodes
    )


def test_twins_of_planted_graphs():
    # 1 and 2 share the neighbours 0 and 3; 0 and 3 share 1 and 2; 4 is alone.
    square = both_ways([(0, 1), (0, 2), (3, 1), (3, 2)])
    assert groups_of(square, 5) == [0, 1, 1, 0, -1]
    # Joined nodes are in each other's lists, so they are not twins.
    assert groups_of([*square, *both_ways([(1, 2)])], 5) == [0, 1, 2, 0, -1]


def test_twins_of_a_directed_graph_point_at_the_same_nodes():
    assert groups_of([(0, 2), (1, 2), (3, 0)], 4) == [0, 0, -1, 3]
    # Being pointed at by the same nodes does not count.
    assert groups_of([(2, 0), (2, 1), (0, 3)], 4) == [0, -1, 2, -1]


def test_self_loops_and_duplicates_do_not_matter():
    plain = both_ways([(0, 1), (0, 2)])
    assert groups_of([*plain, (1, 1), (1, 0), (1, 0), (3, 3)], 4) == groups_of(plain, 4)
    assert groups_of(plain, 4) == [0, 1, 1, -1]


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 7, 8, 9, 16, 17])
def test_lists_that_differ_in_one_entry_are_told_apart(length):
    """Node 0 has 100, 101, ...; the others the same list, one entry less, more, or other."""
    same = list(range(100, 100 + length))
    lists = [same, same[::-1], same[:-1], [*same, 200], [99, *same]]
    lists += [[*same[:place], 300, *same[place + 1 :]] for place in range(length)]
    edges = [(node, other) for node, others in enumerate(lists) for other in others]
    expected = [0, 0, *range(2, len(lists)), *[-1] * (301 - len(lists))]
    if length == 1:
        expected[2] = -1  # nothing is left of a list of one
    assert groups_of(edges, 301) == expected == reference.twin_groups(edges, 301)


def test_names_of_nodes_do_not_matter():
    draw = torch.Generator().manual_seed(0)
    n = 200
    source, target = (torch.randint(size, (300,), generator=draw) for size in (n, 6))
    edges = torch.stack([source, target])
    groups = twin_groups(edges, n)
    order = torch.randperm(n, generator=draw)  # node p is now order[p]
    shuffled = order[edges][:, torch.randperm(300, generator=draw)]
    renamed = twin_groups(shuffled, n)[order]
    assert len(groups.unique()) < n / 2  # many twins
    assert torch.equal(groups == -1, renamed == -1)
    assert torch.equal(groups[:, None] == groups[None, :], renamed[:, None] == renamed[None, :])


@pytest.mark.parametrize("seed", range(3))
def test_counts_match_loops(seed):
    draw = torch.Generator().manual_seed(seed)
    # 36 leaves on four hubs, and ten edges that spoil at most twenty of them: twins in every draw.
    leaves = torch.stack([torch.arange(4, 40), torch.randint(4, (36,), generator=draw)])
    edges = torch.cat([leaves, torch.randint(40, (2, 10), generator=draw)], dim=1)
    groups = twin_groups(edges, 40)
    among = torch.rand(40, generator=draw) < 0.5
    found = twin_counts(groups, among).tolist()
    for node, group in enumerate(groups.tolist()):
        others = [
            other
            for other in range(40)
            if other != node and among[other] and group >= 0 and group == groups[other]
        ]
        assert found[node] == len(others)
    assert sum(found) > 0


def test_no_nodes():
    nothing = torch.zeros(2, 0, dtype=torch.int64)
    assert twin_groups(nothing, 0).tolist() == []
    assert twin_counts(twin_groups(nothing, 0), torch.zeros(0, dtype=torch.bool)).tolist() == []
