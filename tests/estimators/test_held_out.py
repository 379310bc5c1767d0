"""``score`` without a mask takes nodes that the model has not learned from."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier, ARGNNRegressor
from argnn.data import mixed
from argnn.errors import ConfigError, DataError, RunError
from argnn.files import with_digest
from argnn.runs.parallel import run_splits
from argnn.runs.prepare import Request, prepare
from argnn.store.run_folder import create_run
from argnn.store.seen_nodes import SeenNodes
from planted_targets import parts, planted_values

from .conftest import NAMES, planted

FAST = {"model": "gcn", "epochs": 8, "train_options": {"patience": 0}, "device": "cpu"}
HELD_OUT = "mask="


def fast(kind=ARGNNClassifier, **changes):
    return kind(**{**FAST, **changes})


def test_nodes_of_no_mask_are_scored(graph):
    train, val = (np.arange(first, 90, 4) for first in range(2))
    test = np.setdiff1d(np.arange(90), np.r_[train, val])
    clf = fast().fit(graph, train_mask=train, val_mask=val)
    assert clf.score(graph) == clf.score(graph, mask=test)
    assert clf.score(graph) != clf.score(graph, mask=np.arange(90))
    drawn = fast().fit(graph, train_mask=train)  # a part of them validates
    assert drawn.score(graph) == drawn.score(graph, mask=np.r_[val, test])


def test_labels_do_not_hide_the_graph(graph):
    """The training graph is known by features and edges, not by object or labels."""
    train = np.arange(0, 90, 2)
    clf = fast().fit(graph, train_mask=train)
    wrong = graph.clone()
    wrong.y[train] = (wrong.y[train] + 1) % 3
    copy = Data(x=wrong.x.clone(), edge_index=wrong.edge_index.flip(1), y=wrong.y)
    assert clf.score(copy) == clf.score(graph, mask=np.arange(1, 90, 2))


def test_all_nodes_of_another_graph(graph):
    clf = fast().fit(graph)
    other = planted(60, seed=5)
    assert clf.score(other) == clf.score(other, mask=np.arange(60))
    changed = graph.clone()
    changed.x[0, 0] += 1
    assert clf.score(changed) == clf.score(changed, mask=np.arange(90))
    unlinked = Data(x=graph.x, edge_index=torch.empty(2, 0, dtype=torch.long), y=graph.y)
    assert clf.score(unlinked) == clf.score(unlinked, mask=np.arange(90))


def test_no_node_is_left(graph):
    clf = fast().fit(graph)
    message = "all labelled nodes were trained or validated on: name the nodes to score with mask="
    with pytest.raises(ConfigError, match=message):
        clf.score(graph)
    assert 0 <= clf.score(graph, mask=np.arange(90)) <= 1


def test_labels_that_came_later_are_held_out(graph):
    y = [None if i % 3 == 0 else label for i, label in enumerate(graph.y.tolist())]
    clf = fast().fit(graph, y)
    assert clf.score(graph, graph.y) == clf.score(graph, graph.y, mask=np.arange(0, 90, 3))


def test_numbers_and_several_labels():
    graph, values = planted_values(90)
    train, test = np.arange(0, 90, 2), np.arange(1, 90, 2)
    reg = fast(ARGNNRegressor).fit(graph, values, train_mask=train)
    assert reg.score(graph, values) == reg.score(graph, values, mask=test)
    with pytest.raises(ConfigError, match=HELD_OUT):
        fast(ARGNNRegressor).fit(graph, values).score(graph, values)
    labels = (values > 0).long()
    clf = fast().fit(graph, labels, train_mask=train)
    assert clf.score(graph, labels) == clf.score(graph, labels, mask=test)


@pytest.mark.parametrize("number", [90, 91, 96, 97])
def test_it_is_known_after_saving(tmp_path, number):
    graph = planted(number)
    train = np.arange(0, number, 4)
    clf = fast().fit(graph, train_mask=train)
    clf.save(tmp_path / "model")
    again = argnn.load(tmp_path / "model")
    assert again.score(graph) == clf.score(graph, mask=np.delete(np.arange(number), train))
    for part in ("train", "val"):
        assert torch.equal(getattr(again.seen_, part), getattr(clf.seen_, part))
        document = json.loads((tmp_path / "model/model.json").read_text())
        assert len(document["facts"]["seen"][part]) <= 4 * (number / 24 + 1)


def rewritten(folder, change):
    path = folder / "model.json"
    document = json.loads(path.read_text())
    document.pop("digest")
    change(document["facts"])
    path.write_text(json.dumps(with_digest(document)))


def test_older_folders(tmp_path, graph):
    fast().fit(graph, train_mask=range(0, 90, 2)).save(tmp_path / "model")
    rewritten(tmp_path / "model", lambda facts: facts.pop("seen"))
    clf = argnn.load(tmp_path / "model")
    with pytest.raises(ConfigError, match="an older version saved this model.* mask="):
        clf.score(graph)
    assert clf.score(planted(60)) == clf.score(planted(60), mask=np.arange(60))
    assert 0 <= clf.score(graph, mask=[1]) <= 1
    clf.save(tmp_path / "again")
    assert argnn.load(tmp_path / "again").seen_ is None


@pytest.mark.parametrize(
    "wrong",
    [
        *(
            {"train": "AAAA"},
            {"val": "*"},
            {"train": 3},
            {"ids": "*"},
            {"ids": "AAA="},
            {"count": "x"},
            {"count": -9},
        ),
        {"count": 10**15},
    ],
)
def test_damaged_folders_are_refused(tmp_path, graph, wrong):
    fast(epochs=1).fit(graph).save(tmp_path / "model")
    rewritten(tmp_path / "model", lambda facts: facts["seen"].update(wrong))
    with pytest.raises(RunError, match="does not describe a fitted model"):
        argnn.load(tmp_path / "model")


OPTIONS = [
    {},
    {"standardize": True},
    {"features": "degree"},
    {"features": "laplacian", "standardize": True},
    {"weight": "weight"},
]


def tables():
    graph = planted(60)
    ends = graph.edge_index.numpy()
    edges = pd.DataFrame({"source": ends[0], "target": ends[1], "weight": 1.5})
    nodes = pd.DataFrame({"id": [f"n{i}" for i in range(60)], "a": graph.x[:, 0], "b": 1 / 3})
    nodes["town"] = [("Bonn", "Jena", None)[i % 3] for i in range(60)]
    nodes["label"] = NAMES[graph.y]
    nodes.loc[4, "a"] = None
    edges["source"], edges["target"] = ("n" + edges[name].astype(str) for name in edges.columns[:2])
    return edges, nodes


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_of_tables_are_recognised(options, directed):
    """Reading by the stored schema gives the bits that training saw."""
    edges, nodes = tables()
    train, test = range(0, 60, 2), range(1, 60, 2)
    model = "argnn" if directed else "gcn"
    fields = {"directed": directed, "trial": False, "epochs": 1, "load_options": options}
    clf = fast(model=model, **fields).fit((edges, nodes), train_mask=train)
    assert clf.score((edges, nodes)) == clf.score((edges, nodes), mask=test)
    moved = edges.sample(frac=1, random_state=0)
    assert clf.score((moved, nodes)) == clf.score((edges, nodes), mask=test)
    loaded = argnn.data.load((edges, nodes), directed=directed, **options)
    if "weight" not in options:
        assert clf.score(loaded) == clf.score((edges, nodes), mask=test)


def test_run_of_the_command_line(tmp_path, one_thread):
    graph = mixed()
    request = Request("mixed", "gcn", split="0,2", overrides=("epochs=3",), workers=1, device="cpu")
    plan = prepare(request)
    run_splits(plan, create_run(tmp_path / "run", plan.config.to_json()))
    for split in (0, 2):
        clf = argnn.load(tmp_path / "run", split=split)
        seen = (graph.train_mask | graph.val_mask)[:, split]
        assert clf.score("mixed") == clf.score("mixed", mask=~seen)
        assert torch.equal(clf.seen_.train | clf.seen_.val, seen)
        assert torch.equal(clf.seen_.train, graph.train_mask[:, split])
        names = dict(clf.predict_frame("mixed")["split"].value_counts())
        assert names["test"] == int(graph.test_mask[:, split].sum())


def test_run_of_numbers(tmp_path, one_thread):
    graph, values = planted_values(90)
    masks = {name: mask.numpy() for name, mask in parts(90).items()}
    path = tmp_path / "numbers.npz"
    y = values[:, 0].double().numpy()
    np.savez(path, x=graph.x.numpy(), edge_index=graph.edge_index.numpy(), y=y, **masks)
    fields = {"task": "regression", "overrides": ("epochs=3",), "workers": 1, "device": "cpu"}
    plan = prepare(Request(str(path), "gcn", **fields))
    run_splits(plan, create_run(tmp_path / "run", plan.config.to_json()))
    reg = argnn.load(tmp_path / "run")
    assert reg.score(path) == reg.score(path, mask=masks["test_mask"])


def test_content_is_digested_in_pieces(monkeypatch):
    """The number does not depend on how many rows are read at once."""
    graph = mixed()
    masks = graph.train_mask[:, 0], graph.val_mask[:, 0]
    before = SeenNodes.of(graph, *masks)
    monkeypatch.setattr("argnn.data.graph_store.array_files.CHUNK", 7)
    assert SeenNodes.of(graph, *masks).digest == before.digest
    assert before.is_of(graph)
    assert not before.is_of(planted(90))


class TestTablesWithIds:
    """The same customers in another order, with a changed cell or with one more, are the same."""

    @pytest.fixture
    def tables(self):
        rng = np.random.default_rng(0)
        ids = [f"c-{n}" for n in range(60)]
        values = {"id": ids, "size": rng.normal(size=60), "label": rng.choice(["a", "b"], 60)}
        edges = {"source": ids, "target": [ids[n] for n in rng.integers(0, 60, 60)]}
        return pd.DataFrame(edges), pd.DataFrame(values)

    @pytest.fixture
    def clf(self, tables, tmp_path):
        ARGNNClassifier("mlp", epochs=3).fit(tables, train_mask=range(40)).save(tmp_path / "model")
        return argnn.load(tmp_path / "model")

    def changes(self, nodes):
        other, more = nodes.copy(), nodes.iloc[[0]].assign(id="new")
        other.loc[3, "size"] += 1
        return [nodes.sample(frac=1, random_state=0), other, pd.concat([nodes, more])]

    def test_nodes_that_were_learned_from_are_left_out(self, tables, clf):
        edges, nodes = tables
        for changed in self.changes(nodes):
            unseen = [number >= 40 for number in self.numbers(changed)]
            expected = clf.score((edges, changed), mask=np.array(unseen))
            assert clf.score((edges, changed)) == expected

    def test_training_nodes_alone_are_refused(self, tables, clf):
        edges, nodes = tables
        some = nodes.iloc[:40]
        inside = edges["source"].isin(some["id"]) & edges["target"].isin(some["id"])
        with pytest.raises(ConfigError, match="all labelled nodes were trained or validated on"):
            clf.score((edges[inside], some))

    def numbers(self, nodes):
        return [int(name[2:]) if name != "new" else 99 for name in nodes["id"]]


def test_labels_in_the_order_of_their_table(graph):
    """An index that is that of the node table is no list of ids, though it may look like one."""
    rng = np.random.default_rng(0)
    nodes = pd.DataFrame({"id": rng.permutation(90), "size": rng.normal(size=90)})
    nodes = nodes.sort_values("size")
    y = (nodes["size"] > 0).map({True: "large", False: "small"})
    edges = pd.DataFrame({"source": nodes["id"], "target": nodes["id"].iloc[::-1].to_numpy()})
    clf = ARGNNClassifier("mlp", epochs=60).fit((edges, nodes), y)
    assert clf.predict_frame()["known"].tolist() == y.tolist()


def save_masks(path, graph, *, y=True, **changes):
    masks = {name: np.zeros(90, dtype=bool) for name in ("train_mask", "val_mask", "test_mask")}
    masks["train_mask"][:40] = masks["val_mask"][40:60] = masks["test_mask"][60:] = True
    masks.update(changes)
    labels = {"y": graph.y.numpy()} if y else {}
    np.savez(path, x=graph.x.numpy(), edge_index=graph.edge_index.numpy(), **labels, **masks)


def test_masks_that_cannot_be_used_are_refused(tmp_path, graph):
    """They were left out without a word, and test nodes were trained on."""
    path, everyone = tmp_path / "graph.npz", np.ones(90, dtype=bool)
    clf = ARGNNClassifier("gcn", epochs=1, device="cpu")
    for name, wrong in (("val_mask", everyone), ("test_mask", np.arange(60, 90))):
        save_masks(path, graph, **{name: wrong})
        with pytest.raises(DataError, match=f"graph: the masks cannot be used: .*{name}"):
            clf.fit(path)
        clf.fit(path, train_mask=range(40), val_mask=range(40, 60))
        assert clf.predict(path).shape == (90,)


def test_masks_of_a_file_hold_for_labels_that_are_given_apart(tmp_path, graph):
    path = tmp_path / "graph.npz"
    save_masks(path, graph, y=False)
    clf = ARGNNClassifier("gcn", epochs=1, device="cpu").fit(path, graph.y)
    assert clf.counts_ == {"training nodes": 40, "validation nodes": 20}
    assert clf.predict_frame()["split"].tolist() == ["train"] * 40 + ["val"] * 20 + ["test"] * 30


@pytest.mark.parametrize("name", ["train_mask", "val_mask"])
def test_masks_of_a_graph_must_leave_its_test_nodes_out(graph, name):
    masks = {part: torch.zeros(90, dtype=torch.bool) for part in ("train_mask", "val_mask")}
    masks["train_mask"][:40] = masks["val_mask"][40:60] = masks[name][70] = True
    tested = torch.arange(90) >= 60
    both = Data(x=graph.x, edge_index=graph.edge_index, y=graph.y, test_mask=tested, **masks)
    with pytest.raises(DataError, match=f"node 70 is in {name} and in test_mask of the graph"):
        ARGNNClassifier("gcn", epochs=1, device="cpu").fit(both)
