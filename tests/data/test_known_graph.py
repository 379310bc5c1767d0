"""The part of a known graph around new nodes."""

import pytest
import torch
from torch_geometric.data import Data

from argnn.data import load
from argnn.data.known_graph import KnownGraph
from argnn.errors import DataError

#: 0 - 1 - 2 - 3 - 4, and the features are the row numbers.
PATH = Data(x=torch.arange(5.0).view(5, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 4]]))


def part(edges, hops, directed=False, new=1):
    x = torch.arange(5.0, 5.0 + new).view(new, 1)
    known = KnownGraph(load(PATH, directed=directed))
    return known.part(x, torch.tensor(edges, dtype=torch.int64).view(-1, 2).t(), hops)


def edges_of(graph: Data) -> set[tuple[int, int]]:
    """By the numbers of nodes in the joined graph, which are their features."""
    names = graph.x.flatten().long()
    return set(map(tuple, names[graph.edge_index].t().tolist()))


@pytest.mark.parametrize(
    ("hops", "nodes"), [(0, [5]), (1, [2, 5]), (2, [1, 2, 3, 5]), (9, [0, 1, 2, 3, 4, 5])]
)
def test_nodes_within_some_hops(hops, nodes):
    found = part([(5, 2)], hops)
    assert found.x.flatten().tolist() == nodes
    assert found.x[found.wanted].tolist() == [[5]]
    assert (found.edge_index >= 0).all()


def test_none_takes_the_whole_graph():
    found = part([(5, 2)], None)
    assert found.num_nodes == 6
    assert found.edge_index.size(1) == 10


def test_edges_and_degrees_are_those_of_the_joined_graph():
    found = part([(5, 2), (2, 5), (5, 5)], 2)
    assert edges_of(found) == {(1, 2), (2, 1), (2, 3), (3, 2), (2, 5), (5, 2)}
    for name in ("degree", "out_degree", "neighbors"):
        assert found[name].tolist() == [2, 3, 2, 1]


def test_directions():
    found = part([(2, 5), (5, 3), (3, 5)], 1, directed=True)
    assert edges_of(found) == {(2, 3), (2, 5), (5, 3), (3, 5)}
    assert found.degree.tolist() == [1, 2, 2]
    assert found.out_degree.tolist() == [2, 2, 1]
    assert found.neighbors.tolist() == [3, 3, 2]


def test_an_edge_that_turns_around_is_no_new_neighbor():
    found = part([(5, 2), (3, 2), (2, 3)], 2, directed=True)
    assert found.x.flatten().tolist() == [1, 2, 3, 5]
    assert found.degree.tolist() == [1, 3, 1, 0]
    assert found.neighbors.tolist() == [2, 3, 2, 1]


def test_new_edges_between_known_nodes_are_a_way_and_may_be_far():
    found = part([(5, 0), (0, 4), (1, 0)], 2)
    assert found.x.flatten().tolist() == [0, 1, 4, 5]
    assert found.degree.tolist() == [3, 2, 2, 1]
    assert part([(5, 0), (3, 1)], 1).x.flatten().tolist() == [0, 5]


def test_new_nodes_that_know_only_each_other():
    found = part([(5, 6)], 3, new=3)
    assert edges_of(found) == {(5, 6), (6, 5)}
    assert found.degree.tolist() == [1, 1, 0]
    assert found.wanted.tolist() == [0, 1, 2]


def weighted_path() -> Data:
    graph = Data(x=PATH.x, edge_index=PATH.edge_index, edge_weight=torch.tensor([2.0, 3, 4, 5]))
    return load(graph, weight="edge_weight")


def test_weights_are_those_of_the_joined_graph():
    known = KnownGraph(weighted_path())
    edges, weight = torch.tensor([[5, 2], [2, 5], [3, 2]]).t(), torch.tensor([1.0, 8, 4])
    found = known.part(torch.tensor([[5.0]]), edges, 1, weight)
    names = found.x.flatten().long()[found.edge_index].t().tolist()
    both = {tuple(ends): w for ends, w in zip(names, found.edge_weight.tolist(), strict=True)}
    assert both == {(2, 5): 4.5, (5, 2): 4.5}  # the mean of both directions
    for name in ("degree", "out_degree", "neighbors"):
        assert found[name].tolist() == [3 + 4 + 4.5, 4.5]


def test_of_two_directions_the_larger_weight_counts_for_neighbors():
    graph = Data(x=PATH.x, edge_index=PATH.edge_index, edge_weight=torch.tensor([2.0, 3, 4, 5]))
    known = KnownGraph(load(graph, weight="edge_weight", directed=True))
    edges, weight = torch.tensor([[5, 2], [2, 1], [3, 2]]).t(), torch.tensor([1.0, 1, 7])
    found = known.part(torch.tensor([[5.0]]), edges, 2, weight)
    assert found.x.flatten().tolist() == [1, 2, 3, 5]
    assert found.degree.tolist() == [2 + 1, 3 + 1 + 7, 4, 0]
    assert found.out_degree.tolist() == [3, 4 + 1, 5 + 7, 1]
    assert found.neighbors.tolist() == [2 + 3, 3 + 7 + 1, 7 + 5, 1]


def test_an_edge_that_is_there_keeps_its_weight():
    known, x = KnownGraph(weighted_path()), torch.tensor([[5.0]])
    edges = torch.tensor([[1, 2], [2, 5]]).t()
    assert known.part(x, edges, 1, torch.tensor([3.0, 1])).degree.tolist() == [3 + 4 + 1, 1]
    with pytest.raises(DataError) as refused:
        known.part(x, edges, 1, torch.tensor([2.5, 1]))
    assert str(refused.value) == (
        "new edges: the graph has the edge from 1 to 2 already, with the weight 3 (got 2.5)"
    )
