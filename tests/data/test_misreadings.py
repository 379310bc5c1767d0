"""Sources that look like something else: each is read as it is meant, or refused, and told."""

from pathlib import Path

import networkx
import numpy as np
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Data

from argnn.data import load
from argnn.data.graph_store.converting import convert
from argnn.errors import DataError

pandas = pytest.importorskip("pandas")


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


def folder(tmp_path, edges, nodes):
    written(tmp_path / "tables" / "nodes.csv", nodes)
    return written(tmp_path / "tables" / "edges.csv", edges).parent


def links(graph):
    """The edges as pairs of ids, each once."""
    ids = graph.node_ids
    pairs = {tuple(sorted((ids[a], ids[b]))) for a, b in graph.edge_index.t().tolist()}
    return sorted(pairs)


@pytest.mark.parametrize(
    ("beginning", "words"),
    [
        ("%%MatrixMarket matrix coordinate real general\n5 6 3\n", "a Matrix Market file"),
        ("%%matrixmarket matrix coordinate pattern general\n", "a Matrix Market file"),
        ("% bip unweighted\n% 3 2 2\n", "a bipartite graph of KONECT"),
        ("% bip weighted\n", "a bipartite graph of KONECT"),
    ],
)
def test_other_formats_with_two_columns_of_numbers_are_refused(tmp_path, beginning, words):
    path = written(tmp_path / "web.txt", f"{beginning}1 2 1\n2 3 1\n")
    with pytest.raises(DataError, match=f"web.txt, line 1: {words}"):
        load(path, features="degree")
    with pytest.raises(DataError, match=f"web.txt, line 1: {words}"):
        convert(path, tmp_path / "store", features="degree")


def test_other_comments_are_comments(tmp_path):
    path = written(tmp_path / "web.txt", "% sym unweighted\n% bip\n1 2\n2 3\n")
    assert links(load(path, features="degree")) == [(1, 2), (2, 3)]


@pytest.mark.parametrize("names", ["source_id,target_id", "From Node,To Node", "Src,Dst"])
def test_names_of_ends_are_a_header_of_a_list(tmp_path, names):
    path = written(tmp_path / "web.csv", f"{names}\nAnn,Bob\nBob,Carl\n")
    assert links(load(path, features="degree")) == [("Ann", "Bob"), ("Bob", "Carl")]


def test_a_first_line_that_may_be_a_header_is_told(tmp_path):
    def note(text):
        notes = load(written(tmp_path / "web.csv", text), features="degree").notes
        return [words for words in notes if "was read as" in words]

    (told,) = note("\nuser,friend\nAnn,Bob\nBob,Carl\n")
    assert told == (
        f"{tmp_path}/web.csv, line 2 was read as an edge from 'user' to 'friend', which have no "
        "other: if these are names of columns, call them source and target"
    )
    assert not note("source,target\nuser,friend\nAnn,Bob\n")
    assert not note("Ann,friend\nAnn,Bob\nBob,Carl\n")
    assert not note("user,friend\n")


def test_a_column_of_weights_is_no_end_of_an_edge(tmp_path):
    path = folder(tmp_path, "Weight,a,b\n2,1,3\n1,3,2\n", "id,x\n1,2\n2,5\n3,7\n")
    assert links(load(path)) == [(1, 3), (2, 3)]
    path = folder(tmp_path, "cost,a,b\n2,1,3\n1,3,2\n", "id,x\n1,2\n2,5\n3,7\n")
    assert links(load(path, weight="cost")) == [(1, 3), (2, 3)]


