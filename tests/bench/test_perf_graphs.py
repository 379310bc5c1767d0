"""The graphs that are measured on: sizes, symmetry, hub."""

import pytest
import torch

from argnn.bench.perf.graphs import power_law_graph, random_graph


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pairs(edge_index):
    return set(map(tuple, edge_index.t().tolist()))


@pytest.mark.parametrize("draw", [random_graph, power_law_graph])
@pytest.mark.parametrize(("nodes", "edges"), [(60, 300), (60, 301), (40, 600), (3, 4)])
def test_graph_is_simple_symmetric_and_of_the_asked_size(draw, nodes, edges):
    edge_index = draw(nodes, edges, generator())
    listed = pairs(edge_index)
    assert edge_index.shape == (2, edges // 2 * 2)
    assert len(listed) == edge_index.size(1)
    assert listed == {(target, source) for source, target in listed}
    assert all(source != target for source, target in listed)
    assert 0 <= int(edge_index.min()) <= int(edge_index.max()) < nodes


@pytest.mark.parametrize("draw", [random_graph, power_law_graph])
def test_edges_are_sorted_by_source_then_target(draw):
    source, target = draw(60, 300, generator())
    assert torch.equal(source * 60 + target, (source * 60 + target).sort().values)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("draw", [random_graph, power_law_graph])
def test_a_graph_is_the_same_on_every_device(draw):
    on_gpu = draw(3000, 40_000, generator(), torch.device("cuda"))
    assert on_gpu.is_cuda
    assert torch.equal(on_gpu.cpu(), draw(3000, 40_000, generator()))


def test_power_law_graph_has_its_hub_and_a_tail():
    degree = torch.bincount(power_law_graph(2000, 20_000, generator())[0], minlength=2000)
    assert degree[0] == 1999
    rest = degree[1:].sort().values
    # Drawn evenly, the largest degree would be near 9 + 3 * sqrt(9).
    assert rest[-1] > 5 * rest.float().median()
    assert int(degree.argmax()) == 0


def test_hub_has_at_most_100k_neighbors(monkeypatch):
    monkeypatch.setattr("argnn.bench.perf.config.HUB_DEGREE", 50)
    edge_index = power_law_graph(200, 1000, generator())
    assert int((edge_index[0] == 0).sum()) == 50
