"""The script of the table of seconds until a training is nearly as good as it gets."""

import json
import os
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

from forked import code, run_forked

SCRIPT = runpy.run_path(str(Path(__file__).parents[1] / "scripts" / "time_to_accuracy.py"))


def row(graph="cora", model="gcn", *, kind="run", **more):
    about = {"cpu": "a processor", "versions": "argnn 1, torch 2", "date": "2026-01-01"}
    steps = {"epochs": [5, 10, 15], "seconds": [0.5, 1.0, 1.5], "scores": [0.5, 0.796, 0.8]}
    found = {
        "kind": kind,
        "graph": graph,
        "model": model,
        "done": True,
        "limit": 60.0,
        "workers": 8,
    }
    return {**found, "layers": 2, "channels": 64, **steps, **about, **more}


def test_time_is_that_of_the_first_epoch_near_the_best_score():
    assert SCRIPT["to_final"](row()) == 1.0  # 0.796 is more than 99 % of 0.8
    assert SCRIPT["to_final"](row(done=False)) is None


def test_runs_that_are_not_there_or_were_stopped_too_early_are_made(tmp_path, monkeypatch):
    asked = []

    def alone(graph, model, limit):
        cores = os.sched_getaffinity(0)
        asked.append((graph, model, limit, len(cores)))
        return {name: value for name, value in row(graph, model).items() if name != "kind"}

    monkeypatch.setitem(SCRIPT["run"].__globals__, "alone", alone)
    path = tmp_path / "runs.jsonl"
    before = [
        row("cora", "mlp", done=False, limit=30.0),
        row("cora", "gat", done=False, limit=60.0),
        row("cora", "hgcn", done=False, limit=30.0, error="no memory"),
        row("cora", "argnn", kind="epochs"),
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in before))
    cores = len(os.sched_getaffinity(0))
    if cores < 2:
        pytest.skip("a run takes two cores")
    SCRIPT["run"](path, 60.0, ["cora"], ["mlp", "gat", "hgcn", "argnn"], 1)
    assert asked == [("cora", "mlp", 60.0, 2), ("cora", "argnn", 60.0, 2)]
    assert len(os.sched_getaffinity(0)) == cores  # only the threads of runs are bound
    SCRIPT["run"](path, 60.0, ["cora"], ["mlp", "gat", "hgcn", "argnn"], 1)
    assert len(asked) == 2
    with pytest.raises(SystemExit, match=f"there are {cores} cores, and a run takes 2"):
        SCRIPT["run"](path, 60.0, ["cora"], ["mlp"], cores)


def test_tables_and_picture_of_a_file(tmp_path):
    spans = {"argnn": [1.0, 2.0, 4.0], "gcn": [0.5, 1.0, 1.5]}
    rows = [
        row("cora", "gcn", done=False, limit=30.0),
        row("cora", "gcn"),  # a later run counts
        row("texas", "argnn", done=False),
        row("texas", "gcn", done=False, epochs=[], seconds=[], scores=[], error="no memory"),
        *(row(model=name, kind="epochs", seconds=s) for name, s in spans.items()),
    ]
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    for name in ("results", "images"):
        (tmp_path / name).mkdir()
    SCRIPT["tables"](path, tmp_path)
    times, scores, epochs = (
        (tmp_path / "results" / f"{name}.csv").read_text().splitlines()
        for name in ("time-to-accuracy", "time-to-accuracy-scores", "stored-epochs")
    )
    assert "# machine: 2 cores of a processor, 8 runs at the same time" in times
    assert times[-3:] == ["method,Cora,Texas", "argnn,,over 60", "gcn,1.0,failed"]
    assert scores[-2:] == ["argnn,,(80.0)", "gcn,80.0,-"]
    # From epoch 5 to 15: 3 s and 1 s.
    assert epochs[-1] == "Cora,2,64,300.0,100.0,3.00"
    assert (tmp_path / "images" / "time-to-accuracy.png").stat().st_size > 10_000


def forked(words, env, **_):
    """As ``subprocess.run`` runs a script, but by a fork."""
    program, script, *arguments = words
    assert program == sys.executable
    environment = {name: env[name] for name in ("OMP_NUM_THREADS", "NUMBA_CACHE_DIR")}
    text = f"import runpy; runpy.run_path({script!r}, run_name='__main__')"
    with tempfile.TemporaryDirectory() as folder:
        done = run_forked(code, text, *arguments, cwd=Path(folder), **environment)
    return subprocess.CompletedProcess(words, *done)


@pytest.mark.slow
def test_run_of_a_process_of_its_own(tmp_path, monkeypatch):
    """On a graph by path, so that no benchmark graph has to be there."""
    monkeypatch.setattr("subprocess.run", forked)
    draw = np.random.default_rng(0)
    path = tmp_path / "graph.npz"
    edge_index = draw.integers(40, size=(2, 90))
    np.savez(path, x=draw.normal(size=(40, 3)), edge_index=edge_index, y=np.arange(40) % 2)
    found = SCRIPT["alone"](str(path), "mlp", 50.0, ["epochs=3"])
    assert found["done"], found
    assert (found["epochs"], found["limit"]) == ([1, 2, 3], 50.0)
    assert found["seconds"] == sorted(found["seconds"])
    wrong = SCRIPT["alone"](str(path), "mlp", 50.0, ["wings=3"])
    assert "wings" in wrong["error"]
    assert not wrong["done"]
