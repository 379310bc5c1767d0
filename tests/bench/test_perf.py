"""Measuring in this process: fields, ratios, turns, failures. No test looks at a time."""

import io
import json
import subprocess
from importlib.metadata import version

import pytest
import torch
from rich.console import Console

from argnn.bench.perf import ROWS, PerfConfig, chosen_rows, run_perf
from argnn.bench.perf import run as perf_run
from argnn.bench.perf.graphs import workload
from argnn.bench.perf.memory import host_memory
from argnn.bench.perf.rows import PerfRow
from argnn.bench.perf.run import add_ratios, child_environment
from argnn.bench.perf.tables import edge_table, failures, row_table, scaling_table
from argnn.bench.perf.timing import repeats_for, turns
from argnn.bench.perf.worker import measure
from argnn.checked import checked
from argnn.errors import ConfigError, RunError
from argnn.train.devices import PRECISIONS


def tiny(**changes) -> PerfConfig:
    values = {
        "nodes": 60,
        "edges": 300,
        "channels": 8,
        "layers": 2,
        "input_channels": 5,
        "graph": "random",
        "models": tuple(ROWS),
        "device": "cpu",
        "dtype": "float32",
        "dropout": 0.0,
        "penalties": True,
        "repeats": 3,
        "budget": 20.0,
        "threads": 1,
        "seed": 0,
        "memory": False,
        "record": False,
        "scaling": False,
    }
    return PerfConfig(**{**values, **changes})


def silent(done, total, text):
    pass


@pytest.fixture(autouse=True)
def _small_copy(monkeypatch):
    monkeypatch.setattr(
        "argnn.bench.perf.bandwidth._COPY_BYTES", dict.fromkeys(("cpu", "cuda"), 2**16)
    )


def test_every_row_is_measured_and_compared():
    config = tiny()
    found = measure(config, silent)
    rows = {row["name"]: row for row in found["rows"]}
    assert list(rows) == list(ROWS)
    assert found["graph"] == {
        "kind": "random",
        "nodes": 60,
        "edges": 300,
        "max_degree": found["graph"]["max_degree"],
    }
    for row in rows.values():
        assert "error" not in row
        assert row["first_step_seconds"] > 0
        assert row["parameters"] > 0
        for part in (row["forward"], row["step"]):
            assert part["repeats"] == len(part["samples_ms"]) == 3
            assert 0 < part["q10_ms"] <= part["median_ms"] <= part["q90_ms"]
    add_ratios(found["rows"], 300)
    step = {name: row["step"]["median_ms"] for name, row in rows.items()}
    for name, row in rows.items():
        assert row["step_vs_gcn"] == step[name] / step["gcn-pyg"]
        assert row["step_vs_best_gcn"] == step[name] / step["gcn-best"]
        assert row["ns_per_edge"] == pytest.approx(1e6 * step[name] / 300)
        assert row["memory_vs_gcn"] is None
    assert rows["paper"]["speedup_over_plain"] == step["paper-plain"] / step["paper"]
    assert rows["default"]["speedup_over_plain"] == step["default-plain"] / step["default"]
    assert rows["gcn-pyg"]["speedup_over_plain"] is None
    parts = found["edge_part"]["parts"]
    assert len(parts) == 5
    for part in parts:
        rate = part["bytes"] / part["median_ms"] / 1e6
        assert part["gb_per_s"] == pytest.approx(rate)
        assert part["share_of_copy"] == pytest.approx(rate / found["copy"]["gb_per_s"])
    shown = _shown(row_table(found), edge_table(found)).replace("\n", " ")
    assert "argnn gcn" in shown


def test_both_gcns_compute_the_same_scores():
    """The same network by an edge list and by sparse products, or a ratio would say nothing."""
    listed, sparse = (PerfRow(name, tiny(), workload(tiny())) for name in ("gcn-pyg", "gcn-best"))
    assert listed.num_parameters == sparse.num_parameters
    sparse.model.load_state_dict(listed.model.state_dict())
    scores = [row.model.eval()(row.work.x, row.work.edge_index) for row in (listed, sparse)]
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-5)


