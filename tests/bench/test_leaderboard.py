"""From rows to the document; what it prints is in ``test_leaderboard_formats.py``."""

import json
import math

import numpy as np
import pytest

from argnn.bench.leaderboard import leaderboard, merged
from argnn.errors import ConfigError, RunError
from result_rows import failed, finished, node_scores, several


def first_board(rows, score="f1", **options):
    [board, *_] = leaderboard(rows, scores=[score], **options)["boards"]
    return board


def cell(board, method, column="cora"):
    [found] = [c for c in board["cells"] if (c["method"], c["column"]) == (method, column)]
    return found


def test_mean_and_interval_by_formula():
    values = [0.8, 0.9, 0.85]
    found = cell(first_board(several({"cora": {"argnn": values}})), "argnn")
    assert found["mean"] == pytest.approx(np.mean(values))
    assert found["sd"] == pytest.approx(np.std(values, ddof=1))
    assert found["interval"] == pytest.approx(
        4.30265 * np.std(values, ddof=1) / math.sqrt(3), rel=1e-5
    )
    assert (found["n"], found["expected"], found["complete"]) == (3, 3, True)


def test_splits_and_seeds_are_runs_of_one_mean():
    rows = [
        finished(0.1 * (split + 1) + 0.01 * seed, split=split, seed=seed)
        for split in range(3)
        for seed in range(2)
    ]
    found = cell(first_board(rows), "argnn")
    assert (found["n"], found["mean"]) == (6, pytest.approx(0.205))
    # Seeds of a split share its test nodes: the interval is that of three means, not of six runs.
    assert found["interval"] == pytest.approx(4.30265 * 0.1 / math.sqrt(3), rel=1e-5)


def test_seeds_of_one_split_are_the_runs():
    rows = [finished(value, seed=seed) for seed, value in enumerate([0.8, 0.9, 0.85])]
    found = cell(first_board(rows), "argnn")
    assert found["interval"] == pytest.approx(4.30265 * 0.05 / math.sqrt(3), rel=1e-5)


def test_tests_compare_splits_and_not_seeds():
    rows = [
        finished(
            0.5 + 0.1 * split + 0.01 * seed + 0.02 * (method == "argnn") * (split + 1),
            method=method,
            split=split,
            seed=seed,
        )
        for split in range(3)
        for seed in range(4)
        for method in ("argnn", "gcn")
    ]
    [found] = first_board(rows)["paired"]
    assert (found["pairs"], found["difference"]) == (3, pytest.approx(0.04))
    assert found["wilcoxon"]["p"] == pytest.approx(0.25)  # three signs, all alike


@pytest.mark.parametrize(
    ("nodes", "seeds", "note"),
    [
        (183, 1, "183 nodes and 1 seed;"),
        (999, 4, "999 nodes and 4 seeds;"),
        (183, 5, None),
        (1000, 1, None),
    ],
)
def test_small_graph_with_few_seeds_is_noted(nodes, seeds, note):
    rows = [
        finished(0.5, method=m, split=split, seed=seed)
        for m in ("argnn", "gcn")
        for split in range(2)
        for seed in range(seeds if m == "gcn" else 5)
    ]
    for row in rows:
        row["config"]["graph"] = {"nodes": nodes}
    found = [text for text in first_board(rows)["notes"] if "seed" in text]
    assert found == [] if note is None else [note in text for text in found] == [True]


def marks(means):
    board = first_board(several({"cora": {name: [mean] * 2 for name, mean in means.items()}}))
    return {c["method"]: c["mark"] for c in board["cells"]}


def test_best_and_second_best():
    assert marks({"argnn": 0.7, "gcn": 0.9, "mlp": 0.8}) == {
        "argnn": None,
        "gcn": "best",
        "mlp": "second",
    }


