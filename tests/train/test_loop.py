import functools
import itertools
import math

import pytest
import torch

from argnn.errors import ArgnnError, DivergenceError
from argnn.nn import ARGNN, GCN, MLP
from argnn.train import TrainConfig, fit, node_scores

from .cases import (
    ScriptedTask,
    assert_same_weights,
    model_of,
    planted_geometry,
    task_of,
    two_blocks,
    weights,
)

GRAPH = two_blocks()


# -- it learns ------------------------------------------------------------------------------------


def learned(build):
    graph = planted_geometry(copies=12)
    torch.manual_seed(0)
    model = build()
    result = fit(model, graph, task_of(graph), TrainConfig(epochs=60, lr=0.02))
    with torch.no_grad():
        scores = model(graph.x, graph.edge_index)[graph.test_mask]
    return result.val_score, node_scores(scores, graph.y[graph.test_mask]).accuracy


def test_planted_geometry_is_learned_by_an_adaptive_metric_only():
    options = {"num_layers": 2, "dropout": 0.2, "input_dropout": 0.0}
    val, test = learned(lambda: ARGNN(8, 16, 4, **options))
    assert val > 0.78
    assert test > 0.7
    assert learned(lambda: ARGNN(8, 16, 4, metric="fixed", **options))[0] < val - 0.1
    assert learned(lambda: MLP(8, 16, 4))[0] < 0.45


@pytest.mark.parametrize("preset", ["default", "reference", "paper"])
def test_two_blocks_are_learned_by_every_preset(preset):
    # Three scores for two classes: the reference preset normalises its scores over the classes,
    # and two normalised numbers are always plus and minus one.
    torch.manual_seed(0)
    model, graph = ARGNN(6, 8, 3, num_layers=2, preset=preset, dropout=0.0), two_blocks(60)
    result = fit(model, graph, task_of(graph), TrainConfig(epochs=40, lr=0.02))
    assert result.val_score >= 0.85


# -- the chosen epoch -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "best"),
    [
        ([(0.5, 1.0), (0.9, 1.0), (0.7, 0.1), (0.8, 0.1)], 2),
        ([(0.9, 1.0), (0.9, 0.5), (0.9, 0.7), (0.8, 0.1)], 2),
        ([(0.9, 0.5), (0.9, 0.5), (0.9, 0.5), (0.9, 0.5)], 1),
        ([(0.1, 9.0), (0.2, 8.0), (0.3, 7.0), (0.4, 6.0)], 4),
        ([(0.0, 9.0), (0.0, 9.5), (0.0, 8.0), (0.0, 8.0)], 3),
    ],
)
def test_best_epoch_has_the_best_score_then_the_smaller_loss_then_is_the_earlier(results, best):
    model, seen = model_of(GRAPH), {}
    result = fit(
        model,
        GRAPH,
        ScriptedTask(GRAPH, results),
        TrainConfig(epochs=4),
        on_epoch=lambda record: seen.update({record.epoch: weights(model)}),
    )
    assert result.best_epoch == best
    assert (result.val_score, result.val_loss) == results[best - 1]
    assert [(r.val_score, r.val_loss) for r in result.history] == results
    assert_same_weights(weights(model), seen[best])
    assert not model.training


def test_result_tells_how_training_went():
    model, seen = model_of(GRAPH), []
    result = fit(
        model,
        GRAPH,
        task_of(GRAPH),
        TrainConfig(epochs=5, smoothness_weight=0.1),
        on_epoch=seen.append,
    )
    assert result.history == seen
    assert [record.epoch for record in seen] == [1, 2, 3, 4, 5]
    assert (result.epochs_run, result.stopped_by) == (5, "epochs")
    assert result.penalty_weights == {"SmoothnessRegularizer": 0.1}
    assert result.seconds > 0
    for record in seen:
        assert record.loss == pytest.approx(record.task_loss + record.penalty)
        assert record.gradient_norm > 0
    best = max(seen, key=lambda r: (r.val_score, -r.val_loss))
    assert result.best_epoch == best.epoch


