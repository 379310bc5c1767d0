"""Recorded training on a GPU equals what runs kernel by kernel; skipped without one."""

import pytest
import torch

from argnn.data import load
from argnn.nn import ARGNN, LinkModel
from argnn.train import LinkPrediction, TrainConfig, fit
from argnn.train import loop as loop_module

from .cases import assert_same_weights, task_of, two_blocks, weights

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

SETTINGS = {"epochs": 30, "lr": 0.01, "schedule": "cosine", "evaluate_every": 5}


@pytest.fixture
def graph():
    return two_blocks().to("cuda")


def train(graph, record, resume_from=None, save=None, **changes):
    torch.manual_seed(0)
    model = ARGNN(graph.x.size(1), 16, 2, num_layers=2).to("cuda")
    config = TrainConfig(**{**SETTINGS, "record": record, **changes})
    result = fit(model, graph, task_of(graph), config, resume_from=resume_from, save=save)
    return weights(model), result.history


@pytest.mark.parametrize("precision", ["float32", "tf32", "bfloat16"])
def test_recorded_run_has_the_bits_of_the_usual_one(graph, precision):
    plain, plain_history = train(graph, False, precision=precision)
    recorded, history = train(graph, True, precision=precision)
    assert history == plain_history
    assert_same_weights(recorded, plain)


def test_the_step_is_really_recorded(graph, monkeypatch):
    calls = []
    monkeypatch.setattr(
        loop_module, "RecordedStep", lambda compute: calls.append(compute) or compute
    )
    train(graph, True)
    assert len(calls) == 2  # training step and validation


def test_recorded_run_resumes_with_the_same_bits(graph):
    snapshots = []
    whole, history = train(graph, True, save=snapshots.append, checkpoint_every=8)
    resumed, resumed_history = train(graph, True, resume_from=snapshots[1], checkpoint_every=8)
    assert resumed_history == history
    assert_same_weights(resumed, whole)


def test_fresh_negatives_are_drawn_in_every_replay(graph):
    pairs = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    non_edges = torch.tensor([[0, 1], [59, 58]], device="cuda")
    task = LinkPrediction(pairs, pairs[:, :2], non_edges, graph.x.size(0))
    torch.manual_seed(0)
    model = LinkModel(ARGNN(graph.x.size(1), 16, 16, num_layers=1, dropout=0.0), "dot").to("cuda")
    config = TrainConfig(epochs=12, lr=1e-12, weight_decay=0.0)
    history = fit(model, graph, task, config).history
    assert len({record.task_loss for record in history[5:]}) == len(history[5:])


def test_registered_graph_trains_recorded():
    graph = load("mixed").to("cuda")
    graph.train_mask, graph.val_mask = graph.train_mask[:, 0], graph.val_mask[:, 0]
    torch.manual_seed(0)
    model = ARGNN(graph.x.size(1), 64, 4, num_layers=2, metric="structure").to("cuda")
    result = fit(model, graph, task_of(graph), TrainConfig(epochs=60, lr=0.01))
    assert result.val_score > 0.4
