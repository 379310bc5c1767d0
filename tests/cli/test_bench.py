"""``argnn bench``: what a person sees, what a machine reads, and what a kill leaves behind."""

import functools
import io
import json
import signal
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from argnn.cli.bench import CellProgress
from argnn.runs import parallel
from argnn.store.results import read_rows
from forked import code, run_forked
from planted_twins import COUNTS, write_twins

MINE = {
    "name": "mine",
    "title": "Two models on a planted graph",
    "task": "node",
    "data": ["mixed"],
    "methods": [
        {"model": "argnn", "preset": "reference", "set": ["epochs=3", "hidden_channels=4"]},
        {"model": "gcn", "set": ["epochs=3", "hidden_channels=4"]},
    ],
    "splits": [0, 1],
}
MEASURED = ("seconds", "peak_memory_mib", "finished", "digest")


def write(path="mine.yaml", **changes):
    Path(path).write_text(yaml.safe_dump({**MINE, **changes}))
    return path


def stored(path="results/mine.jsonl"):
    rows = [json.loads(line) for line in Path(path).read_text().splitlines()]
    assert len(read_rows(Path(path))) == len(rows), "a cell has two rows"
    return {
        row["cell"]: {key: value for key, value in row.items() if key not in MEASURED}
        for row in rows
    }


def test_list_names_every_experiment_and_its_size(argnn):
    done = argnn("bench", "--list")
    assert (done.code, done.err) == (0, "")
    rows = json.loads(argnn("bench", "--list", "--json").out)
    by_name = {row["name"]: row for row in rows}
    assert by_name["node-small"]["cells"] == 66
    assert by_name["link-prediction"]["task"] == "link"
    assert "tab:link_prediction" in by_name["link-prediction"]["tables"]
    for row in rows:
        assert f"│ {row['name']} " in done.out
        assert f" {row['cells']} │ {row['title']} " in done.out


def test_rows_lines_and_closing_table(argnn):
    done = argnn("bench", write(), "--workers=1")
    assert (done.code, done.err) == (0, "")
    rows = list(stored().values())
    assert [(row["method"], row["split"]) for row in rows] == [
        ("argnn (reference)", 0),
        ("argnn (reference)", 1),
        ("gcn", 0),
        ("gcn", 1),
    ]
    lines = done.out.splitlines()
    assert lines[0] == "4 cells to run, 1 at a time."
    for number, row in enumerate(rows, start=1):
        start = f"[{number}/4] mixed, {row['method']}, split {row['split']}, seed 0: "
        assert lines[number].startswith(
            f"{start}test F1 (weighted) {100 * row['test']['f1']:.2f}, "
            f"validation accuracy {100 * row['val']['accuracy']:.2f}, epoch"
        )
    means = {
        method: sum(row["test"]["f1"] for row in rows if row["method"] == method) / 2
        for method in ("argnn (reference)", "gcn")
    }
    for method, mean in means.items():
        (line,) = [line for line in lines if line.startswith(f"│ {method} ")]
        assert line.split("│")[2].strip() == f"{100 * mean:.2f}"
    assert lines[-2:] == [
        "4 cells: 4 finished, 0 failed. Results: results/mine.jsonl",
        "Next: argnn table results/mine.jsonl",
    ]


def test_json_is_one_document(argnn):
    done = argnn("bench", write(), "--workers=1", "--json", "--out=all.jsonl")
    assert (done.code, done.err) == (0, "")
    (report,) = json.loads(done.out)["experiments"]
    counts = {"cells": 4, "finished": 4, "failed": 0, "experiment": "mine", "score": "f1"}
    assert {name: report[name] for name in counts} == counts
    assert report["results"] == "all.jsonl"
    f1 = [row["test"]["f1"] for row in stored("all.jsonl").values() if row["method"] == "gcn"]
    assert report["outcomes"][1]["test"]["mean"] == pytest.approx(sum(f1) / 2)


def test_finished_cells_are_skipped(argnn):
    argnn("bench", write(), "--workers=1")
    before = Path("results/mine.jsonl").read_bytes()
    done = argnn("bench", "mine.yaml", "--workers=1")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("0 cells to run; in the results already: 4.\n")
    assert Path("results/mine.jsonl").read_bytes() == before


def test_several_experiments_in_files_of_their_own_or_in_one(argnn):
    write("other.yaml", name="other", splits=[1, 2], seeds=[3])
    done = argnn("bench", write(splits=[0]), "other.yaml", "--workers=1")
    assert (done.code, done.err) == (0, "")
    assert [len(stored(f"results/{name}.jsonl")) for name in ("mine", "other")] == [2, 4]
    assert "Results: results/other.jsonl" in done.out
    done = argnn("bench", "mine.yaml", "other.yaml", "--workers=1", "--out=all.jsonl")
    assert len(stored("all.jsonl")) == 6


