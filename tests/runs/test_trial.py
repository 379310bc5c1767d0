"""The trial: its budget, what it tries, and that it is a training like any other."""

import math
import signal
from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch

from argnn.errors import ConfigError
from argnn.nn import MODELS
from argnn.runs import trial
from argnn.runs.machine import noting_ctrl_c
from argnn.runs.pool import StopEarly
from argnn.runs.prepare import draft
from argnn.runs.recipes import Recipe, recipes_of
from argnn.runs.tables import metric_sentence, trial_table
from argnn.runs.train_one import TrainedModel, train_one
from argnn.runs.trial import Halving, Trial, TrialJob, best_of, rounds_for
from argnn.settings.options import Overrides
from argnn.settings.resolve import IN_MEMORY, PRESET, Request, resolve
from argnn.train import FitResult, Snapshot
from train.cases import task_of, two_blocks

GRAPH = two_blocks()


def job_of(graph=GRAPH, seed=0, *, directed=False, **held):
    config = resolve(
        Request(IN_MEMORY, seed=seed),
        Overrides(),
        [PRESET],
        splits=(0,),
        graph={"features": graph.x.size(1), "classes": 2},
        device="cpu",
        threads=1,
    )
    return TrialJob(config, 0, directed, Overrides(**held), nodes_per_recipe=1)


def tried(job, graph=GRAPH, on_epoch=None):
    """The trials of a job on a graph in memory."""
    halving = Halving(job, graph, task_of(graph), on_epoch)
    halving.run()
    return halving.trials


class Recorder:
    """Stands in for `train_one`: notes the configurations and answers with scripted scores."""

    def __init__(self, score):
        self.score, self.calls, self.epochs = score, [], 0

    def __call__(self, config, visible, task, *, split, on_epoch, save, resume_from):
        form = SimpleNamespace(**config.options)
        begin = 0 if resume_from is None else resume_from.values["epoch"]
        self.calls.append((form, config.train, begin))
        self.epochs += config.train.epochs - begin
        score, loss = self.score(form)
        save(Snapshot({}, {"epoch": config.train.epochs}))
        result = FitResult(1, score, loss, config.train.epochs, "epochs", {}, [], 0.1)
        return TrainedModel(None, result, None, lambda: None)

    def forms(self, epochs):
        """Those that were trained up to some epoch."""
        return [form for form, train, _ in self.calls if train.epochs == epochs]


@pytest.fixture
def recorded(monkeypatch):
    def use(score):
        recorder = Recorder(score)
        monkeypatch.setattr(trial, "train_one", recorder)
        return recorder

    return use


def self_path_wins(form):
    return (0.9 if form.self_path and form.normalization == "rw" else 0.5), 1.0


def no_self_path_wins(form):
    return (0.9 if not form.self_path and form.normalization == "sym" else 0.5), 1.0


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("score", [self_path_wins, no_self_path_wins])
def test_trial_keeps_to_its_budget(recorded, directed, score):
    recorder = recorded(score)
    job = job_of(directed=directed)
    trials = tried(job)
    assert recorder.epochs == sum(t.epochs for t in trials) <= job.most_epochs() <= 2000
    # Only the variations of a metric without a self path are fewer.
    assert job.most_epochs() - recorder.epochs in (0, trial.ROUNDS[-1][0])


@pytest.mark.parametrize(
    "options",
    [
        {"metric": "fixed"},
        {"adjacency_rows": False},
        {"num_layers": 3, "normalization": "rw", "adjacency_rows": False, "norm": "none"},
    ],
)
def test_budget_knows_what_the_settings_of_the_user_leave(recorded, options):
    recorder = recorded(self_path_wins)
    job = job_of(options=options)
    trials = tried(job)
    assert recorder.epochs == sum(t.epochs for t in trials) == job.most_epochs()
    assert 0 < job.most_epochs() < job_of().most_epochs()


def test_one_recipe_costs_nothing(recorded):
    recorder = recorded(self_path_wins)
    job = replace(job_of(), recipes=trial.RECIPES[:1])
    tried(job)
    assert recorder.epochs == job.most_epochs() == 0


def test_the_best_go_on_from_where_they_stopped(recorded):
    recorder = recorded(self_path_wins)
    trials = tried(job_of())
    begins = {
        train.epochs: {b for _, t, b in recorder.calls if t == train}
        for _, train, _ in recorder.calls
    }
    (first, eight), (second, three), (last, _) = trial.ROUNDS
    assert begins[first] == {0}
    assert begins[second] == {first}
    assert begins[last] == {0, second}  # variations of the winner begin at the start
    counts = [sum(t.epochs == epochs for t in trials) for epochs in (first, second)]
    assert counts == [len(trial.RECIPES) - eight, eight - three]
    assert all(t.snapshot is None for t in trials if t.epochs < last)