def test_means_that_are_printed_alike_share_a_mark():
    # 80.001 and 80.004 are both printed as 80.00.
    found = marks({"argnn": 0.80001, "gcn": 0.80004, "mlp": 0.7, "gat": 0.7, "sage": 0.6})
    assert found == {"argnn": "best", "gcn": "best", "mlp": "second", "gat": "second", "sage": None}


def test_a_lone_method_is_not_the_best():
    assert marks({"argnn": 0.7}) == {"argnn": None}


def test_failed_and_missing_runs_are_counted_and_not_marked():
    rows = several({"cora": {"argnn": [0.9, 0.9, 0.9], "gcn": [0.99, 0.99], "mlp": [0.5] * 3}})
    rows += [failed(method="gcn", split=2), failed(method="gat", split=0)]
    rows += [failed(method="gat", split=1, error="RuntimeError: a\n  b")]
    board = first_board(rows)
    gcn, gat = cell(board, "gcn"), cell(board, "gat")
    assert (gcn["n"], gcn["expected"], gcn["failed"], gcn["complete"]) == (2, 3, 1, False)
    assert (gat["n"], gat["expected"], gat["failed"], gat["mean"]) == (0, 3, 2, None)
    assert [gcn["mark"], gat["mark"], cell(board, "argnn")["mark"]] == [None, None, "best"]
    assert cell(board, "mlp")["mark"] == "second"
    assert (
        "gcn on cora: split 2 failed (DivergenceError: the loss is not finite)." in board["notes"]
    )
    assert "gat on cora: split 1 failed (RuntimeError: a b)." in board["notes"]


def test_a_method_that_was_not_run_somewhere():
    rows = several({"cora": {"argnn": [0.9] * 2, "gcn": [0.8] * 2}, "texas": {"argnn": [0.7] * 2}})
    found = cell(first_board(rows), "gcn", "texas")
    assert (found["n"], found["runs"], found["expected"]) == (0, 0, 2)


def test_directed_graphs_and_other_ratios_are_columns_of_their_own():
    rows = [
        finished(0.5, data="squirrel", directed=True),
        finished(0.4, data="squirrel"),
        finished(0.6, data="/data/mine.npz"),
        finished(0.9, data="cora"),
    ]
    names = [column["name"] for column in first_board(rows)["columns"]]
    assert names == ["cora", "squirrel", "squirrel, directed", "/data/mine.npz"]
    rows = [finished(0.9, task="link", ratio=ratio) for ratio in ("85/5/10", "80/5/15")]
    board = first_board(rows, "auroc")
    assert [column["name"] for column in board["columns"]] == ["cora, 80/5/15", "cora, 85/5/10"]


def test_methods_come_in_the_order_of_the_registry():
    rows = [
        finished(0.5, method=method)
        for method in ("unheard of", "mlp", "argnn (paper)", "gcn", "argnn")
    ]
    names = [method["name"] for method in first_board(rows)["methods"]]
    assert names == ["argnn", "argnn (paper)", "gcn", "mlp", "unheard of"]


def test_absent_classes_are_noted():
    rows = [
        finished(node_scores(0.5, absent=absent), data="texas", split=split)
        for split, absent in enumerate([[1], [], [1, 4]])
    ]
    notes = first_board(rows)["notes"]
    assert "texas: no test node of class 1 in splits 0, 2." in notes
    assert "texas: no test node of class 4 in split 2." in notes


def test_a_score_that_no_method_has_on_a_split_is_noted_and_not_expected():
    rows = [
        finished(node_scores(0.5 + 0.1 * split, auroc=None if split == 1 else 0.7), split=split)
        for split in range(3)
    ]
    board = first_board(rows, "auroc")
    found = cell(board, "argnn")
    assert (found["n"], found["expected"], found["complete"]) == (2, 2, True)
    assert board["notes"] == ["cora: auroc is not defined on split 1."]
    assert cell(first_board(rows, "f1"), "argnn")["n"] == 3


