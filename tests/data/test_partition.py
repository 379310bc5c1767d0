"""Parts of a graph: every node in one, few edges between, the same again from the cache."""

import numpy as np
import pytest
import torch
from torch_geometric.utils import to_undirected

from argnn.data import partition as module
from argnn.data.adjacency import Adjacency
from argnn.data.partition import partition
from argnn.errors import ConfigError

METHODS = ["metis", "streaming"]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ARGNN_CACHE", str(tmp_path))


def communities(count: int = 8, size: int = 50, seed: int = 0) -> Adjacency:
    """Groups of nodes with nine of ten edges inside, in random order of nodes."""
    rng = np.random.default_rng(seed)
    source = rng.integers(count * size, size=2000)
    inside = source // size * size + rng.integers(size, size=2000)
    target = np.where(rng.random(2000) < 0.9, inside, rng.integers(count * size, size=2000))
    keep = source != target
    name = rng.permutation(count * size)
    edges = torch.from_numpy(name[np.stack([source[keep], target[keep]])])
    return Adjacency.from_edges(to_undirected(edges), count * size)


@pytest.mark.parametrize("method", METHODS)
def test_planted_groups_are_found_about(method):
    graph = communities()
    found = partition(graph, 8, method)
    assert found.method == method
    counts = np.bincount(found.part, minlength=8)
    assert counts.min() > 0
    assert counts.max() <= 1.25 * counts.mean()
    # One of ten edges leads anywhere, of which an eighth stays inside by chance.
    assert found.cut < 0.3
    node = graph.both.node
    assert found.cut == np.mean(found.part[graph.both.other] != found.part[node])
    together = np.concatenate([found.nodes(part) for part in range(8)])
    assert sorted(together) == list(range(400))
    assert all((found.part[found.nodes(part)] == part).all() for part in range(8))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("parts", [1, 2, 7, 20])
def test_every_part_has_a_node_also_without_edges(method, parts):
    graph = Adjacency.from_edges(torch.empty(2, 0, dtype=torch.int64), 20)
    found = partition(graph, parts, method)
    assert np.bincount(found.part, minlength=parts).min() >= 1
    assert found.cut == 0


@pytest.mark.parametrize("method", METHODS)
def test_as_many_parts_as_nodes(method):
    found = partition(communities(2, 10), 20, method)
    assert np.bincount(found.part, minlength=20).tolist() == [1] * 20


@pytest.mark.parametrize("method", METHODS)
def test_directions_do_not_matter(method):
    edges = torch.tensor([[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]])  # two rings, one way round
    found = partition(Adjacency.from_edges(edges, 6), 2, method)
    assert found.cut == 0


def test_the_same_parts_come_from_the_cache(monkeypatch):
    first = partition(communities(), 4, "metis")

    def fail(*_):
        raise AssertionError("it was computed again")

    monkeypatch.setattr(module, "_by_metis", fail)
    again = partition(communities(), 4, "metis")
    assert (again.part == first.part).all()
    assert (again.method, again.cut) == (first.method, first.cut)
    with pytest.raises(AssertionError, match="computed again"):
        partition(communities(seed=1), 4, "metis")
    with pytest.raises(AssertionError, match="computed again"):
        partition(communities(), 5, "metis")


def test_a_damaged_file_is_made_anew(tmp_path):
    first = partition(communities(), 4, "streaming")
    (file,) = (tmp_path / "partitions").iterdir()
    file.write_bytes(file.read_bytes()[:-100])
    again = partition(communities(), 4, "streaming")
    assert (again.part == first.part).all()


def test_auto_takes_metis_where_it_fits(monkeypatch):
    assert partition(communities(), 4).method == "metis"
    monkeypatch.setattr(module, "free_memory", lambda: 1000)
    assert partition(communities(), 4).method == "streaming"


@pytest.mark.parametrize("parts", [0, -1, 401])
def test_impossible_numbers_are_refused(parts):
    with pytest.raises(ConfigError, match=f"from 1 to the number of nodes, 400 \\(got {parts}\\)"):
        partition(communities(), parts)
    with pytest.raises(ConfigError, match="metis, streaming"):
        partition(communities(), 4, "kmeans")