@pytest.mark.parametrize("rows", [False, True])
def test_a_recipe_of_the_other_kind_goes_on_although_it_is_behind(recorded, rows):
    """It has one score in every round; the others, which lead, stay where they are."""
    recorder = recorded(lambda form: (0.9 if form.adjacency_rows == rows else 0.5, 1.0))
    tried(job_of())
    for (_, count), (epochs, _) in pairwise(trial.ROUNDS):
        kinds = [form.adjacency_rows for form in recorder.forms(epochs)][:count]
        assert kinds.count(rows) == count - 1
        assert kinds.count(not rows) == 1


def test_continued_training_has_the_bits_of_one_without_a_stop(monkeypatch):
    monkeypatch.setattr(trial, "RECIPES", trial.RECIPES[:2])
    found = []
    for rounds in (((2, 2), (5, 2)), ((5, 2),)):
        monkeypatch.setattr(trial, "ROUNDS", rounds)
        found.append(tried(job_of())[0])
    for one, other in zip(*(t.snapshot.tensors.items() for t in found), strict=True):
        assert one[0] == other[0]
        assert torch.equal(one[1], other[1])
    assert found[0].key == found[1].key


@pytest.mark.parametrize("directed", [False, True])
def test_trial_tries_directions_on_directed_graphs_only(recorded, directed):
    recorder = recorded(self_path_wins)
    tried(job_of(directed=directed))
    directions = {form.direction for form, *_ in recorder.calls}
    assert directions == ({"undirected", "out", "both"} if directed else {"undirected"})


@pytest.mark.parametrize("score", [self_path_wins, no_self_path_wins])
def test_last_round_varies_the_winner(recorded, score):
    recorder = recorded(score)
    tried(job_of(directed=True))
    final = recorder.forms(trial.ROUNDS[-1][0])
    winner, varied = final[0], final[trial.ROUNDS[-2][1] :]
    assert score(winner)[0] == 0.9
    assert len(varied) >= 3
    assert {form.self_path for form in varied} == {winner.self_path}
    assert {form.normalization for form in varied} == {winner.normalization}
    assert "fixed" in {form.metric for form in varied}
    assert winner not in varied


def test_without_self_path_the_metric_never_sees_the_features(recorded):
    recorder = recorded(no_self_path_wins)
    tried(job_of(directed=True))
    seen = {form.metric for form, *_ in recorder.calls if not form.self_path}
    assert seen == {"structure", "fixed"}


def test_recipes_cover_shallow_and_deep_with_and_without_rows(recorded):
    recorder = recorded(self_path_wins)
    tried(job_of())
    first = recorder.forms(trial.ROUNDS[0][0])
    assert {form.num_layers for form in first} == {1, 2, 4, 8, 12}
    assert {form.adjacency_rows for form in first} == {False, True}
    assert {(f.self_path, f.normalization) for f in first} >= {
        (True, "sym"),
        (True, "rw"),
        (True, "sum"),
        (False, "sym"),
    }
    assert {form.hops for form in first} == {1, 10}


def test_settings_of_the_user_hold_in_every_run(recorded):
    recorder = recorded(self_path_wins)
    options = {"num_layers": 3, "metric": "structure", "adjacency_rows": False}
    held = {"options": options, "train": {"lr": 0.02}}
    job = job_of(**held)
    trials = tried(job)
    assert {form.num_layers for form, *_ in recorder.calls} == {3}
    assert {form.metric for form, *_ in recorder.calls} == {"structure"}
    assert {train.lr for _, train, _ in recorder.calls} == {0.02}
    # What became the same is tried once.
    assert len(recorder.forms(trial.ROUNDS[0][0])) < len(trial.RECIPES)
    settings = [sorted(vars(form).items()) for form in recorder.forms(trial.ROUNDS[0][0])]
    trains = [t for _, t, _ in recorder.calls[: len(settings)]]
    pairs = list(zip(settings, trains, strict=True))
    assert all(pair not in pairs[:i] for i, pair in enumerate(pairs))
    assert job.chosen(trials).trial["metric"] == {
        "chosen": "structure",
        "learned": 0.9,
        "fixed": None,
    }


def test_no_run_is_longer_than_the_user_wants(recorded):
    recorder = recorded(self_path_wins)
    job = job_of(train={"epochs": 7})
    tried(job)
    assert {train.epochs for _, train, _ in recorder.calls} == {7}
    assert recorder.epochs <= job.most_epochs() == 7 * (len(trial.RECIPES) + 2)


