"""The other commands, and what every command has in common."""

import io
import json
import subprocess
import sys

import pytest
from rich.console import Console

from argnn.data import DATASETS
from argnn.nn import MODELS
from argnn.runs.parallel import Job
from argnn.runs.prepare import Request, prepare
from argnn.store.run_folder import RunFolder
from argnn.version import __version__


def test_version_and_help(argnn):
    assert argnn("--version").out == f"argnn {__version__}\n"
    done = argnn("--help")
    assert done.code == 0
    for command in ("train", "demo", "datasets", "models"):
        assert command in done.out
    assert argnn() == done


def test_module_can_be_run():
    done = subprocess.run(
        [sys.executable, "-m", "argnn", "trian"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("argnn: error: No such command 'trian'")
    assert len(done.stderr.splitlines()) == 1


def test_datasets_without_files(argnn):
    rows = {row["name"]: row for row in json.loads(argnn("datasets", "--json").out)}
    assert rows.keys() == DATASETS.keys()
    for name, spec in DATASETS.items():
        assert (rows[name]["nodes"], rows[name]["edges"]) == (spec.nodes, spec.edges)
    assert rows["mixed"]["status"] == "embedded"
    assert 0 <= rows["mixed"]["homophily"] <= 1
    assert rows["cora"]["status"] == "to download"
    assert rows["cora"]["homophily"] is None
    assert rows["cornell-old"]["status"] == "missing"


def test_datasets_with_files(argnn, copied):
    root = copied("texas")
    rows = {
        row["name"]: row for row in json.loads(argnn("datasets", "--json", "--data-root", root).out)
    }
    assert rows["texas"]["status"] == "ready"
    assert rows["texas"]["homophily"] == pytest.approx(0.06, abs=0.01)
    assert rows["cora"]["status"] == "missing"
    edges = root / "texas/raw/out1_graph_edges.txt"
    edges.write_text("nonsense")
    rows = {
        row["name"]: row for row in json.loads(argnn("datasets", "--json", "--data-root", root).out)
    }
    assert rows["texas"]["status"] == "damaged"
    assert "out1_graph_edges.txt" in rows["texas"]["problem"]
    edges.unlink()
    shown = argnn("datasets", "--data-root", root)
    assert shown.code == 0
    assert "incomplete" in shown.out


def test_models(argnn):
    rows = json.loads(argnn("models", "--json").out)
    assert {row["name"] for row in rows} == set(MODELS)
    assert all(row["citation"] and row["space"] and row["search_space"] for row in rows)
    shown = argnn("models").out
    assert all(name in shown for name in MODELS)


def test_live_bars_show_loss_score_and_failure(tmp_path, one_thread):
    from argnn.runs.progress import SplitProgress

    config = prepare(Request("mixed", model="gcn", split="0,1")).config
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with SplitProgress(console) as watcher:
        jobs = [Job(config, split, RunFolder(tmp_path)) for split in (0, 1)]
        watcher.epoch(jobs[0], 3, 0.51234, 0.625)
        watcher.epoch(jobs[1], 1, 9.0, float("nan"))
        console.print("")  # draws the bars as they are
        watcher.finished(jobs[0], {"epochs_run": 7, "chosen_epoch": 4})
        watcher.finished(jobs[1], {"error": "DivergenceError"})
    text = screen.getvalue()
    assert "loss 0.512, validation 62.5 %" in text
    assert "mixed, gcn, split 0" in text
    assert "chosen epoch 4" in text
    assert "failed" in text
