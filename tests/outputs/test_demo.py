"""The demonstration, with a stand-in for the picture."""

import json
import re

import pytest

from argnn.errors import ConfigError, RunError
from argnn.outputs.demo import SPLITS, run_demo
from argnn.store.run_folder import open_run

PNG = b"\x89PNG\r\n\x1a\n not really"


@pytest.fixture
def drawn(monkeypatch):
    """Calls of the function that draws."""
    calls = []

    def geometry_figure(graph, model):
        calls.append((graph.name, type(model).__name__))

    monkeypatch.setattr("argnn.analysis.figures.geometry_figure", geometry_figure)
    monkeypatch.setattr("argnn.analysis.figures.style.figure_bytes", lambda figure, kind: PNG)
    monkeypatch.setattr("argnn.outputs.demo.core_count", lambda: 1)
    # Neither the places on the map nor the rewired edges are what is tested.
    monkeypatch.setattr("argnn.analysis.projection._MOST_FOR_PLANE", 0)
    monkeypatch.setattr("argnn.analysis.projection.MOST_FOR_SPACE", 0)
    monkeypatch.setattr("argnn.analysis.explorer.contents._ALL_ROUNDS", 1)
    return calls


BRIEF = ("epochs=2", "hidden_channels=4")


def test_report_is_self_contained(tmp_path, drawn, brief_trial):
    out = tmp_path / "argnn-demo"
    report = run_demo(out, overrides=BRIEF)
    assert drawn == [("mixed", "ARGNN")]
    assert [(r["data"], r["model"]) for r in report.results] == [
        ("mixed", "argnn"),
        ("mixed", "gcn"),
        ("digits", "argnn"),
        ("digits", "gcn"),
    ]
    assert all(r["summary"]["splits"] == len(SPLITS) for r in report.results)
    assert report.picture.read_bytes() == PNG
    page = report.page.read_text()
    assert "default-src 'none'" in page
    shown = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S).group(1))
    assert shown["title"] == "mixed: argnn, split 0"
    accuracy = report.results[0]["summary"]["test"]["accuracy"]["mean"]
    table = shown["comparison"]
    line = dict(zip(table["header"], table["lines"][0], strict=True))
    assert line["accuracy"] == f"{100 * accuracy:.2f}"
    assert [line[:2] for line in table["lines"]] == [
        [r["data"], r["model"]] for r in report.results
    ]
    scores = json.loads((out / "runs/mixed-argnn/scores.json").read_text())
    assert scores["summary"]["test"]["accuracy"]["mean"] == accuracy

    (out / "geometry.png").write_text("old")
    run_demo(out, overrides=BRIEF)
    assert (out / "geometry.png").read_bytes() == PNG


def test_foreign_folder_is_left_alone(tmp_path, drawn):
    (tmp_path / "notes.txt").write_text("mine")
    for out in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(RunError, match="choose another --out"):
            run_demo(out)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_a_user_put_there_stays(tmp_path, drawn, brief_trial):
    out = tmp_path / "demo"
    run_demo(out, overrides=BRIEF)
    run = out / "runs" / "mixed-argnn"
    kept = [
        out / "notes.txt",
        out / "runs" / "mine" / "config.json",
        run / "code.json",
        run / "split-0" / "plots" / "a.png",
        run / "split-0" / "model" / "thesis.tex",
        run / "split-7" / "result.json",
    ]
    for path in kept[:4] + kept[5:]:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (run / "split-0" / "result.json").write_text("changed")
    report = run_demo(out, overrides=BRIEF)
    assert [path.read_text() for path in kept[:4] + kept[5:]] == ["mine"] * 5
    assert report.page.exists()
    assert json.loads((run / "split-0" / "result.json").read_text())["split"] == 0
    assert open_run(run)[1]["data"] == "mixed"

    # A model folder with other files in it is not replaced, which is said before training.
    kept[4].write_text("mine")
    before = report.page.read_bytes()
    with pytest.raises(RunError, match="thesis.tex"):
        run_demo(out, overrides=BRIEF)
    assert kept[4].read_text() == "mine"
    assert report.page.read_bytes() == before


@pytest.mark.parametrize("name", ["runs", "runs/mixed-gcn", "runs/mixed-gcn/split-0/model"])
def test_folders_behind_links_are_left_alone(tmp_path, drawn, name):
    out = tmp_path / "demo"
    model = out / "runs" / "mixed-gcn" / "split-0" / "model"
    model.mkdir(parents=True)
    for path in (out / ".argnn-demo", model.parents[1] / "config.json", model / "model.json"):
        path.write_text("mine")
    (out / name).rename(tmp_path / "other")
    (out / name).symlink_to(tmp_path / "other")
    with pytest.raises(RunError, match=f"{name}: is a symbolic link"):
        run_demo(out, overrides=BRIEF)
    assert [(model / "model.json").read_text()] == ["mine"]
    assert (model.parents[1] / "config.json").read_text() == "mine"


def test_missing_matplotlib_is_said_before_training(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="the picture needs matplotlib: pip install"):
        run_demo(tmp_path / "demo")
    assert not (tmp_path / "demo").exists()
