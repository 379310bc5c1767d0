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
    with pytest.raises(ConfigError, match=r"a graph is a name, a path, .*\(got int\)"):
        load(3)


@pytest.mark.parametrize("name", ["graph.csv", "graph.graphml", "folder/graph"])
def test_missing_file_says_what_is_supported(name):
    with pytest.raises(DataError, match=r"no such file \(supported graph files are \.npz, "):
        load(name)


@pytest.mark.parametrize(("name", "got"), [("graph.gexf", "'.gexf'"), ("./graph", "no suffix")])
def test_unsupported_file_says_what_is_supported(name, got, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text("a b")
    with pytest.raises(DataError, match=rf"supported graph files are \.npz, .*\(got {got}\)"):
        load(name)


def test_folder_says_what_is_supported(tmp_path):
    with pytest.raises(DataError, match=r"needs edges\.csv or edges\.parquet"):
        load(tmp_path)


def test_folder_with_two_formats_is_ambiguous(tmp_path):
    for name in ("edges.csv", "edges.parquet"):
        (tmp_path / name).write_text("")
    with pytest.raises(DataError, match=r"holds edges\.csv and edges\.parquet; keep one"):
        load(tmp_path)


def test_registered_graph_has_names_and_a_schema():
    graph = load("mixed")
    assert graph.node_ids == list(range(graph.num_nodes))
    assert len(graph.feature_names) == graph.x.size(1) == graph.schema["num_features"]
    assert graph.schema["label"]["classes"] == graph.class_names
    assert graph.notes == []


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
