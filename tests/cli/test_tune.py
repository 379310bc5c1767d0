"""``argnn tune``: what a person sees, what a machine reads, and how a search is continued."""

import functools
import json
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
import yaml
from rich.console import Console

from argnn.bench.tuning.search import SplitJob, plan_search
from argnn.bench.tuning.study import TrialRecord
from argnn.cli.tune import TrialProgress
from argnn.runs.prepare import Request

TINY = ("--model=gcn", "--trials=3", "--epochs=2")


@pytest.fixture
def refused(refused):
    return functools.partial(refused, "tune")


def test_search_shows_the_best_trials_and_how_to_use_them(argnn, small_npz):
    path = small_npz()
    done = argnn("tune", path, *TINY)
    assert (done.code, done.err) == (0, "")
    assert "small, gcn: 3 trials, by mean validation accuracy over splits 0,1,2" in done.out
    trials = [line for line in done.out.splitlines() if line.startswith("trial ")]
    assert len(trials) == 3
    assert "0 (default)" in done.out
    assert "3 finished, 0 pruned, 0 failed trials." in done.out
    settings = yaml.safe_load(Path("tuning/small-gcn.yaml").read_text())
    assert (settings["model"], settings["train"]["epochs"]) == ("gcn", 2)
    files = sorted(path.name for path in Path("tuning").iterdir())
    assert files == ["small-gcn.journal", "small-gcn.yaml"]
    (use,) = [line for line in done.out.splitlines() if line.startswith("Use them: argnn ")]
    again = argnn(*use.split()[3:], "--split=0,1,2", "--workers=1", "--json")
    assert (again.code, again.err) == (0, "")
    accuracy = [row["val"]["accuracy"] for row in json.loads(again.out)["splits"]]
    assert np.mean(accuracy) == pytest.approx(settings["validation"]["score"])


def test_link_search_and_its_use(argnn):
    done = argnn("tune", "mixed", *TINY, "--task=link", "--split=0", "--ratio=80/5/15")
    assert (done.code, done.err) == (0, "")
    assert "by mean validation AUROC over splits 0" in done.out
    (use,) = [line for line in done.out.splitlines() if line.startswith("Use them: argnn ")]
    assert "--task link --ratio 80/5/15" in use
    assert "tuning/mixed-gcn-link.yaml" in use
    again = argnn(*use.split()[3:], "--json")
    assert (again.code, again.err) == (0, "")
    settings = yaml.safe_load(Path("tuning/mixed-gcn-link.yaml").read_text())
    (row,) = json.loads(again.out)["splits"]
    assert row["val"]["auroc"] == pytest.approx(settings["validation"]["score"])


