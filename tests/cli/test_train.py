"""``argnn train``: what a person sees, what a machine reads, and how a run is continued."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

from planted_twins import COUNTS, write_twins

TINY = (
    "--preset=reference",
    "--epochs=3",
    "--set=hidden_channels=4",
    "--set=num_layers=2",
    "--workers=1",
)
T_975 = {2: 12.706204736, 3: 4.302652730}


def table_numbers(text):
    """The first number of each row of the closing table."""
    rows = [line.strip("│ \n").split("│") for line in text.splitlines() if line.startswith("│")]
    return {cells[0].strip(): [part.strip() for part in cells[1].split("±")] for cells in rows}


def test_one_split_of_an_embedded_graph(argnn):
    done = argnn("train", "mixed", *TINY)
    assert (done.code, done.err) == (0, "")
    (folder,) = Path("runs").iterdir()
    assert folder.name.startswith("mixed-argnn-reference-2")
    assert f"Run folder: {folder}" in done.out
    assert "epoch chosen by validation accuracy; test nodes scored once" in done.out
    assert "Settings: preset reference; set by the user:" in done.out
    scores = json.loads((folder / "scores.json").read_text())
    shown = table_numbers(done.out)
    names = {
        "test F1 (weighted)": "f1",
        "test F1 (macro)": "f1_macro",
        "test accuracy": "accuracy",
        "test AUROC": "auroc",
        "test AUPRC (weighted)": "auprc",
    }
    for label, name in names.items():
        mean = scores["summary"]["test"][name]["mean"]
        assert shown[label] == [f"{100 * mean:.2f}"], label
    assert "twins" not in done.out.lower()
    assert scores["summary"]["twins"]["with_twin"] == 0
    val = scores["summary"]["val"]["accuracy"]["mean"]
    assert shown["validation accuracy"] == [f"{100 * val:.2f}"]
    test = json.loads((folder / "split-0" / "result.json").read_text())["test"]
    likely = binomtest(round(test["accuracy"] * test["count"]), test["count"])
    low, high = likely.proportion_ci(method="wilson")
    said = f"{100 * low:.2f} to {100 * high:.2f} (95 % Wilson interval, {test['count']} test nodes)"
    assert f"Interval of the test accuracy: {said}." in " ".join(done.out.split())


def test_several_splits_have_an_interval(argnn):
    done = argnn("train", "mixed", *TINY, "--split=0,1,2", "--out=run")
    assert (done.code, done.err) == (0, "")
    lines = [line for line in done.out.splitlines() if line.startswith("mixed, argnn, split")]
    assert len(lines) == 3
    rows = [json.loads(Path(f"run/split-{i}/result.json").read_text()) for i in range(3)]
    accuracy = np.array([row["test"]["accuracy"] for row in rows])
    half = T_975[3] * accuracy.std(ddof=1) / math.sqrt(3)
    shown = [float(number) for number in table_numbers(done.out)["test accuracy"]]
    assert shown == pytest.approx([100 * accuracy.mean(), 100 * half], abs=0.00501)
    assert "95 % Student-t interval of the mean over splits, n = 3" in done.out
    assert "one seed is noise" not in done.out  # 1,648 nodes


def test_hint_that_one_seed_of_a_small_graph_is_noise(argnn, small_npz):
    run = ("train", small_npz(), "--model=gcn", "--epochs=1", "--workers=1")
    hint = "With 90 nodes one seed is noise: take at least 5 (--seed 0, --seed 1"
    assert hint in argnn(*run, "--split=all").out
    assert hint not in argnn(*run).out


def test_json_is_one_document(argnn):
    done = argnn("train", "mixed", *TINY, "--split=0,1", "--out=run", "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert document.keys() == {"run", "config", "summary", "splits"}
    assert document["run"] == "run"
    stored = json.loads(Path("run/scores.json").read_text())
    assert (document["summary"], document["splits"]) == (stored["summary"], stored["splits"])
    assert document["config"] == json.loads(Path("run/config.json").read_text())["run"]
    auroc = np.array([row["test"]["auroc"] for row in document["splits"]])
    found = document["summary"]["test"]["auroc"]
    assert found["mean"] == pytest.approx(auroc.mean())
    assert found["sd"] == pytest.approx(auroc.std(ddof=1))
    assert found["interval"] == pytest.approx(T_975[2] * auroc.std(ddof=1) / math.sqrt(2))
    assert found["n"] == 2
    row = document["splits"][0]
    assert row.keys() >= {"test", "val", "chosen_epoch", "seconds", "versions", "git_commit"}


def test_trial_is_shown_and_stored(argnn, small_npz, brief_trial):
    done = argnn("train", small_npz(), "--epochs=2", "--out=run")
    assert (done.code, done.err) == (0, "")
    trial = json.loads(Path("run/config.json").read_text())["run"]["trial"]
    assert "recipes are tried on the validation nodes of each split, in at most" in done.out
    assert "Metric: " in done.out
    for run in (run for run in trial["runs"] if run["epochs"] == 2):
        mark = "*" if run["name"] == trial["chosen"] else " "
        cells = f"│ {mark} │ {run['name']} "
        assert any(line.startswith(cells) for line in done.out.splitlines()), run["name"]


def test_absent_class_is_named(argnn, small_npz):
    y = np.load(small_npz())["y"]
    test = np.zeros((90, 3), dtype=bool)
    test[:9] = (y[:9] != 2)[:, None]
    train, val = np.zeros_like(test), np.zeros_like(test)
    train[10:50], val[50:] = True, True
    path = small_npz("absent.npz", train_mask=train, val_mask=val, test_mask=test)
    done = argnn("train", path, "--model=gcn", "--epochs=2")
    assert done.code == 0
    assert "No test node of class 2 in split 0." in done.out


@pytest.mark.parametrize("model", ["gcn", "MLP"])
def test_baselines(argnn, model):
    done = argnn("train", "mixed", f"--model={model}", "--epochs=2", "--json")
    assert (done.code, done.err) == (0, "")
    config = json.loads(done.out)["config"]
    assert (config["model"], config["options"]["hidden_channels"]) == (model.lower(), 64)
    assert (config["train"]["lr"], config["train"]["epochs"]) == (0.01, 2)


def test_rival_keeps_its_settings_with_directed_edges(argnn, small_npz):
    run = ("train", small_npz(), "--model=h2gcn", "--epochs=1", "--json")
    undirected, directed = (
        json.loads(argnn(*run, *more).out)["config"] for more in ((), ("--directed",))
    )
    assert (directed["options"], directed["train"]) == (undirected["options"], undirected["train"])
    assert directed["train"]["patience"] == 300
    assert "for undirected edges, as none are stored for directed ones" in directed["source"]


def test_settings_of_the_user_win_over_flags(argnn):
    done = argnn("train", "mixed", "--model=gcn", "--epochs=9", "--set", "epochs=2", "--json")
    assert json.loads(done.out)["config"]["train"]["epochs"] == 2


def test_finished_run_is_not_repeated(argnn):
    argnn("train", "mixed", *TINY, "--out=run")
    before = {path: path.read_bytes() for path in Path("run/split-0").rglob("*.*")}
    done = argnn("train", "mixed", "--resume=run")
    assert (done.code, done.err) == (0, "")
    assert {path: path.read_bytes() for path in Path("run/split-0").rglob("*.*")} == before
    assert "Run folder: run" in done.out


def test_interrupted_run_says_how_to_go_on_and_does(argnn, monkeypatch):
    from argnn.runs import parallel

    whole = parallel.run_split

    def interrupted(config, graph, split, folder, on_epoch):
        if split == 1:
            raise KeyboardInterrupt
        return whole(config, graph, split, folder, on_epoch)

    with monkeypatch.context() as patch:
        patch.setattr(parallel, "run_split", interrupted)
        done = argnn("train", "mixed", *TINY, "--split=0,1", "--out=run")
    assert done.code == 130
    assert done.err == "argnn: error: interrupted; continue with: argnn train --resume run\n"
    assert not Path("run/split-1/result.json").exists()
    again = argnn("train", "--resume=run", "--workers=1", "--json")
    assert (again.code, again.err) == (0, "")
    assert [row["split"] for row in json.loads(again.out)["splits"]] == [0, 1]


def test_diverging_split_ends_with_one_and_a_clear_line(argnn):
    done = argnn("train", "mixed", *TINY, "--set=lr=1e30", "--set=clip_norm=null", "--out=run")
    assert done.code == 1
    (line,) = done.err.splitlines()
    assert line.startswith("argnn: error: split 0 failed: DivergenceError: the ")
    scores = json.loads(Path("run/scores.json").read_text())
    assert "DivergenceError" in scores["splits"][0]["error"]
    assert scores["summary"]["failed"] == 1


def test_unforeseen_error_in_a_split_keeps_its_traceback(argnn, monkeypatch):
    monkeypatch.setattr("argnn.runs.train_one.fit", None)
    done = argnn("train", "mixed", *TINY)
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err


def test_scores_without_twins(argnn, tmp_path):
    path = write_twins(tmp_path / "twins.npz")
    done = argnn(
        "train", path, "--model=gcn", "--epochs=3", "--split=all", "--workers=1", "--out=r"
    )
    assert (done.code, done.err) == (0, "")
    rows = [json.loads(Path(f"r/split-{i}/result.json").read_text()) for i in range(2)]
    assert [row["twins"] for row in rows] == list(COUNTS)
    assert "test_without_twins" not in rows[1]
    others = [rows[0]["test_without_twins"]["accuracy"], rows[1]["test"]["accuracy"]]
    found = json.loads(Path("r/scores.json").read_text())
    assert found["summary"]["test_without_twins"]["accuracy"]["mean"] == pytest.approx(
        np.mean(others)
    )
    assert found["splits"][0]["test_without_twins"] == rows[0]["test_without_twins"]
    [line] = [text for text in done.out.splitlines() if text.startswith("│ test accuracy")]
    assert line.rstrip("│ ").split("│")[-1].strip().startswith(f"{100 * np.mean(others):.2f} ± ")
    assert f"(without twins {100 * others[0]:.2f})" in done.out
    assert "Twins: 44.4 % of the test nodes" in done.out


def test_real_graph(argnn, benchmark_root):
    done = argnn("train", "texas", "--data-root", benchmark_root, "--epochs=5", "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert document["config"]["trial"] is None
    assert document["config"]["graph"]["split_rule"].startswith("ten fixed Geom-GCN splits")
    assert document["summary"]["absent_classes"] == {"0": [1]}
