import math
from dataclasses import replace

import networkx
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from argnn import functional as AF
from argnn.analysis import rewire
from argnn.analysis import rewiring as R

from .cases import GRAPHS, edge_tensor, field, neighbor_sets, points


def pair_set(edge_index):
    return {(min(a, b), max(a, b)) for a, b in edge_index.t().tolist()}


def length(h, g, pair):
    a, b = pair
    mean = [(g[a][k] + g[b][k]) / 2 for k in range(len(g[a]))]
    return math.sqrt(sum(m * (h[a][k] - h[b][k]) ** 2 for k, m in enumerate(mean)))


def random_graph(num_nodes=60, seed=0):
    edges = list(networkx.gnm_random_graph(num_nodes, 4 * num_nodes, seed=seed).edges)
    return edge_tensor(edges), points(num_nodes), field(num_nodes)


@st.composite
def graphs(draw):
    num_nodes = draw(st.integers(1, 12))
    node = st.integers(0, num_nodes - 1)
    return num_nodes, draw(st.lists(st.tuples(node, node), max_size=40))


class TestInvariants:
    @given(graphs(), st.integers(0, 3), st.sampled_from([0.0, 0.1]))
    @settings(max_examples=150)
    def test_any_graph_keeps_its_degrees_and_stays_simple(self, graph, seed, tolerance):
        num_nodes, edges = graph
        h, g = points(num_nodes, seed=seed), field(num_nodes, seed=seed)
        found = rewire(h, g, edge_tensor(edges), seed=seed, max_rounds=8, tolerance=tolerance)
        before, after = neighbor_sets(num_nodes, edges), found.edge_index.t().tolist()
        degree = torch.bincount(found.edge_index[1], minlength=num_nodes).tolist()
        assert degree == [len(near) for near in before]
        assert all(a != b for a, b in after)
        assert len({(a, b) for a, b in after}) == len(after)
        assert {(b, a) for a, b in after} == {(a, b) for a, b in after}
        assert found.length_after <= found.length_before
        assert (found.accepted == 0) == (pair_set(found.edge_index) == pair_set_of(before))

    def test_many_swaps_in_one_round_keep_a_dense_graph_simple(self):
        # Two groups far apart, every edge between them: whatever is drawn, every swap that joins
        # two of a group is shorter, and several couples of edges would make the same new edge.
        edge_index = edge_tensor(networkx.complete_bipartite_graph(7, 7).edges)
        h = points(14) + 100 * (torch.arange(14) // 7).unsqueeze(1)
        for rounds in (1, 50):
            found = rewire(h, field(14), edge_index, max_rounds=rounds, tolerance=0.0)
            assert found.accepted > 1
            assert len(pair_set(found.edge_index)) == 49
            assert torch.bincount(found.edge_index[1]).tolist() == [7] * 14

    @pytest.mark.parametrize("name", GRAPHS)
    def test_total_lengths_are_those_of_the_edges(self, name):
        num_nodes, edges = GRAPHS[name]
        h, g = points(num_nodes), field(num_nodes)
        found = rewire(h, g, edge_tensor(edges), tolerance=0.0)
        rows = h.tolist(), g.tolist()
        before = sum(length(*rows, pair) for pair in pair_set_of(neighbor_sets(num_nodes, edges)))
        after = sum(length(*rows, pair) for pair in pair_set(found.edge_index))
        assert found.length_before == pytest.approx(before, rel=1e-10)
        assert found.length_after == pytest.approx(after, rel=1e-10)


def pair_set_of(near):
    return {(a, b) for a, around in enumerate(near) for b in around if a < b}


class TestSwaps:
    def test_two_crossing_edges_are_untangled(self):
        h = torch.tensor([[0.0], [0.1], [5.0], [5.1]])
        crossed = edge_tensor([(0, 2), (1, 3)])
        found = rewire(h, torch.ones(4, 1), crossed, y=torch.tensor([0, 0, 1, 1]), max_rounds=20)
        assert pair_set(found.edge_index) == {(0, 1), (2, 3)}
        assert (found.homophily_before, found.homophily_after) == (0.0, 1.0)
        assert found.length_before == pytest.approx(10)
        assert found.length_after == pytest.approx(0.2)
        assert found.accepted == 1

    def test_the_metric_decides_which_edges_are_short(self):
        # Two ways to join the corners of a square; the axis with the larger metric is longer.
        h = torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
        diagonals = edge_tensor([(0, 1), (2, 3)])
        for g, expected in (([4.0, 1.0], {(0, 2), (1, 3)}), ([1.0, 4.0], {(0, 3), (1, 2)})):
            found = rewire(h, torch.tensor([g] * 4), diagonals, max_rounds=30, tolerance=0.0)
            assert pair_set(found.edge_index) == expected

    def test_both_metrics_count_alike(self):
        h = torch.tensor([[0.0], [1.0]])
        g = torch.tensor([[1.0], [7.0]])
        first, second = torch.tensor([0, 1]), torch.tensor([1, 0])
        assert R.pair_lengths(h, g, first, second).tolist() == pytest.approx([2.0, 2.0])

    def test_chunks_change_nothing(self, monkeypatch):
        edge_index, h, g = random_graph()
        whole = R.pair_lengths(h, g, *edge_index)
        monkeypatch.setattr(R, "_NUMBERS_PER_CHUNK", 30)
        assert torch.equal(R.pair_lengths(h, g, *edge_index), whole)

    def test_no_swap_makes_a_complete_graph_or_a_star_shorter(self):
        for graph in (networkx.complete_graph(6), networkx.star_graph(5)):
            edge_index = edge_tensor(graph.edges)
            found = rewire(points(6), field(6), edge_index)
            assert found.accepted == 0
            assert (found.rounds, found.settled) == (10, True)
            assert pair_set(found.edge_index) == pair_set(edge_index)

    def test_classes_that_lie_apart_are_separated(self):
        edge_index, _, g = random_graph()
        y = torch.arange(60) % 2
        h = points(60, seed=5) + 20 * y.unsqueeze(1)
        found = rewire(h, g, edge_index, y=y, tolerance=0.0)
        assert found.homophily_before == AF.edge_homophily(edge_index, y) < 0.6
        assert found.homophily_after == AF.edge_homophily(found.edge_index, y) > 0.9


class TestStopping:
    def test_the_same_seed_gives_the_same_graph_and_another_seed_another(self):
        edge_index, h, g = random_graph()
        first, again, other = (rewire(h, g, edge_index, seed=seed) for seed in (1, 1, 2))
        assert torch.equal(first.edge_index, again.edge_index)
        same = replace(again, edge_index=first.edge_index, homophily_before=0, homophily_after=0)
        assert same == replace(first, homophily_before=0, homophily_after=0)
        assert not torch.equal(first.edge_index, other.edge_index)

    def test_rounds_and_tries_are_counted(self):
        edge_index, h, g = random_graph()
        found = rewire(h, g, edge_index, max_rounds=3, tolerance=0.0)
        assert (found.rounds, found.tried, found.settled) == (3, 3 * 120, False)
        assert 0 < found.accepted <= found.tried

    def test_it_settles_when_few_swaps_are_accepted(self):
        edge_index, h, g = random_graph()
        rough = rewire(h, g, edge_index, max_rounds=1000, tolerance=0.1)
        fine = rewire(h, g, edge_index, max_rounds=1000, tolerance=0.0)
        assert rough.settled
        assert fine.settled
        assert rough.rounds < fine.rounds < 1000
        assert fine.length_after < rough.length_after

    def test_no_rounds_change_nothing(self):
        edge_index, h, g = random_graph()
        found = rewire(h, g, edge_index, max_rounds=0)
        assert pair_set(found.edge_index) == pair_set(edge_index)
        assert found.length_after == found.length_before
        assert not found.settled

    def test_without_labels_homophily_is_missing(self):
        edge_index, h, g = random_graph()
        found = rewire(h, g, edge_index, max_rounds=1)
        assert math.isnan(found.homophily_before)
        assert math.isnan(found.homophily_after)

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"max_rounds": -1}, r"max_rounds must not be negative \(got -1\)"),
            ({"tolerance": 1.0}, r"tolerance must be in \[0, 1\) \(got 1.0\)"),
            ({"patience": 0}, r"patience must be positive \(got 0\)"),
        ],
    )
    def test_impossible_settings_are_refused(self, options, message):
        with pytest.raises(ValueError, match=message):
            rewire(points(2), field(2), edge_tensor([(0, 1)]), **options)