def test_json_is_one_document(argnn, small_npz):
    done = argnn("tune", small_npz(), *TINY, "--storage=a/s.journal", "--out=b/t.yaml", "--json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert document.keys() == {"storage", "settings", "tuned", "trials"}
    assert (document["storage"], document["settings"]) == ("a/s.journal", "b/t.yaml")
    assert [trial["number"] for trial in document["trials"]] == [0, 1, 2]
    best = max(document["trials"], key=lambda trial: trial["value"])
    assert document["tuned"]["validation"]["score"] == best["value"]
    stored = yaml.safe_load(Path("b/t.yaml").read_text())
    assert stored["options"] == document["tuned"]["options"]


def test_same_command_continues(argnn, small_npz):
    path = small_npz()
    argnn("tune", path, *TINY)
    first = Path("tuning/small-gcn.yaml").read_bytes()
    done = argnn("tune", path, *TINY)
    assert "small, gcn: 3 trials, 3 of them over already" in done.out
    assert not any(line.startswith("trial ") for line in done.out.splitlines())
    assert Path("tuning/small-gcn.yaml").read_bytes() == first
    more = argnn("tune", path, *TINY, "--trials=5")
    assert [line[:8] for line in more.out.splitlines() if line.startswith("trial ")] == [
        "trial 3:",
        "trial 4:",
    ]


def test_interrupted_search_says_how_to_go_on_and_does(argnn, small_npz, monkeypatch):
    path, whole, jobs = small_npz(), SplitJob.run, []

    def interrupted(job, graph, on_epoch):
        jobs.append(job)
        if len(jobs) == 5:
            raise KeyboardInterrupt
        return whole(job, graph, on_epoch)

    with monkeypatch.context() as patch:
        patch.setattr(SplitJob, "run", interrupted)
        done = argnn("tune", path, *TINY, "--out=my result.yaml")
    assert done.code == 130
    (line,) = done.err.splitlines()
    start = "argnn: error: interrupted; continue with: argnn "
    assert line == (
        f"{start}tune {path} --model gcn --trials 3 --set train.epochs=2 --out 'my result.yaml'"
    )
    assert not Path("my result.yaml").exists()
    again = argnn(*line.removeprefix(start).replace("'my result.yaml'", "my.yaml").split())
    assert (again.code, again.err) == (0, "")
    assert "1 of them over already" in again.out
    assert Path("my.yaml").exists()


def test_failed_trials_are_counted_and_shown(argnn, small_npz, monkeypatch):
    from argnn.nn import MODELS

    monkeypatch.setattr(MODELS["gcn"], "search_space", {"lr": [0.01, 1e30]})
    done = argnn("tune", small_npz(), *TINY)
    assert (done.code, done.err) == (0, "")
    assert "1 finished, 0 pruned, 1 failed trials." in done.out
    (line,) = [line for line in done.out.splitlines() if "failed (" in line]
    assert line.startswith("trial 1: failed (DivergenceError: the ")


def test_search_without_a_finished_trial_writes_no_settings(argnn, small_npz, monkeypatch):
    monkeypatch.setattr("argnn.runs.train_one.fit", None)
    done = argnn("tune", small_npz(), *TINY)
    assert done.code == 1
    assert "Traceback (most recent call last)" in done.err
    assert "none of the 3 trials finished, the last with: TypeError" in done.err.splitlines()[-1]
    assert not Path("tuning/small-gcn.yaml").exists()
    assert Path("tuning/small-gcn.journal").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["coar"], "unknown data set 'coar'; did you mean 'cora'"),
        (["mixed", "--model=gnc"], "unknown model 'gnc'; did you mean 'gcn'"),
        (["mixed", "--trials=0"], "--trials must be at least 1 (got 0)"),
        (["mixed", "--trials=many"], "Invalid value for '--trials'"),
        (["mixed", "--task=edges"], "--task must be one of node, link"),
        (["mixed", "--model=gcn", "--preset=paper"], "preset 'paper' belongs to argnn"),
        (["mixed", "--model=gcn", "--split=99"], "split 99 out of range"),
        (["mixed", "--model=gcn", "--epochs=0"], "epochs must be at least 1"),
        (["mixed", "--model=gcn", "--set=lr=-1"], "lr must be positive"),
        (["mixed", "--model=gcn", "--set=droput=0"], "did you mean 'dropout'"),
        (["mixed", "--model=gcn", "--seed=-1"], "--seed must be from 0"),
        (["mixed", "--model=gcn", "--workers=0"], "--workers must be at least 1"),
        (["mixed", "--model=gcn", "--executor=slurm"], "--executor must be one of local, ray"),
        (["mixed", "--model=gcn", "--address=auto"], "--address belongs to --executor ray"),
        (["mixed", "--model=gcn", "--device=tpu"], "--device must be one of"),
        (["mixed", "--model=gcn", "--ratio=80/5/15"], "--ratio belongs to --task link"),
        (["mixed", "--model=gcn", "--out=."], ".: is a folder, not a file"),
        (["mixed", "--model=gcn", "--storage=."], ".: is a directory"),
        (["none.npz"], "none.npz: no such file"),
        ([], "Missing argument"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_arguments(refused, arguments, message):
    refused(*arguments, message=message)


def test_files_of_others_are_left_alone(refused):
    Path("notes.txt").write_text("mine")
    refused("mixed", *TINY, "--out=notes.txt", message="notes.txt: must be a mapping")
    refused("mixed", *TINY, "--storage=notes.txt", message="notes.txt: not a journal of argnn tune")


def test_journal_of_another_search(argnn, refused, small_npz):
    path = small_npz()
    argnn("tune", path, *TINY)
    refused(path, *TINY, "--epochs=3", message="is a search with other epochs (2, not 3)")
    refused(path, *TINY, "--split=0", message="is a search with other splits (0,1,2, not 0)")


def test_missing_optuna_is_one_line(refused, monkeypatch):
    monkeypatch.setattr("argnn.bench.tuning.search.find_spec", lambda name: None)
    refused("mixed", *TINY, message="argnn tune needs optuna: pip install 'argnn[bench]'")


def test_bar_counts_trials_and_shows_the_best(small_npz, cache, one_thread):
    search = plan_search(Request(str(small_npz()), model="gcn"), 3)
    console = Console(file=StringIO(), force_terminal=True, highlight=False, width=120)
    records = [
        TrialRecord(0, "finished", search.default, 0.5, (0.5,), (1,), 1.0),
        TrialRecord(1, "finished", search.default, 0.625, (0.625,), (1,), 1.0),
        TrialRecord(2, "pruned", search.default, None, (0.9,), (1,), 1.0),
    ]
    with TrialProgress(console, search) as watcher:
        watcher.began(records[:1], 3)
        for record in records[1:]:
            watcher.finished(record)
    shown = console.file.getvalue()
    assert "3 trials, 1 of them over already" in shown
    assert "3/3" in shown
    assert "best 62.50 % in trial 1" in shown