def test_a_score_that_one_method_lacks_makes_its_mean_incomplete():
    rows = several({"cora": {"gcn": [0.5] * 3}})
    rows += [finished(node_scores(0.5, auroc=None if s else 0.7), split=s) for s in range(3)]
    found = cell(first_board(rows, "auroc"), "argnn")
    assert (found["n"], found["expected"], found["complete"]) == (1, 3, False)


def test_rows_without_test_nodes_have_no_score():
    row = {**finished(0.5), "test": None}
    found = cell(first_board([row, finished(0.5, split=1)]), "argnn")
    assert (found["n"], found["expected"]) == (1, 1)


def test_mixed_settings_are_noted_but_seeds_are_no_mixture():
    rows = several({"cora": {"argnn": [0.5, 0.6]}}) + several({"cora": {"argnn": [0.5]}}, seed=1)
    assert first_board(rows)["notes"] == []
    rows[1]["settings"] = "another"
    assert first_board(rows)["notes"] == ["argnn on cora: splits were run with different settings."]


def test_published_figures_stand_beside_ours_with_protocol():
    rows = several({"cora": {"argnn": [0.5], "argnn (paper)": [0.5]}, "texas": {"gcn": [0.5]}})
    published = first_board(rows)["published"]
    assert [entry["model"] for entry in published] == ["argnn", "gcn"]
    ours = published[0]
    assert ours["values"]["cora"]["value"] == 0.8683
    assert ours["values"]["cora"]["interval"] == 0.0084
    assert ours["values"].keys() == {"cora", "texas"}
    assert "best test score" in ours["protocol"]
    assert first_board(rows, published=False)["published"] == []


def test_several_published_sources_of_one_model():
    board = first_board(several({"texas": {"gcn": [0.5]}}), "accuracy")
    sources = {entry["source"]: entry["values"]["texas"] for entry in board["published"]}
    assert len(sources) == 4
    assert sources["H2GCN paper (Zhu et al. 2020)"] == {
        "value": 0.5946,
        "interval": None,
        "sd": 0.0525,
        "remark": None,
    }


def test_paired_tests_run_over_the_common_runs_of_each_data_set():
    rows = several(
        {
            "cora": {"argnn": [0.9, 0.8, 0.7], "gcn": [0.8, 0.8], "mlp": [0.5, 0.4, 0.45]},
            "texas": {"gcn": [0.5, 0.5]},
        }
    )
    board = first_board(rows)
    assert [(e["column"], e["rival"], e["pairs"]) for e in board["paired"]] == [
        ("cora", "gcn", 2),
        ("cora", "mlp", 3),
    ]
    gcn, mlp = board["paired"]
    assert gcn["difference"] == pytest.approx(0.05)
    # One difference is zero, the other one has a sign: both signs are as likely.
    assert gcn["wilcoxon"] == {"statistic": 0.0, "p": 1.0, "holm": 1.0}
    # Three of one sign: 2 of 8 assignments; two tests on this data set.
    assert mlp["wilcoxon"]["p"] == pytest.approx(0.25)
    assert mlp["wilcoxon"]["holm"] == pytest.approx(0.5)


def test_another_reference():
    rows = several({"cora": {"argnn": [0.9, 0.8], "gcn": [0.8, 0.6], "mlp": [0.1, 0.2]}})
    board = first_board(rows, reference="gcn")
    assert [entry["rival"] for entry in board["paired"]] == ["argnn", "mlp"]
    assert board["paired"][0]["difference"] == pytest.approx(-0.15)
    with pytest.raises(ConfigError, match="'gnc' has no rows; did you mean 'gcn'"):
        first_board(rows, reference="gnc")


def test_a_study_of_the_package_has_its_own_reference():
    rows = several({"cora": {"2 layers": [0.9, 0.8], "3 layers": [0.8, 0.6]}})
    studied = [{**row, "experiment": "ablate-depth"} for row in rows]
    assert first_board(studied)["reference"] == "3 layers"
    assert first_board([*studied[:-1], rows[-1]])["reference"] is None