def _shown(*tables):
    console = Console(width=120)
    with console.capture() as capture:
        for table in tables:
            console.print(table)
    return capture.get()


def test_whole_result(perf_in_process):
    config = tiny(models=("gcn-pyg", "gat"), memory=True)
    told = []
    result = run_perf(config, lambda *progress: told.append(progress))
    assert checked(result["config"], PerfConfig) == config
    assert result["seed"] == 0
    assert result["threads"] == 1
    assert result["versions"]["torch"] == version("torch")
    assert {"git_commit", "git_changed", "started", "finished", "device", "cpu"} <= result.keys()
    [found] = result["measurements"]
    assert found["edge_part"] is None
    assert [row["memory_vs_gcn"] for row in found["rows"]] == [1.0, 2.5]
    assert (5, 6, "PyG GAT") in told
    assert "2.50" in _shown(row_table(found))


def test_scaling_goes_through_the_sizes(perf_in_process):
    config = tiny(nodes=20, edges=60, models=("gcn-pyg",), scaling=True, repeats=1)
    result = run_perf(config)
    graphs = [found["graph"] for found in result["measurements"]]
    assert [(graph["nodes"], graph["edges"]) for graph in graphs] == [
        (20, 60),
        (40, 120),
        (80, 240),
        (160, 480),
        (160, 480),
    ]
    assert [graph["kind"] for graph in graphs] == ["random"] * 4 + ["power-law"]
    assert graphs[-1]["max_degree"] == 159
    shown = _shown(scaling_table(result["measurements"]))
    assert "power-law" in shown
    assert "ns per edge" in shown


@pytest.mark.parametrize("failing_call", [1, 3])
def test_a_row_without_memory_is_a_row_with_its_error(monkeypatch, failing_call):
    monkeypatch.setattr(
        PerfRow, "step", _failing(torch.cuda.OutOfMemoryError("too big"), failing_call)
    )
    found = measure(tiny(models=("gat", "gcn-pyg"), memory=True), silent)
    add_ratios(found["rows"], 300)
    gat, gcn = found["rows"]
    assert gat["error"] == "out of memory: too big"
    assert gat["out_of_memory"]
    assert gat["step"] is gat["forward"] is gat["memory"] is gat["step_vs_gcn"] is None
    assert gcn["step"]["repeats"] == 3
    assert gcn["step_vs_gcn"] == 1.0
    assert "out of memory" in _shown(row_table(found))
    assert failures([found]) == [("PyG GAT", gat)]


def test_any_other_failure_has_a_traceback(monkeypatch):
    monkeypatch.setattr(PerfRow, "step", _failing(ArithmeticError("odd"), 1))
    gat, gcn = measure(tiny(models=("gat", "gcn-pyg")), silent)["rows"]
    assert gat["error"] == "ArithmeticError: odd"
    assert not gat["out_of_memory"]
    assert "in step" in gat["traceback"]
    assert "error" not in gcn


def _failing(error, call):
    """A step that fails for the GAT at its n-th call."""
    original, calls = PerfRow.step, []

    def step(self):
        if self.name == "gat":
            calls.append(1)
            if len(calls) == call:
                raise error
        original(self)

    return step


def test_a_killed_memory_process_is_noted(monkeypatch, perf_in_process):
    measured = perf_run._child

    def child(config, memory_of, environment, tell):
        if memory_of == "gat":
            raise RunError("killed")
        return measured(config, memory_of, environment, tell)

    monkeypatch.setattr(perf_run, "_child", child)
    [found] = run_perf(tiny(models=("gcn-pyg", "gat"), memory=True))["measurements"]
    gat = found["rows"][1]
    assert gat["memory"] == {"extra_peak_mib": None, "error": "killed"}
    assert gat["memory_vs_gcn"] is None
    assert failures([found]) == [("memory of PyG GAT", gat["memory"])]
    _shown(row_table(found))


