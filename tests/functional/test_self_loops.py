import pytest
import torch
from torch.autograd import gradcheck
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import to_dense_adj

from argnn.functional.self_loops import closed_aggregate, closed_row_sum

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
