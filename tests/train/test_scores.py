import dataclasses

import numpy as np
import pytest
import torch
from sklearn import metrics as SK

from argnn.train import class_scores, decided, node_scores
from argnn.train.calibration import probabilities
from argnn.train.scores import MOST_CONFUSED, class_threshold, decision_rule, margin_of


def drawn(num_nodes=200, num_classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, num_classes, (num_nodes,), generator=generator)
    logits = torch.randn(num_nodes, num_classes, generator=generator)
    logits[torch.arange(num_nodes), y] += 0.8
    return logits, y


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("num_classes", [2, 3, 7])
def test_scores_are_those_of_scikit_learn(seed, num_classes):
    logits, y = drawn(num_classes=num_classes, seed=seed)
    probability = torch.softmax(logits.double(), -1).numpy()
    label, predicted = y.numpy(), probability.argmax(-1)
    scores = node_scores(logits, y)
    assert scores.accuracy == pytest.approx(SK.accuracy_score(label, predicted))
    assert scores.f1 == pytest.approx(SK.f1_score(label, predicted, average="weighted"))
    assert scores.f1_macro == pytest.approx(SK.f1_score(label, predicted, average="macro"))
    one_hot = np.eye(num_classes)[label]
    expected = SK.roc_auc_score(one_hot, probability, average="weighted", multi_class="ovr")
    assert scores.auroc == pytest.approx(expected)
    precision = SK.average_precision_score(one_hot, probability, average="weighted")
    assert scores.auprc == pytest.approx(precision)
    assert scores.absent_classes == ()
    assert scores.count == 200


def test_multiclass_auroc_is_scikit_learns_own_one_vs_rest():
    logits, y = drawn(num_classes=5)
    probability = torch.softmax(logits.double(), -1).numpy()
    expected = SK.roc_auc_score(y.numpy(), probability, multi_class="ovr", average="weighted")
    assert node_scores(logits, y).auroc == pytest.approx(expected)


def test_absent_class_is_reported_and_the_weighted_averages_are_exact():
    logits, y = drawn(num_classes=4)
    keep = y != 2
    logits, y = logits[keep], y[keep]
    scores = node_scores(logits, y)
    assert scores.absent_classes == (2,)
    probability = torch.softmax(logits.double(), -1).numpy()
    auroc = auprc = 0.0
    for c in (0, 1, 3):
        share = float((y == c).double().mean())
        auroc += share * SK.roc_auc_score((y == c).numpy(), probability[:, c])
        auprc += share * SK.average_precision_score((y == c).numpy(), probability[:, c])
    assert scores.auroc == pytest.approx(auroc)
    assert scores.auprc == pytest.approx(auprc)
    expected = SK.f1_score(
        y.numpy(), probability.argmax(-1), average="weighted", labels=[0, 1, 3], zero_division=0
    )
    assert scores.f1 == pytest.approx(expected)


def test_two_classes_may_be_absent():
    logits, y = drawn(num_classes=5)
    keep = (y != 0) & (y != 4)
    assert node_scores(logits[keep], y[keep]).absent_classes == (0, 4)


def test_single_class_has_no_auroc_and_no_auprc():
    logits, _ = drawn(num_nodes=20, num_classes=3)
    scores = node_scores(logits, torch.ones(20, dtype=torch.int64))
    assert scores.auroc is None
    assert scores.auprc is None
    assert scores.absent_classes == (0, 2)
    assert scores.accuracy == pytest.approx((logits.argmax(-1) == 1).double().mean().item())


def test_single_node_is_scored():
    scores = node_scores(torch.tensor([[0.1, 2.0]]), torch.tensor([1]))
    assert (scores.accuracy, scores.f1, scores.f1_macro) == (1.0, 1.0, 1.0)
    assert scores.auroc is None
    assert scores.count == 1


def test_perfect_and_worst_scores():
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    perfect = node_scores(10 * torch.eye(3)[y], y)
    assert (perfect.f1, perfect.f1_macro, perfect.accuracy) == (1.0, 1.0, 1.0)
    assert (perfect.auroc, perfect.auprc) == (1.0, 1.0)
    worst = node_scores(-10 * torch.eye(3)[y], y)
    assert worst.accuracy == 0.0
    assert worst.auroc == 0.0