@pytest.mark.parametrize(
    ("program", "error", "message"),
    [
        ("import os; os.kill(os.getpid(), 9)", RunError, "killed by signal 9"),
        ("raise ValueError('odd')", RuntimeError, "ValueError: odd"),
    ],
)
def test_a_child_that_dies(monkeypatch, program, error, message):
    start = subprocess.Popen

    def popen(command, **options):
        return start([command[0], "-c", program], **options)

    monkeypatch.setattr("argnn.bench.perf.run.subprocess.Popen", popen)
    with pytest.raises(error, match=message):
        run_perf(tiny())


def test_host_memory_is_beyond_what_was_there():
    found = host_memory("gcn-pyg", tiny(nodes=500, edges=2000, channels=64))
    assert found["extra_peak_mib"] >= 0
    assert found["before_mib"] > 0
    assert found["method"].startswith(("VmHWM", "process peak"))


def test_a_child_measures_what_it_is_told():
    from argnn.bench.perf.__main__ import _result

    config, channel = tiny(models=("gcn-pyg",)).to_json(), io.StringIO()
    assert _result({"config": config, "memory_of": "gcn-pyg"}, channel)["extra_peak_mib"] >= 0
    assert channel.getvalue() == ""
    [row] = _result({"config": config, "memory_of": None}, channel)["rows"]
    assert row["name"] == "gcn-pyg"
    lines = [json.loads(line) for line in channel.getvalue().splitlines()]
    assert {"progress": [2, 3, "PyG GCN"]} in lines


def test_host_memory_without_a_reset(monkeypatch, tmp_path):
    monkeypatch.setattr("argnn.runs.machine._CLEAR", tmp_path / "none" / "clear_refs")
    found = host_memory("gcn-pyg", tiny())
    assert found["method"] == "process peak, never reset"
    assert found["step_mib"] is None


@pytest.mark.parametrize("name", ROWS)
def test_a_step_trains_and_a_forward_does_not(name):
    config = tiny(dropout=0.5)
    row = PerfRow(name, config, workload(config))
    before = [parameter.detach().clone() for parameter in row.model.parameters()]
    row.forward()
    after = list(row.model.parameters())
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    row.step()
    assert not all(torch.equal(old, new) for old, new in zip(before, after, strict=True))
    assert len(row.penalties) == (2 if ROWS[name].preset else 0)


@pytest.fixture
def recordings(monkeypatch):
    """A GPU is pretended, on which a replay runs the step; counts the replays of each row."""
    replays = []

    class Replay:
        def __init__(self, compute):
            self.compute = compute

        def __call__(self):
            replays.append(self.compute.__self__.name)
            return self.compute()

    monkeypatch.setattr("argnn.bench.perf.config.on_cuda", lambda name: True)
    monkeypatch.setattr("argnn.bench.perf.rows.RecordedStep", Replay)
    return replays


def test_recorded_steps_take_turns_with_the_others(recordings):
    found = measure(tiny(models=("default", "gcn-best", "gcn-pyg", "gat"), record=True), silent)
    assert recordings == ["default", "gcn-best", "gcn-pyg"] * 3
    add_ratios(found["rows"], 300)
    rows = {row["name"]: row for row in found["rows"]}
    median = {name: row["recorded"]["median_ms"] for name, row in rows.items() if row["recorded"]}
    assert list(median) == ["default", "gcn-best", "gcn-pyg"]
    for name, step in median.items():
        assert rows[name]["recorded"]["repeats"] == 3
        assert rows[name]["recorded_vs_gcn"] == step / median["gcn-pyg"]
        assert rows[name]["recorded_vs_best_gcn"] == step / median["gcn-best"]
    assert rows["gat"]["recorded_vs_gcn"] is None
    cells = row_table(found).columns
    assert [str(column.header).split("\n")[0] for column in cells[-3:]] == [
        "recorded step ms",
        "recorded x",
        "recorded x",
    ]
    assert list(cells[-1].cells)[-1] == "-"


