"""A damaged store is refused in one line that names the file."""

import json
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from argnn.data import load, open_store
from argnn.data.graph_store import array_files, opening
from argnn.data.graph_store.converting import convert
from argnn.data.graph_store.generating import GraphRecipe, generate
from argnn.data.graph_store.header import HEADER
from argnn.data.graph_store.opening import check_store
from argnn.errors import DataError
from argnn.files import with_digest


@pytest.fixture
def store(tmp_path, table_folder):
    return convert(table_folder, tmp_path / "store", directed=True, weight="strength").path


def rewritten(store, change):
    """Change the header, and give it a checksum that fits."""
    header = json.loads((store / HEADER).read_text())
    del header["digest"]
    change(header)
    (store / HEADER).write_text(json.dumps(with_digest(header)))


FILES = [
    *("into_start.npy", "into_other.npy", "into_weight.npy", "out_start.npy", "out_other.npy"),
    *("out_weight.npy", "x.npy", "y.npy", "train_mask.npy", "node_ids.json"),
]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["cut", "empty", "longer", "missing", "link", "folder"])
def test_damage_that_opening_sees(store, tmp_path, name, damage):
    path = store / name
    content = path.read_bytes()
    path.unlink()
    if damage == "link":
        (tmp_path / "elsewhere").write_bytes(content)
        path.symlink_to(tmp_path / "elsewhere")
    elif damage == "folder":
        path.mkdir()
    elif damage != "missing":
        path.write_bytes({"cut": content[:-1], "empty": b"", "longer": content + b"0"}[damage])
    for read in (open_store, load):
        with pytest.raises(DataError, match=f"^[^\n]*{name}: (damaged|is)[^\n]*$"):
            read(store)


@pytest.mark.parametrize("name", FILES)
def test_changed_byte_is_found_by_the_full_check(store, name):
    check_store(open_store(store))
    content = bytearray((store / name).read_bytes())
    content[-2] ^= 1
    (store / name).write_bytes(content)
    opened = open_store(store)
    with pytest.raises(
        DataError, match=f"{name}: damaged, its content does not match its checksum"
    ):
        check_store(opened)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not JSON"),
        (b"[1]", "must hold an object"),
        (b"[" * 100_000, "not JSON"),
        (b'{"a": 1}', "has no 'version'"),
        (b'{"version": 2}', r"version must be 1 \(got 2\); convert the source again"),
        (b'{"version": 1}', "does not match its checksum"),
        (b'{"version": 1, "nodes": NaN}', "not JSON"),
    ],
)
def test_header_that_is_none(store, content, message):
    (store / HEADER).write_bytes(content)
    with pytest.raises(DataError, match=f"store.json: .*{message}"):
        open_store(store)


def test_header_is_missing_or_a_link_or_huge(store, tmp_path):
    header = store / HEADER
    header.rename(tmp_path / "moved")
    with pytest.raises(DataError, match=r"store.json: is missing"):
        load(store)
    header.symlink_to(tmp_path / "moved")
    with pytest.raises(DataError, match=r"store.json: is a symbolic link"):
        load(store)
    header.unlink()
    header.touch()
    os.truncate(header, 10 << 30)
    with pytest.raises(DataError, match=r"store.json: larger than 64 MiB"):
        load(store)