@pytest.mark.parametrize("name", ["ID", "Id", "node_id", "NodeId", "Node"])
def test_a_column_that_is_called_id_holds_the_ids(tmp_path, name):
    nodes = f"age,{name},label\n2,1,a\n3,2,b\n1,3,a\n"
    graph = load(folder(tmp_path, "source,target\n1,2\n2,3\n", nodes), draw_split=False)
    assert (graph.node_ids, graph.feature_names) == ([1, 2, 3], ["age"])
    assert links(graph) == [(1, 2), (2, 3)]
    again = load(folder(tmp_path, "source,target\n1,2\n", nodes), schema=graph.schema)
    assert again.node_ids == [1, 2, 3]


def test_without_such_a_column_or_with_two_the_first_holds_the_ids(tmp_path):
    for header in ("name,age", "node,Node_ID"):
        path = folder(tmp_path, "source,target\n1,2\n", f"{header}\n2,1\n1,2\n")
        assert load(path).node_ids == [2, 1]


def test_blanks_around_names_of_columns_mean_nothing():
    """Else a column ``label `` would be a feature that tells the class."""
    edges = pandas.DataFrame({"source ": ["a", "b"], " target": ["b", "c"]})
    nodes = pandas.DataFrame({" id": ["a", "b", "c"], "label ": ["x", "y", "x"], "v": [1, 2, 4]})
    graph = load((edges, nodes), draw_split=False)
    assert (graph.feature_names, graph.class_names) == (["v"], ["x", "y"])
    with pytest.raises(DataError, match="every column needs a name of its own"):
        load((edges, nodes.assign(label=1)))
    made = networkx.path_graph(3)
    networkx.set_node_attributes(made, {0: "x", 1: "y", 2: "x"}, "label ")
    networkx.set_node_attributes(made, {0: 1, 1: 2, 2: 4}, "v")
    graph = load(made, draw_split=False)
    assert (graph.feature_names, graph.class_names) == (["v"], ["x", "y"])


def test_entries_of_a_matrix_that_are_given_twice_add_up():
    places = ([0, 0, 1, 2, 2], [1, 1, 2, 0, 0])
    matrix = scipy.sparse.coo_array(([1.0, 1.0, 1.0, 1.0, -1.0], places), shape=(3, 3))
    graph = load((matrix, np.eye(3)), weight="weight", directed=True)
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]
    assert graph.edge_weight.tolist() == [2, 1]
    dense = scipy.sparse.csr_array(matrix.toarray())
    same = load((dense, np.eye(3)), weight="weight", directed=True)
    assert torch.equal(graph.edge_weight, same.edge_weight)
    assert matrix.nnz == 5  # the user's own is as it was


def test_a_column_of_labels_as_open_graph_benchmark_has_it():
    edges, y = torch.tensor([[0, 1], [1, 2]]), torch.tensor([[0], [1], [0]])
    graph = load(Data(x=torch.eye(3), edge_index=edges, y=y), draw_split=False)
    assert graph.y.tolist() == [0, 1, 0]


def test_names_in_parquet_files_are_as_in_csv_files(tmp_path):
    """Blanks around names mean nothing, and the numbers of rows are no feature."""
    pytest.importorskip("pyarrow")
    nodes = pandas.DataFrame({"id ": ["a", "b", "c"], "label ": ["x", "y", "x"], "v": [1, 2, 4]})
    edges = pandas.DataFrame({"source": ["a", "b"], " target": ["b", "c"]}, index=[4, 9])
    nodes.set_axis([7, 3, 5]).to_parquet(tmp_path / "nodes.parquet")
    edges.to_parquet(tmp_path / "edges.parquet")
    graph = load(tmp_path, draw_split=False)
    assert (graph.feature_names, graph.class_names) == (["v"], ["x", "y"])
    assert links(graph) == [("a", "b"), ("b", "c")]
    stored = load(convert(tmp_path, tmp_path / "store").path, draw_split=False)
    assert (stored.feature_names, stored.class_names) == (["v"], ["x", "y"])
    nodes.assign(label=1).to_parquet(tmp_path / "nodes.parquet")
    with pytest.raises(DataError, match="nodes.parquet: every column needs a name of its own"):
        load(tmp_path)
