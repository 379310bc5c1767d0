"""``argnn inspect``: what a person sees and what a machine reads of a graph of their own."""

import json
from pathlib import Path

import numpy as np
import pytest

from planted_twins import write_twins


@pytest.fixture
def people():
    """A folder with two triangles, a lone node, gaps in every column, and one node unlabelled."""
    folder = Path("people")
    folder.mkdir()
    (folder / "edges.csv").write_text(
        "source,target,weight\na,b,1\nb,c,1\nc,a,1\nd,e,2\ne,f,1\nf,d,1\nf,d,1\nd,d,1\n"
    )
    (folder / "nodes.csv").write_text(
        "id,age,job,member,same,label\na,1,cook,true,7,u\nb,,cook,false,7,u\nc,3,smith,true,7,u\n"
        "d,4,,true,7,v\ne,5,smith,false,7,v\nf,6,cook,true,7,v\ng,7,cook,true,7,\n"
    )
    return folder


def inspected(argnn, *arguments):
    done = argnn("inspect", *arguments, "--json")
    assert (done.code, done.err) == (0, ""), done
    return json.loads(done.out)


def test_facts_of_a_folder(argnn, people):
    report = inspected(argnn, people)
    assert {key: report[key] for key in ("name", "nodes", "edges", "directed", "features")} == {
        "name": "people",
        "nodes": 7,
        "edges": 6,
        "directed": False,
        "features": 6,
    }
    assert report["degrees"] == {"min": 0, "median": 2.0, "mean": 12 / 7, "max": 2}
    assert (report["isolated"], report["unlabelled"]) == (1, 1)
    assert report["components"] == {"count": 3, "largest": 3}
    assert report["homophily"] == {"edge": 1.0, "node": 1.0}
    assert report["classes"] == [
        {"name": "u", "nodes": 3, "share": 0.5},
        {"name": "v", "nodes": 3, "share": 0.5},
    ]
    assert report["splits"] == {"count": 0, "train": 0, "val": 0, "test": 0}
    became = {row["column"]: row["became"] for row in report["columns"]}
    assert became == {
        "id": "the ids of the nodes",
        "age": "a number, standardized, with a mark where it is missing",
        "job": "words, one feature for each of 2",
        "member": "true or false",
        "same": "a number, standardized",
        "label": "the class, one of 2",
    }


def test_notes_and_warnings(argnn, people):
    report = inspected(argnn, people)
    notes = " | ".join(report["notes"])
    for part in ("column weight ignored", "1 self-loops", "1 duplicate", "1 missing words"):
        assert part in notes
    warnings = " | ".join(report["warnings"])
    assert "features that are the same for all nodes: same" in warnings
    assert "classes of fewer than 5 nodes: u, v" in warnings
    assert "there are too few labels to draw a split: give a column split" in warnings
    assert "14 % of the nodes have no edges" in warnings
    assert "the graph falls into 3 parts; the largest holds 3 of 7 nodes" in warnings


def test_a_person_sees_the_same(argnn, people):
    done = argnn("inspect", people)
    assert (done.code, done.err) == (0, "")
    for part in ("people", "6 undirected", "1.00 of edges", "the class, one of 2", "Warning: 14 %"):
        assert part in done.out
    assert not Path("runs").exists()


def test_directed_and_weighted(argnn, people):
    report = inspected(argnn, people, "--directed", "--weight=weight")
    assert (report["directed"], report["weighted"], report["edges"]) == (True, True, 6)
    assert report["degrees"]["max"] == 2


def test_graph_without_features_or_labels(argnn):
    Path("web.txt").write_text("# SNAP\n1 2\n2 3\n")
    report = inspected(argnn, "web.txt")
    assert (report["features"], report["classes"]) == (0, [])
    assert report["homophily"] == {"edge": None, "node": None}
    assert any("have no features: choose some with --features" in w for w in report["warnings"])
    assert any("no labels: only links can be learned" in w for w in report["warnings"])
    assert inspected(argnn, "web.txt", "--features=degree")["features"] == 18


