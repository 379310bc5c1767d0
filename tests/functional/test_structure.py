import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import reference
from argnn.functional import neighborhood as NB
from argnn.functional import structure as ST

from .cases import (
    FEW,
    GRAPHS,
    UNDIRECTED,
    any_graph,
    assert_matches,
    assert_permutation_equivariant,
    both_ways,
    edge_tensor,
    every_graph,
)


@every_graph
def test_clustering_matches_loops(graph):
    found = ST.clustering_coefficient(graph.edge_index, graph.num_nodes)
    assert_matches(found, reference.clustering_coefficient(graph.edges, graph.num_nodes))
    assert_matches(found, reference.networkx_clustering(graph.edges, graph.num_nodes))


@given(graph=any_graph())
@FEW
def test_clustering_of_any_graph_matches_networkx(graph):
    found = ST.clustering_coefficient(graph.edge_index, graph.num_nodes)
    assert_matches(found, reference.networkx_clustering(graph.edges, graph.num_nodes))


@pytest.mark.parametrize("walks", [1, 3, 10, 1000])
def test_clustering_does_not_depend_on_the_chunks(monkeypatch, walks):
    monkeypatch.setattr(ST, "_WALKS_PER_CHUNK", walks)
    for graph in (UNDIRECTED[0], UNDIRECTED[3], GRAPHS[0]):
        found = ST.clustering_coefficient(graph.edge_index, graph.num_nodes)
        assert_matches(found, reference.clustering_coefficient(graph.edges, graph.num_nodes))


def test_clustering_of_known_graphs():
    star, path, complete = UNDIRECTED[1:4]
    assert not ST.clustering_coefficient(star.edge_index, 6).any()
    assert not ST.clustering_coefficient(path.edge_index, 5).any()
    assert ST.clustering_coefficient(complete.edge_index, 5).tolist() == [1.0] * 5


def test_triangles_of_a_complete_graph():
    hood = NB.neighborhood(UNDIRECTED[3].edge_index, 5)
    assert ST.triangles(hood).tolist() == [6.0] * 5


def test_clustering_ignores_direction_duplicates_and_self_loops():
    one_way = edge_tensor([(0, 1), (1, 2), (0, 2), (2, 3)])
    messy = edge_tensor([(1, 0), (0, 1), (1, 2), (1, 2), (2, 0), (3, 2), (3, 3), (0, 0)])
    expected = [1.0, 1.0, 1 / 3, 0.0]
    for edges in (one_way, messy):
        assert_matches(ST.clustering_coefficient(edges, 4), expected)


@every_graph
def test_descriptor_matches_loops(graph):
    found = ST.structural_descriptor(graph.edge_index, graph.num_nodes)
    assert found.dtype == torch.float64
    assert_matches(found.t(), reference.structural_columns(graph.edges, graph.num_nodes))


def own_standard(edge_index, num_nodes):
    """The descriptor by means and deviations of the same graph."""
    s = ST.structural_descriptor(edge_index, num_nodes)
    return ST.standardized(s, *ST.column_statistics(s))


@every_graph
def test_descriptor_columns_can_be_standardised(graph):
    found = own_standard(graph.edge_index, graph.num_nodes)
    assert found.isfinite().all()
    assert_matches(found, reference.structural_descriptor(graph.edges, graph.num_nodes))
    torch.testing.assert_close(found.mean(0), torch.zeros(5).double(), rtol=0, atol=1e-9)
    for value in found.square().mean(0).tolist():
        assert value == pytest.approx(1, abs=1e-9) or value == 0


def test_standard_of_one_graph_is_applied_to_another():
    values = torch.tensor([[1.0, 5.0, 2.0], [3.0, 5.0, 8.0]])
    mean, deviation = torch.tensor([2.0, 4.0, 5.0]), torch.tensor([2.0, 0.0, 3.0])
    expected = [[-0.5, 0.0, -1.0], [0.5, 0.0, 1.0]]
    assert ST.standardized(values, mean, deviation).tolist() == expected


def test_standardised_descriptor_of_a_regular_graph_is_zero():
    cycle = edge_tensor(both_ways((a, (a + 1) % 6) for a in range(6)))
    assert not own_standard(cycle, 6).any()


def test_descriptor_has_a_name_for_every_column():
    assert len(ST.DESCRIPTOR_NAMES) == ST.NUM_DESCRIPTORS == 5


def test_descriptor_tells_edges_in_from_edges_out():
    hub_sends = edge_tensor([(0, 1), (0, 2), (0, 3)])
    found = dict(zip(ST.DESCRIPTOR_NAMES, ST.structural_descriptor(hub_sends, 4).t(), strict=True))
    assert found["log_out"].argmax() == 0
    assert found["log_in"].argmin() == 0
    assert found["log_degree"].argmax() == 0


def test_descriptor_is_prepared_once(monkeypatch):
    edges = UNDIRECTED[0].edge_index
    first = ST.structural_descriptor(edges, 10)
    expected = first.clone()
    monkeypatch.setattr(ST, "_descriptor", None)  # must not be called again
    assert torch.equal(ST.structural_descriptor(edges, 10), expected)
    first.zero_()  # what a caller writes into its copy is nobody else's concern
    assert torch.equal(ST.structural_descriptor(edges, 10), expected)


@given(graph=any_graph(), seed=st.integers(0, 1000))
@FEW
def test_descriptor_follows_renamed_nodes_and_shuffled_edges(graph, seed):
    assert_permutation_equivariant(
        lambda h, g, e: ST.structural_descriptor(e, h.size(0)), graph, seed
    )
    assert_permutation_equivariant(
        lambda h, g, e: ST.clustering_coefficient(e, h.size(0)), graph, seed
    )


@pytest.mark.parametrize("function", [ST.clustering_coefficient, ST.structural_descriptor])
def test_structure_checks_the_edges(function):
    with pytest.raises(ValueError, match="edge_index names node 4, but nodes are 0 to 1"):
        function(edge_tensor([(0, 4)]), 2)


@pytest.mark.parametrize("function", [ST.clustering_coefficient, ST.structural_descriptor])
def test_structure_of_no_nodes_is_empty(function):
    assert function(edge_tensor([]), 0).size(0) == 0
