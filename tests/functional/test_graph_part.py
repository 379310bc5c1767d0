"""A part of a graph, with degrees that are counted in the whole graph."""

import pytest
import torch

from argnn import functional as AF
from argnn.functional.graph_part import GraphPart, WholeDegrees
from argnn.functional.neighborhood import neighborhood

#: A triangle 0, 1, 2 that hangs on 3, which points at 4.
EDGES = torch.tensor([[0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 4]])


def first_four():
    """The graph without node 4, whose edge node 3 still counts."""
    whole = neighborhood(EDGES, 5)
    both = whole.relation("undirected").degree
    degrees = (degree[:4] for degree in (whole.degree, whole.out_degree, both))
    return whole, GraphPart(EDGES[:, :-1], WholeDegrees(*degrees))


def test_degrees_of_every_relation():
    whole, part = first_four()
    for direction in ("in", "out", "undirected"):
        expected, found = whole.relation(direction), part.relation(direction)
        assert found.degree.tolist() == expected.degree[:4].tolist()
        assert found.out_degree.tolist() == expected.out_degree[:4].tolist()


@pytest.mark.parametrize("normalization", ["sum", "sym", "rw"])
@pytest.mark.parametrize("direction", ["in", "out", "undirected"])
def test_sums_at_nodes_with_all_their_edges(normalization, direction):
    whole, part = first_four()
    x = torch.arange(10.0).view(5, 2)
    expected = AF.aggregate(x, whole.relation(direction), normalization)
    found = AF.aggregate(x[:4], part.relation(direction), normalization)
    torch.testing.assert_close(found[:3], expected[:3])


def test_structural_descriptor_at_nodes_with_all_their_edges():
    whole, part = first_four()
    expected = AF.structural_descriptor(whole, 5)
    torch.testing.assert_close(AF.structural_descriptor(part, 4)[:3], expected[:3])
    alone = AF.structural_descriptor(EDGES[:, :-1], 4)
    assert not torch.allclose(alone[:3], expected[:3])  # node 2 has a neighbour of other degree


def test_a_part_that_has_no_directions_only_by_chance():
    whole, _ = first_four()
    both = whole.relation("undirected").degree
    degrees = (degree[:3] for degree in (whole.degree, whole.out_degree, both))
    part = GraphPart(EDGES[:, :6], WholeDegrees(*degrees))
    assert part.degree.tolist() == [2, 2, 2]
    assert part.relation("out").degree.tolist() == [2, 2, 3]
    assert part.relation("undirected").degree.tolist() == [2, 2, 3]