def test_recipes_that_do_not_fit_the_settings_of_the_user_are_left_out(recorded):
    recorder = recorded(self_path_wins)
    tried(job_of(options={"modulation": "scalar"}))
    assert {form.modulation for form, *_ in recorder.calls} == {"scalar"}
    with pytest.raises(ConfigError, match="dropout must be in"):
        tried(job_of(options={"dropout": 2.0}))


def test_many_hops_of_a_large_graph_are_not_tried_unless_the_user_wants_them(recorded, monkeypatch):
    monkeypatch.setattr(trial, "LARGE_STATE", 1)
    recorder = recorded(self_path_wins)
    tried(job_of())
    assert {form.hops for form, *_ in recorder.calls} == {1}
    recorder.calls.clear()
    tried(job_of(options={"hops": 3}))
    assert {form.hops for form, *_ in recorder.calls} == {3}


def test_rows_of_a_large_graph_are_not_tried_unless_the_user_wants_them(recorded, monkeypatch):
    monkeypatch.setattr(trial, "MAX_ROW_WEIGHTS", 128 * GRAPH.num_nodes)
    recorder = recorded(self_path_wins)
    tried(job_of())
    widths = {form.hidden_channels for form, *_ in recorder.calls if form.adjacency_rows}
    assert widths == {128}
    tried(job_of(options={"adjacency_rows": True}))
    assert {form.hidden_channels for form, *_ in recorder.calls if form.adjacency_rows} > {128}


@pytest.mark.parametrize(("nodes", "tried_recipes"), [(8, 3), (4, 6), (13, 0)])
def test_few_validation_nodes_choose_between_few_recipes(recorded, nodes, tried_recipes):
    assert task_of(GRAPH).validation_size == 24
    recorder = recorded(self_path_wins)
    job = replace(job_of(), nodes_per_recipe=nodes, vary=False, validation_size=24)
    trials = tried(job)
    assert recorder.epochs == job.most_epochs()
    assert len(trials) == len(recorder.forms(trial.ROUNDS[0][0])) == tried_recipes
    chosen = job.chosen(trials)
    assert tried_recipes or chosen.options == trial.RECIPES[0].model
    words = "self path, sum, without a trial (too few validation nodes, or one recipe)"
    assert tried_recipes or chosen.source == words


def named(*results):
    return [Trial(Recipe(str(i)), *result, 0.0) for i, result in enumerate(results)]


def test_choice_is_the_best_score_then_the_smaller_loss_then_the_earlier():
    assert best_of(named((0.5, 1.0, 9), (0.9, 5.0, 9), (0.8, 0.1, 9))).name == "1"
    assert best_of(named((0.9, 1.0, 9), (0.9, 0.5, 9), (0.9, 0.7, 9))).name == "1"
    assert best_of(named((0.1, 1.0, 9), (0.9, 0.5, 9), (0.9, 0.5, 9))).name == "1"


def test_choice_is_among_those_with_the_most_epochs_that_did_not_diverge():
    assert best_of(named((0.9, 1.0, 3), (0.7, 1.0, 9), (-math.inf, math.inf, 9))).name == "1"
    assert best_of(named((0.9, 1.0, 3), (-math.inf, math.inf, 9))).name == "0"


def test_choice_may_be_a_variation(recorded):
    def score(form):
        return (0.9 if form.metric == "fixed" else 0.7 if form.normalization == "sum" else 0.5), 1.0

    recorded(score)
    job = job_of()
    chosen = job.chosen(tried(job))
    assert chosen.options["metric"] == "fixed"
    assert chosen.options["normalization"] == "sum"
    assert chosen.trial["chosen"] == "self path, sum, fixed metric"
    assert chosen.trial["metric"] == {"chosen": "fixed", "learned": 0.7, "fixed": 0.9}
    assert "learned from" not in metric_sentence(chosen.trial)


def test_worth_of_the_metric_is_that_of_the_chosen_recipe(recorded):
    """Other recipes of the last round, and other learned kinds, may have better scores."""

    def score(form):
        if form.hops > 1:  # stands, as nothing is better by three nodes
            return {"both": 0.6, "structure": 0.61, "fixed": 0.55}[form.metric], 1.0
        return (0.62 if form.normalization == "rw" else 0.5), 1.0

    recorded(score)
    job = job_of()
    chosen = job.chosen(tried(job))
    assert chosen.trial["chosen"] == "ten steps"
    assert max(run["val_score"] for run in chosen.trial["runs"]) == 0.62
    assert chosen.trial["metric"] == {"chosen": "both", "learned": 0.6, "fixed": 0.55}


