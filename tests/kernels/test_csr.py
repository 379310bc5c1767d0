from itertools import pairwise

import pytest
import torch
from hypothesis import given

from argnn.kernels import csr as csr_module
from argnn.kernels.csr import Csr
from functional.cases import FEW, Graph, any_graph, edge_tensor, every_graph

HUB = Graph("hub", 20, tuple((j, 7) for j in range(20)) * 9 + ((7, 3), (3, 19)))
EMPTY = Graph("empty", 0, ())


def matrices(graph):
    source, target = graph.edge_index
    return Csr.pair(source, target, graph.num_nodes)


def rows(csr):
    """The columns of each row."""
    return [csr.column[a:b].tolist() for a, b in pairwise(csr.rowptr.tolist())]


def entries(csr):
    """Row and column of each entry."""
    return [(i, j) for i, columns in enumerate(rows(csr)) for j in columns]


class TestPair:
    def check(self, graph):
        forward, back = matrices(graph)
        nodes = range(graph.num_nodes)
        assert rows(forward) == [sorted(j for j, i in graph.edges if i == node) for node in nodes]
        assert rows(back) == [sorted(i for j, i in graph.edges if j == node) for node in nodes]
        assert forward.edge is None
        assert sorted(back.edge.tolist()) == list(range(len(graph.edges)))
        listed = entries(forward)
        assert [listed[e] for e in back.edge.tolist()] == [(i, j) for j, i in entries(back)]
        for csr in (forward, back):
            assert (csr.num_rows, csr.num_entries) == (graph.num_nodes, len(graph.edges))
            assert (csr.rowptr.dtype, csr.column.dtype) == (torch.int64, torch.int32)

    @every_graph
    def test_pair_matches_loops(self, graph):
        self.check(graph)

    @given(graph=any_graph())
    @FEW
    def test_pair_matches_loops_on_drawn_graphs(self, graph):
        self.check(graph)

    @pytest.mark.parametrize("graph", [HUB, EMPTY], ids=lambda graph: graph.name)
    def test_pair_matches_loops_on_extreme_graphs(self, graph):
        self.check(graph)

    def test_pair_does_not_depend_on_the_order_of_the_edges(self):
        shuffled = Graph("shuffled", HUB.num_nodes, HUB.edges[::-1])
        for one, other in zip(matrices(HUB), matrices(shuffled), strict=True):
            assert torch.equal(one.rowptr, other.rowptr)
            assert torch.equal(one.column, other.column)

    def test_transpose_of_duplicates_names_each_of_them_once(self):
        _, back = matrices(Graph("twice", 2, ((0, 1), (0, 1))))
        assert back.edge.tolist() == [0, 1]


class TestSegments:
    def check(self, graph, longest):
        for csr in matrices(graph):
            segments = csr.segments
            pieces = list(
                zip(
                    segments.row.tolist(),
                    segments.start.tolist(),
                    segments.stop.tolist(),
                    segments.slot.tolist(),
                    strict=True,
                )
            )
            covered = [e for _, start, stop, _ in pieces for e in range(start, stop)]
            assert covered == list(range(csr.num_entries))
            assert all(0 <= stop - start <= longest for _, start, stop, _ in pieces)
            bounds = csr.rowptr.tolist()
            assert all(bounds[r] <= start <= stop <= bounds[r + 1] for r, start, stop, _ in pieces)
            assert sorted({row for row, *_ in pieces}) == list(range(csr.num_rows))
            self.check_slots(csr, pieces, longest)

    def check_slots(self, csr, pieces, longest):
        segments = csr.segments
        degree = csr.rowptr.diff().tolist()
        long_rows = [row for row, size in enumerate(degree) if size > longest]
        assert segments.split_row.tolist() == long_rows
        slots = [slot for *_, slot in pieces if slot >= 0]
        assert slots == list(range(segments.num_slots))
        first = segments.split_slot.tolist()
        assert (first[0], first[-1], len(first)) == (0, segments.num_slots, len(long_rows) + 1)
        for row, start, stop in zip(long_rows, first[:-1], first[1:], strict=True):
            assert [slot for r, *_, slot in pieces if r == row] == list(range(start, stop))
            assert stop - start == -(-degree[row] // longest)
        assert all((slot >= 0) == (row in long_rows) for row, *_, slot in pieces)

    @pytest.mark.parametrize("longest", [1, 2, 3, 8])
    @given(graph=any_graph())
    @FEW
    def test_segments_cover_every_entry_once(self, longest, graph):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(csr_module, "MAX_SEGMENT", longest)
            self.check(graph, longest)

    @pytest.mark.parametrize("longest", [1, 10, 180, 179])
    @pytest.mark.parametrize("graph", [HUB, EMPTY], ids=lambda graph: graph.name)
    def test_segments_of_extreme_graphs(self, graph, longest, monkeypatch):
        monkeypatch.setattr(csr_module, "MAX_SEGMENT", longest)
        self.check(graph, longest)

    def test_short_rows_are_not_split(self):
        segments = matrices(HUB)[0].segments
        assert segments.num_slots == 0
        assert segments.split_row.numel() == 0
        assert (segments.slot == -1).all()
        assert segments.row.tolist() == list(range(HUB.num_nodes))

    def test_segments_have_the_types_that_programs_read(self):
        segments = matrices(HUB)[0].segments
        for tensor in (segments.row, segments.slot, segments.split_row, segments.split_slot):
            assert tensor.dtype == torch.int32
        assert segments.start.dtype == segments.stop.dtype == torch.int64


class TestParts:
    def check(self, graph, count):
        for csr in matrices(graph):
            bounds = csr.parts(count).tolist()
            assert len(bounds) == count + 1
            assert (bounds[0], bounds[-1]) == (0, csr.num_rows)
            assert bounds == sorted(bounds)
            work = [len(columns) + csr_module._ROW_COST for columns in rows(csr)]
            share = sum(work) / count + max(work, default=0)
            assert all(sum(work[a:b]) <= share for a, b in pairwise(bounds))

    @pytest.mark.parametrize("count", [1, 2, 8])
    @given(graph=any_graph())
    @FEW
    def test_parts_cover_the_rows_with_balanced_work(self, count, graph):
        self.check(graph, count)

    @pytest.mark.parametrize("count", [1, 3, 8, 100])
    @pytest.mark.parametrize("graph", [HUB, EMPTY], ids=lambda graph: graph.name)
    def test_parts_of_extreme_graphs(self, graph, count):
        self.check(graph, count)

    def test_a_hub_does_not_share_its_part_with_half_of_the_rows(self):
        # By number of rows the first of two parts would hold nearly all of the work.
        hub_first = Graph("hub first", 20, tuple((j, 0) for j in range(20)) * 30)
        assert matrices(hub_first)[0].parts(2).tolist()[1] == 1


@pytest.mark.parametrize("num_nodes", [0, 1, 5])
def test_graphs_without_edges_have_empty_rows(num_nodes):
    source, target = edge_tensor([])
    for csr in Csr.pair(source, target, num_nodes):
        assert csr.rowptr.tolist() == [0] * (num_nodes + 1)
        assert (csr.num_rows, csr.num_entries) == (num_nodes, 0)
        assert csr.segments.row.numel() == num_nodes
        assert csr.segments.num_slots == 0
