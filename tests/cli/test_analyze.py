"""``argnn analyze``: the page of a run, and what is never overwritten."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas
import pytest

from argnn.files import read_checked, with_digest
from browser import CHROMIUM, Browser
from planted_targets import parts, planted_values, rare_classes
from planted_twins import write_twins

TINY = ("--epochs=3", "--set=num_layers=2", "--set=hidden_channels=8")
EVIL = "<img src=x onerror=alert(1)>"


_TRAINED: list[Path] = []  # one training for the whole file; every test has its own copy


@pytest.fixture
def run(argnn, small_npz, tmp_path_factory):
    """A run on the small graph; returns the path of the graph."""
    if not _TRAINED:
        kept = tmp_path_factory.mktemp("kept")
        shutil.copy(small_npz(), kept / "small.npz")
        options = ("--preset=paper", "--split=0,1", "--workers=1", f"--out={kept / 'run'}")
        done = argnn("train", kept / "small.npz", *TINY, *options)
        assert done.code == 0, done
        _TRAINED.append(kept)
    shutil.copytree(_TRAINED[0] / "run", "run")
    return _TRAINED[0] / "small.npz"


def data_of(path: str) -> dict:
    text = Path(path).read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S).group(1))


def test_page_of_a_run(argnn, run):
    done = argnn("analyze", "run", "--out=r.html")
    assert (done.code, done.err) == (0, "")
    assert "90 nodes, argnn, split 0, 2 layers" in done.out
    found = data_of("r.html")
    scores = json.loads(Path("run/split-0/result.json").read_text())
    shown = {line["name"]: line["here"] for line in found["scores"]}
    assert shown["test accuracy"] == scores["test"]["accuracy"]
    assert found["scores"][0]["n"] == 2
    assert found["protocol"].startswith("epoch chosen by validation accuracy")
    assert found["curves"]["epoch"] == [1, 2, 3]
    assert found["curves"].keys() >= {"loss", "task_loss", "penalty"}
    assert len(found["rewired"]["held_out"]) == 2
    assert [layer["axes"] for layer in found["layers"]] == [3, 8]


def test_same_run_gives_the_same_page(argnn, run):
    for name in ("a.html", "b.html"):
        assert argnn("analyze", "run", f"--out={name}", "--split=1").code == 0
    assert Path("a.html").read_bytes() == Path("b.html").read_bytes()
    assert "split 1" in data_of("a.html")["title"]


def test_existing_page_is_kept_unless_forced(argnn, refused, run):
    Path("r.html").write_text("mine")
    refused("analyze", "run", "--out=r.html", message="is there already; --force replaces")
    assert argnn("analyze", "run", "--out=r.html", "--force", "--json").code == 0
    assert Path("r.html").read_text().startswith("<!doctype html>")
    Path("l.html").symlink_to("target.html")
    refused("analyze", "run", "--out=l.html", "--force", message="symbolic link")
    refused("analyze", "run", "--out=run", "--force", message="is a folder")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_tables_beside_the_page(argnn, run, kind):
    read = {"csv": pandas.read_csv, "parquet": pandas.read_parquet}[kind]
    options = ("--tables=geometry", f"--table-format={kind}", "--ollivier", "--json")
    done = argnn("analyze", "run", "--out=r.html", *options)
    assert (done.code, done.err) == (0, "")
    names = ["nodes", "layers", "groups", "correlations", "axes"]
    assert json.loads(done.out)["tables"] == [f"geometry/{name}.{kind}" for name in names]
    nodes = read(f"geometry/nodes.{kind}")
    assert len(nodes) == 2 * 90
    assert {"kappa", "anisotropy", "graph_ollivier", "learned_ollivier"} <= set(nodes)


def test_tables_are_refused_before_anything_is_written(argnn, refused, run, small_npz):
    analyze = ("analyze", "run", "--out=r.html", "--tables=geometry")
    refused(*analyze, "--table-format=xls", message="tables are written as csv or parquet")
    Path("geometry").mkdir()
    Path("geometry/axes.csv").write_text("mine")
    refused(*analyze, message="geometry/axes.csv: is there already; --force replaces it")
    refused("analyze", "run", "--out=r.html", "--tables=run/config.json", message="not a folder")
    assert argnn("train", small_npz(), "--model=gcn", "--epochs=2", "--out=flat").code == 0
    flat = ("analyze", "flat", "--out=r.html", "--tables=tables")
    refused(*flat, message="flat: its model learns no metric")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "nowhere: no such run folder"),
        (["run", "--split=7"], "run: has no split 7"),
        (["run/split-0"], "config.json: no such file"),
        (["run/split-0/model"], "config.json: no such file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(refused, run, arguments, message):
    refused("analyze", *arguments, "--out=r.html", message=message)


DAMAGE = {
    "config": ("config.json", b'{"run": 1', "not JSON"),
    "changed config": ("config.json", b'{"run": {}, "fingerprint": ""}', "was changed"),
    "result": ("split-0/result.json", b"{}", "has no 'split'"),
    "result without history": (
        "split-0/result.json",
        b'{"split":0,"test":{},"val":{},"chosen_epoch":1,"history":[]}',
        "damaged",
    ),
    "model": ("split-0/model/model.json", b"{}", "model.json"),
    "weights": ("split-0/model/model.safetensors", b"x" * 50, "model"),
}


@pytest.mark.parametrize("case", DAMAGE)
def test_damaged_run(refused, run, case):
    name, content, message = DAMAGE[case]
    (Path("run") / name).write_bytes(content)
    refused("analyze", "run", "--out=r.html", message=message)


def test_unfinished_run(refused, run):
    Path("run/split-0/result.json").unlink()
    refused("analyze", "run", "--out=r.html", message="split 0 has no result")


def test_graph_that_changed(refused, run, small_npz):
    before = run.read_bytes()
    try:
        shutil.copy(small_npz(x=np.ones((90, 3))), run)
        refused("analyze", "run", "--out=r.html", message="the graph has changed since the run")
    finally:
        run.write_bytes(before)


def test_model_without_metric(argnn, small_npz):
    assert argnn("train", small_npz(), "--model=gcn", "--epochs=2", "--out=run").code == 0
    done = argnn("analyze", "run", "--out=r.html")
    assert (done.code, done.err) == (0, "")
    assert "gcn learns no metric" in done.out
    found = data_of("r.html")
    assert (found["layers"], found["rewired"]) == ([], None)
    assert "task_loss" not in found["curves"]  # without a penalty it is the loss


def test_run_of_links(argnn, small_npz):
    done = argnn(
        "train", small_npz(), "--task=link", *TINY, "--preset=paper", "--split=0", "--out=run"
    )
    assert done.code == 0, done
    done = argnn("analyze", "run", "--out=r.html")
    assert (done.code, done.err) == (0, "")
    found = data_of("r.html")
    assert found["nodes"]["predicted"] is None
    assert len(found["layers"]) == 2
    assert dict(found["facts"])["Split"].startswith("0 (pairs of nodes at 85/5/10")
    assert found["rewired"]["held_out"] is None


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
def test_names_with_html_from_a_folder(argnn, tmp_path):
    """Class names, ids and a graph without edges, from files to the screen."""
    folder = tmp_path / "mine"
    folder.mkdir()
    lines = [f"<b>{n},{n % 2}.5,{['plain', EVIL][n % 2]}" for n in range(30)]
    (folder / "nodes.csv").write_text("\n".join(["id,size,label", *lines]) + "\n")
    (folder / "edges.csv").write_text("source,target\n")
    assert argnn("train", folder, *TINY, "--preset=paper", "--split=0", "--out=run").code == 0
    done = argnn("analyze", "run", "--out=r.html")
    assert (done.code, done.err) == (0, "")
    with Browser(tmp_path / "profile") as browser:
        browser.open(Path("r.html"))
        browser.js("document.getElementById('map').focus()")
        browser.key("p")
        text = browser.text("#detail")
        assert EVIL in text
        assert "<b>29" in text
        assert browser.problems == []
        assert set(browser.requests) == {Path("r.html").resolve().as_uri()}


# ---- benchmark graphs, in a browser -------------------------------------------------------------


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium")
@pytest.mark.parametrize(
    ("name", "nodes"), [("wisconsin", 251), pytest.param("pubmed", 19717, marks=pytest.mark.slow)]
)
def test_benchmark_graph(argnn, benchmark_root, monkeypatch, tmp_path, name, nodes):
    """The whole way: train, analyze, open, click, color, filter, toggle; and small."""
    # The time of t-SNE and of all rounds of rewiring is not what is tested.
    monkeypatch.setattr("argnn.analysis.projection._MOST_FOR_PLANE", 5_000)
    monkeypatch.setattr("argnn.analysis.explorer.contents._ALL_ROUNDS", 5)
    root = f"--data-root={benchmark_root}"
    done = argnn("train", name, root, "--epochs=2", "--split=0", "--workers=1", "--out=run")
    assert done.code == 0, done
    done = argnn("analyze", "run", root, "--out=r.html", "--json")
    assert done.code == 0, done
    assert json.loads(done.out)["size"] < 15e6
    with Browser(tmp_path / "profile") as browser:
        browser.size(1280)
        browser.open(Path("r.html"))
        browser.click_node(7)
        chosen = browser.js("argnnExplorer.state().chosen")
        assert chosen >= 0  # another node may lie on top
        assert "Neighbors" in browser.text("#detail")
        browser.select("color", "curvature κ")
        browser.select("edges", "rewired")
        assert "every degree kept" in browser.text("#rewiring")
        browser.select("result-filter", "wrong")
        browser.select("part-filter", "test")
        assert 0 < browser.js("argnnExplorer.state().shown") < nodes
        browser.js("argnnExplorer.paint()")
        assert browser.problems == []
        assert set(browser.requests) == {Path("r.html").resolve().as_uri()}


# ---- results that are JSON but wrong ------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        {"chosen_epoch": 1e999},
        {"chosen_epoch": "x"},
        {"history": [{"epoch": 1, "loss": 1e999}]},
        {"history": 5},
        {"seconds": None},
        {"test": {"f1": "high"}},
        {"val": {}},
        {"versions": []},
    ],
    ids=str,
)
def test_wrong_values_in_a_result(refused, run, change):
    path = Path("run/split-0/result.json")
    path.write_text(json.dumps(with_digest({**read_checked(path), **change})))
    refused("analyze", "run", "--out=r.html", message="a result.json is damaged")


def test_page_shows_scores_without_twins(argnn, tmp_path):
    path = write_twins(tmp_path / "twins.npz")
    options = ("--split=all", "--workers=1", "--preset=paper", "--out=twins")
    assert argnn("train", path, *TINY, *options).code == 0
    assert argnn("analyze", "twins", "--out=twins.html").code == 0
    found = data_of("twins.html")
    row = json.loads(Path("twins/split-0/result.json").read_text())
    shown = {line["name"]: line for line in found["scores"]}
    line = shown["test accuracy, without twins"]
    assert (line["here"], line["n"]) == (row["test_without_twins"]["accuracy"], 2)
    assert any(note.startswith("Twins: 44.4 % of the test nodes") for note in found["notes"])


def test_page_says_what_each_class_was_taken_for_and_what_kind_of_metric_there_is(argnn, small_npz):
    argnn(
        "train", small_npz(), "--set=metric=fixed", "--set=num_layers=1", "--epochs=1", "--out=run"
    )
    done = argnn("analyze", "run", "--out=page.html")
    assert done.code == 0, done.err
    content = data_of("page.html")
    assert content["metric"] == "fixed"
    assert "test AUPRC (weighted)" in [line["name"] for line in content["scores"]]
    for line, taken in zip(content["class_scores"], content["confusion"], strict=True):
        assert sum(taken) == line["nodes"]
    assert "metric of this run is fixed" in content["headline"]
    assert "metric of this run is fixed" in done.out
    row = json.loads(Path("run/split-0/result.json").read_text())
    assert content["confusion"] == row["classes"]["test"]["confusion"]
    bins = content["reliability"]["bins"]
    assert sum(count for count, _, _ in bins) == content["reliability"]["count"]
    accuracy = sum(count * right for count, _, right in bins) / content["reliability"]["count"]
    assert accuracy == pytest.approx(row["test"]["accuracy"])


def test_page_says_what_the_trial_measured(argnn, small_npz, brief_trial):
    assert argnn("train", small_npz(), "--epochs=2", "--split=0", "--out=run").code == 0
    assert argnn("analyze", "run", "--out=page.html").code == 0
    trial = json.loads(Path("run/config.json").read_text())["run"]["trial"]["metric"]
    said = data_of("page.html")["headline"]
    learned, fixed = (f"{100 * trial[kind]:.1f} % {kind}" for kind in ("learned", "fixed"))
    assert f"validation accuracy {learned}, {fixed}" in said


def test_decisions_of_a_threshold_are_shown(argnn, tmp_path):
    graph = rare_classes(120)
    arrays = {name: value.numpy() for name, value in graph.to_dict().items()}
    np.savez(tmp_path / "rare.npz", **arrays)
    options = ("--threshold=0.02", "--model=graphsage", "--epochs=20", "--out=run")
    assert argnn("train", tmp_path / "rare.npz", *options).code == 0
    assert argnn("analyze", "run", "--out=page.html").code == 0
    row = json.loads(Path("run/split-0/result.json").read_text())
    found = data_of("page.html")["confusion"]
    assert found == row["classes"]["test"]["confusion"]
    assert sum(line[1] for line in found) > sum(found[1]), "the rare class is called often"


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_page_of_numbers_and_labels(argnn, tmp_path, brief_trial, kind):
    graph, values = planted_values(60)
    y = values.numpy() if kind == "regression" else (values > 0).long().numpy()
    arrays = {name: mask.numpy() for name, mask in parts(60).items()}
    arrays |= {"x": graph.x.numpy(), "edge_index": graph.edge_index.numpy(), "y": y}
    np.savez(tmp_path / "graph.npz", **arrays)
    assert argnn("train", tmp_path / "graph.npz", "--epochs=2", "--out=run").code == 0
    done = argnn("analyze", "run", "--out=page.html")
    assert (done.code, done.err) == (0, "")
    found = data_of("page.html")
    assert found["targets"]["are_labels"] == (kind == "multilabel")
    assert len(found["targets"]["lines"]) == 2
    assert (found["classes"], found["confusion"], found.get("reliability")) == ([], None, None)
    assert found["nodes"]["part"] is not None
