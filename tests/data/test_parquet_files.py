import sys

import pytest

from argnn.data import load
from argnn.errors import DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

EDGES = {"source": ["a", "b"], "target": ["b", "c"]}
NODES = {
    "id": ["a", "b", "c", "d"],
    "size": [1.5, None, 2.5, 2.0],
    "count": [1, 2, 3, 4],
    "flag": [True, False, True, None],
    "kind": pa.array(["x", "y", None, "x"]).dictionary_encode(),
    "vector": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
    "label": [0, 1, 0, 1],
}


@pytest.fixture
def folder(tmp_path):
    def write(edges=EDGES, nodes=NODES, **options):
        pq.write_table(pa.table(edges), tmp_path / "edges.parquet", **options)
        if nodes is not None:
            pq.write_table(pa.table(nodes), tmp_path / "nodes.parquet", **options)
        return tmp_path

    return write


def test_columns_of_every_type(folder):
    graph = load(folder(), standardize=False)
    assert graph.node_ids == list("abcd")
    assert graph.feature_names == [
        *("size", "size is missing", "count", "flag", "flag is missing"),
        *("kind = x", "kind = y", "vector[0]", "vector[1]"),
    ]
    assert graph.x[1].tolist() == [2, 1, 2, 0, 0, 0, 1, 3, 4]
    assert graph.x[3, 3].item() == pytest.approx(2 / 3)
    assert graph.y.tolist() == [0, 1, 0, 1]


def test_integer_ids_and_no_node_table(folder):
    graph = load(folder({"src": [9, 4], "dst": [4, 7]}, None), features="random")
    assert graph.node_ids == [4, 7, 9]


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        (
            {**NODES, "id": ["a", "b", "c", "a"]},
            "row 3, column id: duplicate id 'a' .also in row 0",
        ),
        ({**NODES, "id": ["a", "b", "x", "d"]}, r"edges\.parquet, row 1, column target: unknown"),
        (
            {**NODES, "vector": [[1.0], [1.0, 2.0], [1.0], [1.0]]},
            "row 1, column vector: must be a li",
        ),
        ({**NODES, "at": pa.array([0] * 4, pa.time32("s"))}, "column at: a value of type time"),
        ({**NODES, "raw": [b"1"] * 4}, "column raw: a value of type bytes .*; --drop raw leaves"),
        ({**NODES, "size": [1.0, float("inf"), 1.0, 1.0]}, "row 1, column size: inf is too large"),
        ({}, "every column needs a name"),
    ],
)
def test_bad_table_names_the_row(folder, nodes, message):
    with pytest.raises(DataError, match=message):
        load(folder(nodes=nodes))


@pytest.mark.parametrize("length", [0, 3, 100, -1])
def test_damaged_file(folder, length):
    path = folder() / "nodes.parquet"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(DataError, match=r"nodes\.parquet: not a readable Parquet file"):
        load(path.parent)


def test_table_that_would_fill_the_memory_is_refused(folder):
    rows = 40_000_000
    column = pa.array([0]).take(pa.array([0] * 1000))
    chunks = pa.chunked_array([column] * (rows // 1000))
    path = folder({"source": chunks, "target": chunks}, None, compression="zstd")
    assert (path / "edges.parquet").stat().st_size < 2_000_000
    with pytest.raises(DataError, match="would fill the memory"):
        load(path, features="degree")


def test_missing_library_is_named(folder, monkeypatch):
    path = folder()
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(DataError, match="reading Parquet needs pyarrow; install it with pip"):
        load(path)
