"""Downloads, with a network that is only pretended."""

import hashlib
import shutil
from pathlib import Path

import pytest
from torch_geometric.datasets import Planetoid, WebKB

from argnn.data import DATASETS, load
from argnn.data.checksums import SHA256
from argnn.errors import DataError

TEXAS, CORA = DATASETS["texas"], DATASETS["cora"]


@pytest.fixture
def network(benchmark_root, monkeypatch):
    """Let PyG's functions copy from the raw files; returns the log of what was fetched.

    A change of ``broken`` makes a file fail, one of ``damaged`` changes its bytes.
    """

    class Network:
        fetched: list[str] = []
        broken: set[str] = set()
        damaged: set[str] = set()

        def deliver(self, url: str, folder: str) -> None:
            name = url.rpartition("/")[2]
            if name in self.broken:
                raise ConnectionError("the line is cut")
            self.fetched.append(name)
            (source,) = {
                path
                for spec in (TEXAS, CORA)
                for path in (benchmark_root / spec.folder).glob(name)
                if spec.title.lower() in url.lower() or spec is CORA
            }
            content = source.read_bytes()
            Path(folder, name).write_bytes(content[::-1] if name in self.damaged else content)

    network = Network()
    network.fetched, network.broken, network.damaged = [], set(), set()

    def download_url(url, folder, log=True, filename=None):
        if not Path(folder, url.rpartition("/")[2]).exists():  # as PyG does
            network.deliver(url, folder)

    monkeypatch.delenv("ARGNN_OFFLINE")
    monkeypatch.setattr("torch_geometric.datasets.webkb.download_url", download_url)
    monkeypatch.setattr("torch_geometric.datasets.planetoid.fs.cp", network.deliver)
    return network


@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if not spec.embedded])
def test_sums_are_those_of_the_files(name, benchmark_root):
    spec = DATASETS[name]
    assert set(SHA256[name]) == set(spec.raw_files)
    for file, expected in SHA256[name].items():
        content = (benchmark_root / spec.folder / file).read_bytes()
        assert hashlib.sha256(content).hexdigest() == expected, file


@pytest.mark.parametrize("spec", [TEXAS, CORA], ids=lambda spec: spec.name)
def test_everything_is_fetched_once(spec, network, cache):
    graph = load(spec.name)
    assert graph.num_nodes == spec.nodes
    assert sorted(network.fetched) == sorted(spec.raw_files)
    load(spec.name)
    assert len(network.fetched) == len(spec.raw_files)
    assert not list(cache.rglob(".download*"))
    assert not list(cache.rglob(".partial/*"))


def test_failed_download_is_continued(network, cache):
    last = TEXAS.raw_files[-1]
    network.broken = {last}
    with pytest.raises(DataError, match="texas: download failed .the line is cut.; try again"):
        load("texas")
    assert not (cache / "raw" / TEXAS.folder).exists()
    before = list(network.fetched)
    assert sorted(before) == sorted(TEXAS.raw_files[:-1])
    network.broken = set()
    load("texas")
    assert network.fetched[len(before) :] == [last]
    assert not list(cache.rglob(".partial/*"))


def test_failed_planetoid_download_fetches_no_whole_matrix_twice(network):
    network.broken = {CORA.raw_files[7]}
    with pytest.raises(DataError, match="download failed"):
        load("cora")
    before = len(network.fetched)
    network.broken = set()
    load("cora")
    again = [name for name in network.fetched[before:] if name.startswith("ind.")]
    assert again == [CORA.raw_files[7]]


def test_interrupted_download_is_continued(network, monkeypatch):
    deliver = network.deliver

    def interrupted(url, folder):
        if len(network.fetched) == 3:
            raise KeyboardInterrupt
        deliver(url, folder)

    monkeypatch.setattr(network, "deliver", interrupted)
    with pytest.raises(KeyboardInterrupt):
        load("texas")
    monkeypatch.setattr(network, "deliver", deliver)
    load("texas")
    assert len(network.fetched) == len(TEXAS.raw_files)


def test_wrong_file_is_refused_and_not_kept(network, cache):
    name = TEXAS.raw_files[0]
    network.damaged = {name}
    with pytest.raises(DataError, match=f"texas: {name} as downloaded is not the file it should"):
        load("texas")
    assert name not in {path.name for path in cache.rglob("*")}
    network.damaged = set()
    load("texas")
    assert network.fetched.count(name) == 2
    assert len(network.fetched) == len(TEXAS.raw_files) + 1


def test_damaged_remains_of_an_earlier_download_are_not_used(network, cache):
    kept = cache / "raw/.partial/texas"
    kept.mkdir(parents=True)
    (kept / TEXAS.raw_files[0]).write_text("half a fi")
    load("texas")
    assert TEXAS.raw_files[0] in network.fetched


def test_missing_file_is_named(network, monkeypatch):
    def forgetful(self):
        for name in TEXAS.raw_files[:-1]:
            network.deliver(f"/texas/{name}", self.raw_dir)

    monkeypatch.setattr(WebKB, "download", forgetful)
    with pytest.raises(DataError, match=f"download failed .{TEXAS.raw_files[-1]} is missing."):
        load("texas")


def test_offline_wins_over_everything(network, monkeypatch, cache):
    monkeypatch.setenv("ARGNN_OFFLINE", "1")
    with pytest.raises(DataError, match="ARGNN_OFFLINE forbids downloads; put the files in"):
        load("texas")
    assert network.fetched == []
    assert not cache.exists()


def test_second_process_may_be_faster(network, cache, benchmark_root, monkeypatch):
    folder = cache / "raw" / TEXAS.folder
    deliver = network.deliver

    def slow(url, target):
        if not folder.exists():
            shutil.copytree(benchmark_root / TEXAS.folder, folder)
        deliver(url, target)

    monkeypatch.setattr(network, "deliver", slow)
    assert load("texas").num_nodes == TEXAS.nodes


def test_proxies_are_used_by_both_ways_of_fetching(network, monkeypatch):
    from fsspec.config import conf

    seen = []
    monkeypatch.setattr(Planetoid, "download", lambda self: seen.append(dict(conf)))
    with pytest.raises(DataError, match="is missing"):
        load("cora")
    assert seen[0]["https"]["client_kwargs"]["trust_env"] is True
    assert "https" not in conf
