import itertools
import math

import numpy as np
import pytest
from scipy.stats import wilcoxon

from argnn.bench.leaderboard.compare import (
    alike,
    average_ranks,
    critical_difference,
    friedman,
    holm,
    paired_comparison,
    paired_t,
    signed_rank,
    with_holm,
)


def enumerated(differences):
    """The two-sided p-value of the signed-rank test by trying every assignment of signs."""
    values = [abs(value) for value in differences if value != 0]
    ranks = [
        (sum(other < value for other in values) + sum(other <= value for other in values) + 1) / 2
        for value in values
    ]
    positive = sum(r for r, d in zip(ranks, [d for d in differences if d], strict=True) if d > 0)
    smaller = min(positive, sum(ranks) - positive)
    sums = [
        sum(r for r, sign in zip(ranks, signs, strict=True) if sign)
        for signs in itertools.product([0, 1], repeat=len(ranks))
    ]
    below = sum(total <= smaller + 1e-9 for total in sums) / len(sums)
    return smaller, min(1.0, 2 * below)


@pytest.mark.parametrize(
    "differences",
    [
        [0.3, 0.1, -0.2, 0.5, 0.4],
        [1, 1, 1, -1, 2, 2, -2, 3],
        [0, 0, 1, -1, 2, 0, 5],
        [1],
        [-1, -2, -3, -4, -5, -6],
        [2, -2, 2, -2],
        [1, 2, 3, 4, 5, 6, 7, 8, 9, -10, 10],
    ],
    ids=str,
)
def test_signed_rank_equals_enumeration(differences):
    statistic, p = signed_rank(differences)
    expected, chance = enumerated(differences)
    assert statistic == expected
    assert p == pytest.approx(chance, abs=1e-12)


@pytest.mark.parametrize("count", [5, 10, 30, 45])
def test_signed_rank_equals_scipy_without_ties(count):
    differences = np.random.default_rng(count).normal(0.3, 1.0, size=count)
    found = wilcoxon(differences, method="exact")
    assert signed_rank(differences.tolist()) == pytest.approx((found.statistic, found.pvalue))


def test_signed_rank_of_ten_wins_by_hand():
    # 2 of the 1024 assignments of signs are as extreme.
    assert signed_rank([0.01 * k for k in range(1, 11)]) == (0.0, pytest.approx(2 / 1024))


def test_signed_rank_sees_ties_through_rounding_of_floats():
    # One test node of 37: the same difference, up to the last bits of a float.
    steps = [30 / 37 - 29 / 37, 20 / 37 - 19 / 37, 11 / 37 - 10 / 37, 25 / 37 - 26 / 37]
    assert len({abs(step) for step in steps}) > 1
    assert signed_rank(steps) == signed_rank([1, 1, 1, -1])


def test_signed_rank_without_a_difference():
    assert signed_rank([0.0, 0.0, 0.0]) == (0.0, 1.0)


def test_paired_t_equals_its_formula():
    first, second = [0.9, 0.8, 0.85, 0.95], [0.85, 0.82, 0.8, 0.85]
    differences = np.subtract(first, second)
    statistic = differences.mean() / (differences.std(ddof=1) / math.sqrt(4))
    found, p = paired_t(first, second)
    assert found == pytest.approx(statistic)
    # With 3 degrees of freedom the distribution function of Student's t has a closed form.
    u = abs(statistic) / math.sqrt(3)
    assert p == pytest.approx(1 - 2 / math.pi * (math.atan(u) + u / (1 + u**2)))


@pytest.mark.parametrize(("shift", "p"), [(0.0, 1.0), (0.1, 0.0)])
def test_paired_t_of_equal_differences(shift, p):
    values = [0.1, 0.2, 0.3, 0.7]
    assert paired_t([value + shift for value in values], values) == (None, p)


def test_holm_textbook_example():
    # Holm (1979) stops at the first p-value that is too large; the largest are carried along.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


def test_holm_leaves_missing_values_out_of_the_count():
    assert holm([None, 0.02, None, 0.03]) == [None, pytest.approx(0.04), None, pytest.approx(0.04)]