def test_model_holds_the_weights_that_gave_the_reported_validation():
    model, task = model_of(GRAPH), task_of(GRAPH)
    result = fit(model, GRAPH, task, TrainConfig(epochs=15, lr=0.05))
    with torch.no_grad():
        found = task.validate(model, model(GRAPH.x, GRAPH.edge_index))
    assert (found.score, found.loss) == (result.val_score, result.val_loss)


def test_evaluate_every_looks_at_validation_then_and_at_the_end():
    result = fit(model_of(GRAPH), GRAPH, task_of(GRAPH), TrainConfig(epochs=8, evaluate_every=3))
    looked = [record.epoch for record in result.history if record.val_score is not None]
    assert looked == [3, 6, 8]
    assert [r.epoch for r in result.history if r.val_loss is not None] == looked
    assert result.best_epoch in looked


def test_evaluating_less_often_does_not_change_the_training():
    often, seldom = model_of(GRAPH), model_of(GRAPH)
    first = fit(often, GRAPH, task_of(GRAPH), TrainConfig(epochs=6))
    second = fit(seldom, GRAPH, task_of(GRAPH), TrainConfig(epochs=6, evaluate_every=4))
    assert [r.loss for r in first.history] == [r.loss for r in second.history]


# -- stopping -------------------------------------------------------------------------------------


def test_patience_stops_after_that_many_epochs_without_a_better_score():
    results = [(0.5, 1.0), (0.6, 1.0), (0.6, 1.0), (0.5, 0.1), (0.6, 2.0), (0.9, 0.1)]
    result = fit(
        model_of(GRAPH), GRAPH, ScriptedTask(GRAPH, results), TrainConfig(epochs=6, patience=3)
    )
    assert (result.stopped_by, result.epochs_run, result.best_epoch) == ("patience", 5, 2)


def test_patience_zero_never_stops():
    results = [(0.5, 1.0)] * 12
    result = fit(model_of(GRAPH), GRAPH, ScriptedTask(GRAPH, results), TrainConfig(epochs=12))
    assert (result.stopped_by, result.epochs_run, result.best_epoch) == ("epochs", 12, 1)


def test_patience_shorter_than_the_first_evaluation_still_ends_with_a_chosen_epoch():
    config = TrainConfig(epochs=12, patience=2, evaluate_every=5)
    result = fit(model_of(GRAPH), GRAPH, task_of(GRAPH), config)
    assert result.best_epoch > 0
    assert math.isfinite(result.val_score)


def test_tolerance_before_the_first_evaluation_still_ends_with_a_chosen_epoch():
    config = TrainConfig(epochs=12, tolerance=1e9, evaluate_every=5)
    result = fit(model_of(GRAPH), GRAPH, task_of(GRAPH), config)
    assert result.best_epoch > 0
    assert math.isfinite(result.val_score)


def test_tolerance_stops_when_the_gradient_is_small():
    norms = [
        r.gradient_norm
        for r in fit(model_of(GRAPH), GRAPH, task_of(GRAPH), TrainConfig(epochs=10)).history
    ]
    limit = sorted(norms)[2]
    result = fit(model_of(GRAPH), GRAPH, task_of(GRAPH), TrainConfig(epochs=10, tolerance=limit))
    assert result.stopped_by == "tolerance"
    assert result.history[-1].gradient_norm < limit
    assert all(record.gradient_norm >= limit for record in result.history[:-1])


# -- the optimiser --------------------------------------------------------------------------------


def total_gradient(model):
    return math.sqrt(sum(float(p.grad.square().sum()) for p in model.parameters()))


@pytest.mark.parametrize("clip_norm", [1e-3, 0.1])
def test_clip_norm_bounds_the_gradient_that_is_used(clip_norm):
    model, used = model_of(GRAPH), []
    result = fit(
        model,
        GRAPH,
        task_of(GRAPH),
        TrainConfig(epochs=5, clip_norm=clip_norm),
        on_epoch=lambda record: used.append(total_gradient(model)),
    )
    assert max(used) <= clip_norm * (1 + 1e-4)
    assert max(record.gradient_norm for record in result.history) > clip_norm


