"""Folds of a graph's own nodes: every labelled node is tested once, and no group is divided."""

import re

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from argnn.data import load
from argnn.data.graph_store.converting import convert
from argnn.data.splits import fold_splits
from argnn.data.synthetic import mixed
from argnn.errors import ConfigError, DataError

LABELS = torch.tensor([0] * 50 + [1] * 30 + [2] * 20 + [-1] * 5)


def by_number(masks):
    """The fold of each node in which it is tested, -1 for none."""
    _, _, test = masks
    return torch.where(test.any(1), test.long().argmax(1), -1)


@pytest.mark.parametrize("count", [3, 4, 5, 7])
def test_every_labelled_node_is_tested_once_and_the_next_fold_validates(count):
    train, val, test = fold_splits(LABELS, count, seed=0)
    known = LABELS >= 0
    assert torch.equal(test.sum(1), known.long())
    assert torch.equal(val.sum(1), known.long())
    assert torch.equal(
        train.long() + val.long() + test.long(), known.long()[:, None].expand(-1, count)
    )
    for split in range(count):
        assert torch.equal(val[:, split], test[:, (split + 1) % count])
    sizes = torch.stack([test[label == LABELS].sum(0) for label in range(3)])
    assert ((sizes - torch.tensor([[50], [30], [20]]) / count).abs() < 1).all()


def test_folds_depend_on_nothing_but_labels_and_seed():
    first, again, other = (by_number(fold_splits(LABELS, 5, seed)) for seed in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_no_group_is_in_two_parts_of_a_split():
    rng = np.random.default_rng(0)
    groups = torch.from_numpy(rng.integers(0, 17, size=len(LABELS)))
    masks = fold_splits(LABELS, 4, 0, groups)
    assert torch.equal(masks[2].sum(1), (LABELS >= 0).long())
    for split in range(4):
        held = [set(groups[mask[:, split]].tolist()) for mask in masks]
        assert all(held)
        assert not held[0] & held[1]
        assert not held[0] & held[2]
        assert not held[1] & held[2]


def folder(tmp_path, rows, header="id,a,site,label"):
    path = tmp_path / "tables"
    path.mkdir()
    (path / "nodes.csv").write_text("\n".join([header, *rows]))
    pairs = [f"n{i},n{(3 * i + 1) % len(rows)}" for i in range(len(rows))]
    (path / "edges.csv").write_text("\n".join(["source,target", *pairs]))
    return path


def usual_rows(count=24):
    return [f"n{i},{i / 7:.3f},s{i % 8},{'xy'[i % 3 == 0]}" for i in range(count)]


def test_column_of_groups_is_no_feature(tmp_path):
    path = folder(tmp_path, usual_rows())
    graph = load(path, folds=4, groups="site")
    assert graph.feature_names == ["a"]
    assert "column site: 8 groups, each in one fold; no feature" in graph.notes
    assert graph.split_rule == (
        "4 folds stratified by class of whole groups (site), drawn from all labels with seed 0; "
        "split k tests fold k, the next validates"
    )
    site = np.arange(24) % 8
    tested = by_number([graph[f"{part}_mask"] for part in ("train", "val", "test")]).numpy()
    assert len({(s, t) for s, t in zip(site, tested, strict=True)}) == 8
    plain = load(path, folds=4)
    assert len(plain.feature_names) == 1 + 8
    again = load(path, schema=graph.schema)
    assert torch.equal(again.x, graph.x)


def test_groups_of_unlabelled_nodes_may_be_missing(tmp_path):
    rows = usual_rows()
    rows[5], rows[6] = "n5,0.5,,", "n6,0.6,NA,"
    graph = load(folder(tmp_path, rows), folds=3, groups="site")
    assert not graph.train_mask[5:7].any()
    assert "column site: 8 groups, each in one fold; no feature" in graph.notes


@pytest.mark.parametrize("word", ["NA", "?", "n/a", "-"])
def test_words_for_missing_values_are_no_groups(tmp_path, word):
    rows = usual_rows()
    rows[5] = f"n5,0.5,{word},x"
    problem = f"nodes.csv, line 7, column site: '{re.escape(word)}' is no group, and a labelled"
    with pytest.raises(DataError, match=problem):
        load(folder(tmp_path, rows), folds=3, groups="site")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"folds": 4.5}, "must be at least 3"),
        ({"folds": 2}, "must be at least 3: one tests, one validates, the others train"),
        ({"groups": "site"}, "groups .* belong to folds"),
        ({"folds": 9}, "class y has 8 labelled nodes, too few for 9 folds"),
        ({"folds": 4, "groups": "sit"}, "nodes.csv: no column 'sit' for the groups; .*site"),
        ({"folds": 4, "groups": "label"}, "column label cannot hold the groups, too"),
        ({"folds": 4, "groups": "id"}, "column id cannot hold the groups, too"),
        ({"folds": 3, "groups": "few"}, "column few has 2 groups of labelled nodes, too few for 3"),
        ({"folds": 4, "groups": "gap"}, "nodes.csv, line 4, column gap: is empty"),
    ],
)
def test_what_cannot_be_folded_is_said(tmp_path, options, message):
    rows = [f"{row},{'pq'[i % 2]},{'' if i == 2 else i % 6}" for i, row in enumerate(usual_rows())]
    path = folder(tmp_path, rows, "id,a,site,label,few,gap")
    with pytest.raises((ConfigError, DataError), match=message) as raised:
        load(path, **options)
    assert "\n" not in str(raised.value)