def test_paired_comparison_uses_common_runs_only():
    ours = {(0, 0): 0.9, (1, 0): 0.8, (2, 0): 0.7, (0, 1): 0.1}
    rival = {(2, 0): 0.65, (0, 0): 0.8, (1, 0): 0.8, (3, 0): 1.0}
    found = paired_comparison(ours, rival)
    assert found["pairs"] == 3
    assert found["equal"] == 1
    assert found["difference"] == pytest.approx(0.05)
    assert found["interval"] == pytest.approx(4.30265 * 0.05 / math.sqrt(3), rel=1e-5)
    assert found["wilcoxon"] == {"statistic": 0.0, "p": pytest.approx(0.5)}
    assert found["t"]["statistic"] == pytest.approx(math.sqrt(3))


@pytest.mark.parametrize(
    ("rival", "pairs", "difference"), [({(0, 0): 0.5}, 1, 0.25), ({(4, 4): 0.5}, 0, None)]
)
def test_too_few_common_runs_give_no_p_value(rival, pairs, difference):
    found = paired_comparison({(0, 0): 0.75}, rival)
    assert (found["pairs"], found["difference"]) == (pairs, difference)
    assert found["wilcoxon"] is found["t"] is found["interval"] is None
    assert with_holm([found]) == [found]


def test_with_holm_corrects_each_test_by_itself():
    def comparison(wilcoxon, t):
        return {"wilcoxon": {"p": wilcoxon}, "t": None if t is None else {"p": t}}

    found = with_holm([comparison(0.01, 0.04), comparison(0.02, None), comparison(0.6, 0.01)])
    assert [entry["wilcoxon"]["holm"] for entry in found] == pytest.approx([0.03, 0.04, 0.6])
    assert [entry["t"] and entry["t"]["holm"] for entry in found] == [0.04, None, 0.02]


def test_average_ranks_by_hand():
    table = [[0.9, 0.8, 0.7, 0.6], [0.5, 0.5, 0.5, 0.9], [0.3, 0.2, 0.3, 0.1]]
    #         1    2    3    4      3    3    3    1      1.5  3    1.5  4
    assert average_ranks(table) == pytest.approx([5.5 / 3, 8 / 3, 7.5 / 3, 3.0])


def test_friedman_by_its_formula():
    table = [[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.3, 0.1, 0.2], [0.9, 0.8, 0.1]]
    ranks = np.array(average_ranks(table))
    statistic = 12 * 4 / (3 * 4) * (np.sum(ranks**2) - 3 * 4**2 / 4)
    found, p = friedman(table)
    assert found == pytest.approx(statistic)
    assert p == pytest.approx(math.exp(-statistic / 2))  # chi-square with 2 degrees of freedom


def test_friedman_where_all_tie():
    assert friedman([[0.5, 0.5, 0.5], [0.1, 0.1, 0.1]]) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("methods", "quantile"), [(2, 1.960), (3, 2.343), (5, 2.728), (7, 2.949), (10, 3.164)]
)
def test_critical_difference_follows_the_printed_table(methods, quantile):
    # Quantiles from Demsar (2006), table 5(a).
    expected = quantile * math.sqrt(methods * (methods + 1) / (6 * 9))
    assert critical_difference(methods, 9) == pytest.approx(expected, rel=5e-4)


@pytest.mark.parametrize(
    ("ranks", "difference", "groups"),
    [
        ([1, 2, 3, 4], 1.5, [[0, 1], [1, 2], [2, 3]]),
        ([1, 2, 3, 4], 2.0, [[0, 1, 2], [1, 2, 3]]),
        ([4, 1, 2.5], 0.5, []),
        ([3, 1, 2], 5, [[1, 2, 0]]),
        ([1, 1, 4], 0.5, [[0, 1]]),
        ([1, 2, 2.5, 4, 4.2], 1.5, [[0, 1, 2], [2, 3], [3, 4]]),
    ],
)
def test_groups_within_the_critical_difference(ranks, difference, groups):
    assert alike(ranks, difference) == groups
