import itertools

import pytest
import torch

import reference
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.models import H2GCN

from ..cases import EDGES, NUM_NODES, edge_tensor, features, perturbed

GRAPH = edge_tensor(EDGES)


def model_of(**options):
    torch.manual_seed(0)
    return perturbed(H2GCN(4, 5, 3, **options).double()).eval()


def ring_matrix(edges, num_nodes, hops):
    """Nodes at an exact distance, divided by the roots of their numbers."""
    matrix = torch.zeros(num_nodes, num_nodes, dtype=torch.float64)
    for i, near in enumerate(reference.hop_distances(edges, num_nodes)):
        for j, distance in near.items():
            matrix[i, j] = float(distance == hops)
    root = matrix.sum(1).clamp_min(1).rsqrt()
    return root.unsqueeze(1) * matrix * root


@pytest.mark.parametrize("relu", [True, False])
@pytest.mark.parametrize("num_layers", [1, 2, 3])
def test_network_matches_dense_matrices(num_layers, relu):
    model = model_of(num_layers=num_layers, relu=relu)
    x = features(NUM_NODES, 4)
    near, far = (ring_matrix(EDGES, NUM_NODES, hops) for hops in (1, 2))
    r = normalized_rows(x) @ model.encoder.weight.t()
    rounds = [r.relu() if relu else r]
    for _ in range(num_layers):
        rounds.append(torch.cat([near @ rounds[-1], far @ rounds[-1]], dim=1))
    expected = torch.cat(rounds, dim=1) @ model.head.weight.t()
    torch.testing.assert_close(model(x, GRAPH), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(("num_layers", "width"), [(1, 192), (2, 448)])
def test_width_of_what_the_last_map_sees(num_layers, width):
    assert H2GCN(4, 64, 3, num_layers=num_layers).head.in_channels == width


def test_there_are_two_weights_and_no_bias():
    names = [name for name, _ in H2GCN(4, 5, 3).named_parameters()]
    assert names == ["encoder.weight", "head.weight"]


def test_isolated_node_relies_on_its_own_features():
    model, x = model_of(), features(NUM_NODES, 4)
    own = (normalized_rows(x)[8] @ model.encoder.weight.t()).relu()
    expected = model.head.weight[:, :5] @ own
    torch.testing.assert_close(model(x, GRAPH)[8], expected, rtol=1e-12, atol=1e-12)


def test_second_ring_is_empty_on_a_complete_graph():
    complete = edge_tensor([*itertools.permutations(range(5), 2)])
    model, x = model_of(num_layers=1), features(5, 4)
    expected = model(x, complete)
    with torch.no_grad():
        model.head.weight[:, 10:] = 7.0  # what the second ring would be seen by
    assert torch.equal(model(x, complete), expected)


def test_directions_and_duplicates_do_not_matter():
    model, x = model_of(), features(NUM_NODES, 4)
    both = torch.unique(torch.cat([GRAPH, GRAPH.flip(0)], dim=1), dim=1)
    torch.testing.assert_close(model(x, both), model(x, GRAPH), rtol=1e-12, atol=1e-12)


def test_only_the_given_edges_are_seen():
    """No pair two apart survives from another graph, as link prediction needs it."""
    model, x = model_of(), features(NUM_NODES, 4)
    before = model(x, GRAPH)
    fewer = GRAPH[:, 3:].clone()
    assert not torch.equal(model(x, fewer), before)
    assert torch.equal(model(x, fewer), model_of()(x, fewer))