def test_columns_can_be_chosen(argnn, people):
    report = inspected(argnn, people, "--label=job", "--drop=same", "--drop=label")
    assert [row["name"] for row in report["classes"]] == ["cook", "smith"]
    assert "same" not in {row["column"] for row in report["columns"]}


def test_registered_graph(argnn):
    report = inspected(argnn, "mixed")
    assert (report["nodes"], report["edges"], report["columns"]) == (1648, 5995, [])
    assert report["splits"]["count"] == 10


def test_dominant_class_unequal_scales_and_no_edges(argnn, small_npz):
    y = np.zeros(90, dtype=int)
    y[:6] = 1
    x = np.random.default_rng(0).normal(size=(90, 2)) * [1, 1e5]
    masks = {name: np.zeros(90, dtype=bool) for name in ("train_mask", "val_mask", "test_mask")}
    masks["train_mask"][50:], masks["val_mask"][:50] = True, True
    path = small_npz(x=x, y=y, edge_index=np.zeros((2, 0), dtype=int), **masks)
    warnings = " | ".join(inspected(argnn, path)["warnings"])
    assert "93 % of the labelled nodes are of class 0: look at the macro F1" in warnings
    assert "consider --standardize" in warnings
    assert "classes without a training node in the first split: class 1" in warnings
    assert "there are no test nodes" in warnings
    assert "there are no edges" in warnings


@pytest.mark.parametrize("both", [False, True])
def test_validation_nodes_of_one_class(argnn, small_npz, both):
    graph = dict(np.load(small_npz()))
    if not both:
        graph["val_mask"] &= graph["y"][:, None] == 0
    warnings = " | ".join(inspected(argnn, small_npz(**graph))["warnings"])
    assert ("all validation nodes of the first split are of class 0:" in warnings) != both


def test_column_that_is_the_label_again(argnn):
    folder = Path("leak")
    folder.mkdir()
    rows = [f"{i},{i % 5},{'pq'[i % 2]},{i * 1.5},{'uv'[i % 2]}" for i in range(20)]
    (folder / "nodes.csv").write_text("id,five,copy,all,label\n" + "\n".join(rows))
    (folder / "edges.csv").write_text("source,target\n0,1\n")
    told = [w for w in inspected(argnn, folder)["warnings"] if "tells the class" in w]
    again = "--drop copy if it is the label again"
    assert told == [f"column copy tells the class of every labelled node: {again}"]


def test_hostile_names_do_not_reach_the_terminal(argnn):
    folder = Path("evil")
    folder.mkdir()
    (folder / "edges.csv").write_text("source,target\na,b\n")
    rows = "".join(f"{n},{i},\x1b[2J[red]{i % 2}\n" for i, n in enumerate("abcdefghij"))
    (folder / "nodes.csv").write_text("id,x,label\n" + rows)
    done = argnn("inspect", folder)
    assert (done.code, done.err) == (0, "")
    assert "\x1b" not in done.out
    assert "?[2J[red]0" in done.out
    (folder / "nodes.csv").write_text("id,\x1b]0;x\n" + rows)
    done = argnn("inspect", folder)
    assert done.code == 2
    assert "\x1b" not in done.err


def test_error_is_one_line(argnn, people):
    (people / "edges.csv").write_text("source,target\na,b\na,x9\n")
    done = argnn("inspect", people)
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "argnn: error: people/edges.csv, line 3, column target: unknown node 'x9'\n"
    )


def test_twins_are_warned_about(argnn, tmp_path):
    path = write_twins(tmp_path / "twins.npz")
    done = argnn("inspect", path)
    assert (done.code, done.err) == (0, "")
    assert "Warning: 8 of 18 test nodes over all splits (44.4 %) have a twin" in done.out
    assert "Of validation nodes with such a twin, 100 % are of its class." in done.out
    assert inspected(argnn, path)["twins"] == {
        "test": 18,
        "with_twin": 8,
        "share": 8 / 18,
        "same_class": 1.0,
    }
    # With directions kept, every leaf points at its hubs and no hub points anywhere.
    assert inspected(argnn, path, "--directed")["twins"]["with_twin"] == 8
