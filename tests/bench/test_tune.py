"""The search: its budget, what it may see, and how it goes on after every kind of end."""

import json
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from argnn.bench.tuning.search import (
    Outcome,
    SplitJob,
    best_trials,
    check_out,
    counts,
    default_paths,
    plan_search,
    run_search,
    tuned_settings,
    write_result,
)
from argnn.bench.tuning.study import RANDOM_TRIALS, UNPRUNED_TRIALS, open_study
from argnn.errors import ArgnnError, ConfigError, RunError
from argnn.nn import MODELS
from argnn.runs.pool import open_pool
from argnn.runs.prepare import Request, prepare
from argnn.runs.run import run_cell
from argnn.settings.tuned import read_tuned
from forked import code, run_forked


@pytest.fixture
def planned(small_npz):
    """A search on a small graph with few epochs; a path or changes make it another."""
    path = small_npz()

    def plan(trials=6, *, data=path, splits=None, epochs=2, **request):
        values = {"model": "gcn", "overrides": (f"train.epochs={epochs}",), **request}
        return plan_search(Request(str(data), **values), trials, splits=splits)

    return plan


@pytest.fixture
def searched(planned, tmp_path):
    """Run a planned search; a name of its own gives it a journal of its own."""

    def run(search=None, name="study"):
        search = search or planned()
        return run_search(search, tmp_path / f"{name}.journal")

    return run


@pytest.fixture
def faked(monkeypatch):
    """Replace training by a function of the job; it may raise."""

    def fake(function):
        jobs = []

        def train(job, graph, on_epoch):
            jobs.append(job)
            return Outcome(function(job), 1, 0.5)

        monkeypatch.setattr(SplitJob, "run", train)
        return jobs

    return fake


def untimed(records):
    return [replace(record, seconds=0.0) for record in records]


