import errno

import pytest
import torch
from torch_geometric.data import Data

from argnn.data.cache import store_graph, stored_graph, writable_folder
from argnn.errors import DataError
from argnn.folders import cache_root

FIELDS = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")


@pytest.fixture
def graph() -> Data:
    mask = torch.tensor([[True], [False], [False]])
    return Data(
        x=torch.tensor([[0.0, 2.5], [0.0, 0.0], [-1.0, 0.0]]),
        edge_index=torch.tensor([[0, 1], [1, 2]]),
        y=torch.tensor([0, 1, -1]),
        train_mask=mask,
        val_mask=mask.roll(1, 0),
        test_mask=mask.roll(2, 0),
    )


def test_graph_comes_back_equal(tmp_path, graph):
    path = tmp_path / "new" / "graph.safetensors"
    store_graph(path, graph)
    again = stored_graph(path)
    assert all(torch.equal(graph[name], again[name]) for name in FIELDS)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_absent_file_is_nothing(tmp_path):
    assert stored_graph(tmp_path / "absent") is None


@pytest.mark.parametrize("damage", ["truncate", "garbage", "change a value", "empty"])
def test_damaged_file_is_nothing(tmp_path, graph, damage, caplog):
    path = tmp_path / "graph.safetensors"
    store_graph(path, graph)
    content = bytearray(path.read_bytes())
    if damage == "change a value":
        content[-1] ^= 1
    changed = {"truncate": content[:-9], "garbage": b"garbage" * 99, "empty": b""}
    path.write_bytes(changed.get(damage, content))
    assert stored_graph(path) is None
    assert "made anew" in caplog.text


def test_failed_write_leaves_the_old_file(tmp_path, graph, monkeypatch):
    path = tmp_path / "graph.safetensors"
    store_graph(path, graph)
    before = path.read_bytes()

    def fail(file):
        raise OSError(errno.ENOSPC, "disk full")

    monkeypatch.setattr("argnn.files.os.fsync", fail)
    with pytest.raises(DataError, match="cannot write .*graph.safetensors .disk full."):
        store_graph(path, graph)
    assert path.read_bytes() == before
    assert list(tmp_path.glob(".writing*")) == []


def test_cache_is_in_the_home_folder_by_default(tmp_path, monkeypatch):
    monkeypatch.delenv("ARGNN_CACHE")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_root() == tmp_path / ".cache" / "argnn"


def test_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="file/cache .*set ARGNN_CACHE"):
        writable_folder(tmp_path / "file" / "cache")
