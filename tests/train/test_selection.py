"""Scores that choose the epoch: as scikit-learn defines them, ties included."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

from argnn.errors import ConfigError
from argnn.train import SELECTIONS, LinkPrediction, NodeClassification, TrainConfig, fit
from argnn.train.scores import rare_class
from argnn.train.selection import (
    area_under_curve,
    average_precision,
    class_score,
    f1_macro,
    selection_of,
)

from .cases import model_of, two_blocks


def drawn(num_classes, seed, levels=None, size=60):
    """Outputs, with few levels where there shall be ties, and labels of every class but one."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(size, num_classes, generator=generator)
    if levels is not None:
        logits = (logits * levels).round() / levels
    labels = torch.randint(max(2, num_classes - 1), (size,), generator=generator)
    labels[:2] = torch.tensor([0, 1])
    return logits, labels


@pytest.mark.parametrize("levels", [None, 2, 1])
@pytest.mark.parametrize("seed", range(5))
def test_rankings_are_those_of_scikit_learn(seed, levels):
    logits, labels = drawn(2, seed, levels)
    scores, positive = logits[:, 0], labels == 1
    for found, expected in (
        (average_precision(scores, positive), average_precision_score(positive, scores)),
        (area_under_curve(scores, positive), roc_auc_score(positive, scores)),
    ):
        assert found.item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("num_classes", [2, 3, 5])
@pytest.mark.parametrize("levels", [None, 1])
def test_scores_of_classes_are_those_of_scikit_learn(num_classes, levels):
    logits, labels = drawn(num_classes, seed=1, levels=levels)
    probability, predicted = torch.softmax(logits.double(), -1).numpy(), logits.argmax(-1)
    present = [1] if num_classes == 2 else sorted(set(labels.tolist()))
    expected = {
        "accuracy": float((predicted == labels).double().mean()),
        "f1_macro": f1_score(labels, predicted, average="macro", zero_division=0),
        "auroc": np.mean([roc_auc_score(labels == c, probability[:, c]) for c in present]),
        "average_precision": np.mean(
            [average_precision_score(labels == c, probability[:, c]) for c in present]
        ),
    }
    for select, value in expected.items():
        found = class_score(select, logits, labels, rare=1).item()
        assert found == pytest.approx(value, abs=1e-12), select


def test_two_classes_are_judged_by_the_rarer_training_class():
    logits, labels = drawn(2, seed=3)
    zero = class_score("average_precision", logits, labels, rare=0).item()
    probability = torch.softmax(logits.double(), -1)
    assert zero == pytest.approx(average_precision_score(labels == 0, probability[:, 0]))
    y = torch.tensor([0, 1, 1, 0, 1])
    masks = torch.tensor([True, True, True, False, False]), torch.tensor([False] * 3 + [True] * 2)
    assert NodeClassification(y, *masks).rare == 0
    assert rare_class(torch.tensor([0, 0, 1, 1]), 2) == 1  # of equal ones the last


def test_a_ranking_without_positives_is_not_a_number():
    scores, none = torch.randn(5), torch.zeros(5, dtype=torch.bool)
    assert average_precision(scores, none).isnan()
    assert area_under_curve(scores, none).isnan()
    assert area_under_curve(scores, ~none).isnan()


def test_classes_that_are_not_there_do_not_count():
    """scikit-learn leaves a class out of the macro F1 that is neither label nor prediction."""
    predicted, labels = torch.tensor([0, 0, 2]), torch.tensor([0, 2, 2])
    found = f1_macro(predicted, labels, num_classes=4).item()
    assert found == pytest.approx(f1_score(labels, predicted, average="macro"))


@pytest.mark.parametrize("select", SELECTIONS["node"])
def test_the_score_chooses_the_epoch(select):
    graph = two_blocks()
    task = NodeClassification(graph.y, graph.train_mask, graph.val_mask)
    config = TrainConfig(epochs=25, select=select)
    result = fit(model_of(graph), graph, task, config)
    records = [r for r in result.history if r.val_score is not None]
    best = max(records, key=lambda r: (r.val_score, -r.val_loss))
    assert (result.best_epoch, result.val_score) == (best.epoch, best.val_score)
    if select == "loss":
        assert result.val_score == -result.val_loss == -min(r.val_loss for r in records)


