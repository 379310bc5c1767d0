import itertools

import pytest
import torch
from torch_geometric.nn import SAGEConv

from argnn.functional.row_normalization import normalized_rows
from argnn.nn.models import GraphSAGE

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)
NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


def model_of(**options):
    return perturbed(GraphSAGE(4, 5, 3, **options).double()).eval()


def as_pyg(conv):
    """PyG's layer with the same weights."""
    other = SAGEConv(conv.in_channels, conv.out_channels, normalize=conv.normalize).double()
    other.load_state_dict(conv.state_dict())
    return other


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_network_is_a_stack_of_pyg_layers(num_layers, normalize):
    """On a graph with directed edges, duplicates and an isolated node, without self-loops."""
    graph = GRAPH[:, GRAPH[0] != GRAPH[1]]  # PyG's layer would count a self-loop as a neighbour
    model, h = model_of(num_layers=num_layers, normalize=normalize), features(NUM_NODES, 4)
    scores = model(h, graph)
    for depth, conv in enumerate(model.convs):
        h = as_pyg(conv)(h.relu() if depth else h, graph)
    torch.testing.assert_close(scores, h, rtol=1e-12, atol=1e-12)


def test_without_edges_the_layer_is_its_root_map():
    model, x = model_of(num_layers=1), features(NUM_NODES, 4)
    conv = model.convs[0]
    torch.testing.assert_close(model(x, NO_EDGES), x @ conv.lin_r.weight.t() + conv.lin_l.bias)


def test_equal_features_on_a_complete_graph_see_the_sum_of_both_maps():
    complete = edge_tensor([*itertools.permutations(range(5), 2)])
    model, x = model_of(), features(5, 4)[:1].expand(5, 4).clone()
    h = x
    for depth, conv in enumerate(model.convs):
        weight = conv.lin_r.weight + conv.lin_l.weight
        h = (h.relu() if depth else h) @ weight.t() + conv.lin_l.bias
    torch.testing.assert_close(model(x, complete), h, rtol=1e-12, atol=1e-12)


def test_self_loops_are_no_neighbors():
    model, x = model_of(), features(NUM_NODES, 4)
    loops = torch.arange(NUM_NODES).repeat(2, 1)
    assert torch.equal(model(x, torch.cat([GRAPH, loops], dim=1)), model(x, GRAPH))


def test_rows_have_length_one_where_asked_for():
    scores = model_of(normalize=True)(features(NUM_NODES, 4), GRAPH)
    torch.testing.assert_close(scores.norm(dim=-1), torch.ones(NUM_NODES, dtype=torch.float64))


def test_input_is_normalized_where_asked_for():
    plain, normal = model_of(), model_of(normalize_input=True)
    normal.load_state_dict(plain.state_dict())
    x = features(NUM_NODES, 4)
    assert torch.equal(normal(x, GRAPH), plain(normalized_rows(x), GRAPH))
