"""The real graphs, from the raw files; skipped where these are not at hand."""

import os
import pickle
from pathlib import Path

import numpy as np
import pooch
import pytest
import torch
from torch_geometric.datasets import Planetoid, WebKB
from torch_geometric.utils import contains_self_loops, is_undirected

from argnn.data import DATASETS, load
from argnn.data.benchmarks import load_benchmark
from argnn.data.cache import stored_graph
from argnn.errors import DataError

GRAPHS = [name for name, spec in DATASETS.items() if not spec.embedded]
TENSORS = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")


def listing(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


@pytest.mark.parametrize("name", GRAPHS)
def test_graph_keeps_the_contract_and_its_source_untouched(
    name, benchmark_root, cache, monkeypatch, capfd
):
    spec = DATASETS[name]
    before = listing(benchmark_root / spec.folder)
    graph = load(name, root=benchmark_root)
    assert listing(benchmark_root / spec.folder) == before
    assert graph.x.shape == (spec.nodes, spec.features)
    assert graph.edge_index.shape == (2, 2 * spec.edges)
    assert is_undirected(graph.edge_index)
    assert not contains_self_loops(graph.edge_index)
    assert graph.class_count == len(graph.class_names) == spec.classes
    assert graph.y.min() == 0
    used = graph.train_mask.int() + graph.val_mask.int() + graph.test_mask.int()
    assert used.shape == (spec.nodes, 10)
    assert used.max() == 1
    assert [path.suffix for path in cache.rglob("*") if path.is_file()] == [".safetensors"]
    assert capfd.readouterr() == ("", "")

    monkeypatch.setattr("argnn.data.benchmarks._processed", None)
    again = load(name, root=benchmark_root)
    assert all(torch.equal(graph[field], again[field]) for field in TENSORS)


def test_result_equals_that_of_pyg_alone(benchmark_root, copied, capfd):
    root = copied("Cora")
    pyg = Planetoid(str(root), "Cora", split="geom-gcn")[0]
    ours = load_benchmark(DATASETS["cora"], benchmark_root)
    assert all(torch.equal(pyg[field], ours[field]) for field in TENSORS)


def test_directions_of_a_directed_source_are_kept(benchmark_root, copied):
    pyg = WebKB(str(copied("texas")), "Texas")[0]
    graph = load("texas", root=benchmark_root, directed=True)
    loops = int((pyg.edge_index[0] == pyg.edge_index[1]).sum())
    assert graph.edge_index.size(1) == 325 - loops
    assert not is_undirected(graph.edge_index)


def test_undirected_source_stays_undirected(benchmark_root):
    graph = load("cora", root=benchmark_root, directed=True)
    assert is_undirected(graph.edge_index)
    assert graph.edge_rule.endswith("(the source is undirected)")


def test_row_normalization_keeps_zero_rows(benchmark_root):
    graph = load("chameleon", root=benchmark_root, row_normalize=True)
    total = graph.x.sum(dim=1)
    assert int((total == 0).sum()) == 233
    assert torch.allclose(total[total > 0], torch.tensor(1.0))


def test_data_root_of_the_environment_is_used(benchmark_root, monkeypatch):
    monkeypatch.setenv("ARGNN_DATA", str(benchmark_root))
    assert load("texas").num_nodes == 183


def test_cornell_old_has_the_features_of_texas(benchmark_root):
    old, texas = (load(name, root=benchmark_root) for name in ("cornell-old", "texas"))
    assert torch.equal(old.x, texas.x)
    assert not torch.equal(old.x, load("cornell", root=benchmark_root).x)


def test_damaged_cache_is_made_anew(benchmark_root, cache):
    graph = load("texas", root=benchmark_root)
    (stored,) = (cache / "processed").iterdir()
    stored.write_bytes(stored.read_bytes()[:1000])
    again = load("texas", root=benchmark_root)
    assert all(torch.equal(graph[field], again[field]) for field in TENSORS)
    assert stored_graph(stored) is not None


class Hostile:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_hostile_pickle_is_refused_before_it_runs(copied, tmp_path, cache):
    root = copied("Cora")
    target = tmp_path / "created"
    bad = root / "Cora/geom-gcn/raw/ind.cora.x"
    bad.write_bytes(pickle.dumps(Hostile(target)))
    with pytest.raises(DataError, match=r"ind\.cora\.x is damaged or another file"):
        load("cora", root=root)
    assert not target.exists()
    assert not cache.exists()


@pytest.mark.parametrize("folder", ["texas", "cornell"])
def test_every_flipped_bit_is_noticed(copied, folder):
    """One bit at a random place, in every file, also where the graph is in the cache already."""
    root, rng = copied(folder), np.random.default_rng(0)
    load(folder, root=root)
    for path in sorted((root / folder / "raw").iterdir()):
        content = path.read_bytes()
        for place in rng.integers(len(content), size=10):
            flipped = bytearray(content)
            flipped[place] ^= 1 << int(rng.integers(8))
            path.write_bytes(flipped)
            with pytest.raises(DataError, match=f"{folder}: {path} is damaged or another file"):
                load(folder, root=root)
        path.write_bytes(content)
    load(folder, root=root)


def test_changed_raw_file_is_one_line(copied):
    root = copied("texas")
    path = root / "texas/raw/out1_graph_edges.txt"
    for content in ("", path.read_text()[:-2], path.read_text() + "0\t2\n"):
        path.write_text(content)
        with pytest.raises(DataError, match="out1_graph_edges.txt is damaged") as caught:
            load("texas", root=root)
        assert "\n" not in str(caught.value)


def test_pipe_in_place_of_a_raw_file_is_not_waited_for(copied):
    root = copied("texas")
    path = root / "texas/raw/out1_graph_edges.txt"
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(DataError, match="raw file missing"):
        load("texas", root=root)


def test_missing_raw_file_is_named(copied):
    root = copied("texas")
    path = root / "texas/raw/texas_split_0.6_0.2_9.npz"
    path.unlink()
    with pytest.raises(DataError, match=f"texas: raw file missing: {path}; check the data root"):
        load("texas", root=root)


def test_given_root_is_never_filled_by_a_download(tmp_path, monkeypatch):
    monkeypatch.setattr("argnn.data.benchmarks.download", None)
    with pytest.raises(DataError, match="raw file missing"):
        load("texas", root=tmp_path)


def test_offline_mode_says_so(cache):
    with pytest.raises(DataError, match="texas: not in the cache, and ARGNN_OFFLINE forbids"):
        load("texas")
    assert not cache.exists()


def test_old_cornell_cannot_be_downloaded(monkeypatch):
    monkeypatch.delenv("ARGNN_OFFLINE")
    with pytest.raises(DataError, match="cornell-old: this version cannot be downloaded"):
        load("cornell-old")


def test_download_of_a_hostile_pickle_does_not_run(cache, monkeypatch, tmp_path):
    target = tmp_path / "created"

    def fetch(self, url, path, _):
        Path(path).write_bytes(pickle.dumps(Hostile(target)))

    monkeypatch.delenv("ARGNN_OFFLINE")
    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", fetch)
    with pytest.raises(DataError, match=r"ind\.cora\.x as downloaded is not the file it should"):
        load("cora")
    assert not target.exists()
    assert [path for path in cache.rglob("*") if path.is_file()] == []
