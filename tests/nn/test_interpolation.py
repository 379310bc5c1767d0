"""Layers that interpolate between a node and its neighbours, without weights of their own."""

import copy

import pytest
import torch
from tests.train.cases import task_of, two_blocks
from torch_geometric.data import Data

from argnn.errors import ConfigError
from argnn.estimators import ARGNNClassifier
from argnn.estimators.loading import load
from argnn.nn import ARGNN, ARConv
from argnn.settings.options import resolve_options
from argnn.train import TrainConfig, fit

from .cases import (
    EDGES,
    NUM_NODES,
    dense_adjacency,
    edge_tensor,
    features,
    metrics,
    perturbed,
    relation,
    renamed,
)

IN, HIDDEN, OUT, LAYERS = 5, 6, 3, 8
X = features(NUM_NODES, IN)
GRAPH = edge_tensor(EDGES)


def conv_of(**options):
    torch.manual_seed(0)
    return ARConv(HIDDEN, HIDDEN, modulation="interpolation", **options).double()


def deep(**options):
    torch.manual_seed(0)
    options = {"modulation": "interpolation", "metric_spread": 1.0, "jump": "last", **options}
    return ARGNN(IN, HIDDEN, OUT, LAYERS, **options).double()


@pytest.mark.parametrize("direction", ["in", "out", "undirected"])
@pytest.mark.parametrize("normalization", ["sum", "sym", "rw"])
def test_layer_by_loops(direction, normalization):
    conv = conv_of(direction=direction, normalization=normalization)
    h, g = features(NUM_NODES, HIDDEN), metrics(NUM_NODES, HIDDEN)
    along = dense_adjacency(relation(EDGES, direction), NUM_NODES, normalization)
    expected = torch.empty_like(h)
    for i in range(NUM_NODES):
        mean = sum(along[i, j] * h[j] for j in range(NUM_NODES))
        for k in range(HIDDEN):
            q = 1 / (1 + g[i, k] ** 2)
            expected[i, k] = (1 - q) * h[i, k] + q * mean[k]
    torch.testing.assert_close(conv(h, GRAPH, g=g), expected, rtol=1e-10, atol=1e-10)


def test_small_metrics_give_the_neighbours_and_large_ones_the_node():
    conv, h = conv_of(normalization="rw"), features(NUM_NODES, HIDDEN)
    mean = dense_adjacency(relation(EDGES, "in"), NUM_NODES, "rw") @ h
    for size, expected in ((1e-9, mean), (1e9, h)):
        found = conv(h, GRAPH, g=torch.full_like(h, size))
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("shape", ["diagonal", "lowrank"])
def test_layers_share_one_network_and_the_metric_grows_with_depth(shape):
    model = perturbed(deep(metric_shape=shape), scale=0.1).eval()
    assert len(model.metric_nets()) == 1
    of_layers = [name for name in model.state_dict() if name.startswith("convs.")]
    assert {name.split(".")[1] for name in of_layers} == {"0"}
    h = features(NUM_NODES, HIDDEN)
    first, last = (model.layer_metric(depth, h, GRAPH) for depth in (0, LAYERS - 1))
    if shape == "lowrank":
        first, last = (torch.diag_embed(g[:, 0]) + g[:, 1:].mT @ g[:, 1:] for g in (first, last))
    torch.testing.assert_close(last, LAYERS * first)


def test_weights_do_not_grow_with_the_number_of_layers():
    def count(layers):
        options = {"modulation": "interpolation", "jump": "last", "norm": "none"}
        return sum(p.numel() for p in ARGNN(IN, HIDDEN, OUT, layers, **options).parameters())

    assert count(1) == count(8)


def test_copies_and_states_keep_the_shared_network():
    model = perturbed(deep()).eval()
    again = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in model.metric_nets()[0].parameters():
            parameter.add_(0.5)
    assert len(again.metric_nets()) == 1
    assert not torch.equal(again(X, GRAPH), model(X, GRAPH))
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(X, GRAPH), model(X, GRAPH))


def test_gradients():
    model = perturbed(deep(dropout=0.0, input_dropout=0.0), scale=0.1).eval()
    assert torch.autograd.gradcheck(lambda x: model(x, GRAPH), X.clone().requires_grad_())
    model(X, GRAPH).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_renamed_nodes_rename_the_scores():
    model = perturbed(deep()).eval()
    x, edges, order = renamed(X, GRAPH, seed=3)
    torch.testing.assert_close(model(x, edges), model(X, GRAPH)[order], rtol=1e-9, atol=1e-9)


def test_deep_network_learns_and_is_stored(tmp_path):
    graph = two_blocks()
    torch.manual_seed(0)
    model = ARGNN(6, 8, 2, LAYERS, modulation="interpolation", dropout=0.1, input_dropout=0.0)
    result = fit(model, graph, task_of(graph), TrainConfig(epochs=40, lr=0.02))
    assert result.val_score > 0.8
    options = {"modulation": "interpolation", "num_layers": LAYERS, "hidden_channels": 8}
    masks = {"train_mask": graph.train_mask.numpy(), "val_mask": graph.val_mask.numpy()}
    plain = Data(x=graph.x, edge_index=graph.edge_index)
    clf = ARGNNClassifier(model_options=options, epochs=3, trial=False)
    clf.fit(plain, graph.y.numpy(), **masks)
    clf.save(tmp_path / "model")
    assert (load(tmp_path / "model").predict(plain) == clf.predict(plain)).all()


@pytest.mark.parametrize(
    "options", [{"encoder": False}, {"head": "conv"}, {"direction": "both"}, {"eps0": 0.1}]
)
def test_what_needs_weights_is_refused(options):
    options = {"jump": "last", "modulation": "interpolation", **options}
    with pytest.raises(ConfigError, match="modulation=interpolation has no weights"):
        resolve_options("argnn", "default", options)


def test_convolution_keeps_the_size():
    with pytest.raises(ConfigError, match="in_channels as out_channels"):
        ARConv(3, 4, modulation="interpolation")
    with pytest.raises(ConfigError, match="hops must be 1"):
        ARConv(4, 4, modulation="interpolation", hops=2)
