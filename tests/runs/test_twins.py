"""Scores of the test nodes without a twin: from the judge to the summary, and what inspect says."""

import dataclasses
import json

import pytest
import torch

from argnn.bench.experiments.cells import outcomes
from argnn.data import load
from argnn.data.inspect import inspect_graph
from argnn.runs.problems import pose_problem
from argnn.runs.summary import summary, without_twins
from argnn.settings.run_config import LinkConfig
from argnn.train import node_scores
from planted_twins import COUNTS, OTHERS, write_twins
from result_rows import finished
from result_rows import node_scores as scores_of

#: Share of test nodes with a twin in per cent, by the review that found them.
REVIEWED = {
    ("chameleon", False): 50,
    ("chameleon", True): 67,
    ("squirrel", False): 40,
    ("squirrel", True): 62,
}


@pytest.fixture
def graph(tmp_path):
    return load(str(write_twins(tmp_path / "twins.npz")))


def logits(graph, seed=0):
    shape = (graph.num_nodes, graph.class_count)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def twin_scores(graph, split):
    return pose_problem(graph, split, "cpu").judge.twin_scores(logits(graph))


def test_judge_scores_the_nodes_without_a_twin(graph):
    found = twin_scores(graph, 0)
    assert found["twins"] == COUNTS[0]
    expected = dataclasses.asdict(node_scores(logits(graph)[OTHERS[0]], graph.y[OTHERS[0]]))
    expected["absent_classes"] = list(expected["absent_classes"])
    assert found["test_without_twins"] == expected
    assert expected["count"] == 7


def test_a_split_without_twins_has_a_count_and_no_scores(graph):
    assert twin_scores(graph, 1) == {"twins": COUNTS[1]}
    assert twin_scores(load("mixed"), 0)["twins"]["with_twin"] == 0


def test_nothing_is_scored_where_every_test_node_has_a_twin(graph):
    graph.test_mask[OTHERS[0], 0] = False
    expected = {"twins": {"test": 8, "with_twin": 8}, "test_without_twins": None}
    assert twin_scores(graph, 0) == expected


def test_links_have_no_twins(graph):
    link = LinkConfig("85/5/10", spanning_forest=False, decoder="dot")
    assert pose_problem(graph, 0, "cpu", link).judge.twin_scores(logits(graph)) == {}


def test_twins_are_found_without_labels_and_not_shown_to_training(graph):
    problem, counts = pose_problem(graph, 0, "cpu"), twin_scores(graph, 0)["twins"]
    assert sorted(problem.visible.keys()) == ["edge_index", "x"]
    assert not any("twin" in name for name in vars(problem.task))
    graph.y[graph.test_mask[:, 0]] = 1 - graph.y[graph.test_mask[:, 0]]
    assert twin_scores(graph, 0)["twins"] == counts


# -- rows -----------------------------------------------------------------------------------------


def row(split, value, others=None, **who):
    """A row of three kinds: with twins, without any, or of an older version."""
    found = finished(value, split=split, **who)
    if others == "old":
        return found
    if others is None:
        return {**found, "twins": {"test": 10, "with_twin": 0}}
    twins = {"test": 10, "with_twin": 4}
    return {**found, "twins": twins, "test_without_twins": scores_of(others)}


def test_summary_is_over_all_splits_that_say():
    found = summary([row(0, 0.9, 0.5), row(1, 0.7), row(2, 0.1, "old")])
    assert found["twins"] == {"test": 20, "with_twin": 4}
    # A split without twins counts with all its test nodes, an old row not at all.
    assert found["test_without_twins"]["accuracy"]["n"] == 2
    assert found["test_without_twins"]["accuracy"]["mean"] == pytest.approx(0.6)
    assert found["test"]["accuracy"]["n"] == 3


def test_summary_without_twins_has_no_scores_of_them():
    assert "twins" not in summary([row(0, 0.9, "old")])
    found = summary([row(0, 0.9), row(1, 0.8)])
    assert found["twins"] == {"test": 20, "with_twin": 0}
    assert "test_without_twins" not in found


def test_where_every_test_node_has_a_twin_the_score_is_missing():
    found = {**row(0, 0.9, 0.5), "test_without_twins": None}
    assert without_twins(found) is None
    assert summary([found])["test_without_twins"]["f1"]["mean"] is None


def test_outcomes_of_a_bench():
    rows = [row(0, 0.9, 0.5), row(1, 0.7, 0.3), row(0, 0.6, "old", method="gcn")]
    argnn, gcn = outcomes(rows, "f1")
    assert argnn["test"]["mean"] == pytest.approx(0.8)
    assert argnn["test_without_twins"]["mean"] == pytest.approx(0.4)
    assert "test_without_twins" not in gcn


# -- inspect --------------------------------------------------------------------------------------


def test_inspect_counts_twins_of_all_splits(tmp_path):
    report = inspect_graph(str(write_twins(tmp_path / "twins.npz")))
    found = report["twins"]
    assert (found["test"], found["with_twin"]) == (18, 8)
    assert found["share"] == pytest.approx(8 / 18)
    assert found["same_class"] == 1.0
    assert json.loads(json.dumps(found)) == found
    [warning] = [text for text in report["warnings"] if "twin" in text]
    assert warning.startswith("8 of 18 test nodes over all splits (44.4 %) have a twin")
    assert "100 % are of its class" in warning


def test_inspect_compares_classes_of_validation_nodes_only(graph, monkeypatch):
    for name in ("train_mask", "val_mask", "test_mask"):
        graph[name] = graph[name][:, :1]
    monkeypatch.setattr("argnn.data.inspect.load_with_or_without_split", lambda *_, **__: graph)
    graph.y[graph.test_mask[:, 0]] = 0
    assert inspect_graph("twins")["twins"]["same_class"] == 1.0
    graph.y[12] = 1  # one of the eight validation nodes with a training twin
    assert inspect_graph("twins")["twins"]["same_class"] == pytest.approx(7 / 8)
    graph.y[10] = 1  # one of the two training twins of that node
    assert inspect_graph("twins")["twins"]["same_class"] == pytest.approx(7.5 / 8)


def test_inspect_says_nothing_where_there_are_no_twins_or_splits(tmp_path, graph):
    report = inspect_graph("mixed")
    assert report["twins"]["with_twin"] == 0
    assert not any("twin" in warning for warning in report["warnings"])
    (tmp_path / "web.txt").write_text("1 2\n2 3\n")
    assert inspect_graph(str(tmp_path / "web.txt"))["twins"] is None


@pytest.mark.slow
@pytest.mark.parametrize(("data", "directed"), REVIEWED)
def test_share_of_twins_is_that_of_the_review(data, directed, benchmark_root):
    found = inspect_graph(data, root=str(benchmark_root), directed=directed)["twins"]
    assert round(100 * found["share"]) == REVIEWED[data, directed]
    assert found["same_class"] > 0.975
