"""The short trial: its budget, what it tries, and that it is a training like any other."""

from types import SimpleNamespace

import pytest
import torch

from argnn.runs import trial
from argnn.runs.train_one import TrainedModel
from argnn.runs.trial import Recipe, Trial, TrialJob, TrialReport, choose_switches
from argnn.settings.options import Overrides
from argnn.settings.resolve import IN_MEMORY, PRESET, Request, resolve
from argnn.train import FitResult
from train.cases import task_of, two_blocks

GRAPH = two_blocks()


def tried(graph=GRAPH, seed=0, *, directed, on_epoch=None):
    """The trial on a graph in memory."""
    config = resolve(
        Request(IN_MEMORY, seed=seed),
        Overrides(),
        [PRESET],
        splits=(0,),
        graph={"features": graph.x.size(1), "classes": 2},
        device="cpu",
        threads=1,
    )
    job = TrialJob(config, 0, directed, trial.TRIAL_EPOCHS)
    return choose_switches(job, graph, task_of(graph), on_epoch)


class Recorder:
    """Stands in for `train_one`: notes the configurations and answers with scripted scores."""

    def __init__(self, score):
        self.score, self.calls = score, []

    def __call__(self, config, visible, task, on_epoch):
        form = SimpleNamespace(**config.options)
        self.calls.append((form, config.train))
        score, loss = self.score(form)
        result = FitResult(1, score, loss, config.train.epochs, "epochs", {}, [], 0.1)
        return TrainedModel(None, result, None)


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
    report = tried(directed=directed)
    assert len(report.trials) == len(recorder.calls) <= trial.MAX_TRIALS
    assert {train.epochs for _, train in recorder.calls} == {trial.TRIAL_EPOCHS}
    assert trial.MAX_TRIALS * trial.TRIAL_EPOCHS <= 600


@pytest.mark.parametrize("directed", [False, True])
def test_trial_tries_directions_on_directed_graphs_only(recorded, directed):
    recorder = recorded(self_path_wins)
    tried(directed=directed)
    directions = {form.direction for form, _ in recorder.calls}
    assert directions == ({"undirected", "out", "both"} if directed else {"undirected"})


@pytest.mark.parametrize("score", [self_path_wins, no_self_path_wins])
def test_second_round_varies_the_winner_of_the_first(recorded, score):
    recorder = recorded(score)
    tried(directed=True)
    first = [form for form, _ in recorder.calls[: len(trial.RECIPES)]]
    second = [form for form, _ in recorder.calls[len(trial.RECIPES) :]]
    winner = max(first, key=score)
    assert len(second) >= 3
    assert {form.self_path for form in second} == {winner.self_path}
    assert {form.normalization for form in second} == {winner.normalization}
    assert "fixed" in {form.metric for form in second}
    assert winner not in second


def test_without_self_path_the_metric_never_sees_the_features(recorded):
    recorder = recorded(no_self_path_wins)
    tried(directed=True)
    seen = {form.metric for form, _ in recorder.calls if not form.self_path}
    assert seen == {"structure", "fixed"}


def test_first_round_covers_self_path_and_normalisation(recorded):
    recorder = recorded(self_path_wins)
    tried(directed=False)
    seen = {(form.self_path, form.normalization) for form, _ in recorder.calls}
    assert {(True, "sym"), (True, "rw"), (True, "sum"), (False, "sym"), (False, "rw")} <= seen


def test_chosen_recipe_has_the_best_validation_then_the_smaller_loss_then_is_the_earlier():
    def trials(*results):
        return TrialReport(
            [Trial(Recipe(str(i)), score, loss, 0.0) for i, (score, loss) in enumerate(results)]
        )

    assert trials((0.5, 1.0), (0.9, 5.0), (0.8, 0.1)).chosen.name == "1"
    assert trials((0.9, 1.0), (0.9, 0.5), (0.9, 0.7)).chosen.name == "1"
    assert trials((0.1, 1.0), (0.9, 0.5), (0.9, 0.5)).chosen.name == "1"


def test_choice_is_the_best_of_both_rounds(recorded):
    def score(form):
        return (0.9 if form.metric == "fixed" else 0.8 if form.normalization == "sum" else 0.5), 1.0

    recorded(score)
    report = tried(directed=False)
    assert report.chosen.model["metric"] == "fixed"
    assert report.chosen.model["normalization"] == "sum"
    assert report.chosen.name == "self path, sum, fixed metric"


def test_every_recipe_has_its_own_name(recorded):
    recorded(self_path_wins)
    names = [t.recipe.name for t in tried(directed=True).trials]
    assert len(set(names)) == len(names)


@pytest.mark.usefixtures("short")
def test_epochs_of_all_short_runs_are_counted_through():
    seen = []
    report = tried(directed=False, on_epoch=lambda record: seen.append(record.epoch))
    assert seen == list(range(1, 3 * len(report.trials) + 1))


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
    monkeypatch.setattr(trial, "TRIAL_EPOCHS", 3)


@pytest.mark.usefixtures("short")
def test_trial_really_trains_repeats_with_the_seed_and_leaves_the_random_state_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = tried(directed=True, seed=1)
    assert torch.equal(torch.get_rng_state(), before)
    second = tried(directed=True, seed=1)
    assert len(first.trials) > len(trial.RECIPES)
    for one, other in zip(first.trials, second.trials, strict=True):
        assert (one.recipe, one.val_score, one.val_loss) == (
            other.recipe,
            other.val_score,
            other.val_loss,
        )
    best = max(t.val_score for t in first.trials)
    assert [t.val_score for t in first.trials if t.recipe == first.chosen] == [best]


@pytest.mark.usefixtures("short")
def test_replacing_every_test_label_does_not_change_the_trial():
    other = GRAPH.clone()
    other.y = torch.where(other.test_mask, 1 - other.y, other.y)
    reports = [tried(graph, directed=False) for graph in (GRAPH, other)]
    results = [[(t.recipe, t.val_score, t.val_loss) for t in r.trials] for r in reports]
    assert results[0] == results[1]
    assert reports[0].chosen == reports[1].chosen