def test_the_usual_score_gives_the_same_bits_whether_it_is_named_or_not():
    graph = two_blocks()
    task = NodeClassification(graph.y, graph.train_mask, graph.val_mask)
    found = [
        fit(model_of(graph), graph, task, TrainConfig(epochs=5, select=select))
        for select in (None, "accuracy")
    ]
    assert found[0].history == found[1].history


@pytest.mark.parametrize("select", SELECTIONS["link"])
def test_pairs_are_judged_by_the_score(select, monkeypatch):
    logits = torch.tensor([2.0, 0.0, 1.0, 1.0])
    pairs = torch.tensor([[0, 1], [1, 2]])
    task = LinkPrediction(pairs, pairs, torch.tensor([[0, 2], [2, 0]]), num_nodes=3)
    task = task.configured(TrainConfig(select=select))
    labels = np.array([1, 1, 0, 0])
    expected = {
        "auroc": roc_auc_score(labels, logits),
        "average_precision": average_precision_score(labels, logits),
        "loss": -torch.nn.functional.binary_cross_entropy_with_logits(
            logits.double(), torch.from_numpy(labels).double()
        ).item(),
    }
    monkeypatch.setattr("argnn.train.tasks._pair_scores", lambda *_: logits)
    found = task.validate(model_of(two_blocks()), logits)
    assert found.score == pytest.approx(expected[select], abs=1e-7)


def test_scores_of_other_tasks_are_refused():
    with pytest.raises(ConfigError, match="select must be one of auroc, average_precision, loss"):
        selection_of("link", "accuracy")
    with pytest.raises(ConfigError, match="select must be one of accuracy"):
        TrainConfig(select="recall")


def test_a_ranking_needs_two_classes_in_validation():
    graph = two_blocks()
    y = torch.where(graph.val_mask, 0, graph.y)
    task = NodeClassification(y, graph.train_mask, graph.val_mask)
    with pytest.raises(ConfigError, match="select auroc needs validation nodes of two classes"):
        task.configured(TrainConfig(select="auroc"))


@pytest.mark.parametrize("select", ["auroc", "average_precision", "f1_macro"])
def test_shuffled_labels_give_chance(select):
    """The rare class is 10 %: its average precision by chance is 0.1, the AUROC one half."""
    generator = torch.Generator().manual_seed(0)
    labels = (torch.arange(4000) % 10 == 0).long()
    logits = torch.randn(4000, 2, generator=generator)
    found = class_score(select, logits, labels, rare=1).item()
    # F1 of a coin: 2 * 0.9 * 0.5 / 1.4 and 2 * 0.1 * 0.5 / 0.6, averaged.
    expected = {"auroc": 0.5, "average_precision": 0.1, "f1_macro": (0.9 / 1.4 + 0.1 / 0.6) / 2}
    assert found == pytest.approx(expected[select], abs=0.03)


def test_validation_waits_for_the_device_once():
    """A score on a GPU is one transfer: nothing but ``tolist`` reads values before the end."""
    graph = two_blocks()
    task = NodeClassification(graph.y, graph.train_mask, graph.val_mask)
    outputs = torch.randn(60, 2).to("meta")
    for select in SELECTIONS["node"]:
        judged = task.configured(TrainConfig(select=select))
        for name in ("val_nodes", "val_labels"):
            setattr(judged, name, getattr(judged, name).to("meta"))
        with pytest.raises((NotImplementedError, RuntimeError), match="meta"):
            judged.validate(model_of(graph), outputs)  # only the transfer at the end fails
        score = outputs.index_select(0, judged.val_nodes)
        if select != "loss":
            assert class_score(select, score, judged.val_labels, judged.rare).shape == ()


def test_validation_labels_do_not_decide_which_class_is_rare():
    graph = two_blocks()
    changed = torch.where(graph.val_mask, 0, graph.y)
    first = NodeClassification(graph.y, graph.train_mask, graph.val_mask)
    second = NodeClassification(changed, graph.train_mask, graph.val_mask)
    assert first.rare == second.rare