@pytest.mark.parametrize("select", ["accuracy", "auroc", "loss"])
@pytest.mark.parametrize(("nodes", "gives_way"), [(-1, False), (2.9, False), (3.1, True)])
@pytest.mark.parametrize("rival", ["recipe", "variation"])
def test_what_stands_gives_way_to_a_lead_of_three_nodes(recorded, select, nodes, gives_way, rival):
    """One recipe stands, and against its variations the winner."""
    lead = nodes / task_of(GRAPH).validation_size

    def score(form):
        better = form.normalization == "rw" if rival == "recipe" else form.metric == "fixed"
        return (0.5 + lead if better else 0.5), 1.0 / form.hops  # of equals, ten steps

    recorded(score)
    job = job_of(train={"select": select})
    chosen = job.chosen(tried(job))
    stands = chosen.trial["chosen"] == "ten steps"
    assert stands != (lead > 0 if select == "loss" else gives_way)
    if rival == "variation":  # what the metric was worth is not the lead
        assert chosen.trial["metric"]["learned"] == 0.5
        assert chosen.trial["metric"]["fixed"] == 0.5 + lead


def test_every_recipe_has_its_own_name(recorded):
    recorded(self_path_wins)
    names = [t.recipe.name for t in tried(job_of(directed=True))]
    assert len(set(names)) == len(names)


def test_recipes_are_not_changed_by_a_variation():
    recipe = trial.RECIPES[0]
    before = dict(recipe.model)
    varied = recipe.varied("out edges", direction="out")
    assert varied.model == {**before, "direction": "out"}
    assert recipe.model == before
    assert varied.train == recipe.train
    assert varied.name == f"{recipe.name}, out edges"


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(trial, "ROUNDS", ((1, 4), (3, 1)))
    monkeypatch.setattr(trial, "RECIPES", trial.RECIPES[:5])


@pytest.mark.usefixtures("short")
def test_epochs_of_all_runs_are_counted_through():
    seen = []
    job = job_of()
    trials = tried(job, on_epoch=lambda record: seen.append(record.epoch))
    assert seen == list(range(1, sum(t.epochs for t in trials) + 1))
    assert len(seen) <= job.most_epochs()


@pytest.mark.usefixtures("brief_trial")
def test_trial_really_trains_repeats_with_the_seed_and_leaves_the_random_state_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = tried(job_of(directed=True, seed=1))
    assert torch.equal(torch.get_rng_state(), before)
    second = tried(job_of(directed=True, seed=1))
    assert len(first) > len(trial.RECIPES)
    for one, other in zip(first, second, strict=True):
        assert (one.recipe, one.key) == (other.recipe, other.key)


@pytest.mark.usefixtures("brief_trial")
def test_replacing_every_test_label_does_not_change_the_trial():
    other = GRAPH.clone()
    other.y = torch.where(other.test_mask, 1 - other.y, other.y)
    results = [[(t.recipe, t.key) for t in tried(job_of(), graph)] for graph in (GRAPH, other)]
    assert results[0] == results[1]


class Impatient:
    """Wants the trial to end after some epochs."""

    def __init__(self, epochs):
        self.epochs = epochs

    def __call__(self, record):
        if record.epoch >= self.epochs:
            raise StopEarly


def split_graph():
    graph = GRAPH.clone()
    for name in ("train_mask", "val_mask", "test_mask"):
        graph[name] = graph[name].unsqueeze(1)
    graph.class_count = 2
    return graph


@pytest.mark.usefixtures("short")
def test_trial_that_is_stopped_gives_the_best_so_far():
    job = job_of()
    found = job.run(split_graph(), Impatient(5))
    runs = found.trial["runs"]
    assert [run["epochs"] for run in runs] == [1] * 4
    best = max(runs, key=lambda run: (run["val_score"], -run["val_loss"]))
    assert (found.trial["chosen"], found.trial["stopped"]) == (best["name"], True)
    assert found.source == f"{best['name']}: the best of 4 recipes when the user ended the trial"
    assert "has not compared" in metric_sentence(found.trial)
    assert trial_table(found.trial).row_count == 4


@pytest.mark.usefixtures("short")
def test_trial_that_is_stopped_at_once_gives_the_first_recipe():
    found = job_of(options={"num_layers": 3}).run(split_graph(), Impatient(1))
    assert found.trial["runs"] == []
    assert found.source == "self path, sum, without a trial (ended by the user)"
    assert found.options == {**trial.RECIPES[0].model, "num_layers": 3}