def test_gradients_are_not_touched_without_a_clip_norm():
    model, used = model_of(GRAPH), []
    result = fit(
        model,
        GRAPH,
        task_of(GRAPH),
        TrainConfig(epochs=3),
        on_epoch=lambda record: used.append(total_gradient(model)),
    )
    assert used == pytest.approx([record.gradient_norm for record in result.history], rel=1e-4)


def changes(config, **options):
    """How far weights and metric networks moved in training."""
    model, last = model_of(GRAPH, **options), {}
    before = weights(model)
    fit(
        model,
        GRAPH,
        task_of(GRAPH),
        config,
        on_epoch=lambda record: last.update(weights(model)),
    )
    moved = {"metric": 0.0, "weights": 0.0}
    for name, _ in model.named_parameters():
        kind = "metric" if ".metric_net." in name else "weights"
        moved[kind] = max(moved[kind], float((last[name] - before[name]).abs().max()))
    return moved


def test_metric_networks_have_their_own_learning_rate():
    moved = changes(TrainConfig(epochs=5, lr=0.01, metric_lr=1e-9))
    assert moved["metric"] < 1e-6
    assert moved["weights"] > 1e-2
    moved = changes(TrainConfig(epochs=5, lr=1e-9, metric_lr=0.01))
    assert moved["metric"] > 1e-2
    assert moved["weights"] < 1e-6


def test_metric_networks_share_the_learning_rate_where_none_is_given():
    assert changes(TrainConfig(epochs=5, lr=0.01)) == changes(
        TrainConfig(epochs=5, lr=0.01, metric_lr=0.01)
    )


def test_penalty_weights_have_their_own_learning_rate():
    def final(**options):
        config = TrainConfig(
            epochs=10, smoothness_weight=0.1, ricci_weight=0.2, penalty_adaptive=True, **options
        )
        return fit(
            model_of(GRAPH, metric_spread=1.0), GRAPH, task_of(GRAPH), config
        ).penalty_weights

    slow, fast = final(penalty_lr=1e-9), final(penalty_lr=0.3)
    expected = {"RicciRegularizer": 0.2, "SmoothnessRegularizer": 0.1}
    assert slow == pytest.approx(expected, rel=1e-5)
    assert all(0 < fast[name] < 0.5 * weight for name, weight in expected.items())


def test_adaptive_penalty_weights_are_not_decayed_towards_one():
    config = TrainConfig(
        epochs=10,
        smoothness_weight=1e-6,
        penalty_adaptive=True,
        weight_decay=100.0,
    )
    weight = fit(model_of(GRAPH), GRAPH, task_of(GRAPH), config).penalty_weights
    assert weight["SmoothnessRegularizer"] <= 1e-6 * (1 + 1e-5)


def test_schedule_scales_every_learning_rate():
    config = TrainConfig(epochs=4, lr=0.01, schedule="step", step_size=2, step_factor=1e-12)
    model, seen = model_of(GRAPH), []
    fit(model, GRAPH, task_of(GRAPH), config, on_epoch=lambda record: seen.append(weights(model)))
    steps = [
        max(float((after[n].double() - before[n].double()).abs().max()) for n in before)
        for before, after in itertools.pairwise(seen)
    ]
    assert steps[0] > 1e-3
    assert max(steps[1:]) < 1e-9


def test_weight_decay_shrinks_the_weights():
    def size(weight_decay):
        model = model_of(GRAPH)
        config = TrainConfig(epochs=30, lr=0.02, weight_decay=weight_decay)
        last = {}
        fit(model, GRAPH, task_of(GRAPH), config, on_epoch=lambda r: last.update(weights(model)))
        return float(last["encoder.weight"].norm())

    assert size(1.0) < 0.5 * size(0.0)


