"""Edges that come part by part are sorted in little memory, as if they had come at once."""

import numpy as np
import pytest
import torch

from argnn.data.adjacency import Adjacency
from argnn.data.assemble import merged_edges
from argnn.data.graph_store.writing import StoreWriter


def same(found, expected):
    assert (found is None) == (expected is None)
    if found is not None:
        for one, two in zip(found, expected, strict=True):
            assert (one is None) == (two is None)
            assert one is None or np.asarray(one).tobytes() == two.tobytes()


def mean_weights(ends, weight, edges, directed):
    """The mean of the weights of equal edges, in float64; PyG's depends on their order."""
    lists: dict[tuple[int, int], list[float]] = {}
    for source, target, value in zip(*ends.tolist(), weight.tolist(), strict=True):
        lists.setdefault((source, target), []).append(value)
        if not directed:
            lists.setdefault((target, source), []).append(value)
    means = [sum(lists[pair]) / len(lists[pair]) for pair in zip(*edges.tolist(), strict=True)]
    return torch.tensor(means)


@pytest.mark.parametrize("memory", [1, 2000, 1 << 20])
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_edges_are_those_of_a_sort_in_memory(tmp_path, directed, weighted, timed, memory):
    rng = np.random.default_rng(0)
    nodes, count = 60, 900  # many duplicates; and node 7 has many edges
    ends = rng.integers(0, nodes, size=(2, count))
    ends[0, rng.random(count) < 0.3] = 7
    weight = rng.random(count, dtype=np.float32) if weighted else None
    time = rng.integers(0, 50, size=count).astype(np.float64) if timed else None
    edges, w, t = merged_edges(
        torch.from_numpy(ends),
        None if weight is None else torch.from_numpy(weight),
        None if time is None else torch.from_numpy(time),
        nodes,
        directed,
    )
    kind = {"directed": directed, "weighted": weighted, "timed": timed}
    with StoreWriter(tmp_path, nodes, memory=memory, **kind) as writer:
        for part in np.array_split(np.arange(count), 7):
            values = (None if each is None else each[part] for each in (weight, time))
            writer.add_edges(ends[0, part], ends[1, part], *values)
        found = writer.sort_edges()
    if weighted and not timed:
        w = mean_weights(ends, weight, edges, directed)
    expected = Adjacency.from_edges(edges, nodes, w)
    same(found.into, expected.into)
    same(found.out, expected.out)
    if timed:
        assert np.load(tmp_path / "edge_time.npy").tolist() == t.tolist()
    loops = int((ends[0] == ends[1]).sum())
    distinct = len({pair for pair in zip(*ends.tolist(), strict=True) if pair[0] != pair[1]})
    assert writer.self_loops == loops
    assert writer.merged == count - loops - distinct
    assert {path.suffix for path in tmp_path.iterdir()} == {".npy"}  # nothing else is left


def test_rows_of_another_width_are_refused(tmp_path):
    with StoreWriter(tmp_path, 4) as writer:
        writer.add_nodes(x=np.zeros((2, 3)))
        with pytest.raises(ValueError, match="x: rows of shape"):
            writer.add_nodes(x=np.zeros((2, 4)))