def test_no_reference_no_paired_tests():
    board = first_board(several({"cora": {"gcn": [0.8, 0.6], "mlp": [0.1, 0.2]}}))
    assert board["reference"] is None
    assert board["paired"] == []


RANKED = {
    "cora": {"argnn": [0.9] * 2, "gcn": [0.8] * 2, "mlp": [0.7] * 2},
    "texas": {"argnn": [0.6] * 2, "gcn": [0.5] * 2, "mlp": [0.6] * 2},
    "actor": {"argnn": [0.3] * 2, "gcn": [0.35] * 2, "mlp": [0.2] * 2},
}


def test_average_ranks_by_hand():
    ranks = first_board(several(RANKED))["ranks"]
    # argnn 1, 1.5, 2; gcn 2, 3, 1; mlp 3, 1.5, 3
    assert ranks["ranks"] == {"argnn": 1.5, "gcn": 2.0, "mlp": 2.5}
    assert ranks["columns"] == ["cora", "actor", "texas"]
    assert ranks["critical_difference"] == pytest.approx(2.343 * math.sqrt(12 / 18), rel=1e-3)
    assert ranks["alike"] == [["argnn", "gcn", "mlp"]]
    # With ties, the statistic is divided by 1 - sum(t^3 - t) / (N k (k^2 - 1)); t = 2 once.
    plain = 12 * 3 / (3 * 4) * (1.5**2 + 2.0**2 + 2.5**2 - 3 * 16 / 4)
    statistic = plain / (1 - 6 / (3 * 3 * 8))
    assert ranks["friedman"]["statistic"] == pytest.approx(statistic)
    assert ranks["friedman"]["p"] == pytest.approx(math.exp(-statistic / 2))


def test_ranks_leave_incomplete_data_sets_out():
    rows = [row for row in several(RANKED) if (row["data"], row["split"]) != ("cora", 1)]
    rows += [finished(0.9, method="argnn", split=1), finished(0.9, method="mlp", split=1)]
    ranks = first_board(rows)["ranks"]
    assert (ranks["columns"], ranks["left_out"]) == (["actor", "texas"], ["cora"])
    assert ranks["ranks"] == {"argnn": 1.75, "gcn": 2.0, "mlp": 2.25}


@pytest.mark.parametrize(
    ("data", "methods", "counts"),
    [(["cora"], ["argnn", "gcn", "mlp"], "3 methods, 1 data set"), (RANKED, ["gcn", "mlp"], "2 m")],
)
def test_too_little_for_ranks_gives_a_reason(data, methods, counts):
    table = {name: {m: RANKED[name][m] for m in methods} for name in data}
    ranks = first_board(several(table))["ranks"]
    assert counts in ranks["message"]
    assert "ranks" not in ranks


def test_comparability_is_over_the_runs_with_an_oracle():
    rows = [
        finished(0.80, oracle=0.86, split=0),
        finished(0.84, oracle=0.88, split=1),
        finished(0.20, split=2),
        finished(0.50, method="gcn"),
    ]
    [found] = first_board(rows)["comparability"]
    assert found["n"] == 2
    assert found["validation_selected"] == pytest.approx(0.82)
    assert found["oracle (test-selected)"] == pytest.approx(0.87)
    assert found["selection"] == pytest.approx(0.05)
    assert found["published"] == 0.8683
    assert "best test score" in found["protocol"]


def test_the_oracle_enters_nothing_else():
    rows = several({"cora": {"argnn": [0.5, 0.6], "gcn": [0.4, 0.5]}})
    oracles = [
        finished(row["test"], oracle=0.99, method=row["method"], split=row["split"]) for row in rows
    ]
    with_oracle, without = leaderboard(oracles), leaderboard(rows)
    for board in (*with_oracle["boards"], *without["boards"]):
        board.pop("comparability")
    assert with_oracle == without
    assert "0.99" not in json.dumps(with_oracle)