def test_penalties_pull_the_metrics_together():
    def spread(weight):
        model = model_of(GRAPH, metric_spread=1.0)
        config = TrainConfig(epochs=30, lr=0.02, smoothness_weight=weight)
        last = {}
        fit(model, GRAPH, task_of(GRAPH), config, on_epoch=lambda r: last.update(weights(model)))
        model.load_state_dict(last)
        metrics = model.eval().forward_with_metric(GRAPH.x, GRAPH.edge_index)[1]
        return sum(float(g.std(0).mean().detach()) for g in metrics)

    assert spread(100.0) < 0.5 * spread(0.0)


# -- repeatability --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"norm": "batch"}, {"preset": "paper"}, {"jump": "lstm"}])
def test_same_seed_gives_the_same_bits_twice_in_a_process(options):
    config = TrainConfig(epochs=6, seed=3)
    runs = []
    for _ in range(2):
        model = model_of(GRAPH, **options)
        torch.rand(7)  # the state of the caller's generator does not matter
        result = fit(model, GRAPH, task_of(GRAPH), config)
        runs.append((weights(model), result.history, result.best_epoch))
    assert_same_weights(runs[0][0], runs[1][0])
    assert runs[0][1:] == runs[1][1:]


def test_same_seed_gives_the_same_bits_with_several_threads(threads):
    torch.set_num_threads(max(threads, 2))
    graph, runs = two_blocks(size=300), []  # large enough to be shared out among threads
    for _ in range(2):
        torch.manual_seed(0)
        model = ARGNN(6, 64, 2, num_layers=1)
        result = fit(model, graph, task_of(graph), TrainConfig(epochs=1, penalty_weights="theory"))
        runs.append((weights(model), result.history))
    assert_same_weights(runs[0][0], runs[1][0])
    assert runs[0][1] == runs[1][1]


def test_another_seed_gives_another_run():
    runs = []
    for seed in (0, 1):
        result = fit(
            model_of(GRAPH, dropout=0.5), GRAPH, task_of(GRAPH), TrainConfig(epochs=3, seed=seed)
        )
        runs.append([record.loss for record in result.history])
    assert runs[0] != runs[1]


def test_fit_leaves_the_global_random_state_alone():
    model = model_of(GRAPH, dropout=0.5)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    fit(model, GRAPH, task_of(GRAPH), TrainConfig(epochs=3, seed=5))
    assert torch.equal(torch.get_rng_state(), before)


def test_fit_leaves_the_global_random_state_alone_when_it_fails():
    graph = GRAPH.clone()
    graph.x = graph.x * math.nan
    model = model_of(GRAPH)
    before = torch.get_rng_state()
    with pytest.raises(DivergenceError):
        fit(model, graph, task_of(graph), TrainConfig(epochs=3))
    assert torch.equal(torch.get_rng_state(), before)


def test_fit_does_not_change_the_graph():
    graph = two_blocks()
    fit(model_of(graph), graph, task_of(graph), TrainConfig(epochs=2))
    fresh = two_blocks()
    for key in fresh.keys():  # noqa: SIM118 (PyG's Data is no mapping)
        assert torch.equal(graph[key], fresh[key])


# -- observing ------------------------------------------------------------------------------------


def test_observer_sees_the_epochs_that_are_validated_and_what_they_give():
    graph, task, seen = GRAPH, task_of(GRAPH), []
    model = model_of(graph, dropout=0.5)

    def observe(epoch, outputs):
        assert not outputs.requires_grad
        assert not model.training
        seen.append((epoch, outputs.clone(), weights(model)))

    config = TrainConfig(epochs=8, evaluate_every=3)
    result = fit(model, graph, task, config, observe=observe)
    assert [epoch for epoch, _, _ in seen] == [3, 6, 8]
    for epoch, outputs, state in seen:
        validation = task.validate(model, outputs)
        record = result.history[epoch - 1]
        assert (validation.score, validation.loss) == (record.val_score, record.val_loss)
        fresh = model_of(graph)
        fresh.load_state_dict(state)
        with torch.no_grad():
            assert torch.equal(fresh.eval()(graph.x, graph.edge_index), outputs)


def disturb(epoch, outputs):
    """An observer may do with the outputs what it likes."""
    outputs.fill_(math.nan)


def draw(epoch, outputs):
    """An observer may sample."""
    torch.rand(3)


