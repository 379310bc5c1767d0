import pytest

from argnn.data import load
from argnn.data.graph_store import converting
from argnn.errors import DataError

SNAP = """# Directed graph (each unordered pair of nodes is saved once): mini.txt
# Nodes: 4 Edges: 3
# FromNodeId\tToNodeId
30\t1412
30\t3352
5\t30
"""


@pytest.fixture
def edge_list(tmp_path):
    def write(text, name="mini.txt"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def test_snap_file(edge_list):
    graph = load(edge_list(SNAP), features="degree", directed=True)
    assert graph.node_ids == [5, 30, 1412, 3352]
    assert graph.edge_index.tolist() == [[0, 1, 1], [1, 2, 3]]
    assert graph.name == "mini"
    assert graph.class_count == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("% a comment\nann bob\nbob   cem\n", "a.txt"),
        ("source\ttarget\nann\tbob\n\nbob\tcem\n", "a.tsv"),
        ("Source,Target\nann,bob\nbob,cem\n", "a.csv"),
        ("ann,bob\nbob,cem\n", "a.csv"),
        ("ann;bob\nbob;cem", "a.edges"),
    ],
)
def test_words_headers_and_delimiters(edge_list, text, name):
    graph = load(edge_list(text, name), features="degree", directed=True)
    assert graph.node_ids == ["ann", "bob", "cem"]
    assert graph.edge_index.tolist() == [[0, 1], [1, 2]]


@pytest.mark.parametrize("sign", [",", "\t"])
def test_words_above_numbers_are_a_header(edge_list, tmp_path, monkeypatch, sign):
    path = edge_list(f"person{sign}friend\n7{sign}8\n8{sign}9\n", "a.csv")
    graph = load(path, features="degree", directed=True)
    assert (graph.node_ids, graph.edge_index.tolist()) == ([7, 8, 9], [[0, 1], [1, 2]])
    assert any("edges go from column person to column friend" in note for note in graph.notes)
    monkeypatch.setattr(converting, "STREAMED_FROM", 0)
    converting.convert(path, tmp_path / "store", features="degree", directed=True)
    assert load(tmp_path / "store", directed=True).edge_index.tolist() == graph.edge_index.tolist()


def test_third_column_is_a_weight_and_others_are_left_out(edge_list):
    path = edge_list("1 2 0.5 1999\n2 3 1.5 2000\n")
    graph = load(path, features="degree")
    assert any("column weight ignored" in note for note in graph.notes)
    assert any("columns left out: column 4" in note for note in graph.notes)
    assert load(path, features="degree", weight="weight").edge_weight.tolist() == [
        0.5,
        0.5,
        1.5,
        1.5,
    ]


def test_slow_and_fast_way_agree(edge_list):
    fast = load(edge_list("10 2\n2 7\n"), features="degree", directed=True)
    slow = load(edge_list("source target\n10 2\n2 7\n"), features="degree", directed=True)
    assert fast.node_ids == slow.node_ids == [2, 7, 10]
    assert fast.edge_index.tolist() == slow.edge_index.tolist()


def test_ids_beyond_64_bits_stay_words(edge_list):
    graph = load(edge_list(f"{10**30} 2\n2 3\n"), features="degree")
    assert graph.node_ids == [str(10**30), "2", "3"]


def test_node_table_beside_it_is_mentioned(edge_list, tmp_path):
    (tmp_path / "nodes.csv").write_text("id,x\n1,2\n")
    graph = load(edge_list("1 2\n"), features="degree")
    assert any("nodes.csv was not read: give the folder" in note for note in graph.notes)
    with pytest.raises(DataError, match=r"no features \(.*nodes.csv was not read: give the folder"):
        load(tmp_path / "mini.txt")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "there are no edges"),
        ("# only a comment\n", "there are no edges"),
        ("# c\n1 2\n3\n", r"line 3: expected 2 columns \(got 1\)"),
        ("1 2\n\n3 4 5\n", r"line 3: expected 2 columns \(got 3\)"),
        ("1\n2\n", "line 1: an edge needs two node ids"),
        ("1,2\n3,\n", "line 2, column target: a node id is missing"),
        ("source,target,Source\n1,2,3\n", "line 1: there are two columns of one name"),
        (b"1 2\n\xe9 3\n", "line 2: not UTF-8 text"),
        (b"1 2\n3 4\0\n", "line 2: holds a NUL byte"),
    ],
)
def test_bad_list_names_the_line(edge_list, text, message):
    with pytest.raises(DataError, match=message):
        load(edge_list(text), features="degree")


def test_options_of_a_node_table_need_one(edge_list):
    with pytest.raises(DataError, match="no node table to look for the labels 'kind' in"):
        load(edge_list("1 2\n"), label="kind")