def test_scores_do_not_depend_on_a_shift_of_the_logits():
    logits, y = drawn()
    first, shifted = node_scores(logits, y), node_scores(logits.double() + 3.0, y)
    assert dataclasses.astuple(shifted)[:5] == pytest.approx(dataclasses.astuple(first)[:5])


def test_class_that_is_never_predicted_counts_zero_without_a_warning():
    y = torch.tensor([0, 0, 1, 2])
    logits = torch.tensor([[2.0, 0, 0], [2.0, 0, 0], [0, 2.0, 0], [2.0, 0, 0]])
    assert node_scores(logits, y).f1 == pytest.approx(0.5 * 0.8 + 0.25 * 1.0 + 0.0)


def test_empty_set_is_refused():
    with pytest.raises(ValueError, match="empty set of nodes"):
        node_scores(torch.empty(0, 3), torch.empty(0, dtype=torch.int64))


def test_scores_of_classes_are_those_of_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, 4, generator=generator)
    y = torch.randint(3, (50,), generator=generator)  # class 3 is absent
    found = class_scores(logits, y)
    predicted = logits.argmax(-1)
    report = SK.classification_report(
        y, predicted, labels=range(4), output_dict=True, zero_division=0
    )
    for name, key in (("precision", "precision"), ("recall", "recall"), ("f1", "f1-score")):
        assert getattr(found, name) == pytest.approx([report[str(c)][key] for c in range(4)])
    assert found.support == torch.bincount(y, minlength=4).tolist()
    assert found.confusion == SK.confusion_matrix(y, predicted, labels=range(4)).tolist()
    probability = torch.softmax(logits.double(), -1)
    expected = [SK.average_precision_score(y == c, probability[:, c]) for c in range(3)]
    assert found.average_precision == pytest.approx([*expected, None])


def test_nodes_are_counted_in_whole_numbers_where_no_answer_is_right():
    found = class_scores(torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([1, 1]))
    assert found.support == [0, 2]
    assert {type(count) for count in found.support} == {int}


def test_classes_are_too_many_for_a_confusion_matrix():
    logits = torch.randn(9, MOST_CONFUSED + 1, generator=torch.Generator().manual_seed(0))
    assert class_scores(logits, torch.arange(9)).confusion is None


@pytest.mark.parametrize("score", ["accuracy", "f1_macro"])
@pytest.mark.parametrize("seed", range(8))
def test_threshold_is_the_best_of_all(seed, score):
    """No other threshold between, below or above the outputs gives a better score."""
    generator = torch.Generator().manual_seed(seed)
    y = (torch.rand(40, generator=generator) < 0.2).long()
    # Few levels: many nodes are equal, and must fall on the same side.
    logits = (2 * torch.randn(40, 2, generator=generator)).round()
    logits[:, 1] += y - 2.0
    margin = (logits[:, 1] - logits[:, 0]).double()
    judge = {
        "accuracy": lambda p: float((p == y).double().mean()),
        "f1_macro": lambda p: SK.f1_score(y, p, average="macro", zero_division=0),
    }[score]
    levels = margin.unique()
    tried = [*(levels - 0.25).tolist(), *(levels + 0.25).tolist(), 0.0]
    best = max(judge((margin > threshold).long()) for threshold in tried)
    found = class_threshold(logits, y, score)
    assert judge(decided(logits, found)) == pytest.approx(best)


def test_threshold_stays_where_no_other_is_better():
    logits = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    assert class_threshold(logits, torch.tensor([0, 0, 1]), "f1_macro") == 0
    assert torch.equal(decided(logits, 0.0), logits.argmax(-1))


@pytest.mark.parametrize("rare", [0, 1])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_a_number_is_a_calibrated_probability_of_the_rarer_class(rare, temperature):
    logits = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    chosen = decided(logits, margin_of(0.2, rare, temperature)) == rare
    assert torch.equal(chosen, probabilities(logits, temperature)[:, rare] >= 0.2)
    rule = decision_rule(["no", "yes"], margin_of(0.2, rare, temperature), temperature, rare)
    assert rule == {"class": ("no", "yes")[rare], "from_probability": pytest.approx(0.2)}
