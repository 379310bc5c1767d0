"""Statistics that compare methods: paired tests, Holm's correction, ranks over data sets."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import friedmanchisquare, rankdata, studentized_range, ttest_rel

from argnn.runs.summary import Pair, by_split, interval_half_width

LEVEL = 0.05
#: Scores are shares of counts; sums of floats must not make two equal differences unequal.
_DIGITS = 12


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """P-values corrected for their number by Holm's step-down rule; missing ones do not count.

    Example:
        >>> [round(p, 3) for p in holm([0.01, 0.04, 0.03, 0.005])]
        [0.03, 0.06, 0.06, 0.02]
    """
    known = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for step, (p, place) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - step) * p))
        corrected[place] = largest
    return corrected


def signed_rank(differences: Sequence[float]) -> tuple[float, float]:
    """Wilcoxon's signed-rank test: the smaller rank sum, and the exact two-sided p-value.

    Zero differences are left out and equal ones share their mean rank, as usual. The p-value
    counts all assignments of signs to the ranks at hand, so it is exact with ties as well, which
    scores on few test nodes always have; scipy's own exact form knows no ties.

    Example:
        >>> signed_rank([1.0, 2.0, 3.0, 4.0, -5.0])
        (5.0, 0.625)
        >>> signed_rank([0.0, 0.0])
        (0.0, 1.0)
    """
    values = np.round(np.asarray(differences, dtype=np.float64), _DIGITS)
    values = values[values != 0]
    if values.size == 0:
        return 0.0, 1.0
    # Mean ranks are multiples of one half: twice a rank is a whole number, and can be counted.
    ranks = np.rint(2 * rankdata(np.abs(values))).astype(np.int64)
    total = int(ranks.sum())
    chance = np.zeros(total + 1)
    chance[0] = 1.0
    for rank in ranks:
        positive = np.zeros_like(chance)
        positive[rank:] = chance[:-rank]
        chance = 0.5 * (chance + positive)
    above = int(ranks[values > 0].sum())
    smaller = min(above, total - above)
    return smaller / 2, min(1.0, 2 * float(chance[: smaller + 1].sum()))


def paired_t(reference: Sequence[float], rival: Sequence[float]) -> tuple[float | None, float]:
    """Student's paired t-test: statistic and two-sided p-value.

    Differences that are all equal have no spread to compare with: the statistic is None, and
    the p-value 1 if they are zero, else 0.
    """
    differences = np.round(np.subtract(reference, rival), _DIGITS)
    if np.ptp(differences) == 0:
        return None, 1.0 if differences[0] == 0 else 0.0
    found = ttest_rel(reference, rival)
    return float(found.statistic), float(found.pvalue)


def paired_comparison(
    reference: Mapping[Pair, float], rival: Mapping[Pair, float]
) -> dict[str, Any]:
    """Compare two methods on the runs (split, seed) that both have, averaged by split.

    Args:
        reference: Score of each run of the method that is defended.
        rival: Score of each run of the other one.

    Returns:
        Number of common splits, in how many both are equal, mean difference (reference minus
        rival) with its 95 % interval, and both tests; None where fewer than two are common.
    """
    common = reference.keys() & rival.keys()
    ours, theirs = (by_split({pair: runs[pair] for pair in common}) for runs in (reference, rival))
    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    found: dict[str, Any] = {
        "pairs": len(differences),
        "equal": sum(round(value, _DIGITS) == 0 for value in differences),
        "difference": statistics.fmean(differences) if common else None,
        "interval": interval_half_width(differences),
        "wilcoxon": None,
        "t": None,
    }
    if len(differences) > 1:
        tests = {"wilcoxon": signed_rank(differences), "t": paired_t(ours, theirs)}
        found |= {name: {"statistic": value, "p": p} for name, (value, p) in tests.items()}
    return found


def with_holm(comparisons: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The comparisons of one data set, with p-values corrected for the number of rivals."""
    corrected = [dict(found) for found in comparisons]
    for test in ("wilcoxon", "t"):
        p_values = [None if found[test] is None else found[test]["p"] for found in comparisons]
        for found, p in zip(corrected, holm(p_values), strict=True):
            if p is not None:
                found[test] = {**found[test], "holm": p}
    return corrected


def average_ranks(table: Sequence[Sequence[float]]) -> list[float]:
    """Mean rank of each method, 1 the best; methods that tie on a data set share the mean rank.

    Args:
        table: A row per data set with the score of each method; more is better.

    Example:
        >>> average_ranks([[0.9, 0.8, 0.7], [0.5, 0.6, 0.5]])
        [1.75, 1.5, 2.75]
    """
    ranks = rankdata(-np.round(np.asarray(table, dtype=np.float64), _DIGITS), axis=1)
    return [float(rank) for rank in ranks.mean(axis=0)]


def friedman(table: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Friedman's test that all methods are alike: statistic and p-value; rows are data sets."""
    scores = np.round(np.asarray(table, dtype=np.float64), _DIGITS)
    if (scores == scores[:, :1]).all():  # every method ties everywhere
        return 0.0, 1.0
    found = friedmanchisquare(*scores.T)
    return float(found.statistic), float(found.pvalue)


def critical_difference(num_methods: int, num_data: int, level: float = LEVEL) -> float:
    r"""Nemenyi's critical difference of two average ranks (Demsar 2006).

    .. math::
        \mathrm{CD} = q_\alpha \sqrt{\frac{k (k + 1)}{6 N}}

    with :math:`q_\alpha` the studentized range of :math:`k` methods over :math:`\sqrt 2`.

    Example:
        >>> round(critical_difference(4, 14), 2)
        1.25
    """
    quantile = float(studentized_range.ppf(1 - level, num_methods, math.inf)) / math.sqrt(2)
    return quantile * math.sqrt(num_methods * (num_methods + 1) / (6 * num_data))


def alike(ranks: Sequence[float], difference: float) -> list[list[int]]:
    """Largest groups of at least two methods whose ranks lie within the critical difference.

    Returns:
        Positions in ``ranks``, the best rank first.

    Example:
        >>> alike([1.0, 3.5, 2.0, 3.0], 1.25)
        [[0, 2], [2, 3], [3, 1]]
    """
    order = sorted(range(len(ranks)), key=lambda place: ranks[place])
    groups: list[list[int]] = []
    reached = 0
    for first in range(len(order)):
        last = first
        while last + 1 < len(order) and ranks[order[last + 1]] - ranks[order[first]] <= difference:
            last += 1
        if last > first and last + 1 > reached:
            groups.append(order[first : last + 1])
            reached = last + 1
    return groups