def test_a_step_that_cannot_be_recorded_is_measured_all_the_same(recordings, monkeypatch):
    def record(self):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(PerfRow, "record", record)
    found = measure(tiny(models=("gcn-pyg",), record=True), silent)
    add_ratios(found["rows"], 300)
    [row] = found["rows"]
    assert row["step"]["repeats"] == 3
    assert row["recorded_vs_gcn"] is None
    assert failures([found]) == [("recorded step of PyG GCN", row["recorded"])]
    assert "not permitted" in row["recorded"]["error"]
    assert list(row_table(found).columns[-3].cells) == ["-"]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("dtype", PRECISIONS)
def test_steps_are_recorded_on_a_gpu(dtype):
    names = tuple(name for name in ROWS if ROWS[name].recordable)
    config = tiny(models=names, device="cuda", dtype=dtype, record=True, dropout=0.3)
    for row in measure(config, silent)["rows"]:
        assert row["recorded"]["repeats"] == 3, row


def test_without_recorded_steps_the_table_has_no_column_for_them():
    found = measure(tiny(models=("gcn-pyg",)), silent)
    add_ratios(found["rows"], 300)
    assert not any("recorded" in str(column.header) for column in row_table(found).columns)


@pytest.mark.parametrize("name", ROWS)
def test_tf32_is_float32_on_a_cpu_and_allowed_in_steps_alone(name, monkeypatch):
    allowed = []
    backward = torch.Tensor.backward

    def watched(tensor, *arguments):
        allowed.append(torch.backends.cuda.matmul.allow_tf32)
        backward(tensor, *arguments)

    monkeypatch.setattr(torch.Tensor, "backward", watched)
    rows = [PerfRow(name, tiny(dtype=dtype), workload(tiny())) for dtype in ("tf32", "float32")]
    losses = [row.step() for row in rows]
    assert allowed == [True, False]
    assert torch.equal(*losses)
    assert not torch.backends.cuda.matmul.allow_tf32


@pytest.mark.parametrize("name", ROWS)
def test_bfloat16_runs(name):
    config = tiny(dtype="bfloat16")
    row = PerfRow(name, config, workload(config))
    row.step()
    row.forward()


def test_rows_take_turns():
    assert turns([]) == []
    assert turns([0, 2]) == [1, 1]
    order = turns([10, 3, 10])
    assert [order.count(row) for row in range(3)] == [10, 3, 10]
    assert order[:4] == [0, 2, 0, 2]


def test_slow_rows_get_fewer_repeats():
    config = tiny(repeats=20, budget=10.0)
    assert repeats_for(0.1, 0.2, config) == 20
    assert repeats_for(0.9, 1.0, config) == 10
    assert repeats_for(4.0, 9.0, config) == 3
    assert repeats_for(25.0, 30.0, config) == 2
    assert repeats_for(25.0, 30.0, tiny(repeats=1)) == 1


def test_children_wait_as_openmp_does_by_default():
    ours = {"OMP_WAIT_POLICY": "PASSIVE", "HOME": "/"}
    child = child_environment(ours, 2, None)
    assert "OMP_WAIT_POLICY" not in child
    assert child["HOME"] == "/"
    assert child["OMP_NUM_THREADS"] == child["NUMBA_NUM_THREADS"] == "2"
    assert child_environment(ours, 2, "PASSIVE")["OMP_WAIT_POLICY"] == "PASSIVE"


def test_rows_are_chosen_by_name():
    assert chosen_rows(None, scaling=False) == tuple(ROWS)
    assert chosen_rows(None, scaling=True) == ("paper", "default", "gcn-best", "gcn-pyg")
    assert chosen_rows("gat,Paper_Plain,gat", scaling=False) == ("gat", "paper-plain")
    with pytest.raises(ConfigError, match="did you mean 'gcn-"):
        chosen_rows("gcn", scaling=False)


def test_workload_follows_the_seed():
    first, again = workload(tiny()), workload(tiny())
    other = workload(tiny(seed=1))
    for name in ("x", "edge_index", "y"):
        assert torch.equal(getattr(first, name), getattr(again, name))
        assert not torch.equal(getattr(first, name), getattr(other, name))
    assert first.x.shape == (60, 5)
    assert first.x.dtype == torch.float32
    assert int(first.y.max()) < 10
