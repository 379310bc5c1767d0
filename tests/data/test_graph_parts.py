"""Parts of a graph compute for their own nodes what the whole graph computes."""

import numpy as np
import pytest
import torch
from torch_geometric.utils import coalesce, to_undirected

from argnn import functional as AF
from argnn.data.adjacency import Adjacency
from argnn.data.graph_parts import GraphParts
from argnn.functional.neighborhood import neighborhood
from argnn.nn import ARGNN, MagnitudeRegularizer

NODES = 60


def random_graph(*, directed: bool, weighted: bool):
    """Edges without self-loops and duplicates, and perhaps weights."""
    torch.manual_seed(0)
    edges = torch.randint(NODES, (2, 150))
    edges = edges[:, edges[0] != edges[1]]
    edges = coalesce(edges) if directed else to_undirected(edges)
    weight = None
    if weighted:
        weight = torch.rand(edges.size(1)) + 0.5
        if not directed:
            weight = to_undirected(edges, weight, reduce="mean")[1]
    return edges, weight


def hood_and_parts(directed: bool, weighted: bool):
    edges, weight = random_graph(directed=directed, weighted=weighted)
    parts = GraphParts(torch.randn(NODES, 8), Adjacency.from_edges(edges, NODES, weight))
    return neighborhood(edges, NODES, weight), parts


every_kind = pytest.mark.parametrize(
    ("directed", "weighted"), [(False, False), (True, False), (False, True), (True, True)]
)
#: Three parts of all nodes, not in one run.
OWN = [np.arange(first, NODES, 3) for first in range(3)]


@every_kind
def test_adjacency_has_the_degrees_and_descriptor_of_the_graph(directed, weighted):
    hood, parts = hood_and_parts(directed, weighted)
    degrees, both = parts.adjacency.degrees, hood.relation("undirected")
    torch.testing.assert_close(degrees.into, hood.weighted_degree)
    torch.testing.assert_close(degrees.out, hood.weighted_out_degree)
    torch.testing.assert_close(degrees.both, both.weighted_degree)
    assert parts.adjacency.num_pairs == pytest.approx(float(both.pair_total), rel=1e-6)
    torch.testing.assert_close(parts.adjacency.descriptor, AF.structural_descriptor(hood, NODES))


@every_kind
@pytest.mark.parametrize("how", ["around", "with_halo"])
@pytest.mark.parametrize("normalization", ["sum", "sym", "rw"])
@pytest.mark.parametrize("direction", ["in", "out", "undirected"])
def test_sums_at_own_nodes(directed, weighted, how, normalization, direction):
    hood, parts = hood_and_parts(directed, weighted)
    expected = AF.aggregate(parts.x, hood.relation(direction), normalization)
    for own in OWN:
        part = cut(parts, own, how)
        found = AF.aggregate(parts.features(part), part.relation(direction), normalization)
        torch.testing.assert_close(found[: len(own)], expected[own])


def cut(parts: GraphParts, own, how: str):
    if how == "around":
        return parts.around(own, 1)
    return parts.with_halo(own, parts.halo_of(own), exchange=None)


@every_kind
@pytest.mark.parametrize("how", ["around", "with_halo"])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("energy", [AF.ricci_energy, AF.smoothness_energy, "magnitude"])
def test_the_energies_of_all_parts_add_up_to_that_of_the_graph(
    directed, weighted, how, reduction, energy
):
    hood, parts = hood_and_parts(directed, weighted)
    if energy == "magnitude":
        penalty = MagnitudeRegularizer(1.0, reduction=reduction)

        def energy(g, edges, reduction):
            return penalty.energy(g, edges)

    g = torch.rand(NODES, 4, dtype=torch.float64)
    both = hood.relation("undirected")
    shares = []
    for own in OWN:
        part = cut(parts, own, how)
        shares.append(energy(g[part.place.nodes], part.relation("undirected"), reduction))
    torch.testing.assert_close(sum(shares), energy(g, both, reduction))


@every_kind
@pytest.mark.parametrize("preset", ["default", "paper", "reference"])
def test_scores_within_reach_are_those_of_the_graph(directed, weighted, preset):
    hood, parts = hood_and_parts(directed, weighted)
    torch.manual_seed(1)
    model = ARGNN(8, 16, 3, num_layers=2, preset=preset, metric_spread=1.0).eval()
    model.fit_to_graph(parts.all_nodes, NODES)
    fitted = model.state_dict()
    expected, metrics = model.forward_with_metric(parts.x, hood)
    model.fit_to_graph(hood, NODES)
    torch.testing.assert_close(model.state_dict(), fitted)
    own = np.array([3, 40])
    part = parts.around(own, model.reach_with_degrees())
    found, parts_of_metrics = model.forward_with_metric(parts.features(part), part)
    torch.testing.assert_close(found[:2], expected[own], rtol=1e-5, atol=1e-5)
    for g, whole in zip(parts_of_metrics, metrics, strict=True):
        torch.testing.assert_close(g[:2], whole[own], rtol=1e-5, atol=1e-5)


def test_without_halo_degrees_count_only_what_is_there():
    hood, parts = hood_and_parts(False, False)
    part = parts.around(OWN[0], 0)
    assert part.num_nodes == part.num_own == len(OWN[0])
    inside = np.isin(hood.edge_index.numpy(), OWN[0]).all(0)
    assert part.num_edges == inside.sum() > 0
    assert int(part.degree.sum()) == part.num_edges
    torch.testing.assert_close(parts.features(part), parts.x[OWN[0]])


def test_rows_of_the_adjacency_matrix_in_a_part():
    hood, parts = hood_and_parts(False, False)
    torch.manual_seed(1)
    model = ARGNN(8, 16, 3, num_layers=1, adjacency_rows=True, metric="fixed").eval()
    model.fit_to_graph(hood, NODES)
    expected = model.rows(hood, NODES)
    for own in OWN:
        part = parts.around(own, 1)
        found = model.rows(part, part.num_nodes)
        torch.testing.assert_close(found[: len(own)], expected[own])


@pytest.mark.parametrize("directed", [False, True])
def test_twins_are_those_of_the_edge_list(directed):
    pairs = [(0, 10), (0, 11), (1, 10), (1, 11), (2, 10), (3, 4), (5, 4), (6, 7)]
    edges = coalesce(torch.tensor(pairs).T)
    edges = edges if directed else to_undirected(edges)
    expected = AF.twin_groups(edges, 14)
    assert expected[[1, 5]].tolist() == [0, 3]
    found = Adjacency.from_edges(edges, 14).twin_groups()
    assert found.tolist() == expected.tolist()
    assert Adjacency.from_edges(edges[:, :0], 3).twin_groups().tolist() == [-1, -1, -1]