@pytest.mark.parametrize(
    "observe",
    [
        lambda epoch, outputs: None,
        disturb,
        draw,
    ],
    ids=["nothing", "disturb", "draw"],
)
@pytest.mark.parametrize("options", [{"dropout": 0.5}, {"norm": "batch"}, {"jump": "last"}])
def test_observer_does_not_change_the_training(observe, options):
    runs = []
    for observer in (None, observe):
        model, last = model_of(GRAPH, **options), {}
        keep = functools.partial(keep_weights, model, last)
        config = TrainConfig(epochs=8, lr=0.02)
        result = fit(model, GRAPH, task_of(GRAPH), config, on_epoch=keep, observe=observer)
        runs.append((weights(model), last, result))
    assert_same_weights(runs[0][0], runs[1][0])
    assert_same_weights(runs[0][1], runs[1][1])
    assert runs[0][2].history == runs[1][2].history
    assert runs[0][2].best_epoch == runs[1][2].best_epoch


def keep_weights(model, last, record):
    last.update(weights(model))


def test_continued_run_is_observed_from_there_on():
    snapshots, seen = [], []
    config = TrainConfig(epochs=6, checkpoint_every=4)
    fit(model_of(GRAPH), GRAPH, task_of(GRAPH), config, save=snapshots.append)
    fit(
        model_of(GRAPH),
        GRAPH,
        task_of(GRAPH),
        config,
        observe=lambda epoch, outputs: seen.append(epoch),
        resume_from=snapshots[0],
    )
    assert seen == [5, 6]


# -- no test label --------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_replacing_every_test_label_changes_nothing(preset):
    config = TrainConfig(
        epochs=10, penalty_weights="theory", penalty_reduction="sum", penalty_adaptive=True
    )
    other = GRAPH.clone()
    other.y = torch.where(other.test_mask, 1 - other.y, other.y)
    assert not torch.equal(other.y, GRAPH.y)
    runs = []
    for graph in (GRAPH, other):
        model = model_of(graph, preset=preset)
        result = fit(model, graph, task_of(graph), config)
        runs.append((weights(model), result))
    assert_same_weights(runs[0][0], runs[1][0])
    first, second = runs[0][1], runs[1][1]
    assert first.history == second.history
    assert (first.best_epoch, first.val_score, first.val_loss) == (
        second.best_epoch,
        second.val_score,
        second.val_loss,
    )
    assert first.penalty_weights == second.penalty_weights


def test_graph_without_labels_is_enough():
    class Bare:
        x, edge_index = GRAPH.x, GRAPH.edge_index

    result = fit(model_of(GRAPH), Bare(), task_of(GRAPH), TrainConfig(epochs=2))
    assert result.epochs_run == 2


# -- divergence -----------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("preset", ["default", "paper", "reference"])
def test_features_that_are_no_numbers_stop_the_run_in_the_first_epoch(value, preset):
    graph = two_blocks()
    graph.x[:, 2] = value
    with pytest.raises(DivergenceError, match=r"became (nan|inf) in epoch 1 ") as caught:
        fit(model_of(graph, preset=preset), graph, task_of(graph), TrainConfig(epochs=5))
    assert isinstance(caught.value, ArgnnError)


@pytest.mark.parametrize("model", ["gcn", "paper"])
def test_exploding_learning_rate_stops_the_run_and_names_epoch_and_rate(model):
    build = {"gcn": lambda: GCN(6, 8, 2), "paper": lambda: model_of(GRAPH, preset="paper")}
    with pytest.raises(DivergenceError, match=r"in epoch \d+ \(lr 1e\+30\)"):
        fit(build[model](), GRAPH, task_of(GRAPH), TrainConfig(epochs=20, lr=1e30))


def test_validation_that_is_no_number_stops_the_run():
    results = [(0.5, 1.0), (0.5, math.nan)]
    with pytest.raises(DivergenceError, match="validation loss became nan in epoch 2"):
        fit(model_of(GRAPH), GRAPH, ScriptedTask(GRAPH, results), TrainConfig(epochs=3))
