import math

import pytest
import torch

from argnn.analysis import learned_metrics, metric_statistics
from argnn.data import load
from argnn.nn import ARGNN, GCN

PATH = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def test_constant_metric_has_its_scale_and_nothing_else():
    found = metric_statistics(torch.full((3, 4), 0.5), PATH)
    assert found.log_scale.tolist() == pytest.approx([math.log(0.5)] * 3)
    assert found.anisotropy.abs().max() < 1e-12
    assert found.ricci_norm.abs().max() == 0
    assert found.main_variation.abs().max() < 1e-12
    assert found.nrmd == 0


def test_anisotropy_and_scale_are_those_of_the_logarithms():
    g = torch.tensor([[1.0, math.e**2], [1.0, 1.0], [math.e, math.e]])
    found = metric_statistics(g, PATH)
    assert found.anisotropy.tolist() == pytest.approx([1.0, 0.0, 0.0], abs=1e-6)
    assert found.log_scale.tolist() == pytest.approx([1.0, 0.0, 1.0], abs=1e-6)


def test_main_variation_follows_a_planted_direction():
    position = torch.tensor([-2.0, 0.0, 1.0, 1.0])
    log_g = position.unsqueeze(1) * torch.tensor([[3.0, 4.0]]) / 5
    edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
    found = metric_statistics(log_g.exp(), edges)
    assert found.main_variation.tolist() == pytest.approx(position.tolist(), abs=1e-5)


def test_learned_metrics_leave_the_model_as_it_was():
    graph = load("mixed")
    model = ARGNN(graph.num_features, 8, graph.class_count, num_layers=2)
    first = learned_metrics(model, graph)
    assert [tuple(g.shape) for g in first] == [(graph.num_nodes, 8)] * 2
    assert model.training
    assert all(torch.equal(a, b) for a, b in zip(first, learned_metrics(model, graph), strict=True))
    assert learned_metrics(GCN(graph.num_features, 8, graph.class_count), graph) == []
