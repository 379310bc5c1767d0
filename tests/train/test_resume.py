"""A run that is stopped and continued is the run that was never stopped, bit for bit."""

import copy
import json

import pytest
import torch
from safetensors import torch as safetensors

from argnn.errors import RunError
from argnn.nn import GCN, MLP, MODELS
from argnn.train import Snapshot, TrainConfig, fit

from .cases import assert_same_weights, model_of, task_of, two_blocks, weights

GRAPH = two_blocks()
EPOCHS = 7

RUNS = {
    "default": ({}, {}),
    "adaptive penalties": (
        {"metric_spread": 1.0},
        {"ricci_weight": 0.1, "smoothness_weight": 0.1, "penalty_adaptive": True},
    ),
    "paper": ({"preset": "paper"}, {"penalty_weights": "theory", "penalty_reduction": "sum"}),
    "reference": ({"preset": "reference"}, {"clip_norm": 1.0, "schedule": "step", "step_size": 3}),
    "patience": ({}, {"patience": 2, "lr": 0.2}),
    "nothing learned": ({}, {"patience": 2, "lr": 1e-30}),
    "seldom evaluated": ({}, {"evaluate_every": 3}),
    "cosine": ({}, {"schedule": "cosine", "metric_lr": 0.02}),
    "batch norm": ({"norm": "batch"}, {}),
    "jump lstm": ({"jump": "lstm"}, {}),
}


def uninterrupted(options, settings, **more):
    """A run that hands out a copy of its snapshot after every epoch."""
    model, snapshots = model_of(GRAPH, **options), []
    config = TrainConfig(**{"epochs": EPOCHS, "checkpoint_every": 1, **settings, **more})
    result = fit(model, GRAPH, task_of(GRAPH), config, save=snapshots.append)
    return model, config, result, snapshots


def assert_same_run(first, second, model, other):
    assert_same_weights(weights(model), weights(other))
    for name in (
        "best_epoch",
        "val_score",
        "val_loss",
        "epochs_run",
        "stopped_by",
        "penalty_weights",
        "history",
    ):
        assert getattr(first, name) == getattr(second, name), name


@pytest.mark.parametrize(("options", "settings"), RUNS.values(), ids=RUNS.keys())
def test_resuming_from_every_snapshot_gives_the_uninterrupted_run(options, settings):
    model, config, result, snapshots = uninterrupted(options, settings)
    assert len(snapshots) == result.epochs_run
    for snapshot in snapshots:
        other = model_of(GRAPH, seed=99, **options)  # its own weights must not matter
        torch.rand(11)
        resumed = fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshot)
        assert_same_run(result, resumed, model, other)


@pytest.mark.parametrize("settings", [{}, {"patience": 8, "lr": 0.2}, {"precision": "bfloat16"}])
def test_resuming_from_a_checkpoint_between_two_evaluations_gives_the_uninterrupted_run(settings):
    rare = {"epochs": 18, "evaluate_every": 5, "checkpoint_every": 3, **settings}
    model, config, result, snapshots = uninterrupted({}, rare)
    saved_at = [len(snapshot.values["history"]) for snapshot in snapshots]
    assert saved_at == list(range(3, result.epochs_run + 1, 3))
    for snapshot in snapshots:
        other = model_of(GRAPH, seed=99)
        resumed = fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshot)
        assert_same_run(result, resumed, model, other)


def test_one_of_these_runs_stops_early():
    *_, result, _ = uninterrupted(*RUNS["nothing learned"])
    assert result.stopped_by == "patience"
    assert result.epochs_run < EPOCHS


def test_resuming_twice_from_one_snapshot_gives_the_same_run_twice():
    model, config, result, snapshots = uninterrupted({}, {})
    for _ in range(2):
        other = model_of(GRAPH, seed=99)
        resumed = fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshots[2])
        assert_same_run(result, resumed, model, other)


def test_resuming_does_not_change_the_snapshot():
    *_, snapshots = uninterrupted({}, {})
    kept = copy.deepcopy(snapshots[2])
    config = TrainConfig(epochs=EPOCHS)
    fit(model_of(GRAPH), GRAPH, task_of(GRAPH), config, resume_from=snapshots[2])
    changed = [n for n, t in kept.tensors.items() if not torch.equal(t, snapshots[2].tensors[n])]
    assert changed == []
    assert kept.values == snapshots[2].values


def test_training_on_does_not_change_an_earlier_snapshot():
    model, copies, originals = model_of(GRAPH), [], []

    def save(snapshot):
        originals.append(snapshot)
        copies.append(copy.deepcopy(snapshot))

    fit(model, GRAPH, task_of(GRAPH), TrainConfig(epochs=4, checkpoint_every=1), save=save)
    for original, kept in zip(originals, copies, strict=True):
        assert_same_weights(original.tensors, kept.tensors)
        assert original.values == kept.values


@pytest.mark.parametrize("name", ["default", "adaptive penalties", "seldom evaluated"])
def test_snapshot_survives_safetensors_and_json(name):
    options, settings = RUNS[name]
    model, config, result, snapshots = uninterrupted(options, settings)
    for snapshot in (snapshots[0], snapshots[3]):
        tensors = safetensors.load(safetensors.save(snapshot.tensors))
        values = json.loads(json.dumps(snapshot.values))
        other = model_of(GRAPH, seed=99, **options)
        resumed = fit(other, GRAPH, task_of(GRAPH), config, resume_from=Snapshot(tensors, values))
        assert_same_run(result, resumed, model, other)


