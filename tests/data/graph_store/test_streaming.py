"""A source that is read in parts gives the same store as one that is read at once."""

import sys

import numpy as np
import pandas as pd
import pytest

from argnn.data import load
from argnn.data.graph_store import converting, streaming
from argnn.data.graph_store.converting import convert
from argnn.errors import ConfigError, DataError

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def streamed(monkeypatch):
    """Let every table be too large for memory, and parts be small."""

    def start():
        monkeypatch.setattr(converting, "STREAMED_FROM", 0)
        monkeypatch.setattr(converting, "load_with_or_without_split", None)
        monkeypatch.setattr(streaming, "_TEXT_AT_ONCE", 60)
        monkeypatch.setattr(streaming, "_ROWS_AT_ONCE", 3)
        monkeypatch.setattr(streaming, "_EDGES_AT_ONCE", 5)
        monkeypatch.setattr(streaming, "_NODES_AT_ONCE", 2)

    return start


@pytest.fixture
def same_store(tmp_path, streamed, same_graph):
    """Convert at once and in parts, and compare all files byte by byte."""

    def check(source, **options):
        at_once = convert(source, tmp_path / "at once", **options).path
        streamed()
        in_parts = convert(source, tmp_path / "in parts", memory=500, **options).path
        names = sorted(path.name for path in at_once.iterdir())
        assert sorted(path.name for path in in_parts.iterdir()) == names
        headers = [path.joinpath("store.json").read_text() for path in (at_once, in_parts)]
        assert headers[0] == headers[1]
        for name in names:
            assert (at_once / name).read_bytes() == (in_parts / name).read_bytes(), name
        return load(in_parts, directed=options.get("directed", False), task="auto")

    return check


