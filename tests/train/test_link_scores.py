"""Link scores against brute force over all pairs, places and thresholds."""

import json
import math
from dataclasses import asdict

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from argnn.train import best_threshold, link_scores
from argnn.train.scores import area_under_roc

FEW = settings(max_examples=80)

#: Few different values, so that there are ties; floats of all sizes besides.
logits = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(-1e3, 1e3, width=32)),
    min_size=1,
    max_size=25,
)


def tensor(values):
    return torch.tensor(values, dtype=torch.float32)


def slow_auroc(edges, non_edges):
    won = [1.0 if p > q else 0.5 if p == q else 0.0 for p in edges for q in non_edges]
    return sum(won) / len(won)


def slow_auprc(edges, non_edges):
    """Sum over thresholds of precision times what recall gains."""
    area, recall = 0.0, 0.0
    for threshold in sorted(set(edges), reverse=True):
        right = sum(p >= threshold for p in edges)
        wrong = sum(q >= threshold for q in non_edges)
        area += right / (right + wrong) * (right / len(edges) - recall)
        recall = right / len(edges)
    return area


def decided_rightly(edges, non_edges, threshold):
    return sum(p >= threshold for p in edges) + sum(q < threshold for q in non_edges)


def slow_hits(edges, non_edges, k):
    if len(non_edges) < k:
        return None
    bar = sorted(non_edges, reverse=True)[k - 1]
    return sum(p > bar for p in edges) / len(edges)


def slow_mrr(edges, non_edges):
    """An edge's place among the non-edges; of equal ones half are counted as better."""
    places = []
    for p in edges:
        better, equal = sum(q > p for q in non_edges), sum(q == p for q in non_edges)
        places.append(1 + better + 0.5 * equal)
    return sum(1 / place for place in places) / len(places)


@FEW
@given(edges=logits, non_edges=logits, threshold=st.sampled_from([-2.0, -0.5, 0.0, 1.0, 7.0]))
def test_scores_are_those_of_brute_force(edges, non_edges, threshold):
    found = link_scores(tensor(edges), tensor(non_edges), threshold)
    assert found.auroc == pytest.approx(slow_auroc(edges, non_edges))
    assert found.auprc == pytest.approx(slow_auprc(edges, non_edges))
    right = decided_rightly(edges, non_edges, threshold)
    assert found.accuracy == pytest.approx(right / (len(edges) + len(non_edges)))
    assert found.threshold == threshold
    assert found.hits_at_10 == pytest.approx(slow_hits(edges, non_edges, 10))
    assert found.hits_at_50 is None
    assert found.mrr == pytest.approx(slow_mrr(edges, non_edges))
    assert found.count == len(edges) + len(non_edges)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_negatives", [9, 10, 49, 50, 200])
def test_hits_need_enough_non_edges(seed, num_negatives):
    generator = torch.Generator().manual_seed(seed)
    edges = torch.randint(-40, 60, (80,), generator=generator).float()
    non_edges = torch.randint(-60, 40, (num_negatives,), generator=generator).float()
    found = link_scores(edges, non_edges, 0.0)
    for k, hits in ((10, found.hits_at_10), (50, found.hits_at_50)):
        expected = slow_hits(edges.tolist(), non_edges.tolist(), k)
        assert hits == (None if num_negatives < k else pytest.approx(expected))
    assert found.mrr == pytest.approx(slow_mrr(edges.tolist(), non_edges.tolist()))


def candidates(edges, non_edges):
    """A threshold at every value, between and beyond: nothing else can decide differently."""
    values = sorted({*edges, *non_edges})
    return [*values, math.nextafter(values[-1], math.inf)]


@FEW
@given(edges=logits, non_edges=logits)
def test_threshold_decides_most_pairs_rightly(edges, non_edges):
    threshold = best_threshold(tensor(edges), tensor(non_edges))
    most = max(decided_rightly(edges, non_edges, t) for t in candidates(edges, non_edges))
    assert decided_rightly(edges, non_edges, threshold) == most
    assert math.isfinite(threshold)
    accuracy = link_scores(tensor(edges), tensor(non_edges), threshold).accuracy
    assert accuracy == pytest.approx(most / (len(edges) + len(non_edges)))