def test_saving_does_not_change_the_run():
    model, _, result, _ = uninterrupted({}, {})
    other = model_of(GRAPH)
    plain = fit(other, GRAPH, task_of(GRAPH), TrainConfig(epochs=EPOCHS))
    assert_same_run(result, plain, model, other)


@pytest.mark.parametrize(
    ("every", "expected"), [(0, []), (1, [1, 2, 3, 4, 5, 6, 7]), (3, [3, 6]), (7, [7]), (8, [])]
)
def test_checkpoints_are_saved_every_so_many_epochs(every, expected):
    *_, snapshots = uninterrupted({}, {}, checkpoint_every=every)
    assert [len(snapshot.values["history"]) for snapshot in snapshots] == expected


def test_resumed_run_keeps_saving_at_the_same_epochs():
    *_, snapshots = uninterrupted({}, {})
    saved = []
    config = TrainConfig(epochs=EPOCHS, checkpoint_every=3)
    fit(
        model_of(GRAPH),
        GRAPH,
        task_of(GRAPH),
        config,
        save=lambda snapshot: saved.append(len(snapshot.values["history"])),
        resume_from=snapshots[3],
    )
    assert saved == [6]


def test_resuming_reports_only_new_epochs():
    *_, snapshots = uninterrupted({}, {})
    seen = []
    fit(
        model_of(GRAPH),
        GRAPH,
        task_of(GRAPH),
        TrainConfig(epochs=EPOCHS),
        on_epoch=lambda record: seen.append(record.epoch),
        resume_from=snapshots[4],
    )
    assert seen == [6, 7]


def test_resuming_with_more_epochs_continues_the_longer_run():
    *_, snapshots = uninterrupted({}, {})
    long, other = model_of(GRAPH), model_of(GRAPH, seed=9)
    config = TrainConfig(epochs=EPOCHS + 4)
    expected = fit(long, GRAPH, task_of(GRAPH), config)
    resumed = fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshots[-1])
    assert_same_run(expected, resumed, long, other)


def test_resuming_leaves_the_global_random_state_alone():
    *_, snapshots = uninterrupted({}, {})
    model = model_of(GRAPH)
    before = torch.get_rng_state()
    fit(model, GRAPH, task_of(GRAPH), TrainConfig(epochs=EPOCHS), resume_from=snapshots[1])
    assert torch.equal(torch.get_rng_state(), before)


# -- snapshots that do not fit --------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        lambda: model_of(GRAPH, num_layers=3),
        lambda: model_of(GRAPH, metric_hidden=9),
        lambda: model_of(GRAPH, self_path=False),
        lambda: model_of(GRAPH, preset="paper"),
        lambda: GCN(6, 8, 2),
        lambda: MLP(6, 8, 2),
    ],
    ids=["deeper", "wider metric", "no self path", "paper", "gcn", "mlp"],
)
def test_snapshot_of_another_model_is_refused(other):
    *_, snapshots = uninterrupted({}, {})
    with pytest.raises(RunError, match="does not fit this run"):
        fit(other(), GRAPH, task_of(GRAPH), TrainConfig(epochs=9), resume_from=snapshots[0])


def test_snapshot_with_other_penalties_is_refused():
    *_, snapshots = uninterrupted(*RUNS["adaptive penalties"])
    with pytest.raises(RunError, match="does not fit this run"):
        fit(
            model_of(GRAPH, metric_spread=1.0),
            GRAPH,
            task_of(GRAPH),
            TrainConfig(epochs=9),
            resume_from=snapshots[0],
        )


@pytest.mark.parametrize("lost", ["rng/", "optimizer/", "best/", "model/", "history", "best_epoch"])
def test_snapshot_that_lost_a_part_is_refused(lost):
    *_, snapshots = uninterrupted({}, {})
    tensors = {n: t for n, t in snapshots[2].tensors.items() if not n.startswith(lost)}
    values = {n: v for n, v in snapshots[2].values.items() if n != lost}
    with pytest.raises(RunError, match="does not fit this run"):
        fit(
            model_of(GRAPH),
            GRAPH,
            task_of(GRAPH),
            TrainConfig(epochs=EPOCHS),
            resume_from=Snapshot(tensors, values),
        )


def test_snapshot_from_before_statistics_were_stored_is_refused_in_one_line():
    *_, snapshots = uninterrupted({}, {})
    tensors = {n: t for n, t in snapshots[2].tensors.items() if "statistics." not in n}
    with pytest.raises(RunError, match="was made before .*; train the model again$") as caught:
        fit(
            model_of(GRAPH),
            GRAPH,
            task_of(GRAPH),
            TrainConfig(epochs=EPOCHS),
            resume_from=Snapshot(tensors, snapshots[2].values),
        )
    assert "\n" not in str(caught.value)


def test_resuming_a_model_whose_statistics_follow_its_weights():
    def cusp():
        torch.manual_seed(3)
        return MODELS["cusp"](6, 8, 2, hops=2)

    model, other, snapshots = cusp(), cusp(), []
    config = TrainConfig(epochs=EPOCHS, checkpoint_every=1, evaluate_every=2)
    first = fit(model, GRAPH, task_of(GRAPH), config, save=snapshots.append)
    again = fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshots[2])
    assert_same_run(first, again, model, other)
    assert model.pooling.statistics.is_fitted
