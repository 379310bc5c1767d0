import pytest
import torch
from torch.autograd import gradcheck
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from argnn.functional.neighborhood import neighborhood
from argnn.functional.self_loops import closed_aggregate, closed_feature_sum, closed_row_sum

EDGES = torch.tensor([[0, 1, 1, 2, 0, 3, 3, 4], [1, 0, 2, 1, 2, 3, 4, 4]])
NODES = 6


def features(channels=3):
    return torch.randn(
        NODES, channels, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )


def matrix(normalization):
    """Dense, from PyG's normalisation of the edges without self-loops."""
    proper = EDGES[:, EDGES[0] != EDGES[1]]
    if normalization == "sym":
        edges, weight = gcn_norm(proper, num_nodes=NODES, dtype=torch.float64)
        return to_dense_adj(edges, edge_attr=weight, max_num_nodes=NODES)[0].t()
    adjacency = to_dense_adj(proper, max_num_nodes=NODES)[0].double().t() + torch.eye(NODES)
    return adjacency / adjacency.sum(1, keepdim=True)


@pytest.mark.parametrize("normalization", ["sym", "rw"])
def test_sum_is_the_dense_product(normalization):
    x = features()
    expected = matrix(normalization) @ x
    torch.testing.assert_close(closed_aggregate(x, EDGES, normalization), expected)
    x.requires_grad_()
    assert gradcheck(lambda x: closed_aggregate(x, EDGES, normalization), x)


def test_row_sums():
    expected = matrix("sym").sum(1, keepdim=True)
    found = closed_row_sum(EDGES, NODES, torch.float64)
    torch.testing.assert_close(found, expected)
    assert closed_row_sum(EDGES, NODES, torch.float64).data_ptr() == found.data_ptr()


@pytest.mark.parametrize("normalization", ["sym", "rw"])
def test_isolated_node_keeps_its_features(normalization):
    x = features()
    assert torch.equal(closed_aggregate(x, EDGES, normalization)[5], x[5])
    none = torch.empty(2, 0, dtype=torch.int64)
    assert torch.equal(closed_aggregate(x, none, normalization), x)


def test_unknown_normalization_is_refused():
    with pytest.raises(ValueError, match="normalization must be one of"):
        closed_aggregate(features(), EDGES, "sum")


def test_sums_of_features_are_kept_until_something_changes():
    x, edges = features(), EDGES.clone()
    found = closed_feature_sum(x, edges, 3)
    assert torch.equal(found, closed_aggregate(x, edges))
    assert closed_feature_sum(x, edges, 4) is found
    x.numpy()[0] += 1.0  # which torch does not count
    changed = closed_feature_sum(x, edges, 3)
    assert torch.equal(changed, closed_aggregate(x, edges))
    fewer = edges[:, 2:].clone()
    assert torch.equal(closed_feature_sum(x, fewer, 3), closed_aggregate(x, fewer))
    assert closed_feature_sum(x, edges, 3) is changed


def test_sums_made_without_gradients_or_in_bfloat16_serve_training():
    x = features()
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        closed_feature_sum(x, EDGES, 3)
    found = closed_feature_sum(x, EDGES, 3)
    assert torch.equal(found, closed_aggregate(x, EDGES))
    weight = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    (found @ weight).sum().backward()
    assert weight.grad is not None


@pytest.mark.parametrize("why", ["wide", "gradient", "sparse", "learned weights"])
def test_sums_of_features_come_after_the_linear_map(why):
    x, edges = features(), EDGES
    if why == "gradient":
        x.requires_grad_()
    if why == "sparse":
        x = torch.eye(400)
    if why == "learned weights":
        weight = torch.ones(EDGES.size(1), dtype=torch.float64, requires_grad=True)
        edges = neighborhood(EDGES, NODES, weight)
    assert closed_feature_sum(x, edges, 2 if why == "wide" else 400) is None
