from dataclasses import replace

import pytest
import torch

from argnn.data import load
from argnn.errors import ConfigError, DataError, DivergenceError, RunError
from argnn.runs.machine import core_count, threads_for
from argnn.runs.pool import StopEarly
from argnn.runs.prepare import Request, draft, prepare, reopen, settled, worker_count

TINY = ("hidden_channels=4", "epochs=2")


def test_stored_settings_are_taken_and_overrides_win(monkeypatch, benchmark_root):
    plan = prepare(Request("Texas", data_root=str(benchmark_root), overrides=("dropout=0.1",)))
    config = plan.config
    assert (config.data, config.splits, config.trial) == ("texas", (0,), None)
    assert config.options["dropout"] == 0.1
    assert config.source.endswith("set by the user: dropout")
    assert config.graph["edge_rule"] == load("texas", root=benchmark_root).edge_rule


def test_preset_alone():
    config = prepare(Request("mixed", preset="paper", overrides=TINY)).config
    assert config.source == "preset paper; set by the user: hidden_channels, epochs"
    assert config.options["modulation"] == "scalar"
    assert config.train.penalty_weights == "theory"
    assert config.train.checkpoint_every == 25


def test_unknown_graph_gets_a_trial(small_npz, brief_trial, monkeypatch):
    monkeypatch.setattr("argnn.runs.trial.LEAD", 0)
    seen = []
    request = Request(str(small_npz()), split="1", overrides=("num_layers=1",))
    config = prepare(request, lambda job, epoch, *course: seen.append((job.split, epoch))).config
    assert config.trial["split"] == 1
    runs, spent = config.trial["runs"], config.trial["epochs"]
    assert spent == sum(run["epochs"] for run in runs) == draft(request).jobs[0].most_epochs()
    assert seen == [(1, epoch) for epoch in range(1, spent + 1)]
    last = [run for run in runs if run["epochs"] == 2]
    best = max(last, key=lambda run: (run["val_score"], -run["val_loss"]))
    assert config.trial["chosen"] == best["name"]
    expected = {**best["model"], "num_layers": 1}
    assert {name: config.options[name] for name in expected} == expected
    assert f"from {len(runs)} recipes in {spent} epochs: {best['name']}" in config.source


def test_directed_trial_tries_directions(small_npz, brief_trial):
    undirected = prepare(Request(str(small_npz()))).config.trial["runs"]
    directed = prepare(Request(str(small_npz()), directed=True)).config.trial["runs"]
    assert not any("direction" in run["model"] for run in undirected)
    assert {run["model"].get("direction") for run in directed} == {None, "out", "both"}


def test_bad_override_is_found_before_the_trial(small_npz, monkeypatch):
    monkeypatch.setattr("argnn.runs.trial.Halving", None)
    with pytest.raises(ConfigError, match="lr must be positive"):
        prepare(Request(str(small_npz()), overrides=("lr=-1",)))


def test_other_models_need_no_trial(small_npz):
    config = prepare(Request(str(small_npz()), model="GCN")).config
    assert (config.model, config.trial) == ("gcn", None)


@pytest.mark.parametrize(
    ("text", "splits"), [("all", (0, 1, 2)), ("ALL", (0, 1, 2)), ("2", (2,)), ("2,0,2", (0, 2))]
)
def test_splits(small_npz, text, splits):
    assert prepare(Request(str(small_npz()), model="gcn", split=text)).config.splits == splits


@pytest.mark.parametrize("text", ["x", "", "1-2", "3", "-1", "0,9", "1.0"])
def test_bad_splits(small_npz, text):
    with pytest.raises(ConfigError, match=r"--split must be|out of range"):
        prepare(Request(str(small_npz()), model="gcn", split=text))


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_bad_seed(seed):
    with pytest.raises(ConfigError, match="--seed must be from 0"):
        prepare(Request("mixed", model="gcn", seed=seed))


def test_graph_without_labels_is_refused(tmp_path):
    import numpy as np

    path = tmp_path / "bare.npz"
    np.savez(path, x=np.ones((3, 2)), edge_index=np.array([[0], [1]]))
    with pytest.raises(DataError, match="no labels to train on"):
        prepare(Request(str(path)))


def test_workers_share_the_cores():
    assert worker_count(None, 1, "cpu") == 1
    assert worker_count(None, 1000, "cpu") == core_count()
    assert worker_count(None, 10, "cuda") == 1
    assert worker_count(3, 10, "cpu") == 3
    assert worker_count(9, 2, "cpu") == 2
    with pytest.raises(ConfigError, match="--workers must be at least 1"):
        worker_count(0, 2, "cpu")