def test_class_of_one_group_is_noted(tmp_path):
    rows = [f"n{i},{i / 7:.3f},s{i % 8},{'xy'[i % 8 == 0]}" for i in range(40)]
    graph = load(folder(tmp_path, rows), folds=4, groups="site")
    [note] = [note for note in graph.notes if "too few groups" in note]
    split = int(graph.test_mask[0].long().argmax())
    before = (split - 1) % 4  # where that group validates
    first, second = sorted((split, before))
    assert note == f"class y is in too few groups: split {first}, {second} trains without it"


def test_masks_of_the_source_are_replaced_and_that_is_said(small_npz, tmp_path):
    graph = load(small_npz(), folds=5)
    assert "the split of the source is replaced by 5 folds" in graph.notes
    assert graph.test_mask.shape == (90, 5)
    assert torch.equal(graph.test_mask.sum(1), torch.ones(90, dtype=torch.int64))
    rows = [f"{row},{'train' if i else 'nonsense'}" for i, row in enumerate(usual_rows())]
    wrong = load(folder(tmp_path, rows, "id,a,site,label,split"), folds=3)
    assert any("the splits were not read" in note for note in wrong.notes)


def test_groups_of_arrays(small_npz):
    groups = np.arange(90) % 11
    graph = load(small_npz(groups=groups), folds=4, groups="groups")
    tested = graph.test_mask.long().argmax(1).numpy()
    assert len(set(zip(groups, tested, strict=True))) == 11
    data = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y, city=[f"c{g}" for g in groups])
    again = load(data, folds=4, groups="city")
    assert torch.equal(again.test_mask, graph.test_mask)
    with pytest.raises(DataError, match="groups 'town': no such node attribute"):
        load(data, folds=4, groups="town")
    with pytest.raises(DataError, match="groups 'name': must hold one for each node"):
        load(Data(**data.to_dict(), name="town"), folds=4, groups="name")
    with pytest.raises(DataError, match="y must have shape"):
        load(Data(**{**data.to_dict(), "y": data.y[:80]}), folds=4, groups="city")
    data.city[3] = None
    with pytest.raises(DataError, match=r"graph, city\[3\]: is empty"):
        load(data, folds=4, groups="city")


@pytest.mark.parametrize("kind", ["regression", "multilabel"])
def test_targets_are_folded_without_their_values(kind):
    """Where there are no classes, folds know which nodes have targets, and nothing else."""
    graph = mixed()
    rng = np.random.default_rng(0)
    nodes = graph.num_nodes
    found = []
    for _ in range(2):
        y = rng.normal(size=(nodes, 2)) if kind == "regression" else rng.integers(0, 2, (nodes, 2))
        y = y.astype(np.float64)
        y[::10] = np.nan
        data = Data(x=graph.x, edge_index=graph.edge_index, y=torch.from_numpy(y))
        found.append(load(data, task=kind, folds=5))
    assert torch.equal(found[0].test_mask, found[1].test_mask)
    known = torch.arange(nodes) % 10 != 0
    assert torch.equal(found[0].test_mask.sum(1), known.long())
    assert found[0].split_rule.startswith("5 folds, drawn from all labels with seed 0")


def test_known_graphs_keep_their_splits():
    with pytest.raises(ConfigError, match="mixed has splits of its own"):
        load("mixed", folds=5)
    assert load(mixed(), folds=5).test_mask.size(1) == 5


def test_schema_and_folds_do_not_go_together(tmp_path):
    path = folder(tmp_path, usual_rows())
    with pytest.raises(ConfigError, match="folds are drawn for training"):
        load(path, folds=4, schema=load(path).schema)


def same_masks(one, other):
    return all(torch.equal(one[f"{p}_mask"], other[f"{p}_mask"]) for p in ("train", "val", "test"))


@pytest.mark.parametrize("streamed", [False, True])
def test_stores(tmp_path, monkeypatch, streamed):
    path = folder(tmp_path, usual_rows())
    if streamed:
        monkeypatch.setattr("argnn.data.graph_store.converting.STREAMED_FROM", 0)
    asked = {"folds": 4, "groups": "site"}
    direct = load(path, **asked)
    convert(path, tmp_path / "folded", **asked)
    stored = load(tmp_path / "folded", **asked)
    assert same_masks(direct, stored)
    assert stored.split_rule == direct.split_rule
    assert "column site: 8 groups, each in one fold; no feature" in stored.notes
    convert(path, tmp_path / "plain")
    drawn = load(tmp_path / "plain", folds=4)
    assert same_masks(drawn, load(path, folds=4))
    assert not any("replaced" in note for note in drawn.notes)
    with pytest.raises(ConfigError, match="convert the source with --folds 4 --groups site"):
        load(tmp_path / "plain", **asked)
    with pytest.raises(DataError, match="plain: class y has 8 labelled nodes, too few for 9 folds"):
        load(tmp_path / "plain", folds=9)
    replaced = load(tmp_path / "folded", folds=3)
    assert "the split of the source is replaced by 3 folds" in replaced.notes