def test_first_ctrl_c_is_noted_and_the_second_interrupts():
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with noting_ctrl_c() as noted:
            signal.raise_signal(signal.SIGINT)
            assert noted == [signal.SIGINT]
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, usual)


def test_first_recipe_has_no_adjacency_rows_and_all_are_different():
    assert "adjacency_rows" not in trial.RECIPES[0].model
    assert [recipe.name for recipe in trial.RECIPES[:6]] == [
        "self path, sum",
        "ten steps",
        "self path, sum, adjacency rows",
        "deepest",
        "one layer, adjacency rows",
        "self path, rw",
    ]
    assert len({recipe.name for recipe in trial.RECIPES}) == len(trial.RECIPES) == 17


@pytest.mark.parametrize("count", range(1, 40))
def test_equal_rounds_end_with_one_recipe(count):
    rounds = rounds_for(count)
    assert rounds[-1][1] == 1
    assert [epochs for epochs, _ in rounds] == [20 * 3**n for n in range(len(rounds))]
    kept = [count, *(left for _, left in rounds)]
    assert all(
        after == math.ceil(before / 3) for before, after in zip(kept, kept[1:], strict=False)
    )


def equal_jobs(model, count=6, task="node", **request):
    made = draft(Request("mixed", model=model, task=task, recipes=count, **request))
    return made.plan.graph, made.jobs


@pytest.mark.parametrize("task", ["node", "link"])
def test_every_method_has_the_same_number_of_recipes_and_epochs(recorded, task):
    spent = {}
    for model in MODELS:
        recorder = recorded(lambda form: (0.5, form.dropout))
        graph, [job] = equal_jobs(model, task=task)
        found = job.run(graph)
        assert len(found.trial["runs"]) == 6
        assert recorder.epochs == found.trial["epochs"] == job.most_epochs()
        spent[model] = recorder.epochs
    assert set(spent.values()) == {6 * 20 + 2 * 40}


def test_more_recipes_than_argnn_has_are_drawn(recorded):
    recorded(self_path_wins)
    graph, [job] = equal_jobs("argnn", 25)
    assert len(job.run(graph).trial["runs"]) == 25


def test_recipes_left_out_on_a_large_graph_are_replaced_by_the_next(recorded, monkeypatch):
    monkeypatch.setattr(trial, "MAX_ROW_WEIGHTS", 0)
    recorded(self_path_wins)
    graph, [job] = equal_jobs("argnn")
    runs = job.run(graph).trial["runs"]
    assert len(runs) == 6
    assert not any("rows" in run["name"] for run in runs)


def test_draws_begin_with_the_usual_settings_and_depend_on_the_seed_alone():
    names = [
        [recipe.name for recipe in equal_jobs("gcn", seed=seed)[1][0].recipes] for seed in (0, 0, 1)
    ]
    assert names[0] == names[1] != names[2]
    assert {found[0] for found in names} == {"usual settings"}
    assert len(set(names[0])) == len(names[0])


def test_draws_leave_the_settings_of_the_user_alone(recorded):
    recorder = recorded(lambda form: (0.5, 1.0))
    graph, [job] = equal_jobs("gcn", overrides=("dropout=0.3", "lr=0.02", "epochs=30"))
    found = job.run(graph)
    assert {form.dropout for form, *_ in recorder.calls} == {0.3}
    assert {train.lr for _, train, _ in recorder.calls} == {0.02}
    assert max(train.epochs for _, train, _ in recorder.calls) == 30
    assert len(found.trial["runs"]) == 6
    assert found.trial["metric"] is None


def test_usual_settings_of_links_are_those_of_the_method():
    for model, kind in MODELS.items():
        _, [job] = equal_jobs(model, task="link")
        assert all(recipe.model.items() >= kind.link_options.items() for recipe in job.recipes[:1])
        assert job.config.options.items() >= kind.link_options.items()
    assert recipes_of(job.config, Overrides(), 1)[0].name == "usual settings"


def test_train_one_is_what_the_trial_calls():
    assert trial.train_one is train_one


@pytest.mark.parametrize(
    ("select", "value", "shown", "header"),
    [("loss", -0.25, "0.25", "loss"), ("f1_macro", 0.25, "25.00", "F1 (macro), %")],
)
def test_scores_are_shown_as_what_they_are(recorded, select, value, shown, header):
    recorded(lambda form: (value, 1.0))
    job = job_of(train={"select": select})
    found = job.chosen(tried(job)).trial
    table = trial_table(found)
    assert table.columns[3].header == header
    assert set(table.columns[3].cells) == {shown}
    assert f"{shown}{' %' if select != 'loss' else ''}, fixed: {shown}" in metric_sentence(found)
