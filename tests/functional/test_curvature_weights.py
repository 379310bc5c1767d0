import math

import pytest
import torch
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from argnn.functional import ollivier, ollivier_ricci
from argnn.functional.curvature_weights import (
    MAX_DROP_CHANCE,
    cusp_adjacency,
    cusp_weight,
    drop_chance,
    kept_edges,
)
from argnn.functional.edge_values import ordered_edges

from .cases import GRAPHS, UNDIRECTED, Graph, both_ways, edge_tensor, every_graph

TABLE = [(-0.6, 0.535), (0.0, 0.368), (0.25, 0.264), (0.5, 0.135), (0.75, 0.018), (1.0, 0.0)]


@pytest.mark.parametrize(("curvature", "weight"), TABLE)
def test_cusp_weight_of_known_curvatures(curvature, weight):
    found = cusp_weight(torch.tensor(curvature, dtype=torch.float64)).item()
    assert found == pytest.approx(weight, abs=5e-4)


def test_cusp_weight_falls_with_curvature_and_is_finite_at_one():
    curvature = torch.linspace(-2, 1, 301, dtype=torch.float64)
    weight = cusp_weight(curvature)
    assert (weight.diff() <= 0).all()
    assert weight[-1] == 0
    assert cusp_weight(torch.tensor(1 + 1e-12)) == 0


def dense(weight, edge_index, num_nodes):
    edges = ordered_edges(edge_index, num_nodes, closed=True)
    out = torch.zeros(num_nodes, num_nodes, dtype=weight.dtype)
    return out.index_put((edges.target, edges.source), weight, accumulate=True)


@pytest.mark.parametrize("n", [6, 9])
def test_cusp_adjacency_of_a_cycle(n):
    edges = edge_tensor(both_ways((a, (a + 1) % n) for a in range(n)))
    found = dense(cusp_adjacency(edges, n, torch.float64, "exact"), edges, n)
    w = math.exp(-1)
    expected = torch.zeros(n, n, dtype=torch.float64)
    for a in range(n):
        expected[a, a] = 1 / (1 + 2 * w)
        expected[a, (a + 1) % n] = expected[(a + 1) % n, a] = w / (1 + 2 * w)
    torch.testing.assert_close(found, expected)


@every_graph
def test_cusp_adjacency_is_that_of_pyg(graph):
    edges = graph.edge_index
    n = graph.num_nodes
    proper = edges[:, edges[0] != edges[1]]
    weight = cusp_weight(ollivier_ricci(proper, n))
    index, norm = gcn_norm(proper, weight, n, dtype=torch.float64)
    expected = torch.zeros(n, n, dtype=torch.float64)
    expected.index_put_((index[1], index[0]), norm, accumulate=True)
    found = cusp_adjacency(edges, n, torch.float64, "exact")
    torch.testing.assert_close(dense(found, edges, n), expected)


def test_cusp_adjacency_is_kept_by_dtype_and_method():
    edges = UNDIRECTED[0].edge_index
    one = cusp_adjacency(edges, 10, torch.float32, "exact")
    assert cusp_adjacency(edges, 10, torch.float32, "exact") is one
    assert cusp_adjacency(edges, 10, torch.float64, "exact").dtype == torch.float64
    assert not torch.equal(cusp_adjacency(edges, 10, torch.float32, "bounds"), one)


def test_drop_chance_has_the_rate_as_mean_and_spares_the_lowest():
    curvature = torch.linspace(-1, 0.5, 31, dtype=torch.float64)
    chance = drop_chance(curvature, 0.4)
    assert chance.mean().item() == pytest.approx(0.4)
    assert chance[0] == 0
    assert (chance.diff() > 0).all()
    turned = drop_chance(curvature, 0.4, drop_negative=True)
    torch.testing.assert_close(turned, chance.flip(0))


def test_drop_chance_is_limited():
    curvature = torch.tensor([-1.0] * 9 + [1.0], dtype=torch.float64)
    assert drop_chance(curvature, 0.5).tolist() == [0.0] * 9 + [MAX_DROP_CHANCE]


@pytest.mark.parametrize("drop_negative", [False, True])
def test_drop_chance_of_equal_curvatures_is_the_rate(drop_negative):
    noise = torch.tensor([0.0, 1e-15, -1e-15], dtype=torch.float64)
    assert drop_chance(0.25 + noise, 0.3, drop_negative).tolist() == [0.3] * 3
    assert drop_chance(noise[:0], 0.3, drop_negative).numel() == 0


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_kept_edges_are_the_same_in_both_directions(graph):
    n = graph.num_nodes
    pairs = ollivier.pair_curvature(graph.edge_index, n).numel()
    torch.manual_seed(0)
    kept = kept_edges(graph.edge_index, n, torch.full((pairs,), 0.5), torch.float32)
    edges = ordered_edges(graph.edge_index, n, closed=True)
    seen = {}
    for source, target, value in zip(
        edges.source.tolist(), edges.target.tolist(), kept.tolist(), strict=True
    ):
        assert value in ((1.0,) if source == target else (0.0, 1.0))
        assert seen.setdefault(frozenset((source, target)), value) == value


def test_kept_edges_follow_the_chances_and_the_seed():
    n = 400
    path = Graph("path", n, both_ways((a, a + 1) for a in range(n - 1)))
    edges = path.edge_index
    chance = torch.zeros(n - 1, dtype=torch.float64)
    chance[1::2] = 0.8
    low = torch.minimum(*_closed(edges, n))
    torch.manual_seed(0)
    draws = [kept_edges(edges, n, chance, torch.float64) for _ in range(20)]
    kept = torch.stack(draws).mean(0)
    loops = torch.eq(*_closed(edges, n))
    assert (kept[loops] == 1).all()
    assert (kept[~loops & (low % 2 == 0)] == 1).all()
    assert kept[~loops & (low % 2 == 1)].mean().item() == pytest.approx(0.2, abs=0.02)
    assert not torch.equal(draws[0], draws[1])
    torch.manual_seed(0)
    assert torch.equal(kept_edges(edges, n, chance, torch.float64), draws[0])


def _closed(edge_index, num_nodes):
    edges = ordered_edges(edge_index, num_nodes, closed=True)
    return edges.source, edges.target