def test_efficiency():
    rows = several({"cora": {"argnn": [0.5, 0.6], "mlp": [0.5]}})
    rows[1] = {**rows[1], "seconds": 6.0, "epochs_run": 30, "peak_memory_mib": 700.0}
    rows[2]["peak_device_memory_mib"] = 90.0
    [cost] = leaderboard(rows)["efficiency"]
    argnn, mlp = cost["rows"]
    assert argnn["seconds"] == 4.0
    assert argnn["seconds_per_epoch"] == pytest.approx((2 / 20 + 6 / 30) / 2)
    assert (argnn["epochs"], argnn["parameters"], argnn["n"]) == (25.0, 1234, 2)
    assert (argnn["peak_memory_mib"], argnn["memory_of"]) == (700.0, "process")
    assert (mlp["peak_memory_mib"], mlp["memory_of"]) == (90.0, "device")
    [published] = cost["published"]
    assert (published["model"], published["seconds_per_epoch"]) == ("argnn", 0.22)
    assert published["memory_gb"] == 1.4


def test_main_scores_of_every_task():
    rows = [finished(0.5), finished(0.5, task="link")]
    found = [(board["task"], board["score"]) for board in leaderboard(rows)["boards"]]
    assert found == [
        *(("node", score) for score in ("f1", "accuracy", "auroc", "auprc")),
        *(("link", score) for score in ("auroc", "auprc", "accuracy")),
    ]
    [board] = leaderboard(rows, scores=["hits@10"])["boards"]
    assert (board["task"], board["cells"][0]["mean"]) == ("link", 0.5)
    assert {board["task"] for board in leaderboard(rows, task="node")["boards"]} == {"node"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"task": "edge"},
            r"--task must be one of node, link, regression, multilabel",
        ),
        ({"scores": ["auroq"]}, "unknown --score 'auroq'; did you mean 'auroc'"),
        ({"task": "node", "scores": ["mrr"]}, "unknown --score 'mrr'"),
        ({"task": "link"}, "no rows of the task link"),
        ({"scores": ["mrr"]}, "no rows of a task with the score mrr"),
    ],
    ids=str,
)
def test_impossible_choices(options, message):
    with pytest.raises(ConfigError, match=message):
        leaderboard([finished(0.5)], **options)


def test_no_rows():
    with pytest.raises(ConfigError, match="no rows"):
        leaderboard([])


def test_which_code_made_the_rows():
    rows = [finished(0.5), finished(0.5, split=1), {**finished(0.5, split=2), "git_changed": True}]
    assert [(m["git_changed"], m["rows"]) for m in leaderboard(rows)["made_by"]] == [
        (False, 2),
        (True, 1),
    ]


def test_rows_of_several_files_are_merged():
    first = [finished(0.5), failed(split=1), finished(0.7, split=2)]
    second = [finished(0.6, split=1), failed(split=2), finished(0.5), finished(0.9, split=3)]
    found = merged([("a", first), ("b", second)])
    assert {row["split"]: row["test"]["f1"] for row in found} == {0: 0.5, 1: 0.6, 2: 0.7, 3: 0.9}


def test_contradicting_files_are_refused():
    with pytest.raises(RunError, match="b: argnn on cora, split 0, seed 0 is in a too, with other"):
        merged([("a", [finished(0.5)]), ("b", [finished(0.6)])])


def test_one_name_for_two_models_is_refused():
    rows = [finished(0.5, method="ours"), finished(0.5, method="ours", model="gcn", split=1)]
    with pytest.raises(RunError, match="'ours' stands for two models, ours and gcn"):
        leaderboard(rows)


@pytest.mark.parametrize("value", [1.5, -0.1, "high", True, [0.5]])
def test_what_is_no_score_is_refused(value):
    row = finished(node_scores(0.5, f1=value))
    with pytest.raises(RunError, match="a: argnn on cora, split 0, seed 0: f1 must be from 0 to 1"):
        merged([("a", [row])])


