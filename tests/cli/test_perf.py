"""`argnn perf`: the whole way through its child processes once, and what it refuses."""

import json
from pathlib import Path

import pytest
import torch

TINY = (
    "--nodes=60",
    "--edges=300",
    "--channels=8",
    "--layers=2",
    "--repeats=2",
    "--threads=1",
    "--device=cpu",
)


def test_perf_prints_tables_and_writes_json(argnn, monkeypatch):
    # What started the tests may have loaded the command line, which sets a policy of its own.
    monkeypatch.setattr("argnn.cli.perf.USER_WAIT_POLICY", None)
    done = argnn("perf", *TINY, "--models=gcn-pyg", "--no-memory", "--json=found/perf.json")
    assert done.code == 0, done.err
    assert done.err == ""
    assert "random graph, 60 nodes, 300 edges" in done.out
    assert "PyG GCN" in done.out
    result = json.loads(Path("found/perf.json").read_text())
    [found] = result["measurements"]
    [row] = found["rows"]
    assert found["omp_wait_policy"] == "default"
    assert row["step"]["repeats"] == 2
    assert row["step_vs_gcn"] == 1.0
    assert row["memory"] is None


def test_json_alone(argnn, perf_in_process):
    done = argnn("perf", *TINY, "--models=paper,gcn-pyg", "--no-memory", "--json=-")
    assert done.code == 0, done.err
    result = json.loads(done.out)
    assert [row["name"] for row in result["measurements"][0]["rows"]] == ["paper", "gcn-pyg"]
    assert result["config"]["input_channels"] == 8


def test_scaling(argnn, perf_in_process):
    done = argnn("perf", *TINY, "--no-memory", "--scaling", "--models=gcn-pyg")
    assert done.code == 0, done.err
    assert "2,400" in done.out
    assert "power-law" in done.out


@pytest.mark.parametrize(
    ("error", "code"), [(torch.cuda.OutOfMemoryError("too big"), 0), (ValueError("odd"), 1)]
)
def test_failing_row(argnn, perf_in_process, monkeypatch, error, code):
    def step(self):
        raise error

    monkeypatch.setattr("argnn.bench.perf.rows.PerfRow.step", step)
    done = argnn("perf", *TINY, "--models=gcn-pyg", "--no-memory")
    assert done.code == code
    assert str(error) in done.err
    assert "PyG GCN" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--nodes=1"], "--nodes must be at least 2 (got 1)"),
        (["--edges=0"], "--edges must be at least 2 (got 0)"),
        (["--nodes=10", "--edges=46"], "--edges must be at most 45 for 10 nodes (got 46)"),
        (["--graph=power-law", "--nodes=60", "--edges=100"], "from 118 to 1829"),
        (["--graph=ring"], "--graph must be one of random, power-law (got 'ring')"),
        (["--channels=0"], "--channels must be at least 1 (got 0)"),
        (["--input-channels=0"], "--input-channels must be at least 1 (got 0)"),
        (["--layers=0"], "--layers must be at least 1"),
        (["--repeats=0"], "--repeats must be at least 1"),
        (["--threads=0"], "--threads must be at least 1"),
        (["--budget=0"], "--budget must be positive and finite (got 0.0)"),
        (["--budget=nan"], "--budget must be positive and finite (got nan)"),
        (["--dropout=1"], "--dropout must be in [0, 1) (got 1.0)"),
        (["--seed=-1"], "--seed must be from 0"),
        (["--dtype=float64"], "--dtype must be one of float32, tf32, bfloat16 (got 'float64')"),
        (["--device=tpu"], "--device must be one of auto, cpu, cuda"),
        (["--models=gcn"], "unknown row of --models 'gcn'; did you mean 'gcn-"),
        (["--models=,"], "--models must be some of paper"),
        (["--scaling", "--models=gat"], "must be some of paper, default, gcn-best, gcn-pyg with"),
        (["--scaling", "--graph=power-law"], "--graph must be left out with --scaling"),
        (["--record", "--device=cpu"], "--record must be left out with --scaling and without a"),
        (["--json=."], ".: is a folder, not a file"),
        (["--nodes=many"], "Invalid value for '--nodes'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(argnn, listing, arguments, message):
    before = listing()
    done = argnn("perf", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert done.err.startswith("argnn: error: ")
    assert message in done.err
    assert listing() == before
