"""Weights of messages against what the layers really compute."""

import pytest
import torch
from torch_geometric.data import Data

from argnn.analysis.messages import layer_messages, ordered_pairs
from argnn.nn import ARGNN, GCN

from .cases import GRAPHS, edge_tensor

FORMS = {
    "paper": {"preset": "paper"},
    "reference": {"preset": "reference"},
    "no attention": {"preset": "paper", "attention": False},
    "operator": {},
    "two directions": {"direction": "both"},
    "two hops": {"hops": 2},
}


def graph_named(name):
    num_nodes, edges = GRAPHS[name]
    torch.manual_seed(0)
    return Data(
        x=torch.randn(num_nodes, 3),
        edge_index=edge_tensor((a, b) for a, b in edges if a != b),
        num_nodes=num_nodes,
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", GRAPHS)
def test_every_pair_has_finite_weights(name, form):
    graph = graph_named(name)
    model = ARGNN(3, 4, 2, num_layers=2, **FORMS[form])
    found = layer_messages(model, graph)
    count = ordered_pairs(graph.edge_index, graph.num_nodes).size(1)
    assert len(found) == 2
    for messages in found:
        assert messages.tau.shape == messages.weight.shape == (count,)
        assert messages.weight.isfinite().all()
        assert (messages.attention is None) == (form not in ("paper", "reference"))


def test_weights_of_the_scalar_form_make_the_layer():
    graph = graph_named("random")
    graph.edge_index = ordered_pairs(graph.edge_index, 9)
    model = ARGNN(3, 4, 2, num_layers=1, preset="paper").eval()
    weight = layer_messages(model, graph)[0].weight
    conv = model.convs[0]
    source, target = ordered_pairs(graph.edge_index, 9)
    sums = torch.zeros(9, 3).index_add_(0, target, weight.unsqueeze(-1) * graph.x[source])
    expected = conv.lins_neighbor[0](sums) + conv.lin_self(graph.x) + conv.bias
    torch.testing.assert_close(conv(graph.x, graph.edge_index), expected)


def test_weight_of_the_operator_form_is_a_ratio_of_lengths():
    graph = graph_named("one pair")
    model = ARGNN(3, 4, 2, num_layers=1, encoder=False, self_path=False).eval()
    conv = model.convs[0]
    found = layer_messages(model, graph)[0]
    result = conv(graph.x, graph.edge_index) - conv.bias
    sent = conv.lins_neighbor[0](graph.x)
    # Each node hears from the other one alone, with a constant weight of one.
    torch.testing.assert_close(found.weight, result.norm(dim=-1) / sent.flip(0).norm(dim=-1))


def test_other_models_have_none():
    assert layer_messages(GCN(3, 4, 2), graph_named("random")) == []


def test_model_is_left_as_it_was():
    model = ARGNN(3, 4, 2).train()
    layer_messages(model, graph_named("random"))
    assert model.training
    assert not any(conv._forward_pre_hooks for conv in model.convs)
