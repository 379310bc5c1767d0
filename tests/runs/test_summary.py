import math

import numpy as np
import pytest

from argnn.runs.summary import SCORES, interval_half_width, statistic, summary

# Quantiles of Student's t at 0.975 from a printed table, by number of values.
T_TABLE = {2: 12.706, 3: 4.303, 5: 2.776, 10: 2.262}


@pytest.mark.parametrize("count", T_TABLE)
def test_interval_follows_the_printed_table(count):
    values = np.random.default_rng(count).normal(size=count)
    expected = T_TABLE[count] * np.std(values, ddof=1) / math.sqrt(count)
    assert interval_half_width(values.tolist()) == pytest.approx(expected, rel=1e-3)


def test_statistic_skips_what_is_missing():
    assert statistic([0.5, None, 0.7]) == {
        "mean": pytest.approx(0.6),
        "sd": pytest.approx(math.sqrt(0.02)),
        "interval": pytest.approx(12.7062 * math.sqrt(0.02) / math.sqrt(2), rel=1e-4),
        "n": 2,
    }
    assert statistic([0.5]) == {"mean": 0.5, "sd": None, "interval": None, "n": 1}
    assert statistic([None]) == {"mean": None, "sd": None, "interval": None, "n": 0}


def row(split, accuracy, auroc=0.9, absent=()):
    scores = {
        **dict.fromkeys(SCORES["node"], accuracy),
        "auroc": auroc,
        "absent_classes": list(absent),
    }
    return {"task": "node", "split": split, "test": scores, "val": scores, "seconds": 2.0}


def test_summary_names_failures_and_absent_classes():
    found = summary(
        [row(0, 0.5), row(1, 0.7, None, [2]), {"task": "node", "split": 2, "error": "bad"}]
    )
    assert (found["splits"], found["failed"], found["seconds"]) == (2, 1, 4.0)
    assert found["test"]["accuracy"]["mean"] == pytest.approx(0.6)
    assert found["test"]["auroc"] == {"mean": 0.9, "sd": None, "interval": None, "n": 1}
    assert found["absent_classes"] == {"1": [2]}


def test_summary_without_a_finished_split():
    found = summary([{"task": "node", "split": 2, "error": "bad"}])
    assert found["test"]["f1"]["mean"] is None


def test_summary_without_test_nodes():
    found = summary([{**row(0, 0.5), "test": None}])
    assert found["test"]["f1"]["n"] == 0
    assert found["val"]["accuracy"]["mean"] == 0.5


def folded(split, count, accuracy, confusion):
    scores = {**row(split, accuracy), "config": {"columns": {"folds": 3}}}
    scores["test"] = {**scores["test"], "count": count}
    names, unknown = ["a", "b"], [0.0, 0.0]
    test = dict.fromkeys(("precision", "recall", "f1", "average_precision"), unknown)
    test |= {"support": [1, 1], "confusion": confusion}
    return {**scores, "classes": {"names": names, "rare": 0, "test": test}}


def test_folds_of_unequal_size_are_pooled():
    rows = [folded(0, 3, 1.0, [[1, 0], [0, 2]]), folded(1, 1, 0.0, [[0, 1], [0, 0]])]
    found = summary(rows)["pooled"]  # a: one of two found; b: both, and one too many
    assert found == {
        "count": 4,
        "accuracy": pytest.approx(0.75),
        "f1": pytest.approx((2 * 2 / 3 + 2 * 4 / 5) / 4),
        "f1_macro": pytest.approx((2 / 3 + 4 / 5) / 2),
    }
    many = [folded(0, 3, 1.0, None), folded(1, 1, 0.0, None)]  # more than 50 classes
    assert summary(many)["pooled"] == {"count": 4, "accuracy": pytest.approx(0.75)}
    assert "pooled" not in summary(rows[:1])
    assert "pooled" not in summary([row(0, 0.5), row(1, 0.6)])
