"""Riemannian Adam: its steps from the formulas, its bounds, its state, and geoopt's defect."""

import math
import sys

import pytest
import torch

from argnn.errors import ConfigError
from argnn.nn.metric import METRIC_SHAPES
from argnn.train import TrainConfig, fit
from argnn.train.riemannian import riemannian_adam

from .cases import assert_same_weights, model_of, task_of, two_blocks, weights

GRAPH = two_blocks()
FREE = {"metric": "free"}
every_shape = pytest.mark.parametrize("shape", METRIC_SHAPES)


def descended(positive, steps=40, lr=0.1, decay=0.0):
    """Two numbers that are drawn to the point (2, 0.01) by a quadratic loss."""
    point = torch.nn.Parameter(torch.tensor([0.5, 0.5], dtype=torch.float64))
    group = {"params": [point], "lr": lr, "weight_decay": decay, "positive": positive}
    optimizer, path = riemannian_adam([group], fused=False, capturable=False), [point.tolist()]
    for _ in range(steps):
        optimizer.zero_grad()
        (point - torch.tensor([2.0, 0.01], dtype=torch.float64)).square().sum().backward()
        optimizer.step()
        path.append(point.tolist())
    return path


def slow_adam(gradient, x, steps, lr, beta1=0.9, beta2=0.999, eps=1e-8):
    """Adam of one positive number on the line of its logarithm, where the metric is flat."""
    m = v = 0.0
    path = [x]
    for step in range(1, steps + 1):
        slope = x * gradient(x)  # the derivative by log x
        m, v = beta1 * m + (1 - beta1) * slope, beta2 * v + (1 - beta2) * slope**2
        corrected = m / (1 - beta1**step) / (math.sqrt(v / (1 - beta2**step)) + eps)
        x = x * math.exp(-lr * corrected)
        path.append(x)
    return path


def test_positive_numbers_move_as_adam_on_their_logarithms():
    path = torch.tensor(descended(positive=True), dtype=torch.float64)
    for entry, target in enumerate((2.0, 0.01)):
        expected = slow_adam(lambda x, t=target: 2 * (x - t), 0.5, 40, 0.1)
        torch.testing.assert_close(path[:, entry].tolist(), expected, rtol=1e-9, atol=0)
    assert (path > 0).all()


def test_other_parameters_move_as_with_adam():
    point = torch.nn.Parameter(torch.tensor([0.5, 0.5], dtype=torch.float64))
    optimizer = torch.optim.Adam([point], lr=0.1, weight_decay=0.3)
    for _ in range(40):
        optimizer.zero_grad()
        (point - torch.tensor([2.0, 0.01], dtype=torch.float64)).square().sum().backward()
        optimizer.step()
    last = descended(positive=False, decay=0.3)[-1]
    torch.testing.assert_close(last, point.tolist(), rtol=1e-9, atol=0)


@every_shape
@pytest.mark.parametrize("optimizer", ["adam", "riemannian-adam"])
def test_continued_run_of_free_metrics_has_the_same_bits(shape, optimizer):
    config = TrainConfig(epochs=6, checkpoint_every=2, optimizer=optimizer, lr=0.05)
    snapshots, options = [], {**FREE, "metric_shape": shape, "metric_init": "uniform"}
    model = model_of(GRAPH, **options)
    result = fit(model, GRAPH, task_of(GRAPH), config, save=snapshots.append)
    for snapshot in snapshots:
        other = model_of(GRAPH, seed=9, **options)
        resumed = fit(other, GRAPH, task_of(GRAPH), config, resume_from=snapshot)
        assert_same_weights(weights(model), weights(other))
        assert resumed.history == result.history


def test_geoopt_itself_would_continue_with_other_bits():
    """The defect that the count of steps in a tensor works around; if this fails, it is mended."""
    geoopt = pytest.importorskip("geoopt")

    def stepped(optimizer, point, steps):
        for _ in range(steps):
            optimizer.zero_grad()
            point.exp().sum().backward()
            optimizer.step()

    def new():
        point = torch.nn.Parameter(torch.linspace(-1, 1, 50))
        return point, geoopt.optim.RiemannianAdam([point], lr=0.1)

    point, optimizer = new()
    stepped(optimizer, point, 3)
    assert isinstance(optimizer.state[point]["step"], int)  # a checkpoint of tensors cannot hold it
    other, continued = new()
    other.data.copy_(point.data)
    continued.load_state_dict(optimizer.state_dict())
    stepped(optimizer, point, 20)
    stepped(continued, other, 20)
    assert not torch.equal(point, other)


@pytest.mark.parametrize("optimizer", ["adam", "riemannian-adam"])
def test_metrics_keep_to_floor_and_ceiling(optimizer):
    bounds = {"metric_floor": 0.2, "metric_ceiling": 0.6}
    model = model_of(GRAPH, **FREE, **bounds, metric_init="ones")
    seen = []
    config = TrainConfig(epochs=30, lr=0.3, optimizer=optimizer)
    fit(model, GRAPH, task_of(GRAPH), config, observe=lambda epoch, _: seen.append(_range(model)))
    low, high = (torch.tensor(side) for side in zip(*seen, strict=True))
    assert (low >= 0.2 - 1e-7).all()
    assert (high <= 0.6 + 1e-7).all()
    assert low.min() < 0.21  # the bounds are met
    assert high.max() > 0.59


def _range(model):
    numbers = torch.cat([p.detach().flatten() for p in model.positive_parameters()])
    return numbers.min().item(), numbers.max().item()


def test_parameters_of_free_metrics_are_in_the_group_of_the_metric():
    model = model_of(GRAPH, **FREE, metric_shape="full")
    groups = model.parameter_groups()
    metric = {name for name, group in groups.items() if group == "metric"}
    assert metric == {name for name in groups if ".metric_net." in name}
    assert len(metric) == 2 * model.num_layers


def test_without_geoopt_it_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "geoopt", None)
    with pytest.raises(ConfigError, match=r"needs geoopt: pip install 'argnn\[riemannian\]'"):
        riemannian_adam([])
