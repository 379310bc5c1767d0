import itertools

import pytest
import torch
from torch_geometric.nn import GCN as PyGGCN

from argnn.functional.row_normalization import normalized_rows
from argnn.nn.conv import pyg
from argnn.nn.models import GCN

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)


def model_of(*sizes, **options):
    return perturbed(GCN(*sizes, **options).double()).eval()


def as_pyg(model, sizes):
    """PyG's network with the same weights."""
    other = PyGGCN(sizes[0], sizes[1], len(model.convs), sizes[2], dropout=0.0).double().eval()
    other.load_state_dict(model.state_dict())
    return other


@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_network_is_that_of_pyg(num_layers):
    """With directed edges, duplicates, self-loops and an isolated node."""
    model, x = model_of(4, 5, 3, num_layers=num_layers), features(NUM_NODES, 4)
    expected = as_pyg(model, (4, 5, 3))(x, GRAPH)
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


def test_gradients_are_those_of_pyg():
    model, x = model_of(4, 5, 3), features(NUM_NODES, 4)
    other = as_pyg(model, (4, 5, 3))
    for network in (model, other):
        network(x, GRAPH).square().sum().backward()
    for name, parameter in model.named_parameters():
        expected = other.get_parameter(name).grad
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-10, atol=1e-10)


def test_weights_start_as_those_of_pyg():
    """Glorot's uniform bound and zero biases."""
    model = GCN(50, 40, 3)
    bound = (6 / 90) ** 0.5
    assert 0.95 * bound < model.convs[0].lin.weight.abs().max() <= bound
    assert all((conv.bias == 0).all() for conv in model.convs)


def test_every_row_on_a_complete_graph_is_the_mean():
    complete = edge_tensor([*itertools.permutations(range(5), 2)])
    model, x = model_of(4, 5, 3, num_layers=1), features(5, 4)
    expected = (x @ model.convs[0].lin.weight.t()).mean(0) + model.convs[0].bias
    torch.testing.assert_close(model(x, complete), expected.expand(5, 3), rtol=1e-12, atol=1e-12)


def test_isolated_node_gets_a_linear_map():
    model, x = model_of(4, 5, 3, num_layers=1), features(NUM_NODES, 4)
    expected = x[8] @ model.convs[0].lin.weight.t() + model.convs[0].bias
    torch.testing.assert_close(model(x, GRAPH)[8], expected, rtol=1e-12, atol=1e-12)


def test_input_is_normalized_where_asked_for():
    plain, normal = model_of(4, 5, 3), model_of(4, 5, 3, normalize_input=True)
    normal.load_state_dict(plain.state_dict())
    x = features(NUM_NODES, 4)
    assert torch.equal(normal(x, GRAPH), plain(normalized_rows(x), GRAPH))
    assert not torch.allclose(normal(x, GRAPH), plain(x, GRAPH))


@pytest.mark.parametrize("options", [{}, {"normalize_input": True}])
def test_features_are_summed_once(monkeypatch, options):
    """No wider than the layers, and without dropout: only the layer after the first one sums."""
    sums, real = [], pyg.closed_aggregate
    monkeypatch.setattr(pyg, "closed_aggregate", lambda x, edges: sums.append(x) or real(x, edges))
    model, x = GCN(4, 5, 3, dropout=0.0, **options).double(), features(NUM_NODES, 4)
    first, _ = model(x, GRAPH), sums.clear()
    assert torch.equal(model(x, GRAPH), first)
    assert [h.size(1) for h in sums] == [3]
    first.sum().backward()
    assert model.convs[0].lin.weight.grad.abs().sum() > 0


def test_input_dropout_acts_in_training_only():
    model, x = model_of(4, 5, 3, dropout=0.0, input_dropout=0.5), features(NUM_NODES, 4)
    assert torch.equal(model(x, GRAPH), model(x, GRAPH))
    model.train()
    assert not torch.equal(model(x, GRAPH), model(x, GRAPH))
