import numpy as np
import torch
from torch_geometric.utils import contains_self_loops, degree, is_undirected

from argnn.data.digits_graph import digits, nearest_neighbors


def test_graph_is_the_same_every_time():
    first, again = digits(), digits()
    for field in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(first[field], again[field])


def test_graph_joins_each_image_to_at_least_eight_others():
    graph = digits()
    assert is_undirected(graph.edge_index)
    assert not contains_self_loops(graph.edge_index)
    assert degree(graph.edge_index[0], graph.num_nodes).min() >= 8


def test_features_lie_between_zero_and_one():
    graph = digits()
    assert graph.x.min() == 0
    assert graph.x.max() == 1


def test_ten_splits_have_few_labels():
    graph = digits()
    shares = [m.float().mean(dim=0) for m in (graph.train_mask, graph.val_mask, graph.test_mask)]
    for share, expected in zip(shares, (0.05, 0.15, 0.8), strict=True):
        assert torch.allclose(share, torch.full((10,), expected), atol=0.005)
    for label in range(10):
        assert graph.train_mask[graph.y == label].sum(dim=0).min() >= 8


def test_neighbors_equal_a_slow_search():
    points = np.random.default_rng(0).integers(0, 5, size=(30, 3)).astype(float)
    source, target = nearest_neighbors(points, 4)
    for node in range(30):
        distances = [(((points[node] - points[j]) ** 2).sum(), j) for j in range(30) if j != node]
        assert source[target == node].tolist() == [j for _, j in sorted(distances)[:4]]
