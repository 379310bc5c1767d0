"""Between two looks nothing waits for the device, and a look finds everything out."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from argnn.errors import DivergenceError
from argnn.kernels.cpu import launch
from argnn.train import TrainConfig, fit

from .cases import ScriptedTask, model_of, task_of, two_blocks

GRAPH = two_blocks()
PENALTIES = {"ricci_weight": 0.1, "smoothness_weight": 0.1, "penalty_adaptive": True}

#: Every way in which Python gets at the values of a tensor.
WAITING = (
    "item",
    "tolist",
    "numpy",
    "cpu",
    "nonzero",
    "__bool__",
    "__int__",
    "__float__",
    "__index__",
)


class TaskWithLossHook:
    """A real task that tells when the loss of an epoch is asked for."""

    def __init__(self, graph, hook) -> None:
        self.real, self.hook, self.epoch = task_of(graph), hook, 0
        self.validate, self.homophily = self.real.validate, self.real.homophily

    def loss(self, model, outputs: Tensor) -> Tensor:
        self.epoch += 1
        return self.hook(self.epoch, self.real.loss(model, outputs))


@pytest.fixture
def waits(monkeypatch):
    """Counts how often Python asked for the values of a tensor."""
    counter = {"waits": 0, "paused": False}

    def counted(original):
        def method(self, *args, **kwargs):
            counter["waits"] += not counter["paused"]
            return original(self, *args, **kwargs)

        return method

    for name in WAITING:
        monkeypatch.setattr(Tensor, name, counted(getattr(Tensor, name)))

    def uncounted(original):
        def function(*args):
            counter["paused"] = True
            result = original(*args)
            counter["paused"] = False
            return result

        return function

    # On a CPU Adam reads its own step counters, and kernels get arrays of the same memory.
    monkeypatch.setattr(torch.optim.Adam, "step", uncounted(torch.optim.Adam.step))
    monkeypatch.setattr(launch, "array", uncounted(launch.array))
    return counter


def waits_by_epoch(waits, config, **options):
    """How often each epoch of a run waited, between its loss and the next one's."""
    seen = []

    def hook(epoch, loss):
        seen.append(waits["waits"])
        return loss

    model = model_of(GRAPH, **options)
    result = fit(model, GRAPH, TaskWithLossHook(GRAPH, hook), config, save=lambda snapshot: None)
    seen.append(waits["waits"])
    assert len(seen) == result.epochs_run + 1
    return [after - before for before, after in zip(seen, seen[1:], strict=False)]


@pytest.mark.parametrize("options", [{}, {"preset": "paper"}, {"preset": "reference"}])
@pytest.mark.parametrize("settings", [{}, PENALTIES, {"clip_norm": 0.1, "schedule": "cosine"}])
def test_only_epochs_with_an_evaluation_wait(waits, options, settings):
    config = TrainConfig(epochs=13, evaluate_every=5, **settings)
    found = waits_by_epoch(waits, config, **options)
    assert [epoch for epoch, count in enumerate(found, start=1) if count] == [5, 10, 13]
    # One transfer for all records since the last look, one for score and loss.
    assert found[4] == found[9] == 2


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"checkpoint_every": 3}, {3, 5, 6, 8}),
        ({"tolerance": 1e-12}, {1, 2, 3, 4, 5, 6, 7, 8}),
        ({"evaluate_every": 1}, {1, 2, 3, 4, 5, 6, 7, 8}),
        ({"evaluate_every": 99}, {8}),
    ],
)
def test_other_looks(waits, settings, expected):
    config = TrainConfig(**{"epochs": 8, "evaluate_every": 5, **settings})
    found = waits_by_epoch(waits, config)
    assert {epoch for epoch, count in enumerate(found, start=1) if count} == expected


@pytest.mark.filterwarnings("ignore:Synchronization debug mode")
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("options", [{}, {"preset": "paper"}])
@pytest.mark.parametrize("settings", [{}, PENALTIES, {"clip_norm": 0.1}, {"precision": "bfloat16"}])
def test_no_synchronisation_on_a_gpu_between_evaluations(options, settings):
    def hook(epoch, loss):
        looked_at = epoch in (1, 5, 10)  # in the first epoch, kernels may still be prepared
        torch.cuda.set_sync_debug_mode("default" if looked_at else "error")
        return loss

    graph = two_blocks().to("cuda")
    # A recorded step calls no hook, and cannot wait.
    config = TrainConfig(epochs=10, evaluate_every=5, record=False, **settings)
    try:
        fit(model_of(graph, **options).cuda(), graph, TaskWithLossHook(graph, hook), config)
    finally:
        torch.cuda.set_sync_debug_mode("default")


# -- what a look finds ----------------------------------------------------------------------------


def records(**settings):
    config = TrainConfig(epochs=14, **PENALTIES, **settings)
    return fit(model_of(GRAPH), GRAPH, task_of(GRAPH), config).history


@pytest.mark.parametrize("settings", [{}, {"checkpoint_every": 3}, {"tolerance": 1e-12}])
def test_records_do_not_depend_on_when_they_are_read(settings):
    often, seldom = records(), records(evaluate_every=7, **settings)
    assert [seldom[6], seldom[13]] == [often[6], often[13]]
    for epoch, record in enumerate(seldom):
        assert record == replace(often[epoch], val_score=record.val_score, val_loss=record.val_loss)


def test_callback_gets_every_record_in_order_at_the_next_look():
    steps, told = [], []

    def hook(epoch, loss):
        steps.append(epoch)
        return loss

    result = fit(
        model_of(GRAPH),
        GRAPH,
        TaskWithLossHook(GRAPH, hook),
        TrainConfig(epochs=8, evaluate_every=3),
        on_epoch=lambda record: told.append((record, steps[-1])),
    )
    assert [record for record, _ in told] == result.history
    assert [record.epoch for record in result.history] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [epoch for _, epoch in told] == [3, 3, 3, 6, 6, 6, 8, 8]


def test_patience_that_ends_between_two_evaluations_leaves_no_epoch_without_a_record():
    task = ScriptedTask(GRAPH, [(0.9, 1.0)])
    config = TrainConfig(epochs=20, evaluate_every=5, patience=2)
    result = fit(model_of(GRAPH), GRAPH, task, config)
    assert (result.stopped_by, result.epochs_run, result.best_epoch) == ("patience", 7, 5)
    assert [record.epoch for record in result.history] == [1, 2, 3, 4, 5, 6, 7]


def spoiled_loss(loss: Tensor) -> Tensor:
    return loss * math.nan


def spoiled_gradient(loss: Tensor) -> Tensor:
    return loss + (0 * loss).sqrt()


@pytest.mark.parametrize(
    ("spoil", "what"), [(spoiled_loss, "loss"), (spoiled_gradient, "gradient norm")]
)
@pytest.mark.parametrize("every", [1, 2, 5, 99])
def test_divergence_is_told_of_the_first_epoch_in_which_it_happened(spoil, what, every):
    task = TaskWithLossHook(GRAPH, lambda epoch, loss: spoil(loss) if epoch >= 3 else loss)
    with pytest.raises(DivergenceError) as caught:
        fit(model_of(GRAPH), GRAPH, task, TrainConfig(epochs=10, evaluate_every=every))
    assert str(caught.value) == (
        f"the {what} became nan in epoch 3 (lr 0.005); a smaller lr or a clip_norm may help"
    )