def set_file(name, **changes):
    return lambda header: header["files"][name].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda header: header.update(nodes=-1), "nodes must be a number from 0"),
        (lambda header: header.update(nodes=6), "does not fit the others"),
        (lambda header: header.update(more=6), "unknown key 'more'"),
        (lambda header: header["graph"].update(name=3), "graph.name must be a text"),
        (lambda header: header["graph"]["schema"].update(columns=3), "schema: columns"),
        (lambda header: header["graph"].update(feature_names=["a"]), "names of the features"),
        (lambda header: header["graph"].update(target_kind="regression"), "targets"),
        (lambda header: header["files"].pop("x.npy"), "has no array x"),
        (lambda header: header["files"].pop("out_start.npy"), "belong together"),
        (lambda header: header["files"].update({"../x": header["files"]["x.npy"]}), "unknown file"),
        (set_file("x.npy", dtype="object"), "must be of type float32"),
        (set_file("x.npy", shape=[5]), "does not fit the others"),
        (set_file("x.npy", shape=[5, 10**15]), "names of the features"),
        (set_file("into_weight.npy", shape=[10**15]), "does not fit the others"),
        (set_file("x.npy", size=10**15), "x.npy: damaged, has .* bytes, but must have 10000"),
        (set_file("y.npy", extra=1), "unknown key 'extra'"),
    ],
)
def test_header_that_says_something_else(store, change, message):
    rewritten(store, change)
    with pytest.raises(DataError, match=f"store/.*{message}"):
        open_store(store)


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("into_other", 0, 99, "an edge ends at a node that is not there"),
        ("into_other", 0, -1, "an edge ends at a node that is not there"),
        ("into_start", 1, 99, "the edges of the nodes do not fit together"),
        ("out_start", -1, 0, "the edges of the nodes do not fit together"),
        ("y", 0, 99, "y must hold numbers from -1 to 1"),
    ],
)
def test_numbers_that_would_lead_outside_of_an_array(store, name, place, value, message):
    values = np.load(store / f"{name}.npy")
    values[place] = value
    np.save(store / f"{name}.npy", values)
    opened = open_store(store)
    rows = opened.adjacency.into
    read = partial(opened.check_rows, rows) if name.startswith("into") else opened.graph
    with pytest.raises(DataError, match=message):
        read()


def test_training_nodes_without_labels(store):
    np.save(store / "y.npy", np.full(5, -1))
    with pytest.raises(DataError, match="damaged, train_mask selects a node without a label"):
        open_store(store).graph()


def test_array_of_columns(store):
    np.save(store / "x.npy", np.asfortranarray(np.load(store / "x.npy")))
    with pytest.raises(DataError, match=r"x.npy: damaged, its rows must follow one another"):
        load(store)


def test_ids_that_are_no_ids(store):
    text = (store / "node_ids.json").read_bytes()
    for changed in (text.replace(b'"ann"', b"[1.5]"), text.replace(b'"ann",', b'"ann":')):
        (store / "node_ids.json").write_bytes(changed)
        with pytest.raises(DataError, match="node_ids.json: damaged"):
            open_store(store).node_ids()


def test_many_edges_are_on_the_disk_and_the_same(tmp_path, monkeypatch):
    convert("mixed", tmp_path / "store")
    usual = open_store(tmp_path / "store").edge_index()
    monkeypatch.setattr(opening, "EDGES_IN_MEMORY", 0)
    monkeypatch.setenv("ARGNN_CACHE", str(tmp_path / "cache"))
    found = open_store(tmp_path / "store").edge_index()
    assert torch.equal(found, usual)
    assert list((tmp_path / "cache").iterdir()) == []  # the file has no name
    found[0, 0] = 7  # may be changed, like any other
    assert int(found[0, 0]) == 7
    assert torch.equal(open_store(tmp_path / "store").edge_index(), usual)


def in_memory(path: Path) -> int:
    """Bytes of a mapped file that are in the memory of this process."""
    found, size = 0, 0
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if line.endswith(f"/{path.name}"):
            found = 1
        elif found and line.startswith("Rss:"):
            size, found = size + int(line.split()[1]) * 1024, 0
    return size


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_edges_that_were_read_leave_memory(tmp_path, monkeypatch):
    generate(tmp_path / "store", GraphRecipe(20_000, 300_000, features=2))
    opened = open_store(tmp_path / "store")
    rows, file = opened.adjacency.into, tmp_path / "store" / "into_other.npy"
    assert rows.other.sum() > 0
    assert in_memory(file) == pytest.approx(file.stat().st_size, abs=5000)  # so it is measured
    for module in (opening, array_files):
        monkeypatch.setattr(module, "CHUNK", 1 << 14)
    monkeypatch.setattr(array_files.row_chunks, "__defaults__", (1 << 14,))
    opened.check_rows(rows)
    assert in_memory(file) < file.stat().st_size / 8
    opening.content_digest(opened.path, ["y"], rows)
    assert in_memory(file) < file.stat().st_size / 8
