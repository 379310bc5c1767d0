"""New nodes and edges from files; objects in memory are tested with the estimators."""

import numpy as np
import pytest
import torch

from argnn.data import load
from argnn.data.known_graph import KnownGraph
from argnn.data.new_nodes import read_new_nodes
from argnn.errors import DataError

NODES = "id,age,town,label\na,1,Ulm,x\nb,3,Bonn,y\nc,,Ulm,x\n"


@pytest.fixture
def known(tmp_path, one_thread):
    folder = tmp_path / "graph"
    folder.mkdir()
    (folder / "nodes.csv").write_text(NODES)
    (folder / "edges.csv").write_text("source,target\na,b\nb,c\n")
    return KnownGraph(load(folder, draw_split=False, standardize=False))


def read(known, nodes, edges=None, **options):
    schema = known.graph.schema
    return read_new_nodes(nodes, edges, known.rows, known.num_nodes, schema, **options)


def files(folder, nodes: str, edges: str | None = None):
    (folder / "n.csv").write_text(nodes)
    if edges is not None:
        (folder / "e.csv").write_text(edges)
    return folder / "n.csv", None if edges is None else folder / "e.csv"


def test_csv_files(known, tmp_path):
    # The columns may have another order; a label is not needed.
    paths = files(tmp_path, "town,id,age\nUlm,n,5\nRome,m,\n", "source,target\nn,a\nc,m\nm,n\n")
    new = read(known, *paths)
    assert new.graph.node_ids == ["n", "m"]
    assert known.graph.feature_names == ["age", "age is missing", "town = Bonn", "town = Ulm"]
    assert new.graph.x.tolist() == [[5, 0, 0, 1], [2, 1, 0, 0]]  # the mean of the training table
    assert new.edge_index.tolist() == [[3, 2, 4], [0, 4, 3]]
    assert any("unknown words" in note for note in new.graph.notes)


def test_parquet_files(known, tmp_path):
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"id": ["n"], "age": [5.0], "town": ["Ulm"]}).to_parquet(tmp_path / "n.parquet")
    pd.DataFrame({"source": ["n"], "target": ["b"]}).to_parquet(tmp_path / "e.parquet")
    new = read(known, tmp_path / "n.parquet", tmp_path / "e.parquet")
    assert (new.graph.x.tolist(), new.edge_index.tolist()) == ([[5, 0, 0, 1]], [[3], [1]])


def test_npz_files_hold_rows_of_the_joined_graph(known, tmp_path):
    np.savez(tmp_path / "n.npz", x=np.ones((2, 4)), edge_index=[[3, 4], [0, 3]])
    new = read(known, tmp_path / "n.npz")
    assert new.graph.node_ids == [3, 4]
    assert new.edge_index.tolist() == [[3, 4], [0, 3]]
    (tmp_path / "e.csv").write_text("source,target\n4,a\n")
    assert read(known, tmp_path / "n.npz", tmp_path / "e.csv").edge_index.tolist() == [[4], [0]]


def test_ids_that_are_numbers(known, tmp_path):
    (tmp_path / "graph" / "nodes.csv").write_text(NODES.replace("a,1", "7,1"))
    (tmp_path / "graph" / "edges.csv").write_text("source,target\n7,b\n")
    graph = KnownGraph(load(tmp_path / "graph", draw_split=False, standardize=False))
    new = read(graph, *files(tmp_path, "id,age,town\n8,1,Ulm\n", "source,target\n8,7\n"))
    assert new.edge_index.tolist() == [[3], [0]]
    torch.testing.assert_close(new.graph.x, torch.tensor([[1.0, 0, 0, 1]]))


@pytest.mark.parametrize(
    ("nodes", "edges", "message"),
    [
        ("id,age,town\nn,1,Ulm\nb,1,Ulm\n", None, "n.csv, line 3, column id: node 'b' is in the"),
        ("id,age,town\nn,1,Ulm\nn,1,Ulm\n", None, "n.csv, line 3, column id: duplicate id 'n'"),
        ("id,age,town\nn,old,Ulm\n", None, "n.csv, line 2, column age"),
        ("id,age\nn,1\n", None, "n.csv: no column 'town', which the model was trained with"),
        ("id,age,town\n", None, "n.csv: there are no nodes"),
        ("", None, "n.csv: the file is empty"),
        ("id,age,town\nn,1\n", None, "n.csv, line 2: expected 3 columns (got 2)"),
        ("good", "source,target\nn,a\nn,z\n", "e.csv, line 3, column target: unknown node 'z'"),
        ("good", "source\nn\n", "e.csv: an edge needs two columns"),
    ],
)
def test_bad_files(known, tmp_path, nodes, edges, message):
    paths = files(tmp_path, "id,age,town\nn,1,Ulm\n" if nodes == "good" else nodes, edges)
    with pytest.raises(DataError) as refused:
        read(known, *paths)
    assert message in str(refused.value)


def test_missing_and_unknown_files(known, tmp_path):
    with pytest.raises(DataError, match=r"none\.csv: no such file"):
        read(known, tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"n\.xlsx: new nodes are read from \.csv or \.parquet"):
        read(known, tmp_path / "n.xlsx")
    np.savez(tmp_path / "n.npz", edge_index=[[3], [0]])
    with pytest.raises(DataError, match=r"n\.npz: x is missing"):
        read(known, tmp_path / "n.npz")
    np.savez(tmp_path / "n.npz", x=np.ones((1, 4)), edge_index=[[3], [9]])
    with pytest.raises(DataError, match=r"n\.npz: edge_index\[1, 0\] is 9"):
        read(known, tmp_path / "n.npz")