@FEW
@given(edges=logits, non_edges=logits)
def test_of_equally_good_thresholds_the_largest_is_taken(edges, non_edges):
    threshold = best_threshold(tensor(edges), tensor(non_edges))
    right = decided_rightly(edges, non_edges, threshold)
    larger = [t for t in candidates(edges, non_edges) if t > threshold]
    assert all(decided_rightly(edges, non_edges, t) < right for t in larger)


def test_of_equally_good_thresholds_the_largest_is_taken_whatever_the_rounding():
    # 28 of these 37 pairs are right at 2 and at 1.
    assert best_threshold(tensor([2.0] + [1.0] * 9), tensor([1.0] * 9 + [0.0] * 18)) == 2.0


def test_threshold_of_separate_classes_lies_at_the_smallest_edge():
    assert best_threshold(tensor([3.0, 2.0]), tensor([1.0, 0.0])) == 2.0


def test_threshold_where_no_pair_should_count_is_above_all_and_still_json():
    threshold = best_threshold(tensor([-5.0]), tensor([1.0, 2.0, 3.0]))
    assert 3.0 < threshold < 3.001
    scores = asdict(link_scores(tensor([-5.0]), tensor([1.0, 2.0, 3.0]), threshold))
    assert scores["accuracy"] == 0.75
    assert json.loads(json.dumps(scores, allow_nan=False)) == scores


def test_perfect_and_worst_scores():
    low, high = torch.arange(60.0), 100 + torch.arange(60.0)
    perfect = link_scores(high, low, 100.0)
    assert (perfect.auroc, perfect.auprc, perfect.accuracy, perfect.mrr) == (1.0, 1.0, 1.0, 1.0)
    assert (perfect.hits_at_10, perfect.hits_at_50, perfect.count) == (1.0, 1.0, 120)
    worst = link_scores(low, high, 100.0)
    assert (worst.auroc, worst.accuracy, worst.hits_at_10, worst.hits_at_50) == (0, 0, 0, 0)
    assert worst.mrr == pytest.approx(1 / 61)


def test_equal_logits_are_a_coin_toss():
    found = link_scores(torch.zeros(20), torch.zeros(20), 0.0)
    assert (found.auroc, found.auprc, found.accuracy, found.hits_at_10) == (0.5, 0.5, 0.5, 0.0)
    assert found.mrr == pytest.approx(1 / 11)


def test_ranks_do_not_depend_on_the_scale_of_the_logits():
    generator = torch.Generator().manual_seed(0)
    edges, non_edges = torch.randn(2, 70, generator=generator).double()
    first = link_scores(edges, non_edges, 0.1)
    second = link_scores(3 * edges + 1, 3 * non_edges + 1, 1.3)
    assert asdict(second) == pytest.approx({**asdict(first), "threshold": 1.3})


def test_logits_are_compared_in_full_precision():
    """Two float32 numbers next to each other are told apart by score and threshold."""
    upper = torch.tensor([1.0]).nextafter(torch.tensor([2.0]))
    found = best_threshold(upper, torch.ones(1))
    assert link_scores(upper, torch.ones(1), found).accuracy == 1.0


@pytest.mark.parametrize("empty", ["edges", "non-edges", "both"])
def test_empty_sets_are_refused(empty):
    edges = torch.ones(0 if empty != "non-edges" else 3)
    non_edges = torch.ones(0 if empty != "edges" else 3)
    with pytest.raises(ValueError, match="cannot score an empty set of pairs"):
        link_scores(edges, non_edges, 0.0)


@pytest.mark.parametrize(("edges", "non_edges"), [(0, 3), (3, 0), (0, 0)])
def test_empty_sets_have_no_threshold(edges, non_edges):
    with pytest.raises(ValueError, match="empty set of pairs"):
        best_threshold(torch.ones(edges), torch.ones(non_edges))


@FEW
@given(edges=logits, non_edges=logits)
def test_area_under_roc_is_that_of_the_scores(edges, non_edges):
    labels = torch.tensor([1.0] * len(edges) + [0.0] * len(non_edges))
    found = area_under_roc(tensor(edges + non_edges), labels)
    assert found == link_scores(tensor(edges), tensor(non_edges), 0.0).auroc