OPTIONS = [
    {},
    {"directed": True},
    {"weight": "strength"},
    {"time": "day"},
    {"time": "day", "weight": "strength", "directed": True},
    {"features": "degree", "standardize": True, "drop": ("color",)},
    {"features": "degree", "directed": True},
    {"features": "random", "row_normalize": True, "seed": 3},
    {"label": "color", "drop": ("label",)},
    {"label": "height", "task": "regression"},
    {"label": "color", "task": "multilabel", "drop": ("label",)},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_folder(same_store, table_folder, kind, options):
    if kind == "parquet":
        for name in ("nodes", "edges"):
            path = table_folder / f"{name}.csv"
            pd.read_csv(path).to_parquet(path.with_suffix(".parquet"))
            path.unlink()
    stored = same_store(table_folder, **options)
    assert stored.node_ids == ["ann", "bob", "cid", "dee", "eve, the last"]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("ids", [[0, 1, 2, 3, 4], [7, -3, 10**15, 0, 5]], ids=str)
def test_folder_with_integer_ids(same_store, tmp_path, kind, ids):
    folder = tmp_path / "tables"
    folder.mkdir()
    nodes = pd.DataFrame({"id": ids, "x": [1.0, 2.0, 3.0, 4.0, 5.0], "y": [0, 1, 0, 1, 0]})
    ends = np.array(ids)[np.random.default_rng(0).integers(0, 5, size=(2, 12))]
    edges = pd.DataFrame({"from": ends[0], "to": ends[1], "weight": range(12)})
    for name, table in (("nodes", nodes), ("edges", edges)):
        getattr(table, f"to_{kind}")(folder / f"{name}.{kind}", index=False)
    assert same_store(folder).node_ids == ids


def test_edge_list_of_integers(same_store, edge_list):
    same_store(edge_list, features="degree")


def test_edge_list_of_integers_with_directions(same_store, edge_list):
    same_store(edge_list, features="random", directed=True)


@pytest.mark.parametrize(
    "text",
    [
        "a b\nb c\nc a\n",
        "1 2\n2 3\n3 x\nx 1\n" * 9,
        "007 8\n8 9\n",
        "7,8\n8,9\n9,10\n" * 5,
        "source,target,weight\na,b,1\n" + "b,c,0\n" * 9,
        "x;y\n" + '"a\nb";c\n' * 30,
        "% comment\n\n\n1\t2\n# more\n2\t3",
        "1 2 0.5\r\n2 3 0.25\r\n3 1 0\r\n" * 4,
        "\ufeff1 2\n2 3\n",
        "from;to;since\nö;ß;1\nß;ö;2\n" + "ß;é;2\n" * 20,
    ],
    ids=lambda text: repr(text[:9]),
)
def test_edge_list_of_any_form(same_store, tmp_path, text):
    path = tmp_path / "edges.csv"
    path.write_bytes(text.encode())
    same_store(path, features="degree")


def test_edge_list_with_weights(same_store, tmp_path):
    path = tmp_path / "edges.txt"
    path.write_text("1 2 0.5\n2 3 0.25\n3 1 0\n1 4 2\n")
    stored = same_store(path, features="degree", weight="weight")
    assert "1 edges of weight 0 left out" in stored.notes


@pytest.mark.parametrize("kind", ["int64", "float64", "str"])
def test_parquet_without_a_table_of_nodes(same_store, tmp_path, kind):
    folder = tmp_path / "tables"
    folder.mkdir()
    ends = np.random.default_rng(0).integers(5, 30, size=(2, 40)).astype(kind)
    pd.DataFrame({"a": ends[0], "b": ends[1]}).to_parquet(folder / "edges.parquet")
    stored = same_store(folder, features="degree")
    assert stored.node_ids == sorted(stored.node_ids)


def test_no_edges(same_store, table_folder):
    (table_folder / "edges.csv").write_text("source,target\n")
    same_store(table_folder)


def test_no_labels(same_store, table_folder):
    text = (table_folder / "nodes.csv").read_text()
    (table_folder / "nodes.csv").write_text(text.replace("label", "taste").replace("split", "s"))
    same_store(table_folder)


BAD = [
    ("edges.csv", "cid,dee,2,2024-01-05", "cid,dan,2,2024-01-05", {}),
    ("edges.csv", "cid,dee,2,2024-01-05", ",dee,2,2024-01-05", {}),
    ("edges.csv", "cid,dee,2,2024-01-05", "cid,dee,2", {}),
    ("edges.csv", "cid,dee,4,2024-01-04", "cid,dee,-4,2024-01-04", {"weight": "strength"}),
    ("edges.csv", "cid,dee,4,2024-01-04", "cid,dee,heavy,2024-01-04", {"weight": "strength"}),
    ("edges.csv", "cid,dee,4,2024-01-04", "cid,dee,4,17", {"time": "day"}),
    ("edges.csv", "cid,dee,4,2024-01-04", "cid,dee,4,", {"time": "day"}),
    ("edges.csv", "ann,cid,0.1", '"ann,cid,0.1', {}),
    ("edges.csv", "ann,cid", "a\0nn,cid", {}),
    ("edges.csv", "source,target,strength,day", "1,2,3,4", {}),
    ("nodes.csv", "bob,", "ann,", {}),
    ("nodes.csv", "bob,", ",", {}),
    ("nodes.csv", "dee,4,green,y,test", "dee,4,green,y,exam", {}),
    ("nodes.csv", "dee,4,green,y,test", "dee,4,green,y", {}),
    ("nodes.csv", "dee,4,", "dee,1e39,", {}),
    ("nodes.csv", "dee,4,", "dee,-4,", {"row_normalize": True, "drop": ("color",)}),
    ("nodes.csv", "name,height", "name,name", {}),
    ("nodes.csv", "height", "height", {"label": "age"}),
    ("nodes.csv", "height", "height", {"node_id": "age"}),
    ("nodes.csv", "height", "height", {"drop": ("age",)}),
    ("nodes.csv", "height", "height", {"weight": "age"}),
]


@pytest.mark.parametrize(("file", "old", "new", "options"), BAD, ids=range(len(BAD)))
def test_the_same_line_about_a_mistake(table_folder, tmp_path, streamed, file, old, new, options):
    path = table_folder / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    with pytest.raises((DataError, ConfigError)) as at_once:
        convert(table_folder, tmp_path / "store", **options)
    before = sorted(tmp_path.rglob("*"))
    streamed()
    with pytest.raises(at_once.type) as in_parts:
        convert(table_folder, tmp_path / "store", **options)
    assert str(in_parts.value) == str(at_once.value)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("options", [{}, {"features": "laplacian"}, {"features": "onehot"}])
def test_features_that_are_not_there(edge_list, tmp_path, streamed, options):
    streamed()
    message = "no features" if not options else "cannot be made of a graph of this size"
    with pytest.raises(DataError, match=message):
        convert(edge_list, tmp_path / "store", **options)
    assert not (tmp_path / "store").exists()


def test_too_many_texts(edge_list, tmp_path, streamed, monkeypatch):
    monkeypatch.setattr("argnn.data.node_ids.MOST_TEXTS", 3)
    edge_list.write_text("a b\nb c\nc d\n")
    streamed()
    with pytest.raises(DataError, match="edges.txt: more than 3 ids that are no integers"):
        convert(edge_list, tmp_path / "store", features="degree")


def test_row_without_an_end_is_refused_before_memory_is_full(edge_list, tmp_path, streamed):
    edge_list.write_text('"a,b\n' + "c,d\n" * 1000)
    streamed()
    with pytest.raises(DataError, match="line 1: a row or a text in quotes has no end"):
        convert(edge_list, tmp_path / "store", features="degree")


def test_parquet_that_claims_too_much_or_is_damaged(tmp_path, streamed):
    column = pa.array([0]).take(pa.array([0] * 1000))
    chunks = pa.chunked_array([column] * 40_000)
    path = tmp_path / "tables" / "edges.parquet"
    path.parent.mkdir()
    pq.write_table(pa.table({"source": chunks, "target": chunks}), path, compression="zstd")
    streamed()
    with pytest.raises(DataError, match="edges.parquet: .* would fill the memory"):
        convert(path.parent, tmp_path / "store", features="degree")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DataError, match="edges.parquet: not a readable Parquet file"):
        convert(path.parent, tmp_path / "store", features="degree")
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["tables"]


def test_missing_library_is_named(table_folder, tmp_path, streamed, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    streamed()
    with pytest.raises(DataError, match="nodes.csv: a table of this size needs pyarrow"):
        convert(table_folder, tmp_path / "store")


def test_small_sources_are_read_at_once(table_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(converting, "write_streamed", None)
    assert convert(table_folder, tmp_path / "store").num_nodes == 5
