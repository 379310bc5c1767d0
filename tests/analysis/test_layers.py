import pytest
import torch

from argnn import functional as AF
from argnn.analysis import Layer, learned_layers, learned_metrics
from argnn.data import load
from argnn.nn import ARGNN, GCN


@pytest.fixture(scope="module")
def graph():
    return load("mixed")


def build(graph, **options):
    torch.manual_seed(0)
    return ARGNN(graph.num_features, 8, graph.class_count, num_layers=2, **options)


def test_learned_metrics_leave_the_model_as_it_was(graph):
    model = build(graph)
    first = learned_metrics(model, graph)
    assert [tuple(g.shape) for g in first] == [(graph.num_nodes, 8)] * 2
    assert model.training
    assert all(torch.equal(a, b) for a, b in zip(first, learned_metrics(model, graph), strict=True))
    assert learned_metrics(GCN(graph.num_features, 8, graph.class_count), graph) == []


@pytest.mark.parametrize("preset", ["default", "paper", "reference"])
def test_layers_hold_the_metrics_of_the_model_and_leave_it_as_it_was(graph, preset):
    model = build(graph, preset=preset)
    layers = learned_layers(model, graph)
    expected = learned_metrics(model, graph)
    assert all(torch.equal(layer.g, g) for layer, g in zip(layers, expected, strict=True))
    assert model.training
    assert not any(conv._forward_pre_hooks for conv in model.convs)


def test_the_operator_form_measures_what_leaves_a_layer(graph):
    model = build(graph).eval()
    layers = learned_layers(model, graph)
    states = model.hidden_states(graph.x, graph.edge_index)[0]
    assert len(states) == 3  # the encoded input stands first
    assert all(torch.equal(layer.h, h) for layer, h in zip(layers, states[1:], strict=True))


@pytest.mark.parametrize("encoder", [True, False])
def test_the_scalar_form_measures_what_enters_a_layer(graph, encoder):
    model = build(graph, modulation="scalar", encoder=encoder, metric_spread=1.0).eval()
    first, second = learned_layers(model, graph)
    assert torch.equal(first.h, graph.x) != encoder
    # The metric of a layer is made from the features that enter it.
    for conv, layer in zip(model.convs, (first, second), strict=True):
        assert torch.equal(conv.metric(layer.h, graph.edge_index), layer.g)
    assert AF.edge_modulation(second.h, second.g, graph.edge_index).isfinite().all()


def test_a_model_without_a_metric_has_no_layers(graph):
    assert learned_layers(GCN(graph.num_features, 8, graph.class_count), graph) == []


def test_features_and_metric_need_one_shape():
    with pytest.raises(ValueError, match=r"nodes and channels \(got \[2, 3\] and \[2, 4\]\)"):
        Layer(torch.ones(2, 3), torch.ones(2, 4))
