"""``argnn predict``: the table, and what is never overwritten."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from argnn.data import load

TINY = ("--model=gcn", "--epochs=3")


@pytest.fixture
def run(argnn, small_npz):
    """A run on the small graph; returns the path of the graph."""
    path = small_npz()
    assert argnn("train", path, *TINY, "--split=0,1", "--workers=1", "--out=run").code == 0
    return path


def rows_of(path: str) -> list[dict[str, str]]:
    with Path(path).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_table_of_the_run_itself(argnn, run):
    done = argnn("predict", "run", "--out=p.csv")
    assert (done.code, done.err) == (0, "")
    assert "90 nodes with gcn" in done.out
    assert "expected calibration error" in done.out
    rows = rows_of("p.csv")
    assert list(rows[0]) == ["id", "class", "p_0", "p_1", "p_2"]
    assert [row["id"] for row in rows] == [str(node) for node in range(90)]
    for row in rows:
        chances = [float(row[f"p_{label}"]) for label in range(3)]
        assert sum(chances) == pytest.approx(1, abs=1e-5)
        assert chances[int(row["class"])] == max(chances)


def test_table_agrees_with_the_scores(argnn, run):
    argnn("predict", "run", "--split=1", "--out=p.csv")
    predicted = np.array([int(row["class"]) for row in rows_of("p.csv")])
    with np.load(run) as stored:
        test, y = stored["test_mask"][:, 1], stored["y"]
    scores = json.loads(Path("run/split-1/result.json").read_text())
    assert (predicted == y)[test].mean() == pytest.approx(scores["test"]["accuracy"])


def test_another_graph_without_labels(argnn, run, tmp_path):
    rng = np.random.default_rng(1)
    path = tmp_path / "new.npz"
    np.savez(path, x=rng.normal(size=(7, 3)), edge_index=rng.integers(0, 7, size=(2, 20)))
    done = argnn("predict", "run", path, "--out=p.csv", "--json")
    assert (done.code, done.err) == (0, "")
    report = json.loads(done.out)
    assert (report["rows"], report["task"], report["out"]) == (7, "node", "p.csv")
    assert sum(report["counts"].values()) == 7
    assert len(rows_of("p.csv")) == 7


def test_another_graph_is_told_about_by_what_training_learned(argnn, small_npz, tmp_path):
    options = ("--preset=paper", "--set=metric=both", "--epochs=3")
    assert argnn("train", small_npz(), *options, "--out=run").code == 0
    rng = np.random.default_rng(1)
    x, edge_index = rng.normal(size=(57, 3)), rng.integers(0, 7, size=(2, 20))
    np.savez(tmp_path / "alone.npz", x=x[:7], edge_index=edge_index)
    np.savez(tmp_path / "beside.npz", x=x, edge_index=edge_index)
    for name in ("alone", "beside"):
        assert argnn("predict", "run", tmp_path / f"{name}.npz", f"--out={name}.csv").code == 0
    for alone, beside in zip(rows_of("alone.csv"), rows_of("beside.csv")[:7], strict=True):
        for label in range(3):
            chance = float(alone[f"p_{label}"])
            assert float(beside[f"p_{label}"]) == pytest.approx(chance, abs=1e-5)


def test_existing_table_is_kept_unless_forced(argnn, refused, run):
    Path("p.csv").write_text("mine")
    refused("predict", "run", "--out=p.csv", message="p.csv: is there already; --force replaces")
    assert argnn("predict", "run", "--out=p.csv", "--force").code == 0
    assert len(rows_of("p.csv")) == 90


def test_links_are_not_written_through(refused, run):
    Path("p.csv").symlink_to("target.csv")
    refused("predict", "run", "--out=p.csv", message="symbolic link")
    refused("predict", "run", "--out=p.csv", "--force", message="symbolic link")
    Path("folder").mkdir()
    refused("predict", "run", "--out=folder", "--force", message="is a folder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such folder"),
        (["run", "--split=7"], "run: has no split 7 (there are 0, 1)"),
        (["run", "none.npz"], "none.npz: no such file"),
        (["run", "coar"], "unknown data set 'coar'"),
        (["run", "mixed"], "3 features"),
        (["run", "--pairs=x.csv"], "--pairs belongs to a model of links"),
        (["run/split-0/model"], "does not say which graph"),
        (["run/split-0"], "holds neither a model"),
        (["run/split-0/model", "--split=0"], "holds one model and no splits"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(refused, run, arguments, message):
    refused("predict", *arguments, "--out=p.csv", message=message)


def test_unfinished_run(refused, run):
    for path in Path("run/split-0/model").iterdir():
        path.unlink()
    refused("predict", "run", "--out=p.csv", message="split 0 has no model; is the run finished?")


def test_model_folder_with_a_graph(argnn, run):
    assert argnn("predict", "run/split-1/model", run, "--out=a.csv").code == 0
    assert argnn("predict", "run", "--split=1", "--out=b.csv").code == 0
    assert Path("a.csv").read_bytes() == Path("b.csv").read_bytes()


def test_class_names_cannot_steer_the_terminal(argnn, small_npz):
    import torch

    from argnn import ARGNNClassifier
    from argnn.data import load

    graph = load(small_npz())
    names = np.array(["\x1b[31mred", "[bold]b[/bold]", "=1+1"], dtype=object)[graph.y.numpy()]
    torch.set_num_threads(1)
    ARGNNClassifier("gcn", epochs=1, device="cpu").fit(graph, names).save("model")
    done = argnn("predict", "model", small_npz(), "--out=p.csv")
    assert done.code == 0
    assert "\x1b" not in done.out
    assert sum(row["class"] in names for row in rows_of("p.csv")) == 90


# ---- links -------------------------------------------------------------------------------------


@pytest.fixture
def link_run(argnn, small_npz):
    assert argnn("train", small_npz(), *TINY, "--task=link", "--out=run").code == 0


def test_pairs(argnn, link_run):
    Path("pairs.csv").write_text("source,target\n0,1\n\n88,3\n")
    done = argnn("predict", "run", "--pairs=pairs.csv", "--out=p.csv")
    assert (done.code, done.err) == (0, "")
    assert "2 pairs with gcn" in done.out
    rows = rows_of("p.csv")
    assert [(row["source"], row["target"]) for row in rows] == [("0", "1"), ("88", "3")]
    assert all(0 < float(row["probability"]) < 1 and row["link"] in "01" for row in rows)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "line 1: the columns must be source,target"),
        (b"a,b\n0,1\n", "line 1: the columns must be source,target"),
        (b"source,target\n", "has no pairs"),
        (b"source,target\n0,1\n0,x9\n", "line 3, column target: unknown node 'x9'"),
        (b"source,target\n0,1,2\n", "line 2: two columns are expected (got 3)"),
        (b"source,target\n\xff\xfe,1\n", "not a CSV file"),
        (b'source,target\n"0,1\n', "not a CSV file"),
        (b"source,target\n0," + b"9" * 200_000 + b"\n", "not a CSV file"),
    ],
    ids=lambda value: str(value)[:25],
)
def test_bad_pairs(refused, link_run, content, message):
    Path("pairs.csv").write_bytes(content)
    refused("predict", "run", "--pairs=pairs.csv", "--out=p.csv", message=message)


def test_links_need_pairs(refused, link_run):
    refused("predict", "run", "--out=p.csv", message="a model of links needs --pairs FILE")
    refused("predict", "run", "--pairs=none.csv", "--out=p.csv", message="none.csv: no such file")
    both = ("--pairs=p.csv", "--new-nodes=n.csv")
    refused("predict", "run", *both, message="--new-nodes belongs to a model of classes")


# ---- a folder of tables -------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path) -> Path:
    """Text ids, a missing value, a category, and five unlabelled nodes."""
    rng = np.random.default_rng(0)
    classes = ["ant", "bee", "cat"]
    lines = ["id,height,color,label"]
    for node in range(60):
        height = "" if node == 3 else f"{node % 3 + rng.normal():.3f}"
        label = "" if node >= 55 else classes[node % 3]
        lines.append(f"node {node},{height},{['red', 'blue'][node % 2]},{label}")
    edges = [f"node {a},node {b}" for a, b in rng.integers(0, 60, size=(150, 2))]
    path = tmp_path / "mine"
    path.mkdir()
    (path / "nodes.csv").write_text("\n".join(lines) + "\n")
    (path / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n")
    return path


def test_ids_and_class_names_come_back(argnn, folder):
    assert argnn("train", folder, *TINY, "--out=run").code == 0
    done = argnn("predict", "run", "--out=p.csv")
    assert (done.code, done.err) == (0, "")
    rows = rows_of("p.csv")
    assert list(rows[0]) == ["id", "class", "p_ant", "p_bee", "p_cat"]
    assert [row["id"] for row in rows] == [f"node {node}" for node in range(60)]
    assert {row["class"] for row in rows} <= {"ant", "bee", "cat"}


def test_ids_and_classes_that_a_spreadsheet_would_run(argnn, folder, tmp_path):
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("node ", "=n").replace("ant", "@ant"))
    assert argnn("train", folder, *TINY, "--out=run").code == 0
    assert argnn("predict", "run", "--out=p.csv").code == 0
    rows = rows_of("p.csv")
    assert [row["id"] for row in rows] == [f"'=n{node}" for node in range(60)]
    assert {row["class"] for row in rows} <= {"'@ant", "bee", "cat"}
    # The table is a table of nodes again, with the ids as they were.
    again = tmp_path / "again"
    again.mkdir()
    (again / "nodes.csv").write_text(Path("p.csv").read_text())
    (again / "edges.csv").write_text((folder / "edges.csv").read_text())
    assert load(again).node_ids == [f"=n{node}" for node in range(60)]


def test_pairs_that_a_spreadsheet_would_run(argnn, folder):
    for path in folder.iterdir():
        path.write_text(path.read_text().replace("node ", "=n"))
    assert argnn("train", folder, *TINY, "--task=link", "--out=run").code == 0
    for number, pairs in enumerate(("=n0,=n1\n", "'=n0,'=n1\n")):
        Path("pairs.csv").write_text("source,target\n" + pairs)
        done = argnn("predict", "run", "--pairs=pairs.csv", f"--out={number}.csv")
        assert done.code == 0, done
        assert rows_of(f"{number}.csv")[0]["source"] == "'=n0"


def test_worker_processes_know_names_and_schema(folder, tmp_path):
    from argnn.data import load
    from argnn.runs.pool import pack, unpacked

    graph = load(folder)
    pack(graph, tmp_path / "packed")
    found = unpacked(tmp_path / "packed")
    assert found.class_names == graph.class_names == ["ant", "bee", "cat"]
    assert found.schema == json.loads(json.dumps(graph.schema))


def test_card_of_a_run(argnn, folder):
    assert argnn("train", folder, *TINY, "--out=run").code == 0
    card = Path("run/split-0/model/README.md").read_text()
    assert "3 classes: ant, bee, cat" in card
    assert "expected calibration error on the test set" in card
    assert "test (scored once, after training): f1 " in card


def test_new_folder_without_labels_is_encoded_alike(argnn, folder, tmp_path):
    assert argnn("train", folder, *TINY, "--out=run").code == 0
    new = tmp_path / "new"
    new.mkdir()
    (new / "nodes.csv").write_text("id,height,color\nx,1.0,red\ny,,blue\nz,2.0,green\n")
    (new / "edges.csv").write_text("source,target\nx,y\ny,z\n")
    done = argnn("predict", "run", new, "--out=p.csv")
    assert (done.code, done.err) == (0, "")
    assert [row["id"] for row in rows_of("p.csv")] == ["x", "y", "z"]
    assert "green" in done.out  # a category that the model has never seen is noted


def test_column_that_is_missing(argnn, refused, folder, tmp_path):
    assert argnn("train", folder, *TINY, "--out=run").code == 0
    new = tmp_path / "new"
    new.mkdir()
    (new / "nodes.csv").write_text("id,height\nx,1.0\ny,2.0\n")
    (new / "edges.csv").write_text("source,target\nx,y\n")
    refused("predict", "run", new, "--out=p.csv", message="color")


# ---- new nodes -----------------------------------------------------------------------------------


@pytest.fixture
def shop(tmp_path):
    """A folder of customers, the same with two more, and files of these two alone."""
    rng = np.random.default_rng(0)
    nodes = [f"c{n},{rng.normal() + n % 2:.4f},{'Ulm' if n % 2 else 'Bonn'}" for n in range(42)]
    edges = [f"c{a},c{b}" for a, b in rng.integers(0, 40, (120, 2)) if (a - b) % 2 == 0]
    more = ["c40,c3", "c7,c40", "c41,c40"]
    labels = ["xy"[n % 2] for n in range(40)] + ["", ""]
    for name, count, listed in (("shop", 40, edges), ("grown", 42, edges + more)):
        (tmp_path / name).mkdir()
        rows = [f"{row},{label}" for row, label in zip(nodes, labels, strict=True)][:count]
        lines = ["id,age,town,label", *rows]
        (tmp_path / name / "nodes.csv").write_text("\n".join(lines) + "\n")
        (tmp_path / name / "edges.csv").write_text("\n".join(["source,target", *listed]) + "\n")
    (tmp_path / "n.csv").write_text("\n".join(["id,age,town", *nodes[40:]]) + "\n")
    (tmp_path / "e.csv").write_text("\n".join(["source,target", *more]) + "\n")
    return tmp_path


def weigh(path: Path, first: int = 1) -> int:
    """Add a column of weights to a table of edges; gives its number of lines."""
    lines = path.read_text().splitlines()
    weights = [f"{line},{0.25 + (first + n) % 3}" for n, line in enumerate(lines[1:])]
    path.write_text("\n".join([f"{lines[0]},kg", *weights]) + "\n")
    return len(lines)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("model", ["gcn", "argnn"])
def test_new_nodes_have_the_rows_of_the_grown_graph(argnn, shop, model, weighted):
    train = ("train", shop / "shop", "--standardize", f"--model={model}", "--epochs=3")
    if weighted:
        train = (*train, "--weight=kg")
        weigh(shop / "grown" / "edges.csv")
        weigh(shop / "e.csv", weigh(shop / "shop" / "edges.csv"))
    assert argnn(*train, "--workers=1", "--out=run").code == 0
    new = (f"--new-nodes={shop / 'n.csv'}", f"--new-edges={shop / 'e.csv'}")
    done = argnn("predict", "run", *new, "--out=new.csv")
    assert (done.code, done.err) == (0, "")
    assert f"shop: 2 nodes with {model}" in done.out
    assert argnn("predict", "run/split-0/model", shop / "shop", *new, "--out=same.csv").code == 0
    assert argnn("predict", "run", shop / "grown", "--out=grown.csv").code == 0
    expected = rows_of("grown.csv")[40:]
    for found in (rows_of("new.csv"), rows_of("same.csv")):
        assert [row["id"] for row in found] == ["c40", "c41"]
        for row, told in zip(found, expected, strict=True):
            assert row["class"] == told["class"]
            assert float(row["p_x"]) == pytest.approx(float(told["p_x"]), abs=2e-6)


def test_weights_with_decimal_commas_are_read_as_in_training(argnn, tmp_path):
    for name in ("comma", "point"):
        (tmp_path / name).mkdir()
        nodes = [f"c{n};{n % 7},5;{'xy'[n % 2]}" for n in range(30)]
        edges = [f"c{n};c{(n * 7 + 1) % 30};{n % 3},25" for n in range(30)]
        tables = {"nodes": ["id;age;label", *nodes], "edges": ["source;target;kg", *edges]}
        tables |= {"n": ["id;age", "z;0,5"], "e": ["source;target;kg", "z;c3;0,75"]}
        for table, lines in tables.items():
            text = "\n".join(lines).replace(",", "," if name == "comma" else ".")
            (tmp_path / name / f"{table}.csv").write_text(text + "\n")
        folder, words = tmp_path / name, ("--decimal=,",) if name == "comma" else ()
        train = ("train", folder, "--model=gcn", "--epochs=2", "--weight=kg", *words)
        assert argnn(*train, "--workers=1", f"--out={name}-run").code == 0
        new = (f"--new-nodes={folder / 'n.csv'}", f"--new-edges={folder / 'e.csv'}")
        assert argnn("predict", f"{name}-run", f"--out={name}.csv").code == 0
        assert argnn("predict", f"{name}-run", *new, f"--out={name}-new.csv").code == 0
    for end in (".csv", "-new.csv"):
        assert Path(f"comma{end}").read_text() == Path(f"point{end}").read_text()


def test_new_nodes_of_a_graph_of_arrays(argnn, run, tmp_path):
    with np.load(run) as stored:
        x, edge_index = stored["x"], stored["edge_index"]
    more = np.array([[90, 4], [3, 91]])
    np.savez(tmp_path / "new.npz", x=np.ones((2, 3)), edge_index=more)
    grown = np.concatenate([edge_index, more], axis=1)
    np.savez(tmp_path / "all.npz", x=np.concatenate([x, np.ones((2, 3))]), edge_index=grown)
    assert argnn("predict", "run", f"--new-nodes={tmp_path / 'new.npz'}", "--out=new.csv").code == 0
    assert argnn("predict", "run", tmp_path / "all.npz", "--out=all.csv").code == 0
    for row, told in zip(rows_of("new.csv"), rows_of("all.csv")[90:], strict=True):
        assert row["id"] == told["id"]
        assert float(row["p_1"]) == pytest.approx(float(told["p_1"]), abs=2e-6)


def test_bad_new_nodes(refused, run):
    Path("n.csv").write_text("id,a,b,c\n90,1,2,3\n")
    Path("twice.csv").write_text("id,a,b,c\n89,1,2,3\n")
    Path("few.csv").write_text("id,a,b\n90,1,2\n")
    Path("e.csv").write_text("source,target\n90,1\n2,91\n")
    for arguments, message in {
        ("--new-nodes=n.csv", "--new-edges=e.csv"): "e.csv, line 3, column target: unknown node",
        ("--new-nodes=twice.csv",): "twice.csv, line 2, column id: node '89' is in the graph",
        ("--new-nodes=few.csv",): "few.csv: the model was trained with 3 features (got 2)",
        ("--new-nodes=none.csv",): "none.csv: no such file",
        ("--new-edges=e.csv",): "--new-edges needs --new-nodes FILE",
    }.items():
        refused("predict", "run", *arguments, "--out=p.csv", message=message)


def test_importances_of_a_run(argnn, run):
    done = argnn("importances", "run", "--split=1", "--repeats=1")
    assert (done.code, done.err) == (0, "")
    assert "fall of the validation score" in done.out
    rows = rows_of("importances.csv")
    assert {row["column"] for row in rows} == {"feature 0", "feature 1", "feature 2"}
    falls = [float(row["importance"]) for row in rows]
    assert falls == sorted(falls, reverse=True)
    again = argnn("importances", "run")
    assert (again.code, "is there already" in again.err) == (2, True)
    assert json.loads(argnn("importances", "run", "--force", "--json").out)["model"] == "gcn"
