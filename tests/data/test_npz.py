from pathlib import Path

import numpy as np
import pytest
import torch

from argnn.data import load
from argnn.errors import DataError

X = np.arange(20, dtype=np.float64).reshape(10, 2)
EDGES = np.array([[0, 1, 2], [1, 2, 3]])
Y = np.array([0, 1] * 5)


def saved(folder: Path, **fields) -> Path:
    path = folder / "mine.npz"
    np.savez(path, **({"x": X, "edge_index": EDGES, "y": Y} | fields))
    return path


def test_file_is_loaded_by_path_and_by_string(tmp_path):
    path = saved(tmp_path)
    graph, again = load(path), load(str(path))
    assert graph.name == "mine"
    assert torch.equal(graph.x, torch.from_numpy(X).float())
    assert graph.edge_index.size(1) == 6
    assert torch.equal(graph.train_mask, again.train_mask)


def test_masks_of_several_splits_are_kept(tmp_path):
    train = np.zeros((10, 2), dtype=np.uint8)
    val, test = train.copy(), train.copy()
    train[:4], val[4:7], test[7:] = 1, 1, 1
    graph = load(saved(tmp_path, train_mask=train, val_mask=val, test_mask=test))
    assert graph.train_mask.sum(dim=0).tolist() == [4, 4]
    assert graph.split_rule == "masks of the source"


def test_labels_are_optional(tmp_path):
    path = tmp_path / "bare.npz"
    np.savez(path, x=X, edge_index=EDGES)
    assert load(path).class_count == 0


@pytest.mark.parametrize("kind", [">f4", "<f2", "i2", "u8", "?"])
def test_any_number_type_of_features_is_read(tmp_path, kind):
    graph = load(saved(tmp_path, x=X.astype(kind)))
    assert torch.equal(graph.x, torch.from_numpy(X.astype(kind).astype("f4")))


def nan_at(row: int, column: int) -> np.ndarray:
    x = X.copy()
    x[row, column] = np.nan
    return x


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"x": nan_at(6, 1)}, r"mine\.npz: x\[6, 1\] is not finite \(got nan\)$"),
        ({"edge_index": EDGES + 7}, r"mine\.npz: edge_index\[1, 2\] is 10, but node ids"),
        ({"edge_index": EDGES.T}, r"edge_index must have shape \[2, edges\] \(got \[3, 2\]\)"),
        ({"edge_index": EDGES * 1.0}, "edge_index must hold integers"),
        ({"x": np.array([[{}]], dtype=object)}, r"mine\.npz: x is an object array"),
        ({"y": np.array(["a"] * 10)}, r"mine\.npz: y must hold numbers \(got <U1\)"),
        ({"x": X * 1j}, r"x must hold numbers \(got complex128\)"),
        ({"extra": X}, r"mine\.npz: unknown field extra \(known fields: x, edge_index, y,"),
        (
            {name: np.ones(10, dtype=bool) for name in ("train_mask", "val_mask", "test_mask")},
            r"mine\.npz: node 0 is in train_mask and in val_mask",
        ),
    ],
)
def test_bad_field_is_named(tmp_path, fields, message):
    with pytest.raises(DataError, match=message) as caught:
        load(saved(tmp_path, **fields))
    assert "\n" not in str(caught.value)


def test_missing_field_is_named(tmp_path):
    path = tmp_path / "half.npz"
    np.savez(path, x=X)
    with pytest.raises(DataError, match=r"half\.npz: edge_index is missing \(found: x\)"):
        load(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.npz: no such file"):
        load(tmp_path / "nowhere.npz")


@pytest.mark.parametrize("length", [0, 1, 50, 300, -1])
def test_damaged_file_is_named(tmp_path, length):
    path = saved(tmp_path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=r"mine\.npz: not a readable npz file"):
        load(path)


def test_changed_byte_inside_is_noticed(tmp_path):
    path = saved(tmp_path)
    content = bytearray(path.read_bytes())
    content[200] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read|not a readable npz file"):
        load(path)


def test_single_array_is_not_an_archive(tmp_path):
    path = tmp_path / "array.npz"
    with path.open("wb") as file:
        np.save(file, X)
    with pytest.raises(DataError, match=r"array\.npz: not a"):
        load(path)
