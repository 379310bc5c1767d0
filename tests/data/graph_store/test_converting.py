"""A converted graph is the graph of its source, bit for bit."""

import errno
import os
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
import torch

from argnn.data import adjacency_of, load, open_store
from argnn.data.adjacency import Adjacency
from argnn.data.graph_store.converting import convert
from argnn.data.graph_store.opening import check_store, store_of
from argnn.errors import ConfigError, DataError, RunError
from argnn.files import tensors_digest
from argnn.runs.pool import graph_tensors
from argnn.runs.prepare import graph_facts


def same_rows(first, second):
    assert (first is None) == (second is None)
    if first is not None:
        assert np.array_equal(first.start, second.start)
        assert np.array_equal(first.other, second.other)
        assert first.other.dtype == second.other.dtype
        assert (first.weight is None) == (second.weight is None)
        assert first.weight is None or np.array_equal(first.weight, second.weight)


@pytest.fixture
def kept(tmp_path, same_graph):
    """Convert a graph, and check that the store gives the same as its source."""

    def check(source, **options):
        store = convert(source, tmp_path / "store", **options)
        check_store(store)
        asked = {"time", "weight", "directed", "task", "root"}
        graph = load(source, **options)
        stored = load(store.path, **{k: v for k, v in options.items() if k in asked})
        same_graph(graph, stored)
        assert graph_facts(graph) == graph_facts(stored)
        adjacency = adjacency_of(stored)
        assert adjacency is store_of(stored).adjacency
        weight = graph.get("edge_weight")
        expected = Adjacency.from_edges(graph.edge_index, graph.num_nodes, weight)
        same_rows(adjacency.into, expected.into)
        same_rows(adjacency.out, expected.out)
        return stored

    return check


@pytest.mark.parametrize("name", ["mixed", "digits"])
def test_embedded_graphs(kept, name):
    kept(name)


def test_array_file_with_several_splits(kept, small_npz):
    assert kept(small_npz()).train_mask.shape == (90, 3)


def test_directions(kept, small_npz):
    stored = kept(small_npz(), directed=True)
    assert adjacency_of(stored).out is not None


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weight": "strength"},
        {"time": "day"},
        {"time": "day", "weight": "strength"},
        {"weight": "strength", "directed": True},
        {"time": "day", "weight": "strength", "directed": True},
        {"features": "degree", "drop": ("color",), "standardize": True},
        {"features": "laplacian", "row_normalize": True},
        {"label": "color", "drop": ("label",)},
    ],
    ids=str,
)
def test_tables(kept, table_folder, options):
    stored = kept(table_folder, **options)
    assert stored.node_ids == ["ann", "bob", "cid", "dee", "eve, the last"]


@pytest.mark.parametrize(("task", "column"), [("regression", "height"), ("multilabel", "color")])
def test_other_targets(kept, table_folder, task, column):
    stored = kept(table_folder, label=column, task=task, drop=("label",))
    assert stored.target_kind == task


def test_no_labels_and_integer_ids(kept, edge_list):
    stored = kept(edge_list, features="degree")
    assert stored.class_count == 0
    assert stored.node_ids == sorted(stored.node_ids) != list(range(stored.num_nodes))


def test_mixed_ids_of_networkx(kept):
    graph = nx.Graph([(1, "a"), ("a", 10**20)])
    assert kept(graph, features="degree").node_ids == [1, "a", 10**20]


def test_no_edges(kept):
    edges = torch.empty(2, 0, dtype=torch.int64)
    assert kept((np.ones((4, 2)), edges)).edge_index.shape == (2, 0)


def test_too_few_labels_for_a_split(tmp_path, small_npz):
    path = small_npz(y=np.where(np.arange(90) < 1, 0, -1))
    with np.load(path) as fields:
        few = {name: fields[name] for name in fields if not name.endswith("mask")}
    np.savez(path, **few)
    store = convert(path, tmp_path / "store")
    assert not load(store.path, draw_split=False).train_mask.any()
    with pytest.raises(DataError, match="store: was converted without a split, for lack of labels"):
        load(store.path)


def test_split_that_was_drawn_is_left_out_on_request(tmp_path, small_npz, same_graph):
    path = small_npz()
    with np.load(path) as fields:
        np.savez(path, **{name: fields[name] for name in fields if not name.endswith("mask")})
    store = convert(path, tmp_path / "store")
    same_graph(load(path, draw_split=False), load(store.path, draw_split=False))
    same_graph(load(path), load(store.path))


def test_a_model_reads_the_store_as_its_source(tmp_path, table_folder, same_graph):
    store = convert(table_folder, tmp_path / "store")
    schema = load(table_folder).schema
    same_graph(load(table_folder, schema=schema), load(store.path, schema=schema))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directed": True}, "was converted without --directed, so say no --directed here"),
        ({"row_normalize": True}, "was converted without this --row-normalize"),
        ({"features": "degree"}, "was converted without this --features"),
        ({"label": "color"}, "was converted without this --label"),
        ({"node_id": "color"}, "was converted without this --id"),
        ({"drop": ("color",)}, "was converted without this --drop"),
        ({"standardize": False}, "was converted with standardized numbers; convert the source ag"),
        ({"decimal": ","}, "was converted without this --decimal"),
        ({"month_first": True}, "was converted without this --month-first"),
        ({"weight": "strength"}, "no edge weights 'strength'; convert with --weight"),
        ({"time": "day"}, "no times of edges; convert the source with --time"),
        ({"task": "regression"}, "holds no targets of --task regression"),
    ],
    ids=str,
)
def test_option_that_the_store_cannot_honour_is_refused(tmp_path, table_folder, options, message):
    store = convert(table_folder, tmp_path / "store")
    with pytest.raises((ConfigError, DataError), match=f"store: {message}"):
        load(store.path, **options)


