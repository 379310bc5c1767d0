import pytest
import torch
from torch import nn
from torch_geometric.nn import FAConv as PyGFAConv

from argnn.functional.edge_values import ordered_edges
from argnn.functional.neighborhood import aggregate
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.conv.pyg import FAConv
from argnn.nn.models import FAGCN

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed, relation

GRAPH = edge_tensor(EDGES)
UNDIRECTED = edge_tensor(relation(EDGES, "undirected"))


def conv_of(**options):
    return perturbed(FAConv(4, **options).double()).eval()


def test_layer_is_that_of_pyg_without_self_loops_and_bias():
    conv = conv_of(eps=0.3)
    other = PyGFAConv(4, eps=0.3, add_self_loops=False).double()
    nn.init.zeros_(conv.bias)
    other.load_state_dict(conv.state_dict(), strict=False)  # it knows no bias
    x, first = features(NUM_NODES, 4), features(NUM_NODES, 4, seed=1)
    expected = other(x, first, UNDIRECTED)
    torch.testing.assert_close(conv(x, first, UNDIRECTED), expected, rtol=1e-12, atol=1e-12)


def test_layer_matches_a_loop_with_its_bias():
    conv = conv_of(eps=0.3)
    x, first = features(NUM_NODES, 4), features(NUM_NODES, 4, seed=1)
    edges = relation(EDGES, "undirected")
    degree = [max(sum(i == node for _, i in edges), 1) for node in range(NUM_NODES)]
    expected = 0.3 * first
    for j, i in edges:
        gate = conv.att_r.weight[0] @ x[i] + conv.att_l.weight[0] @ x[j]
        weight = torch.tanh(gate + conv.bias[0]) / (degree[i] * degree[j]) ** 0.5
        expected[i] = expected[i] + weight * x[j]
    torch.testing.assert_close(conv(x, first, UNDIRECTED), expected, rtol=1e-12, atol=1e-12)


def close_gate(conv, bias):
    with torch.no_grad():
        conv.att_l.weight.zero_()
        conv.att_r.weight.zero_()
        conv.bias.fill_(bias)


def test_zero_gate_leaves_the_first_features():
    conv = conv_of(eps=0.3)
    close_gate(conv, 0.0)
    x, first = features(NUM_NODES, 4), features(NUM_NODES, 4, seed=1)
    assert torch.equal(conv(x, first, GRAPH), 0.3 * first)
    model = perturbed(FAGCN(4, 5, 3, eps=0.3).double()).eval()
    for layer in model.convs:
        close_gate(layer, 0.0)
    h = (normalized_rows(x) @ model.encoder.weight.t() + model.encoder.bias).relu()
    expected = 0.3 * h @ model.head.weight.t() + model.head.bias
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sign", [1, -1])
def test_saturated_gate_is_normalized_propagation(sign):
    conv = conv_of(eps=0.0)
    close_gate(conv, sign * 50.0)
    x = features(NUM_NODES, 4)
    expected = sign * aggregate(x, UNDIRECTED, "sym")
    torch.testing.assert_close(conv(x, x, UNDIRECTED), expected, rtol=1e-12, atol=1e-12)


def test_gates_are_between_minus_one_and_one():
    conv, x = conv_of(), features(NUM_NODES, 4)
    gate = conv.gate(x, ordered_edges(GRAPH, NUM_NODES))
    assert gate.abs().max() < 1
    assert gate.min() < 0 < gate.max()


def test_self_loops_do_not_matter():
    conv, x = conv_of(), features(NUM_NODES, 4)
    loops = torch.arange(NUM_NODES).repeat(2, 1)
    expected = conv(x, x, GRAPH)
    assert torch.equal(conv(x, x, torch.cat([GRAPH, loops], dim=1)), expected)


def test_weights_start_by_the_rule_of_the_method():
    """Xavier's normal rule with gain 1.414; the gate is one map of both ends."""
    torch.manual_seed(0)
    model = FAGCN(600, 500, 7)
    gates = torch.cat([model.convs[0].att_l.weight, model.convs[0].att_r.weight])
    for weight, fans in ((model.encoder.weight, 1100), (model.head.weight, 507), (gates, 1001)):
        assert weight.std().item() == pytest.approx(1.414 * (2 / fans) ** 0.5, rel=0.1)


def test_dropout_acts_on_edges():
    conv, x = conv_of(dropout=0.5).train(), features(NUM_NODES, 4)
    assert not torch.equal(conv(x, x, GRAPH), conv(x, x, GRAPH))
