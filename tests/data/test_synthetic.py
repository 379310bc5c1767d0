import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import connected_components
from torch_geometric.utils import is_undirected, to_scipy_sparse_matrix

from argnn.data.synthetic import GEOMETRIES, clique, cycle, grid, mixed, tree
from argnn.errors import ConfigError


def regions_of(graph, kind: str) -> list[tuple[int, torch.Tensor]]:
    """Number of nodes and inner edges (each once) of every region of one geometry."""
    inside = graph.region[graph.edge_index[0]] == graph.region[graph.edge_index[1]]
    once = graph.edge_index[0] < graph.edge_index[1]
    edges = graph.edge_index[:, inside & once]
    chosen = graph.region[graph.geometry == GEOMETRIES.index(kind)].unique()
    return [
        (int((graph.region == index).sum()), edges[:, graph.region[edges[0]] == index])
        for index in chosen
    ]


def num_components(edge_index: torch.Tensor, num_nodes: int) -> int:
    matrix = to_scipy_sparse_matrix(edge_index, num_nodes=num_nodes)
    return connected_components(matrix, directed=False)[0]


@pytest.mark.parametrize(
    ("edges", "num_nodes", "num_edges"),
    [(tree(13), 13, 12), (clique(6), 6, 15), (cycle(7), 7, 7), (grid(3, 4), 12, 17)],
)
def test_motif_is_connected_and_has_the_right_size(edges, num_nodes, num_edges):
    assert edges.shape == (2, num_edges)
    assert num_components(edges, num_nodes) == 1
    assert len({tuple(sorted(pair)) for pair in edges.T.tolist()}) == num_edges


def test_tree_of_higher_branching():
    assert torch.bincount(tree(13, branching=3)[0]).tolist() == [3, 3, 3, 3]


def test_graph_is_connected_simple_and_undirected():
    graph = mixed()
    assert is_undirected(graph.edge_index)
    assert num_components(graph.edge_index, graph.num_nodes) == 1


def test_same_seed_same_graph_other_seed_other_graph():
    first, again, other = mixed(3), mixed(3), mixed(4)
    for field in ("x", "edge_index", "y", "geometry", "train_mask"):
        assert torch.equal(first[field], again[field])
    assert not torch.equal(first.x, other.x)
    assert not torch.equal(first.edge_index, other.edge_index)


def test_counts_do_not_depend_on_the_seed():
    assert {(mixed(s).num_nodes, mixed(s).num_edges) for s in range(5)} == {(1648, 11990)}


def test_regions_have_their_geometry():
    graph = mixed()
    for nodes, edges in regions_of(graph, "tree"):
        assert edges.size(1) == nodes - 1  # connected by the motif test, hence without cycles
    for nodes, edges in regions_of(graph, "clique"):
        assert edges.size(1) == nodes * (nodes - 1) // 2
    for nodes, edges in regions_of(graph, "cycle"):
        degrees = torch.bincount(edges.flatten())
        assert edges.size(1) == nodes
        assert degrees[degrees > 0].eq(2).all()
    for nodes, edges in regions_of(graph, "grid"):
        assert nodes < edges.size(1) < 2 * nodes


def test_there_are_twenty_regions_of_each_kind():
    graph = mixed()
    assert [len(regions_of(graph, kind)) for kind in GEOMETRIES] == [20] * 4
    assert graph.geometry_names == list(GEOMETRIES)


def test_label_is_signal_plus_geometry():
    graph = mixed(noise=0.0)
    signals = {}
    for node in range(graph.num_nodes):
        signal = int(graph.y[node] - graph.geometry[node]) % 4
        signals.setdefault(signal, graph.x[node])
        assert torch.equal(graph.x[node], signals[signal])
    assert len({tuple(row.tolist()) for row in signals.values()}) == 4


@pytest.mark.parametrize("known", ["signal", "geometry"])
def test_one_half_of_the_rule_alone_does_not_tell_the_label(known):
    graph = mixed()
    hint = graph.geometry if known == "geometry" else (graph.y - graph.geometry) % 4
    table = np.zeros((4, 4))
    np.add.at(table, (hint.numpy(), graph.y.numpy()), 1)
    assert table.max(axis=1).sum() / graph.num_nodes < 0.35


def test_noise_hides_the_signal_of_one_node_but_not_of_a_region():
    graph = mixed()
    signal = (graph.y - graph.geometry) % 4
    clean = mixed(noise=0.0)
    prototypes = torch.stack([clean.x[signal == c][0] for c in range(4)])
    alone = (graph.x @ prototypes.T).argmax(dim=1)
    means = torch.stack([graph.x[graph.region == r].mean(dim=0) for r in graph.region])
    together = (means @ prototypes.T).argmax(dim=1)
    assert (alone == signal).float().mean() < 0.9
    assert (together == signal).all()


@pytest.mark.parametrize(
    "options", [{"regions_per_kind": 11}, {"noise": -1}, {"extra_bridges": -1}]
)
def test_impossible_size_is_named(options):
    with pytest.raises(ConfigError, match=next(iter(options))):
        mixed(**options)


def test_splits_keep_regions_whole_and_hold_every_pair_of_signal_and_geometry():
    graph = mixed()
    pair = graph.y * len(GEOMETRIES) + graph.geometry
    for mask in (graph.train_mask, graph.val_mask, graph.test_mask):
        for split in range(mask.size(1)):
            inside = graph.region[mask[:, split]].unique()
            outside = graph.region[~mask[:, split]].unique()
            assert not set(inside.tolist()) & set(outside.tolist())
            assert pair[mask[:, split]].unique().numel() == 16
