"""What training may see of a graph: no test pair, no test label, and nothing to find them by."""

import dataclasses

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from sklearn.metrics import average_precision_score, roc_auc_score
from torch_geometric.data import Data

from argnn.data import load, split_links
from argnn.nn import GCN, LinkModel
from argnn.runs import problems
from argnn.runs.problems import pose_problem
from argnn.settings.run_config import LinkConfig
from argnn.train import node_scores

LINK = LinkConfig(ratio="80/5/15", spanning_forest=False, decoder="dot")


def blocks(labelled=True):
    """Two blocks of 60 nodes with dense inner and thin outer edges."""
    rng = np.random.default_rng(0)
    y = np.arange(120) // 60
    joined = np.triu(rng.random((120, 120)) < np.where(y[:, None] == y, 0.2, 0.03), k=1)
    fields = {"x": torch.from_numpy(rng.normal(size=(120, 5)))}
    if labelled:
        fields["y"] = torch.from_numpy(y)
    return load(Data(edge_index=torch.from_numpy(np.stack(joined.nonzero())), **fields))


GRAPH = blocks()
SPLIT = split_links(GRAPH.edge_index, 120, LINK.ratio, 2)


def as_set(pairs):
    return set(map(tuple, pairs.sort(dim=0).values.t().tolist()))


