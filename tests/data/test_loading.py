import pytest
import torch
from torch_geometric.data import Data

from argnn.data import DATASETS, load, mixed
from argnn.data.loading import _EMBEDDED
from argnn.errors import ConfigError, DataError


@pytest.mark.parametrize("name", ["mixed", "MIXED", "Mi-xed"])
def test_name_is_folded(name):
    assert load(name).name == "mixed"


@pytest.mark.parametrize("name", ["digits", "mixed"])
def test_embedded_graphs_keep_the_contract(name, cache):
    graph, spec = load(name, directed=True), DATASETS[name]
    assert graph.edge_rule.endswith("(the source is undirected)")
    assert graph.edge_index.size(1) == 2 * spec.edges
    assert graph.train_mask.shape == (spec.nodes, 10)
    assert graph.split_rule == spec.split_rule
    assert graph.class_count == len(graph.class_names) == spec.classes
    assert not cache.exists(), "embedded data needs no files"


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ConfigError, match="unknown data set 'coar'; did you mean 'cora'"):
        load("coar")


def test_other_type_is_refused():
    with pytest.raises(ConfigError, match="a name, a path or a PyG Data object .got int."):
        load(3)


@pytest.mark.parametrize("name", ["graph.csv", "graph.graphml", "folder/graph"])
def test_unsupported_file_says_what_is_supported(name):
    with pytest.raises(DataError, match=r"supported graph files are \.npz"):
        load(name)


def test_folder_says_what_is_supported(tmp_path):
    with pytest.raises(DataError, match=r"supported graph files are \.npz \(got a folder\)"):
        load(tmp_path)


def test_data_object_is_validated_and_copied():
    source = Data(x=torch.ones(10, 1), edge_index=torch.tensor([[0], [1]]), y=torch.arange(10) % 2)
    graph = load(source)
    assert graph.name == "graph"
    assert graph.edge_index.size(1) == 2
    assert source.edge_index.size(1) == 1
    source.x[3, 0] = float("inf")
    with pytest.raises(DataError, match=r"graph: x\[3, 0\] is not finite"):
        load(source)


def test_registered_graph_with_wrong_counts_is_refused(monkeypatch):
    monkeypatch.setitem(_EMBEDDED, "mixed", lambda: mixed(regions_per_kind=12))
    with pytest.raises(DataError, match="mixed: expected 1648 nodes"):
        load("mixed")