def entries(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_first_trial_is_what_argnn_train_does(searched, small_npz):
    first = searched()[0]
    request = Request(str(small_npz()), model="gcn", split="0,1,2", overrides=("epochs=2",))
    plan = prepare(request)
    rows = [run_cell(plan.config, plan.graph, split) for split in plan.config.splits]
    assert first.params == {
        "hidden_channels": 64,
        "dropout": 0.5,
        "input_dropout": 0.0,
        "lr": 0.01,
        "weight_decay": 0.0005,
    }
    assert list(first.scores) == [row["val"]["accuracy"] for row in rows]
    assert list(first.epochs) == [row["chosen_epoch"] for row in rows]
    assert first.value == pytest.approx(np.mean(first.scores))


def test_link_trials_are_scored_by_validation_auroc(planned, searched, small_npz):
    search = planned(2, task="link", ratio="80/5/15")
    records = searched(search)
    request = Request(
        str(small_npz()),
        model="gcn",
        split="0,1,2",
        overrides=("epochs=2",),
        task="link",
        ratio="80/5/15",
        fresh=True,  # a search does not start from stored settings
    )
    plan = prepare(request)
    rows = [run_cell(plan.config, plan.graph, split) for split in (0, 1, 2)]
    assert list(records[0].scores) == pytest.approx([row["val"]["auroc"] for row in rows])
    tuned = tuned_settings(search, records)
    assert (tuned.task, tuned.validation.name) == ("link", "AUROC")
    assert tuned.link.ratio == "80/5/15"
    assert search.stem == "small-gcn-link"


@pytest.mark.parametrize("name", MODELS)
def test_every_model_can_be_searched(planned, searched, brief_trial, name):
    search = planned(3, model=name, splits="0", epochs=1)
    records = searched(search)
    assert len(records) == 3
    assert records[0].params == search.default
    space = MODELS[name].search_space
    for record in records[1:]:
        assert record.params.keys() == space.keys()
        for key, value in record.params.items():
            assert value in [*space[key], search.default[key]]


def test_default_value_outside_the_choices_joins_them(planned, monkeypatch):
    monkeypatch.setattr(MODELS["gcn"], "search_space", {"hidden_channels": [4, 8], "lr": [1]})
    search = planned()
    assert search.space == {"hidden_channels": [4, 8, 64], "lr": [1.0, 0.01]}
    assert search.default == {"hidden_channels": 64, "lr": 0.01}


def test_equal_searches_are_equal_and_seeds_differ(planned, searched):
    search = planned(RANDOM_TRIALS + 3)
    first, again = searched(search, "first"), searched(search, "again")
    assert untimed(first) == untimed(again)
    other = searched(planned(3, seed=1), "other")
    assert [r.params for r in first[1:3]] != [r.params for r in other[1:]]
    assert first[0].params == other[0].params


def test_budget_over_restarts(planned, searched, faked):
    search = planned(RANDOM_TRIALS + 2, splits="0,2")
    whole = untimed(searched(search, "whole"))
    assert untimed(searched(replace(search, trials=4))) == whole[:4]
    assert untimed(searched(replace(search, trials=RANDOM_TRIALS + 1))) == whole[:-1]
    assert untimed(searched(search)) == whole
    jobs = faked(lambda job: 1.0)
    assert untimed(searched(search)) == whole
    # A smaller budget is that search, not the best of a larger one.
    assert untimed(searched(replace(search, trials=4))) == whole[:4]
    assert jobs == []


def test_no_configuration_is_tried_twice(planned, searched, faked):
    faked(lambda job: 1.0 if job.params["lr"] == 0.05 else 0.5)
    search = planned(30)
    tried = [tuple(record.params.values()) for record in searched(search)]
    assert len(set(tried)) == len(tried) == 30


def test_search_ends_when_everything_was_tried(planned, searched, faked, tmp_path):
    jobs = faked(lambda job: 0.5)
    fixed = ("hidden_channels=4", "dropout=0.5", "input_dropout=0", "weight_decay=0")
    search = planned(50, overrides=fixed)
    assert search.space.keys() == {"lr"}
    records = searched(search)
    assert sorted(record.params["lr"] for record in records) == [0.002, 0.01, 0.05]
    assert len(jobs) == 9
    assert asdict(tuned_settings(search, records).trials) == {
        "asked": 50,
        "finished": 3,
        "pruned": 0,
        "failed": 0,
    }


def test_settings_that_do_not_go_together_are_not_tried(planned, searched, faked, monkeypatch):
    space = {"modulation": ["operator", "scalar"], "lr": [0.005, 0.01]}
    monkeypatch.setattr(MODELS["argnn"], "search_space", space)
    faked(lambda job: 0.5)
    request = {"model": "argnn", "preset": "default", "overrides": ("hops=2", "epochs=1")}
    records = searched(planned(4, **request))
    assert {record.params["modulation"] for record in records} == {"operator"}
    assert [record.state for record in records] == ["finished", "finished"]


def test_sampler_learns_from_what_was_tried(planned, searched, faked):
    faked(lambda job: 1.0 if job.params["lr"] == 0.05 else 0.1)
    records = searched(planned(RANDOM_TRIALS + 8))
    hits = [record.params["lr"] == 0.05 for record in records]
    assert sum(hits[RANDOM_TRIALS:]) > sum(hits[:RANDOM_TRIALS])


# ---- what it may see ---------------------------------------------------------------------------


@pytest.fixture
def common_test(small_npz):
    """Files of the same path whose test nodes are the same in all splits."""
    test = np.zeros((90, 3), dtype=bool)
    test[:30] = True
    val = np.zeros_like(test)
    for split in range(3):
        val[30 + 20 * split : 50 + 20 * split, split] = True
    masks = {"train_mask": ~test & ~val, "val_mask": val, "test_mask": test}
    y = np.arange(90) % 3

    def write(shift):
        labels = y.copy()
        labels[:30] = (labels[:30] + shift) % 3
        return small_npz("common.npz", y=labels, **masks)

    return write


def test_no_test_label_reaches_the_search(planned, searched, common_test, tmp_path):
    results = []
    for shift in (0, 1):
        search = planned(8, data=common_test(shift))
        records = searched(search, f"shift-{shift}")
        write_result(tmp_path / f"{shift}.yaml", search, records)
        results.append((untimed(records), search.about()))
    assert results[0] == results[1]
    assert (tmp_path / "0.yaml").read_bytes() == (tmp_path / "1.yaml").read_bytes()
    assert (np.load(common_test(0))["y"] != np.load(common_test(1))["y"]).sum() == 30


def test_validation_labels_do_reach_it(planned, searched, small_npz):
    y = np.load(small_npz())["y"]
    before = searched(planned(2), "before")
    after = searched(planned(2, data=small_npz("other.npz", y=(y + np.arange(90) // 45) % 3)), "x")
    assert [record.scores for record in before] != [record.scores for record in after]


def test_test_labels_are_erased_before_anything_starts(planned, small_npz):
    with np.load(small_npz()) as stored:
        seen_in_fit = stored["train_mask"] | stored["val_mask"]
    for splits, chosen in (("1", [1]), ("0,2", [0, 2])):
        graph = planned(splits=splits).graph
        seen = seen_in_fit[:, chosen].any(1)
        assert (graph.y >= 0).tolist() == seen.tolist()
        assert not graph.test_mask.any()


# ---- trials that do not finish -----------------------------------------------------------------


def test_bad_trials_are_pruned_after_a_split(planned, searched, faked):
    jobs = faked(lambda job: 0.9 if job.trial < UNPRUNED_TRIALS else 0.1)
    search = planned(UNPRUNED_TRIALS + 2)
    records = searched(search)
    assert [record.state for record in records] == ["finished"] * UNPRUNED_TRIALS + ["pruned"] * 2
    assert [job.split for job in jobs if job.trial >= UNPRUNED_TRIALS] == [0, 0]
    assert (records[-1].value, records[-1].scores) == (None, (0.1,))
    tuned = tuned_settings(search, records)
    assert asdict(tuned.trials) == {"asked": 7, "finished": 5, "pruned": 2, "failed": 0}
    assert tuned.validation.score == pytest.approx(0.9)


def test_pruning_looks_at_the_mean_so_far(planned, searched, faked):
    late = {0: 0.9, 1: 0.0, 2: 0.9}
    faked(lambda job: 0.8 if job.trial < UNPRUNED_TRIALS else late[job.split])
    last = searched(planned(UNPRUNED_TRIALS + 1))[-1]
    # Best of 0.9 and 0.45 so far: not below the others' 0.8 at the same point.
    assert (last.state, last.scores) == ("finished", (0.9, 0.0, 0.9))


def test_diverging_trial_is_recorded_and_the_search_goes_on(planned, searched, monkeypatch):
    monkeypatch.setattr(MODELS["gcn"], "search_space", {"lr": [0.01, 1e30, 0.02]})
    search = planned(3)
    records = searched(search)
    (failed,) = [record for record in records if record.state == "failed"]
    assert failed.params == {"lr": 1e30}
    assert failed.error.startswith("DivergenceError: the ")
    assert (failed.value, failed.traceback) == (None, None)
    assert counts(records) == {"finished": 2, "pruned": 0, "failed": 1}
    assert untimed(searched(search)) == untimed(records)  # it is not tried again


def test_unforeseen_error_keeps_its_traceback(planned, searched, monkeypatch):
    monkeypatch.setattr("argnn.runs.train_one.fit", None)
    search = planned(2)
    records = searched(search)
    assert [record.state for record in records] == ["failed", "failed"]
    assert "Traceback (most recent call last)" in records[0].traceback
    with pytest.raises(RunError, match="none of the 2 trials finished, the last with: TypeError"):
        tuned_settings(search, records)


def test_score_that_is_no_number_is_a_failure(planned, monkeypatch):
    search = planned()
    job = SplitJob(search.config, 0, search.default, 0)
    assert job.run(search.graph).error is None

    class Undefined:
        val_score, best_epoch = float("nan"), 1

    monkeypatch.setattr("argnn.runs.train_one.fit", lambda *_, **__: Undefined)
    with pytest.raises(RunError, match="the validation score of split 0 is nan"):
        job.run(search.graph)


# ---- how it goes on ----------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from pathlib import Path
from argnn.runs.prepare import Request
from argnn.bench.tuning.search import SplitJob
from argnn.bench.tuning.search import plan_search, run_search

whole, jobs = SplitJob.run, []

def train(job, graph, on_epoch):
    jobs.append(job)
    if len(jobs) == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return whole(job, graph, on_epoch)

SplitJob.run = train
request = Request(sys.argv[1], model="gcn", overrides=("train.epochs=2",))
run_search(plan_search(request, 5), Path(sys.argv[2]))
"""


@pytest.mark.usefixtures("plain_seeds")
def test_killed_search_ends_as_an_undisturbed_one(planned, searched, small_npz, tmp_path):
    journal = tmp_path / "study.journal"
    done, _, errors = run_forked(code, KILLED, small_npz(), journal, cwd=tmp_path)
    assert done == -signal.SIGKILL, errors
    search = planned(5)
    write_result(tmp_path / "whole.yaml", search, whole := searched(search, "whole"))
    write_result(tmp_path / "killed.yaml", search, records := searched(search))
    assert untimed(records) == untimed(whole)
    assert (tmp_path / "killed.yaml").read_bytes() == (tmp_path / "whole.yaml").read_bytes()
    # The third trial was given up in its second split, and begun again.
    states = [entry["state"] for entry in entries(journal) if entry["op_code"] == 6]
    assert states.count(3) == 1
    assert len(entries(journal)) > len(entries(tmp_path / "whole.journal"))


def test_interrupted_search_ends_as_an_undisturbed_one(planned, searched, monkeypatch):
    search, whole, jobs = planned(5), SplitJob.run, []

    def interrupted(job, graph, on_epoch):
        jobs.append(job)
        if len(jobs) % 5 == 0:
            raise KeyboardInterrupt
        return whole(job, graph, on_epoch)

    monkeypatch.setattr(SplitJob, "run", interrupted)
    for _ in range(4):  # more often than a trial may die
        with pytest.raises(KeyboardInterrupt):
            searched(search)
    monkeypatch.undo()
    assert untimed(searched(search)) == untimed(searched(search, "whole"))


@pytest.fixture
def opened(planned, tmp_path):
    """Open the journal of a search as the search does."""
    search = planned()

    def open_it():
        return open_study(tmp_path / "study.journal", search, parallel=False)

    return open_it


def test_trial_that_kills_its_process_twice_has_failed(opened, planned, searched):
    for _ in range(2):
        with opened() as study:
            trial = study.begin_trial()
            assert trial.user_attrs["params"] == study.search.default
            assert study.records() == []
    with opened() as study:
        (record,) = study.records()
        assert (record.number, record.state) == (0, "failed")
        assert record.error == "its process died 2 times"
    records = searched(planned(3))
    assert [record.state for record in records] == ["failed", "finished", "finished"]


def test_trial_that_was_proposed_and_not_begun_is_the_next(opened):
    with opened() as study:
        study._enqueue({**study.search.default, "lr": 0.05}, attempt=1)
    with opened() as study:
        assert study.begin_trial().params["lr"] == 0.05


def test_only_one_process_at_a_time(opened):
    with (
        opened(),
        pytest.raises(RunError, match=r"study\.journal: another process is using it"),
        opened(),
    ):
        pass
    with opened():
        pass


def test_line_cut_short_by_a_crash_is_dropped(planned, searched, tmp_path):
    path, search = tmp_path / "study.journal", planned(4)
    searched(replace(search, trials=2))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"op_code":4,"worker')
    assert untimed(searched(search)) == untimed(searched(search, "whole"))
    assert path.read_bytes().startswith(whole + b'{"op_code":4,"worker_id"')
    assert entries(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"notes of mine", "not a journal of argnn tune"),
        (b"notes of mine\n", "not a journal of argnn tune"),
        (b"[]\n", "not a journal of argnn tune"),
        (b'{"op_code":0,"worker_id":"a","study_name":"x","directions":[2]}\n', "not a journal of"),
        (b'{"op_code":0,"worker_id":"a","study_name":"argnn"}\n', "damaged, not a journal"),
        (
            b'{"op_code":0,"worker_id":"a","study_name":"argnn","directions":[2]}\n'
            b'{"op_code":4,"worker_id":"a","study_id":0,"datetime_start":null}\n',
            "holds trials that are not of argnn tune",
        ),
        (
            b'{"op_code":0,"worker_id":"a","study_name":"argnn","directions":[2]}\n'
            b'{"op_code":4,"work\n{"op_code":4}\n',
            "damaged in line 2",
        ),
        (
            b'{"op_code":0,"worker_id":"a","study_name":"argnn","directions":[2]}\n'
            + b"[" * 5000
            + b"\n",
            "damaged in line 2",
        ),
    ],
)
def test_other_files_are_refused_and_left_alone(searched, tmp_path, content, message):
    path = tmp_path / "study.journal"
    path.write_bytes(content)
    with pytest.raises(RunError, match=message):
        searched()
    assert path.read_bytes() == content


def test_journal_of_an_earlier_version_goes_on_with_a_warning(planned, searched, tmp_path, caplog):
    before = searched(planned(2))
    path = tmp_path / "study.journal"
    lines = [{k: v for k, v in entry.items() if k != "digest"} for entry in entries(path)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert untimed(searched(planned(3))[:2]) == untimed(before)
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith(f"{path}: has lines without a checksum")


def test_changed_line_of_a_journal_is_refused(planned, searched, tmp_path):
    searched(planned(2))
    path = tmp_path / "study.journal"
    path.write_text(path.read_text().replace('"seconds"', '"secondz"', 1))
    with pytest.raises(RunError, match=r"damaged, line \d+ does not match its checksum"):
        searched(planned(3))


def test_empty_file_is_a_new_journal(searched, tmp_path):
    (tmp_path / "study.journal").touch()
    assert len(searched()) == 6


def test_journal_of_another_search_is_refused_and_left_alone(
    planned, searched, small_npz, tmp_path, monkeypatch
):
    searched(planned(1))
    path = tmp_path / "study.journal"
    before = path.read_bytes()
    x = np.load(small_npz())["x"]
    others = {
        "data": planned(data=small_npz("other.npz")),
        "task": planned(task="link"),
        "directed": planned(directed=True),
        "model": planned(model="mlp"),
        "splits": planned(splits="0,1"),
        "seed": planned(seed=1),
        "epochs": planned(epochs=4),
        "search space": planned(overrides=("epochs=2", "dropout=0.5")),
        "options": planned(overrides=("epochs=2", "num_layers=3")),
        "training settings": planned(overrides=("epochs=2", "patience=9")),
        "graph": planned(data=small_npz(x=x + 1)),
    }
    for what, search in others.items():
        with pytest.raises(ConfigError) as refused:
            searched(search)
        assert f"{path}: is a search with other {what}" in str(refused.value), what
        assert path.read_bytes() == before
    with pytest.raises(ConfigError, match=r"other splits \(0,1,2, not 0,1\); choose another --st"):
        searched(others["splits"])


def test_journal_is_lines_of_json_without_a_sampler(searched, tmp_path):
    searched()
    text = (tmp_path / "study.journal").read_text()
    assert all(isinstance(entry, dict) for entry in entries(tmp_path / "study.journal"))
    assert not any(word in text.lower() for word in ("sampler", "pickle", "tpe:"))


def test_full_disk_is_one_line(searched, monkeypatch):
    from optuna.storages.journal import JournalFileBackend

    whole = JournalFileBackend.append_logs

    def full(self, logs):
        if logs[0]["op_code"] == 7:
            raise OSError(28, "No space left on device")
        whole(self, logs)

    monkeypatch.setattr(JournalFileBackend, "append_logs", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*study\.journal'"):
        searched()
    monkeypatch.undo()
    assert len(searched()) == 6


# ---- what comes out ----------------------------------------------------------------------------


def test_chosen_configuration_is_the_best_finished_one(planned, searched, tmp_path):
    search = planned(8)
    records = searched(search)
    best = max((r for r in records if r.state == "finished"), key=lambda r: r.value)
    path = tmp_path / "tuned.yaml"
    tuned = write_result(path, search, records)
    assert read_tuned(path) == tuned
    assert {**tuned.options, **tuned.train} == {**best.params, "epochs": 2}
    assert asdict(tuned.validation) == {
        "name": "accuracy",
        "score": best.value,
        "splits": [0, 1, 2],
        "seed": 0,
    }
    assert tuned.source.startswith(f"trial {best.number}, best of 8 by mean validation accuracy")
    assert "--model gcn --trials 8 --set train.epochs=2" in tuned.source
    assert sum(asdict(tuned.trials).values()) == 16


def test_chosen_configuration_trains_to_the_same_score(planned, searched, small_npz, tmp_path):
    search = planned(4)
    records = searched(search)
    write_result(tmp_path / "tuned.yaml", search, records)
    request = Request(str(small_npz()), model="gcn", split="0,1,2")
    plan = prepare(replace(request, settings_file=str(tmp_path / "tuned.yaml")))
    rows = [run_cell(plan.config, plan.graph, split) for split in (0, 1, 2)]
    assert [row["val"]["accuracy"] for row in rows] == list(best_trials(records)[0].scores)


def test_equal_scores_go_to_the_default(planned, searched, faked):
    faked(lambda job: 0.5)
    assert best_trials(searched())[0].number == 0


def test_settings_of_argnn_are_told_from_its_preset(planned, searched, faked):
    faked(lambda job: 0.5)
    search = planned(1, model="argnn", overrides=("eps0=0.25",))
    tuned = tuned_settings(search, searched(search))
    assert tuned.options["eps0"] == 0.25
    assert tuned.options.keys() >= {"self_path", "normalization", "metric", "num_layers"}
    assert tuned.train.keys() == {"lr", "weight_decay"}
    # No short runs, and no stored settings: they are the result of another search.
    assert "trial 0: preset default" in tuned.source


def test_names_of_files(planned):
    assert planned().stem == "small-gcn"
    assert (
        planned(model="argnn", preset="paper", directed=True).stem == "small-argnn-paper-directed"
    )
    journal, result = default_paths(planned())
    assert (journal, result) == (Path("tuning/small-gcn.journal"), Path("tuning/small-gcn.yaml"))


def test_result_replaces_only_an_older_one(planned, searched, tmp_path):
    search = planned(1)
    path = tmp_path / "tuned.yaml"
    assert not check_out(path, search)
    write_result(path, search, searched(search), force=False)
    assert check_out(path, planned(9, seed=3))
    with pytest.raises(ConfigError, match="model is gcn there, not mlp"):
        check_out(path, planned(model="mlp"))
    path.write_text("notes: mine\n")
    with pytest.raises(ConfigError, match="not a file of argnn tune.*; choose another --out"):
        check_out(path, search)
    assert check_out(path, search, force=True)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    for taken, message in ((tmp_path, "is a folder"), (link, "is a symbolic link")):
        with pytest.raises(RunError, match=message):
            check_out(taken, search, force=True)


def test_one_split_is_enough(planned, searched, small_npz):
    masks = {name: np.load(small_npz())[name][:, :1] for name in ("train_mask", "val_mask")}
    test = ~(masks["train_mask"] | masks["val_mask"])
    search = planned(2, data=small_npz("one.npz", **masks, test_mask=test))
    assert search.config.splits == (0,)
    assert [len(record.scores) for record in searched(search)] == [1, 1]


EVERYTHING_FIXED = ("hidden_channels=4", "dropout=0", "input_dropout=0", "lr=1", "weight_decay=0")


@pytest.mark.parametrize(
    ("request_", "trials", "message"),
    [
        ({}, 0, "--trials must be at least 1"),
        ({"model": "gnc"}, 2, "unknown model 'gnc'"),
        ({"workers": 0}, 2, "--workers must be at least 1"),
        ({"task": "edges"}, 2, "--task must be one of"),
        ({"overrides": EVERYTHING_FIXED}, 2, "nothing"),
    ],
)
def test_bad_requests(planned, request_, trials, message):
    with pytest.raises(ConfigError, match=message):
        planned(trials, **request_)


def test_graph_that_cannot_be_trained_on_is_no_failed_trial(planned, small_npz):
    path = small_npz("bare.npz", edge_index=np.array([[0, 1], [1, 0]]))
    with pytest.raises(ArgnnError, match="too few|at least|pairs"):
        planned(data=path, task="link")


# ---- several at a time -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.usefixtures("plain_seeds", "forked_workers")
def test_several_workers_keep_the_budget(planned, tmp_path):
    search = planned(4, splits="0,1", workers=2)
    records = run_search(search, tmp_path / "study.journal", workers=2)
    assert [record.number for record in records] == [0, 1, 2, 3]
    assert records[0].params == search.default
    assert len({tuple(record.params.values()) for record in records}) == 4
    # Which configurations there are depends on the order of events; their scores do not.
    for record in records:
        for split, score in enumerate(record.scores):
            job = SplitJob(search.config, 0, record.params, split)
            assert job.run(search.graph).score == score


@pytest.mark.slow
@pytest.mark.usefixtures("forked_workers")
def test_worker_that_dies_is_a_failed_job_and_is_replaced(planned):
    search = planned(epochs=10**6)
    graphs = {search.config.graph["digest"]: search.graph}
    job = SplitJob(search.config, 7, search.default, 0)
    with open_pool(graphs, workers=2) as pool:
        pool.submit(job)
        (worker,) = pool.running
        time.sleep(0.1)
        worker.process.kill()
        done, outcome = pool.next_done()
        assert (done.trial, outcome.error) == (7, "RunError: the worker process died (code -9)")
        assert outcome.traceback is None
        quick = {**search.default, "lr": -1.0}
        pool.submit(replace(job, trial=8, params=quick))
        done, outcome = pool.next_done()
        assert (done.trial, outcome.error) == (8, "ConfigError: lr must be positive (got -1.0)")
        pool.submit(replace(job, trial=9))
        (left,) = pool.running
    assert not left.process.is_alive()