def test_link_experiment(argnn):
    write(task="link", ratio="85/5/10", oracle=True, splits=[0], methods=MINE["methods"][1:])
    done = argnn("bench", "mine.yaml", "--workers=1")
    assert (done.code, done.err) == (0, "")
    (row,) = stored().values()
    assert row["task"] == "link"
    assert row["config"]["link"]["ratio"] == "85/5/10"
    assert row["test"].keys() >= {"auroc", "auprc", "accuracy", "threshold", "hits@10", "mrr"}
    assert row["oracle"]["test"]["auroc"] >= row["test"]["auroc"]
    assert "test AUROC" in done.out


def bad_methods():
    bad = {"model": "gcn", "label": "bad", "set": ["epochs=3", "lr=1e30", "weight_decay=1e30"]}
    return [bad, MINE["methods"][1]]


def test_failed_cells_end_with_one_and_are_retried_on_request(argnn, monkeypatch):
    done = argnn("bench", write(methods=bad_methods()), "--workers=1")
    assert done.code == 1
    lines = done.err.splitlines()
    assert len(lines) == 3
    assert lines[0].startswith("argnn: error: mixed, bad, split 0, seed 0 failed: DivergenceError:")
    assert lines[2] == "argnn: error: 2 cells failed; --retry-failed runs them again"
    assert "mixed, bad, split 0, seed 0: failed: DivergenceError" in done.out
    assert "- (2 failed)" in done.out
    assert "4 cells: 2 finished, 2 failed." in done.out
    before = Path("results/mine.jsonl").read_bytes()

    done = argnn("bench", "mine.yaml", "--workers=1")
    assert done.code == 1
    assert Path("results/mine.jsonl").read_bytes() == before

    whole = parallel.run_cell
    calls = []

    def mended(config, graph, split, on_epoch=None, oracle=False):
        calls.append(split)
        gentle = replace(config, train=replace(config.train, lr=0.01, weight_decay=0.0))
        return whole(gentle, graph, split, on_epoch, oracle)

    monkeypatch.setattr(parallel, "run_cell", mended)
    done = argnn("bench", "mine.yaml", "--workers=1", "--retry-failed")
    assert (done.code, done.err) == (0, "")
    assert calls == [0, 1]
    assert not any("error" in row for row in read_rows(Path("results/mine.jsonl")))


def test_unforeseen_error_is_kept_with_its_traceback(argnn, monkeypatch):
    monkeypatch.setattr("argnn.runs.train_one.fit", None)
    done = argnn("bench", write(), "--workers=1")
    assert done.code == 1
    assert all("Traceback" in row["traceback"] for row in stored().values())


def test_interrupted_bench_says_how_to_go_on_and_does(argnn, monkeypatch):
    whole = parallel.run_cell

    def interrupted(config, graph, split, on_epoch=None, oracle=False):
        if (config.model, split) == ("gcn", 1):
            raise KeyboardInterrupt
        return whole(config, graph, split, on_epoch, oracle)

    with monkeypatch.context() as patch:
        patch.setattr(parallel, "run_cell", interrupted)
        done = argnn("bench", write(), "--workers=1")
    assert done.code == 130
    assert done.err == (
        "argnn: error: interrupted; what is finished is in results/mine.jsonl, "
        "and the same command goes on\n"
    )
    assert len(stored()) == 3
    done = argnn("bench", "mine.yaml", "--workers=1")
    assert (done.code, done.err) == (0, "")
    assert len(stored()) == 4


@pytest.fixture
def refused(refused):
    return functools.partial(refused, "bench")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name an experiment (see argnn bench --list)"),
        (["node-smal"], "unknown experiment 'node-smal'; did you mean 'node-small'"),
        (["none.yaml"], "none.yaml: no such file"),
        (["mine.yaml", "mine.yaml"], "experiment 'mine' is named twice"),
        (["mine.yaml", "--workers=0"], "--workers must be at least 1 (got 0)"),
        (["mine.yaml", "--executor=slurm"], "--executor must be one of local, ray"),
        (["mine.yaml", "--address=auto"], "--address belongs to --executor ray"),
        (["mine.yaml", "--device=tpu"], "--device must be one of auto, cpu, cuda"),
        (["mine.yaml", "--out=folder"], "--out folder: is not a plain file"),
        (["mine.yaml", "--out=notes.txt"], "notes.txt, line 1: damaged, not JSON"),
        (["mine.yaml", "--out=newer.jsonl"], "has format 2, written by argnn 9.0"),
        (["bad.yaml"], "bad.yaml: not YAML: "),
        (["key.yaml"], "key.yaml: unknown key 'modles'; did you mean 'models'"),
        (["split.yaml"], "experiment mine: split 99 out of range"),
        (["node-small"], "ARGNN_OFFLINE forbids downloads"),
    ],
    ids=" ".join,
)
def test_bad_input(refused, arguments, message):
    write()
    write("split.yaml", splits=[99])
    write("key.yaml", modles=["gcn"])
    Path("bad.yaml").write_text("name: [mine\n")
    Path("folder").mkdir()
    Path("notes.txt").write_text("buy milk\n")
    Path("newer.jsonl").write_text('{"format": 2, "versions": {"argnn": "9.0"}}\n')
    refused(*arguments, message=message)