def test_changed_graph_is_noticed(small_npz):
    path = small_npz()
    config = prepare(Request(str(path), model="gcn")).config
    assert reopen(config, None, None).config == config
    with pytest.raises(RunError, match="the graph has changed since the run began"):
        reopen(replace(config, row_normalize=False, directed=True), None, None)


def test_threads_obey_the_environment(monkeypatch):
    monkeypatch.setattr("argnn.runs.machine.core_count", lambda: 8)
    for limit, expected in (("", 4), ("3", 3), ("16", 4), ("0", 4), ("many", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", limit)
        assert threads_for(2) == expected


def test_recipe_that_diverges_is_shown_and_not_chosen(small_npz, brief_trial, monkeypatch):
    from argnn.files import fingerprint
    from argnn.runs import trial
    from argnn.runs.tables import trial_table

    whole, seen = trial.train_one, []

    def first_one_fails(config, *rest, **more):
        seen.append(config)
        if len(seen) == 1:
            raise DivergenceError("the loss became nan in epoch 1")
        return whole(config, *rest, **more)

    monkeypatch.setattr(trial, "train_one", first_one_fails)
    config = prepare(Request(str(small_npz()))).config
    failed = config.trial["runs"][0]
    assert (failed["val_score"], failed["val_loss"]) == (None, None)
    assert config.trial["chosen"] != failed["name"]
    assert fingerprint(config.to_json())  # strict JSON: no infinity in it
    shown = {**config.trial, "runs": config.trial["runs"][:1]}
    assert list(trial_table(shown).columns[4].cells) == ["diverged"]


@pytest.mark.usefixtures("plain_seeds", "forked_workers")
def test_trials_of_several_splits_are_jobs_of_one_pool(small_npz, brief_trial):
    request = Request(str(small_npz()), split="all", device="cpu")
    seen: dict[int, int] = {}

    def tell(job, epoch, *course):
        seen[job.split] = epoch

    drafted = draft(request)
    assert [job.split for job in drafted.jobs] == [0, 1, 2]
    assert {job.config.threads for job in drafted.jobs} == {threads_for(1)}
    [here] = settled([drafted], 1, tell=tell)
    [there] = settled([drafted], 2)
    assert seen.keys() == {0, 1, 2}
    for split in range(3):
        one, other = here.config.for_split(split), there.config.for_split(split)
        assert (one.options, one.train, one.source) == (other.options, other.train, other.source)
        assert [run["val_loss"] for run in one.trial["runs"]] == [
            run["val_loss"] for run in other.trial["runs"]
        ]
        assert one.trial["split"] == split


def test_trial_that_fails_ends_the_plan(small_npz, monkeypatch):
    monkeypatch.setattr("argnn.runs.trial.train_one", None)
    with pytest.raises(TypeError):
        prepare(Request(str(small_npz())))


@pytest.mark.usefixtures("plain_seeds", "forked_workers", "brief_trial")
def test_trials_in_other_processes_see_no_test_label(small_npz):
    def losses(change):
        graph = load(str(small_npz()))
        changed = graph.train_mask[:, 0] if change == "train" else graph.test_mask[:, 0]
        graph.y = torch.where(changed & (change is not None), (graph.y + 1) % 3, graph.y)
        request = Request(str(small_npz()), split="0,1", device="cpu")
        [plan] = settled([draft(request, graph)], 2)
        return [run["val_loss"] for run in plan.config.for_split(0).trial["runs"]]

    assert losses("test") == losses(None) != losses("train")


@pytest.mark.usefixtures("plain_seeds", "forked_workers")
@pytest.mark.parametrize("workers", [1, 2])
def test_all_trials_end_with_the_best_so_far_where_the_user_wants(small_npz, workers):
    request = Request(str(small_npz()), split="all", device="cpu", workers=workers)
    made = draft(request)
    raised = []

    def tell(job, epoch, *course):
        if not raised and epoch >= 21:  # one recipe is over
            raised.append(job.split)
            raise StopEarly

    [plan] = settled([made], tell=tell)
    trials = [plan.config.per_split[str(split)]["trial"] for split in (0, 1, 2)]
    assert all(found["stopped"] for found in trials)
    assert all(found["epochs"] < made.jobs[0].most_epochs() for found in trials)
    assert trials[raised[0]]["runs"]
    assert trials[2]["runs"] == []
    assert trials[2]["chosen"] == made.jobs[2].recipes[0].name
