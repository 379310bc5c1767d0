import pytest
import torch
from torch.nn import functional as F
from torch_geometric.nn import GATConv as PyGGATConv

from argnn.errors import ConfigError
from argnn.functional.edge_values import ordered_edges, sum_at_targets
from argnn.functional.self_loops import closed_aggregate
from argnn.nn.conv.pyg import GATConv
from argnn.nn.models import GAT

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)
every_layout = pytest.mark.parametrize(("heads", "concat"), [(1, True), (3, True), (3, False)])


def conv_of(heads=2, concat=True, **options):
    return perturbed(GATConv(4, 5, heads=heads, concat=concat, **options).double()).eval()


def as_pyg(conv):
    """PyG's layer with the same weights."""
    other = PyGGATConv(
        conv.in_channels, conv.out_channels, heads=conv.heads, concat=conv.concat
    ).double()
    other.load_state_dict(conv.state_dict())
    return other


@every_layout
def test_layer_is_that_of_pyg_with_its_gradients(heads, concat):
    """With directed edges, duplicates, self-loops and an isolated node."""
    conv, x = conv_of(heads, concat), features(NUM_NODES, 4)
    other = as_pyg(conv)
    out, expected = conv(x, GRAPH), other(x, GRAPH)
    torch.testing.assert_close(out, expected, rtol=1e-12, atol=1e-12)
    out.square().sum().backward()
    expected.square().sum().backward()
    for name, parameter in conv.named_parameters():
        expected = other.get_parameter(name).grad
        torch.testing.assert_close(parameter.grad, expected, rtol=1e-10, atol=1e-10)


@every_layout
def test_without_attention_vectors_the_layer_is_the_mean(heads, concat):
    conv, x = conv_of(heads, concat), features(NUM_NODES, 4)
    with torch.no_grad():
        conv.att_src.zero_()
        conv.att_dst.zero_()
    mean = closed_aggregate(x @ conv.lin.weight.t(), GRAPH, "rw").view(NUM_NODES, heads, 5)
    expected = (mean.flatten(1) if concat else mean.mean(1)) + conv.bias
    torch.testing.assert_close(conv(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


def test_attention_sums_to_one_at_every_node():
    conv, x = conv_of(heads=3), features(NUM_NODES, 4)
    edges = ordered_edges(GRAPH, NUM_NODES, closed=True)
    alpha = conv.attention(conv.lin(x).view(NUM_NODES, 3, 5), edges)
    assert (alpha > 0).all()
    torch.testing.assert_close(
        sum_at_targets(alpha, edges), torch.ones(NUM_NODES, 3, dtype=torch.float64)
    )


def test_order_of_edges_and_listed_self_loops_do_not_matter():
    conv, x = conv_of(), features(NUM_NODES, 4)
    shuffled = GRAPH[:, torch.randperm(GRAPH.size(1), generator=torch.Generator().manual_seed(0))]
    loops = torch.arange(NUM_NODES).repeat(2, 1)
    expected = conv(x, GRAPH)
    for graph in (shuffled, torch.cat([GRAPH, loops, loops], dim=1)):
        torch.testing.assert_close(conv(x, graph), expected, rtol=1e-12, atol=1e-12)


def test_dropout_acts_on_attention():
    conv, x = conv_of(dropout=0.5).train(), features(NUM_NODES, 4)
    assert not torch.equal(conv(x, GRAPH), conv(x, GRAPH))


def test_dropout_acts_on_the_input_of_every_layer():
    model, x = GAT(4, 6, 3, heads=2, dropout=0.5), features(NUM_NODES, 4).float()
    for conv in model.convs:
        conv.dropout = 0.0  # what is left is that of the features
    assert not torch.equal(model(x, GRAPH), model(x, GRAPH))
    model.convs[0].lin.dropout = 0.0
    assert not torch.equal(model(x, GRAPH), model(x, GRAPH))
    assert torch.equal(model.eval()(x, GRAPH), model(x, GRAPH))


def test_network_is_a_stack_of_layers_with_elu():
    model = perturbed(GAT(4, 6, 3, heads=2, out_heads=2, normalize_input=False).double()).eval()
    x = features(NUM_NODES, 4)
    first, second = (as_pyg(conv) for conv in model.convs)
    assert (first.heads, first.out_channels, first.concat) == (2, 3, True)
    assert (second.heads, second.out_channels, second.concat) == (2, 3, False)
    expected = second(F.elu(first(x, GRAPH)), GRAPH)
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"heads": 3}, "hidden_channels must be a multiple of the 3 heads"),
        ({"heads": 0}, "heads must be at least 1"),
        ({"out_heads": 0}, "out_heads must be at least 1"),
    ],
)
def test_impossible_heads_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        GAT(4, 8, 3, **options)
