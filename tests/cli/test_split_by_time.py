"""``argnn train --task link --split-by time``."""

import json
import random
from datetime import date, timedelta
from pathlib import Path

import pytest

from argnn.runs.prepare import reopen
from argnn.runs.problems import pose_problem
from argnn.settings.run_config import RunConfig

QUICK = ("--task=link", "--model=gcn", "--epochs=2", "--features=degree")
BY_TIME = ("--split-by=time", "--time=when")


@pytest.fixture
def calls():
    """A list of calls with dates, some of them between the same two."""
    rng = random.Random(0)
    start = date(2024, 1, 1)
    rows = [
        f"{rng.randrange(30)},{rng.randrange(30)},{start + timedelta(days=rng.randrange(300))}"
        for _ in range(200)
    ]
    Path("calls.csv").write_text("source,target,when\n" + "\n".join(rows))
    return Path("calls.csv")


def stored(run="run"):
    return json.loads(Path(run, "config.json").read_text())


def test_training_sees_nothing_newer(argnn, calls):
    done = argnn("train", calls, *QUICK, *BY_TIME, "--out=run")
    assert (done.code, done.err) == (0, "")
    config = stored()["run"]
    assert config["link"]["split_by"] == "time"
    assert config["columns"] == {"features": "degree", "time": "when"}
    plan = reopen(RunConfig.from_json(config, "run"), None, 1)
    first = {}
    for line in calls.read_text().splitlines()[1:]:
        a, b, when = line.split(",")
        pair = frozenset((a, b))
        first[pair] = min(when, first.get(pair, when))
    names = [str(name) for name in plan.graph.node_ids]
    when = lambda pairs: [first[frozenset((names[a], names[b]))] for a, b in pairs.t().tolist()]  # noqa: E731
    problem = pose_problem(plan.graph, 0, "cpu", plan.config.link)
    seen = when(problem.visible.edge_index)
    val, test = when(problem.judge.pairs.val), when(problem.judge.pairs.test)
    assert max(seen) <= min(val) <= max(val) <= min(test)
    assert max(when(problem.task.train_pairs)) == max(seen)


@pytest.mark.usefixtures("forked_workers")
def test_run_goes_on_and_predicts(argnn, calls):
    argnn("train", calls, *QUICK, *BY_TIME, "--split=0,1", "--out=run")
    Path("run/split-1/result.json").unlink()
    assert argnn("train", "--resume=run").code == 0
    Path("pairs.csv").write_text("source,target\n1,2\n3,4\n")
    done = argnn("predict", "run", "--pairs=pairs.csv", "--out=links.csv")
    assert (done.code, done.err) == (0, "")
    text = calls.read_text()  # prediction needs no times
    calls.write_text("\n".join(line.rsplit(",", 1)[0] for line in text.splitlines()))
    done = argnn("predict", "run", calls, "--pairs=pairs.csv", "--out=again.csv")
    assert (done.code, done.err) == (0, "")


def test_split_changes_with_the_times_and_random_splits_are_stored_as_before(argnn, calls):
    argnn("train", calls, *QUICK, "--out=random")
    argnn("train", calls, *QUICK, *BY_TIME, "--out=run")
    assert "split_by" not in stored("random")["run"]["link"]
    assert stored("random")["fingerprint"] != stored()["fingerprint"]
    assert stored("random")["run"]["graph"]["digest"] != stored()["run"]["graph"]["digest"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--split-by=time",), "--split-by time needs --time COLUMN"),
        (("--time=when",), "--time belongs to --split-by time"),
        (("--split-by=age", "--time=when"), "split_by must be one of random, time (got 'age')"),
        ((*BY_TIME, "--spanning-forest"), "--spanning-forest would put new edges into training"),
        (("--split-by=time", "--time=whn"), "no column 'whn' for the times of edges; did you mean"),
        ((*BY_TIME, "--task=node"), "--time belongs to --task link"),
        (("--split-by=time", "--task=node"), "--split-by belongs to --task link"),
    ],
)
def test_what_does_not_fit_is_refused(refused, calls, words, message):
    refused("train", calls, *QUICK, *words, "--out=run", message=message)


@pytest.mark.parametrize(
    ("cell", "problem"),
    [("", "the time is missing"), ("later", "a time must be a number or a date")],
)
def test_wrong_times(refused, calls, cell, problem):
    rows = calls.read_text().splitlines()
    rows[5] = rows[5].rsplit(",", 1)[0] + f",{cell}"
    calls.write_text("\n".join(rows))
    message = f"calls.csv, line 6, column when: {problem}"
    refused("train", calls, *QUICK, *BY_TIME, "--out=run", message=message)