def test_an_unknown_task_is_refused():
    with pytest.raises(RunError, match="a: task must be one of node, link"):
        merged([("a", [{**finished(0.5), "task": "graph"}])])


# -- twins ----------------------------------------------------------------------------------------


def with_twins(value, others, **who):
    """A row whose test set has 60 nodes with a twin and 40 without."""
    twins = {"test": 100, "with_twin": 60}
    return {**finished(value, **who), "twins": twins, "test_without_twins": node_scores(others)}


def twin_rows():
    """Two methods on a graph with twins, the better one worse without; one on a graph without."""
    rows = []
    for split in range(3):
        where = {"data": "chameleon", "split": split}
        rows.append(with_twins(0.80 + 0.01 * split, 0.40, **where))
        rows.append(with_twins(0.70 + 0.01 * split, 0.45, method="gcn", **where))
        plain = finished(0.9, data="mixed", split=split)
        rows.append({**plain, "twins": {"test": 100, "with_twin": 0}})
    return rows


def test_a_graph_with_twins_has_a_second_column():
    board = first_board(twin_rows())
    names = [column["name"] for column in board["columns"]]
    assert names == ["chameleon", "chameleon, without twins", "mixed"]
    assert [column["without_twins"] for column in board["columns"]] == [False, True, False]
    found = {m: cell(board, m, "chameleon, without twins") for m in ("argnn", "gcn")}
    assert [found[m]["mean"] for m in found] == [pytest.approx(0.40), pytest.approx(0.45)]
    assert [found[m]["mark"] for m in found] == ["second", "best"]
    assert [cell(board, m, "chameleon")["mark"] for m in found] == ["best", "second"]
    [paired] = [p for p in board["paired"] if p["column"] == "chameleon, without twins"]
    assert paired["difference"] == pytest.approx(-0.05)
    assert any(note.startswith("chameleon, without twins: 60.0 % of") for note in board["notes"])


def test_a_part_is_no_data_set_of_its_own():
    rows = [
        with_twins(0.5, 0.4, data=data, method=method, split=split, oracle=0.6)
        for data in ("chameleon", "squirrel")
        for method in ("argnn", "gcn", "mlp")
        for split in range(2)
    ]
    document = leaderboard(rows, scores=["f1"])
    [board] = document["boards"]
    assert board["ranks"]["columns"] == ["chameleon", "squirrel"]
    assert {entry["column"] for entry in board["comparability"]} == {"chameleon", "squirrel"}
    for entry in board["published"]:
        assert not any("twins" in name for name in entry["values"])
    costs = [row["column"] for cost in document["efficiency"] for row in cost["rows"]]
    assert set(costs) == {"chameleon", "squirrel"}
    json.dumps(document, allow_nan=False)


def test_old_rows_and_failures_have_no_score_without_twins():
    old = [finished(0.9, data="chameleon", method="mlp", split=split) for split in range(3)]
    broken = [failed(data="chameleon", method="gat", split=0)]
    board = first_board([*twin_rows(), *old, *broken])
    found = cell(board, "mlp", "chameleon, without twins")
    assert (found["n"], found["expected"], found["complete"]) == (0, 3, False)
    assert cell(board, "gat", "chameleon, without twins")["failed"] == 1
    assert sum("gat on chameleon" in note for note in board["notes"]) == 1


def test_without_twins_tables_are_as_before():
    rows = several({"cora": {"argnn": [0.8, 0.9], "gcn": [0.7, 0.9]}})
    counted = [{**row, "twins": {"test": 100, "with_twin": 0}} for row in rows]
    assert leaderboard(counted) == leaderboard(rows)


def test_a_score_without_twins_must_be_one():
    with pytest.raises(RunError, match="f1 must be from 0 to 1"):
        merged([("a.jsonl", [with_twins(0.5, 7.0)])])
