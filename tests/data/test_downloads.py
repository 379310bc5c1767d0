"""Downloads, with a network that is only pretended."""

import hashlib
import shutil
from pathlib import Path

import pooch
import pytest
from torch_geometric.datasets import Actor, Planetoid, WebKB, WikipediaNetwork

from argnn.data import DATASETS, load
from argnn.data.benchmarks import _pyg_dataset, _url
from argnn.data.specs import SHA256
from argnn.errors import DataError

TEXAS, CORA = DATASETS["texas"], DATASETS["cora"]


@pytest.fixture
def network(benchmark_root, monkeypatch):
    """Let pooch copy from the raw files; returns the log of what was fetched.

    A change of ``broken`` makes a file fail, one of ``damaged`` changes its bytes.
    """

    class Network:
        def __init__(self) -> None:
            self.fetched: list[str] = []
            self.broken: set[str] = set()
            self.damaged: set[str] = set()

        def deliver(self, url: str, path: str) -> None:
            name = url.rpartition("/")[2]
            if name in self.broken:
                raise ConnectionError("the line is cut\nand more")
            self.fetched.append(name)
            (source,) = {
                found
                for spec in (TEXAS, CORA)
                for found in (benchmark_root / spec.folder).glob(name)
                if spec.title.lower() in url.lower() or spec is CORA
            }
            content = source.read_bytes()
            Path(path).write_bytes(content[::-1] if name in self.damaged else content)

    network = Network()
    monkeypatch.delenv("ARGNN_OFFLINE")
    monkeypatch.setattr(
        pooch.HTTPDownloader, "__call__", lambda self, url, path, _: network.deliver(url, path)
    )
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
    raw = cache / "raw" / spec.folder
    assert {path.name for path in raw.iterdir()} == set(spec.raw_files), "nothing temporary is left"
    assert {path.stat().st_mode & 0o777 for path in raw.iterdir()} == {0o644}


def test_failed_download_is_continued(network, cache):
    last = TEXAS.raw_files[-1]
    network.broken = {last}
    with pytest.raises(DataError, match="texas: download failed .the line is cut.; try again") as e:
        load("texas")
    assert "\n" not in str(e.value)
    before = list(network.fetched)
    assert sorted(before) == sorted(TEXAS.raw_files[:-1])
    network.broken = set()
    load("texas")
    assert network.fetched[len(before) :] == [last]


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


def test_damaged_file_in_the_cache_is_not_used_for_another(network, cache):
    """It is fetched again where another one is missing, and else refused by its name."""
    load("texas")
    raw = cache / "raw" / TEXAS.folder
    first, last = (raw / TEXAS.raw_files[place] for place in (0, -1))
    first.write_text("half a fi")
    with pytest.raises(DataError, match=f"{first} is damaged or another file"):
        load("texas")
    last.unlink()
    load("texas")
    assert network.fetched[len(TEXAS.raw_files) :] == [first.name, last.name]


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


def test_proxies_of_the_environment_are_used(monkeypatch, cache):
    monkeypatch.delenv("ARGNN_OFFLINE")
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with pytest.raises(DataError, match="texas: download failed .*127.0.0.1"):
        load("texas")


@pytest.mark.parametrize("name", [name for name, spec in DATASETS.items() if spec.folder])
def test_files_come_from_where_pyg_takes_them(name, monkeypatch, tmp_path):
    """PyG's own classes are run with a network that only writes the addresses down."""
    spec, asked = DATASETS[name], []
    for module in ("actor", "webkb", "wikipedia_network"):
        monkeypatch.setattr(
            f"torch_geometric.datasets.{module}.download_url", lambda url, _: asked.append(url)
        )
    monkeypatch.setattr(
        "torch_geometric.datasets.planetoid.fs.cp", lambda url, _: asked.append(url)
    )
    for kind in (Actor, Planetoid, WebKB, WikipediaNetwork):
        monkeypatch.setattr(kind, "_process", lambda self: None)
        monkeypatch.setattr(kind, "load", lambda self, path: None)
    _pyg_dataset(spec, tmp_path)
    assert sorted(_url(spec, file) for file in spec.raw_files) == sorted(asked)