def tensors_within_reach(thing, name, seen=None):
    """Every tensor that an object holds, however deep, by the path to it."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return {}
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return {name: torch.from_numpy(thing)}
    if isinstance(thing, torch.Tensor):
        return {name: thing}
    if isinstance(thing, Data):
        parts = thing.to_dict()
    elif isinstance(thing, dict):
        parts = thing
    elif isinstance(thing, list | tuple | set):
        parts = dict(enumerate(thing))
    else:
        parts = getattr(thing, "__dict__", {})
    found = {}
    for key, part in parts.items():
        found |= tensors_within_reach(part, f"{name}.{key}", seen)
    return found


def all_within_reach(problem):
    visible = tensors_within_reach(problem.visible, "visible")
    return visible | tensors_within_reach(problem.task, "task")


def pairs_in(tensor):
    """The pairs that a tensor may mean: its columns, or keys ``low * N + high``."""
    if tensor.is_floating_point():
        return set()
    if tensor.dim() == 2 and tensor.size(0) == 2:
        return as_set(tensor)
    return {(key // 120, key % 120) for key in tensor.flatten().tolist()}


# -- no leak --------------------------------------------------------------------------------------


def test_what_is_in_reach_of_training():
    """The other tests look at all of this; a new tensor has to be thought about."""
    found = all_within_reach(pose_problem(GRAPH, 2, "cpu", LINK))
    assert found.keys() == {
        "visible.x",
        "visible.edge_index",
        "task.train_pairs",
        "task.val_pairs",
        "task.val_labels",
        "task.sampler.edge_keys",
        "task.y",
    }


def test_observed_graph_is_the_training_pairs():
    problem = pose_problem(GRAPH, 2, "cpu", LINK)
    assert sorted(problem.visible.keys()) == ["edge_index", "x"]
    observed = problem.visible.edge_index
    assert as_set(observed) == as_set(SPLIT.train)
    assert observed.size(1) == 2 * SPLIT.train.size(1)
    assert as_set(observed).isdisjoint(as_set(SPLIT.val) | as_set(SPLIT.test))
    assert torch.equal(problem.visible.x, GRAPH.x)


def test_no_test_pair_is_in_reach_of_training():
    found = all_within_reach(pose_problem(GRAPH, 2, "cpu", LINK))
    asked = as_set(SPLIT.test) | as_set(SPLIT.test_negatives)
    assert len(asked) == 2 * SPLIT.test.size(1) > 100
    for name, tensor in found.items():
        if name != "task.y":  # classes, not nodes; its range is below
            assert pairs_in(tensor).isdisjoint(asked), name
    assert set(found["task.y"].tolist()) == {0, 1}


def test_validation_pairs_are_in_reach_of_validation_only():
    found = all_within_reach(pose_problem(GRAPH, 2, "cpu", LINK))
    asked = as_set(SPLIT.val) | as_set(SPLIT.val_negatives)
    holders = {name for name, tensor in found.items() if pairs_in(tensor) & asked}
    assert holders - {"task.y"} == {"task.val_pairs"}
    assert as_set(found["task.val_pairs"]) == asked


def test_no_tensor_in_reach_is_a_window_on_a_larger_one():
    """The memory behind a slice may hold what the slice leaves out."""
    for name, tensor in all_within_reach(pose_problem(GRAPH, 2, "cpu", LINK)).items():
        own = tensor.numel() * tensor.element_size()
        assert tensor.untyped_storage().nbytes() == own, name


def other_test_pairs(split):
    """The same split with other test pairs, some of them no edges."""
    pairs = torch.combinations(torch.arange(120)).t()
    taken = as_set(split.train) | as_set(split.val) | as_set(split.val_negatives)
    free = [k for k, pair in enumerate(pairs.t().tolist()) if tuple(pair) not in taken]
    order = torch.randperm(len(free), generator=torch.Generator().manual_seed(0))
    chosen = pairs[:, torch.tensor(free)[order]]
    count = split.test.size(1)
    return dataclasses.replace(
        split, test=chosen[:, :count], test_negatives=chosen[:, count : 2 * count]
    )


def test_other_test_pairs_leave_all_in_reach_as_it_was(monkeypatch):
    first = all_within_reach(pose_problem(GRAPH, 2, "cpu", LINK))
    changed = other_test_pairs(SPLIT)
    assert as_set(changed.test) != as_set(SPLIT.test)
    monkeypatch.setattr(problems, "split_links", lambda *_, **__: changed)
    # Nor is anything read off the whole graph: here all of its edges are others.
    elsewhere = GRAPH.clone()
    elsewhere.edge_index = (GRAPH.edge_index + 1) % 120
    second = all_within_reach(pose_problem(elsewhere, 2, "cpu", LINK))
    assert first.keys() == second.keys()
    assert [name for name in first if not torch.equal(first[name], second[name])] == []


# -- what is divided ------------------------------------------------------------------------------


def test_number_of_the_split_is_its_seed():
    seen = [as_set(pose_problem(GRAPH, s, "cpu", LINK).visible.edge_index) for s in range(4)]
    for split, edges in enumerate(seen):
        assert edges == as_set(split_links(GRAPH.edge_index, 120, LINK.ratio, split).train)
    assert len(set(map(frozenset, seen))) == 4


@pytest.mark.parametrize(("ratio", "share"), [("85/5/10", 10), ("80/5/15", 15)])
def test_ratio_reaches_the_split(ratio, share):
    problem = pose_problem(GRAPH, 0, "cpu", dataclasses.replace(LINK, ratio=ratio))
    pairs = GRAPH.edge_index.size(1) // 2
    scores = problem.judge.scores(*untrained(problem), "test")
    assert scores["count"] == 2 * (share * pairs // 100)
    assert problem.visible.edge_index.size(1) == 2 * (
        pairs - 5 * pairs // 100 - share * pairs // 100
    )


def test_spanning_forest_reaches_the_split():
    ring = torch.stack([torch.arange(120), (torch.arange(120) + 1) % 120])
    chords = torch.stack([torch.arange(60), torch.arange(60) + 60])
    graph = load(Data(x=GRAPH.x, edge_index=torch.cat([ring, chords], dim=1)))
    parts = {}
    for forest in (False, True):
        link = LinkConfig("70/10/20", forest, "dot")
        edges = pose_problem(graph, 0, "cpu", link).visible.edge_index.numpy()
        matrix = coo_array((np.ones(edges.shape[1]), tuple(edges)), shape=(120, 120))
        parts[forest] = connected_components(matrix, directed=False)[0]
    assert parts[True] == 1 < parts[False]


def test_labels_are_there_for_the_homophily_only_where_the_graph_has_them():
    assert torch.equal(pose_problem(GRAPH, 0, "cpu", LINK).task.y, GRAPH.y)
    assert pose_problem(blocks(labelled=False), 0, "cpu", LINK).task.y is None


# -- judges ---------------------------------------------------------------------------------------


def untrained(problem):
    torch.manual_seed(0)
    model = LinkModel(GCN(5, 8, 8), "dot").eval()
    with torch.no_grad():
        return model, model(problem.visible.x, problem.visible.edge_index)


def slow_logits(outputs, pairs):
    return [(outputs[i].double() @ outputs[j].double()).item() for i, j in pairs.t().tolist()]


@pytest.mark.parametrize("part", ["test", "val"])
def test_judge_of_links_scores_the_pairs_it_holds(part):
    problem = pose_problem(GRAPH, 2, "cpu", LINK)
    model, outputs = untrained(problem)
    scores = problem.judge.scores(model, outputs, part)
    edges = slow_logits(outputs, getattr(SPLIT, part))
    non_edges = slow_logits(outputs, getattr(SPLIT, f"{part}_negatives"))
    label = [1] * len(edges) + [0] * len(non_edges)
    assert scores["auroc"] == pytest.approx(roc_auc_score(label, edges + non_edges))
    assert scores["auprc"] == pytest.approx(average_precision_score(label, edges + non_edges))
    assert scores["count"] == len(label)
    right = sum(z >= scores["threshold"] for z in edges)
    right += sum(z < scores["threshold"] for z in non_edges)
    # Logits in float32 may fall on the other side of a threshold that is one of them.
    assert scores["accuracy"] == pytest.approx(right / len(label), abs=1.5 / len(label))
    assert scores.keys() == {
        *("auroc", "auprc", "accuracy", "threshold", "hits@10", "hits@50", "mrr", "count")
    }
    assert (scores["hits@50"] is None) == (len(non_edges) < 50)
    if part == "test":
        assert problem.judge.main_test_score(model, outputs) == scores["auroc"]


def test_threshold_is_chosen_on_validation_pairs():
    problem = pose_problem(GRAPH, 2, "cpu", LINK)
    model, outputs = untrained(problem)
    other = dataclasses.replace(problem.judge, pairs=other_test_pairs(SPLIT))
    test, val = (problem.judge.scores(model, outputs, part) for part in ("test", "val"))
    assert test["threshold"] == val["threshold"]
    changed = other.scores(model, outputs, "test")
    assert changed["threshold"] == test["threshold"]
    assert changed["auroc"] != test["auroc"]
    logits = torch.tensor(slow_logits(outputs, torch.cat([SPLIT.val, SPLIT.val_negatives], 1)))
    label = torch.arange(logits.numel()) < SPLIT.val.size(1)
    best = max(((logits >= t) == label).double().mean().item() for t in logits)
    assert val["accuracy"] == pytest.approx(max(best, 0.5))


def test_node_problem_shows_features_and_edges_only():
    graph = load("mixed")
    problem = pose_problem(graph, 3, "cpu")
    assert sorted(problem.visible.keys()) == ["edge_index", "x"]
    assert torch.equal(problem.visible.edge_index, graph.edge_index)
    logits = torch.randn(graph.num_nodes, graph.class_count, generator=torch.Generator())
    for part in ("test", "val"):
        mask = graph[f"{part}_mask"][:, 3]
        expected = dataclasses.asdict(node_scores(logits[mask], graph.y[mask]))
        scores = problem.judge.scores(None, logits, part)
        assert scores == {**expected, "absent_classes": list(expected["absent_classes"])}
        if part == "test":
            assert problem.judge.main_test_score(None, logits) == scores["f1"]


def test_judge_of_nodes_has_no_score_for_an_empty_test_set():
    graph = load("mixed")
    graph.test_mask = torch.zeros_like(graph.test_mask)
    judge = pose_problem(graph, 0, "cpu").judge
    logits = torch.zeros(graph.num_nodes, graph.class_count)
    assert judge.scores(None, logits, "test") is None
    assert judge.main_test_score(None, logits) is None
    assert judge.scores(None, logits, "val")["accuracy"] > 0