def test_changed_settings_are_not_mixed_with_old_results(argnn, refused):
    argnn("bench", write(), "--workers=1")
    methods = [MINE["methods"][0], {"model": "gcn", "set": ["epochs=4", "hidden_channels=4"]}]
    write(methods=methods)
    before = Path("results/mine.jsonl").read_bytes()
    done = argnn("bench", "mine.yaml", "--workers=1")
    assert done.code == 2
    assert done.err == (
        "argnn: error: results/mine.jsonl: mixed, gcn, split 0, seed 0 was run with other settings "
        "(train.epochs is 3 and 4 now); choose another --out, so that results are not mixed\n"
    )
    assert Path("results/mine.jsonl").read_bytes() == before


def test_cut_line_is_set_aside_and_its_cell_runs_again(argnn, caplog):
    argnn("bench", write(), "--workers=1")
    path = Path("results/mine.jsonl")
    whole = stored()
    path.write_bytes(path.read_bytes()[:-100])
    done = argnn("bench", "mine.yaml", "--workers=1")
    assert done.code == 0
    assert "1 cell to run, 1 at a time; in the results already: 3." in done.out
    assert [record.message for record in caplog.records] == [
        "results/mine.jsonl: its last line was cut off and is now in "
        "results/mine.jsonl.damaged-tail"
    ]
    assert stored() == whole


#: A command that is killed when it has written the first row.
KILLED = """
import os, signal, sys
from argnn.store.results import ResultsFile
from argnn.cli import main

def append(self, row, usual=ResultsFile.append):
    usual(self, row)
    os.kill(os.getpid(), signal.SIGKILL)

ResultsFile.append = append
main(sys.argv[1:])
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.torture)])
def test_killed_bench_goes_on_and_equals_one_that_was_not(argnn, workers):
    settings = ["epochs=30", "hidden_channels=16"]
    methods = [{"model": model, "set": [*settings]} for model in ("argnn", "gcn")]
    write(methods=methods, oracle=True)
    path = Path("killed.jsonl")
    # The pipe is closed when the workers, which hold it as well, have ended, too.
    words = ("bench", "mine.yaml", f"--out={path}", f"--workers={workers}")
    killed, _, errors = run_forked(code, KILLED, *words, cwd=Path.cwd())
    assert killed == -signal.SIGKILL, errors
    early = stored("killed.jsonl")
    assert len(early) == 1

    again = argnn("bench", "mine.yaml", "--out=killed.jsonl", "--workers=1")
    assert (again.code, again.err) == (0, "")
    assert f"in the results already: {len(early)}." in again.out
    lines = path.read_text().splitlines()
    counts = Counter(json.loads(line)["cell"] for line in lines)
    assert len(counts) == 4
    assert set(counts.values()) == {1}
    finished = stored("killed.jsonl")
    assert {cell: finished[cell] for cell in early} == early

    done = argnn("bench", "mine.yaml", "--out=whole.jsonl", "--workers=1")
    assert done.code == 0
    assert stored("whole.jsonl") == finished


def test_bar_of_a_terminal(argnn, monkeypatch):
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, legacy_windows=False)
    monkeypatch.setattr("argnn.cli.bench.output_console", lambda quiet=False: console)
    shown = []
    whole = CellProgress._show

    def spied(self):
        whole(self)
        task = self.progress.tasks[0]
        shown.append((task.completed, task.total, task.fields["state"], task.fields["left"]))

    monkeypatch.setattr(CellProgress, "_show", spied)
    assert argnn("bench", write(methods=bad_methods()), "--workers=1").code == 1
    states = [state for _, _, state, _ in shown]
    assert "mixed, gcn, split 0, seed 0" in " ".join(states)
    assert shown[-1][:2] == (4, 4)
    assert states[-1] == "2 failed"
    assert "left" in shown[-2][3]
    assert "4/4" in screen.getvalue()
    assert "Next: argnn table" in screen.getvalue()


def test_closing_table_has_a_column_without_twins(argnn, tmp_path):
    path = str(write_twins(tmp_path / "twins.npz"))
    done = argnn("bench", write(data=[path, "mixed"], splits=[0], seeds=[0]), "--workers=1")
    assert (done.code, done.err) == (0, "")
    rows = [row for row in stored().values() if row["data"] == path]
    assert [row["twins"] for row in rows] == [COUNTS[0]] * 2
    header = next(line for line in done.out.splitlines() if "method" in line)
    names = [name.strip() for name in header.strip("┃").split("┃")]
    assert names == ["method", "twins", "twins, without twins", "mixed"]
    for row in rows:
        f1, others = row["test"]["f1"], row["test_without_twins"]["f1"]
        assert f"test F1 (weighted) {100 * f1:.2f} (without twins {100 * others:.2f})" in done.out
        shown = next(
            line for line in done.out.splitlines() if line.startswith(f"│ {row['method']}")
        )
        cells = [text.strip() for text in shown.strip("│").split("│")]
        assert cells[1:3] == [f"{100 * f1:.2f}", f"{100 * others:.2f}"]
    assert "twins.npz, without twins" in argnn("table", "results/mine.jsonl").out