def test_store_of_numbers_as_they_were(tmp_path, table_folder):
    store = convert(table_folder, tmp_path / "store", standardize=False)
    with pytest.raises(ConfigError, match="was converted without this --standardize"):
        load(store.path, standardize=True)
    assert load(store.path).feature_rule == load(store.path, standardize=False).feature_rule


def test_options_of_the_conversion_may_be_said_again(tmp_path, table_folder, same_graph):
    options = {"features": "degree", "label": "color", "drop": ("label",), "node_id": "name"}
    options |= {"standardize": True, "directed": True}
    store = convert(table_folder, tmp_path / "store", **options)
    same_graph(load(table_folder, **options), load(store.path, **options))


def test_weights_and_times_count_only_where_asked_for(tmp_path, table_folder):
    store = convert(table_folder, tmp_path / "store", weight="strength", time="day")
    graph = load(store.path)
    assert "edge_weight" not in graph
    assert "edge_time" not in graph
    assert graph.notes[-2:] == [
        "edge weights ignored (not asked for)", "times of edges ignored (not asked for)",
    ]  # fmt: skip
    assert "times kept" not in graph.edge_rule
    adjacency = adjacency_of(graph)
    assert adjacency.into.weight is None
    assert graph_facts(graph)["digest"] == tensors_digest(graph_tensors(graph))


def test_store_of_other_rules_is_refused_by_a_model(tmp_path, table_folder):
    schema = load(table_folder).schema
    store = convert(table_folder, tmp_path / "store", drop=("color",))
    message = "store: its features were made by other rules .num_features. than those of the model"
    with pytest.raises(DataError, match=message):
        load(store.path, schema=schema)


def test_a_changed_graph_is_no_longer_that_of_the_store(tmp_path, small_npz):
    graph = load(convert(small_npz(), tmp_path / "store").path)
    known = graph_facts(graph)["digest"]
    graph.y = graph.y.clone()
    assert graph_facts(graph)["digest"] == known  # computed, and the same
    graph.y[0] = 2 - graph.y[0]
    assert graph_facts(graph)["digest"] != known
    graph.edge_index = graph.edge_index[:, 1:]
    assert store_of(graph) is None
    assert adjacency_of(graph).num_edges == graph.edge_index.size(1)


def test_changes_in_memory_do_not_reach_the_disk(tmp_path, small_npz):
    store = convert(small_npz(), tmp_path / "store")
    load(store.path).x.zero_()
    check_store(store)


def test_existing_folder_is_replaced_only_by_force(tmp_path, small_npz):
    store = tmp_path / "store"
    convert(small_npz(), store)
    with pytest.raises(RunError, match="store: is there already; --force replaces it"):
        convert("mixed", store)
    assert open_store(store).num_nodes == 90
    assert convert("mixed", store, force=True).num_nodes == 1648
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("")
    with pytest.raises(RunError, match="mine: is no graph store, so --force does not replace it"):
        convert("mixed", tmp_path / "mine", force=True)
    (tmp_path / "link").symlink_to(store)
    with pytest.raises(RunError, match="link: is a symbolic link"):
        convert("mixed", tmp_path / "link", force=True)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["link", "mine", "small.npz", "store"]


def test_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    convert("digits", tmp_path / "old")
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr("argnn.data.graph_store.array_files.npy.write_array_header_1_0", full)
    for name in ("new", "old"):
        with pytest.raises(OSError, match=r"No space left on device: .*into_start.npy"):
            convert("mixed", tmp_path / name, force=True)
    assert sorted(tmp_path.rglob("*")) == before
    assert load(tmp_path / "old").name == "digits"


def test_what_a_killed_conversion_left_is_removed_by_the_next(tmp_path, small_npz):
    left = tmp_path / ".store.writing"
    (left / "again").mkdir(parents=True)
    (left / "x.npy").write_bytes(b"half")
    convert(small_npz(), tmp_path / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["small.npz", "store"]


def test_ctrl_c_while_a_store_is_replaced_keeps_the_old_one(tmp_path, monkeypatch):
    store, replace = tmp_path / "store", Path.replace
    convert("digits", store)
    stops = iter([True])

    def interrupted(path, target):
        if path.name == ".store.writing" and next(stops, False):
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        convert("mixed", store, force=True)
    assert load(store).name == "digits"
    assert list(tmp_path.iterdir()) == [store]


def test_a_store_that_a_kill_left_without_its_name_gets_it_back(tmp_path):
    store = tmp_path / "store"
    convert("digits", store)
    store.rename(tmp_path / ".store.replaced")  # and here came the kill
    with pytest.raises(RunError, match="store: is there already; --force replaces it"):
        convert("mixed", store)
    assert load(store).name == "digits"
    assert list(tmp_path.iterdir()) == [store]
    store.rename(tmp_path / ".store.replaced")
    convert("mixed", store, force=True)
    assert load(store).name == "mixed"
    assert list(tmp_path.iterdir()) == [store]
