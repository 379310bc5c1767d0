"""Scores of predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import (
    average_precision_score,
    confusion_matrix,
    f1_score,
    mean_absolute_error,
    precision_recall_fscore_support,
    r2_score,
    roc_auc_score,
    roc_curve,
    root_mean_squared_error,
)
from torch import Tensor

from argnn.functional.precision import widened
from argnn.train.selection import f1_mean, f1_micro

#: Most classes that have a confusion matrix in results.
MOST_CONFUSED = 50


@dataclass(frozen=True)
class NodeScores:
    """Scores of a node classifier on one set of nodes.

    Attributes:
        f1: F1 weighted by class size, the paper's "F1".
        f1_macro: F1 averaged over the classes present in labels or predictions.
        accuracy: Share of right predictions.
        auroc: One-vs-rest area under the ROC curve, weighted by class size; None if fewer than
            two classes are present.
        auprc: One-vs-rest average precision, weighted by class size.
        absent_classes: Classes without a node in the set. They have no AUROC and no AUPRC,
            and weight zero in weighted averages.
        count: Number of nodes scored.
    """

    f1: float
    f1_macro: float
    accuracy: float
    auroc: float | None
    auprc: float | None
    absent_classes: tuple[int, ...]
    count: int


def node_scores(logits: Tensor, y: Tensor, threshold: float = 0.0) -> NodeScores:
    """Score raw outputs ``[M, C]`` against labels ``[M]``; for the threshold see `decided`."""
    if y.numel() == 0:
        raise ValueError("cannot score an empty set of nodes")
    probability = torch.softmax(widened(logits), dim=-1).cpu().numpy()
    label = y.cpu().numpy()
    predicted = probability.argmax(-1) if threshold == 0 else decided(logits, threshold).numpy()
    present, sizes = np.unique(label, return_counts=True)
    absent = sorted(set(range(probability.shape[1])) - set(present.tolist()))
    return NodeScores(
        f1=_weighted_f1(label, predicted),
        f1_macro=float(f1_score(label, predicted, average="macro", zero_division=0)),
        accuracy=float((label == predicted).mean()),
        auroc=_one_vs_rest(roc_auc_score, label, probability, present, sizes),
        auprc=_one_vs_rest(average_precision_score, label, probability, present, sizes),
        absent_classes=tuple(absent),
        count=len(label),
    )


def weighted_f1(logits: Tensor, y: Tensor) -> float:
    """The first score of :func:`node_scores` alone."""
    return _weighted_f1(y.cpu().numpy(), logits.argmax(-1).cpu().numpy())


def _weighted_f1(label: np.ndarray, predicted: np.ndarray) -> float:
    return float(f1_score(label, predicted, average="weighted", zero_division=0))


def _one_vs_rest(
    score: Any, label: np.ndarray, probability: np.ndarray, present: np.ndarray, sizes: np.ndarray
) -> float | None:
    """Mean of a binary score over the present classes, weighted by their size."""
    if len(present) < 2:
        return None
    values = [score(label == c, probability[:, c]) for c in present]
    return float(np.average(values, weights=sizes))


@dataclass(frozen=True)
class ClassScores:
    """Scores of each class on one set of nodes, one entry per class.

    Attributes:
        precision: Share of right ones among the nodes that are said to be of the class; 0 if none
            is.
        recall: Share of the nodes of the class that are found; 0 if there is none.
        f1: Harmonic mean of the two.
        support: Number of nodes of the class.
        average_precision: Of the class against the rest, not weighted; None if the class or the
            rest is absent.
        confusion: Nodes of each class (row) by the class that they are said to be of (column);
            None for more than 50 classes.
    """

    precision: list[float]
    recall: list[float]
    f1: list[float]
    support: list[int]
    average_precision: list[float | None]
    confusion: list[list[int]] | None


def class_scores(logits: Tensor, y: Tensor, threshold: float = 0.0) -> ClassScores:
    """Score raw outputs ``[M, C]`` class by class; the arguments are those of `node_scores`."""
    label, predicted = y.cpu().numpy(), decided(logits, threshold).cpu().numpy()
    probability = torch.softmax(widened(logits), dim=-1).cpu().numpy()
    classes = list(range(probability.shape[1]))
    precision, recall, f1, support = precision_recall_fscore_support(
        label, predicted, labels=classes, zero_division=0
    )
    return ClassScores(
        precision=precision.tolist(),
        recall=recall.tolist(),
        f1=f1.tolist(),
        support=support.astype(int).tolist(),  # scikit-learn has floats where no node is right
        average_precision=[
            float(average_precision_score(label == c, probability[:, c]))
            if 0 < support[c] < len(label)
            else None
            for c in classes
        ],
        confusion=confusion_matrix(label, predicted, labels=classes).tolist()
        if len(classes) <= MOST_CONFUSED
        else None,
    )


def decided(logits: Tensor, threshold: float = 0.0) -> Tensor:
    """The class of each row of raw outputs ``[M, C]``: that of the largest one.

    Args:
        logits: The outputs.
        threshold: For two classes, what the second output must exceed the first by to win.

    Example:
        >>> decided(torch.tensor([[0.0, 2.0], [0.0, 0.5]]), threshold=1.0).tolist()
        [1, 0]
    """
    if threshold == 0:
        return logits.argmax(-1)
    return (widened(logits)[:, 1] - widened(logits)[:, 0] > threshold).long()


def class_threshold(logits: Tensor, y: Tensor, score: str) -> float:
    """The threshold of `decided` with the best score; of several, the one closest to zero.

    Args:
        logits: Raw outputs of validation nodes, ``[M, 2]``.
        y: Their labels, ``[M]``.
        score: ``"accuracy"`` or ``"f1_macro"``.
    """
    margin = (widened(logits)[:, 1] - widened(logits)[:, 0]).cpu().numpy()
    order = np.argsort(margin)
    margin, label = margin[order], (y.cpu().numpy() == 1)[order]
    # Below cut k are the k smallest margins; a cut between equal ones is none.
    cuts = np.flatnonzero(np.diff(margin, prepend=-np.inf, append=np.inf))
    middles = (margin[cuts[1:-1] - 1] + margin[cuts[1:-1]]) / 2
    thresholds = np.array([margin[0] - 1, *middles, margin[-1] + 1, 0.0])
    cuts = np.append(cuts, np.searchsorted(margin, 0.0, side="right"))
    positives, count = int(label.sum()), len(label)
    missed = np.concatenate([[0], label.cumsum()])[cuts]
    hits, right = positives - missed, cuts - missed
    if score == "accuracy":
        values = (hits + right) / count
    else:
        sizes = np.stack([count - cuts + positives, cuts + count - positives])
        both = np.stack([hits, right])
        values = (2 * both / np.maximum(sizes, 1)).sum(0) / (sizes > 0).sum(0)
    # Rounded, so that rounding errors do not decide ties.
    best = np.flatnonzero(values >= values.max() - 1e-12)
    return float(thresholds[best[np.abs(thresholds[best]).argmin()]])


def margin_of(probability: float, rare: int, temperature: float) -> float:
    """The threshold of `decided` that belongs to a probability of the class ``rare``."""
    margin = temperature * math.log(probability / (1 - probability))
    return margin if rare == 1 else -margin


def decision_rule(
    classes: Sequence[Any], threshold: float, temperature: float, rare: int
) -> dict[str, Any] | None:
    """A threshold of `decided` in words: from which probability a node is of the class ``rare``.

    None where the more probable class is chosen.

    Example:
        >>> decision_rule(["ok", "fraud"], -math.log(4), temperature=1.0, rare=1)
        {'class': 'fraud', 'from_probability': 0.2}
    """
    if threshold == 0:
        return None
    margin = (threshold if rare == 1 else -threshold) / temperature
    probability = 1 / (1 + math.exp(min(-margin, 700)))
    return {"class": classes[rare], "from_probability": probability}


@dataclass(frozen=True)
class RegressionScores:
    """Scores of predicted numbers on one set of nodes: means over targets.

    Attributes:
        r2: Share of the variance that is explained; None if a target is the same for all nodes.
        mae: Mean absolute error.
        rmse: Root of the mean squared error, of each target.
        count: Number of nodes scored.
    """

    r2: float | None
    mae: float
    rmse: float
    count: int


def regression_scores(predicted: Tensor, targets: Tensor) -> RegressionScores:
    """Score predictions ``[M, T]`` against targets ``[M, T]``, both in the targets' own units."""
    said, true = widened(predicted).cpu().numpy(), widened(targets).cpu().numpy()
    varies = len(true) > 1 and bool((true != true[0]).any(axis=0).all())
    return RegressionScores(
        r2=float(r2_score(true, said)) if varies else None,
        mae=float(mean_absolute_error(true, said)),
        rmse=float(root_mean_squared_error(true, said)),
        count=len(true),
    )


@dataclass(frozen=True)
class MultiLabelScores:
    """Scores of several labels per node on one set of nodes.

    Attributes:
        f1_micro: F1 of all decisions together; a label is chosen from probability one half.
        f1_macro: Mean F1 of the labels that are there or were chosen.
        average_precision: Mean average precision of the labels that some but not all nodes have;
            None if there are none.
        count: Number of nodes scored.
    """

    f1_micro: float
    f1_macro: float
    average_precision: float | None
    count: int


def multilabel_scores(logits: Tensor, targets: Tensor) -> MultiLabelScores:
    """Score raw outputs ``[M, L]`` against labels 0 and 1 ``[M, L]``."""
    said, true = (logits >= 0).cpu(), (targets > 0).cpu()
    known = [
        value for value in label_scores(logits, targets).average_precision if value is not None
    ]
    return MultiLabelScores(
        f1_micro=f1_micro(said, true).item(),
        f1_macro=f1_mean(said, true).item(),
        average_precision=float(np.mean(known)) if known else None,
        count=len(true),
    )


def label_scores(logits: Tensor, targets: Tensor) -> ClassScores:
    """Score raw outputs ``[M, L]`` label by label; there is no confusion matrix."""
    said, true = (logits >= 0).cpu().numpy(), (targets > 0).cpu().numpy()
    # One by one: scikit-learn takes a single column for two classes.
    found = [
        precision_recall_fscore_support(
            *(part[:, label].astype(int) for part in (true, said)), labels=[1], zero_division=0
        )
        for label in range(true.shape[1])
    ]
    precision, recall, f1 = (
        np.concatenate(part).tolist() for part in list(zip(*found, strict=True))[:3]
    )
    score = widened(logits).cpu().numpy()
    return ClassScores(
        precision=precision,
        recall=recall,
        f1=f1,
        support=true.sum(axis=0).tolist(),
        average_precision=[
            float(average_precision_score(true[:, label], score[:, label]))
            if 0 < true[:, label].sum() < len(true)
            else None
            for label in range(true.shape[1])
        ],
        confusion=None,
    )


@dataclass(frozen=True)
class LinkScores:
    """Scores of a link predictor on one set of edges and as many non-edges.

    Attributes:
        auroc: Area under the ROC curve.
        auprc: Average precision.
        accuracy: Share of right decisions at ``threshold``.
        threshold: Logit from which a pair counts as an edge; chosen on validation pairs.
        hits_at_10: Share of edges that score higher than the tenth best non-edge.
        hits_at_50: The same for the fiftieth; None if there are fewer non-edges.
        mrr: Mean reciprocal rank of each edge among all non-edges of the set; ties count half.
        count: Number of pairs scored.
    """

    auroc: float
    auprc: float
    accuracy: float
    threshold: float
    hits_at_10: float | None
    hits_at_50: float | None
    mrr: float
    count: int


def link_scores(edges: Tensor, non_edges: Tensor, threshold: float) -> LinkScores:
    """Score the logits of edges ``[P]`` and of non-edges ``[Q]``; see :func:`best_threshold`."""
    logits, label = _labelled_pairs(edges, non_edges)
    positive, negative = logits[label == 1], np.sort(logits[label == 0])
    return LinkScores(
        auroc=float(roc_auc_score(label, logits)),
        auprc=float(average_precision_score(label, logits)),
        accuracy=float(((logits >= threshold) == (label == 1)).mean()),
        threshold=threshold,
        hits_at_10=_hits(positive, negative, 10),
        hits_at_50=_hits(positive, negative, 50),
        mrr=_mean_reciprocal_rank(positive, negative),
        count=len(label),
    )


def best_threshold(edges: Tensor, non_edges: Tensor) -> float:
    """The threshold with the most right decisions; of several, the largest."""
    logits, label = _labelled_pairs(edges, non_edges)
    fpr, tpr, threshold = roc_curve(label, logits, drop_intermediate=False)
    # Rounded to whole counts, so that rounding errors do not decide ties.
    right = np.rint(tpr * edges.numel() + (1 - fpr) * non_edges.numel())
    # The curve starts at infinity (no pair is an edge), which JSON does not have.
    return float(min(threshold[right.argmax()], np.nextafter(logits.max(), np.inf)))


def area_under_roc(logits: Tensor, labels: Tensor) -> float:
    """Area under the ROC curve of logits ``[P]`` against labels 0 and 1."""
    return float(roc_auc_score(labels.cpu().numpy(), widened(logits).cpu().numpy()))


def _labelled_pairs(edges: Tensor, non_edges: Tensor) -> tuple[np.ndarray, np.ndarray]:
    if 0 in (edges.numel(), non_edges.numel()):
        raise ValueError("cannot score an empty set of pairs")
    logits = widened(torch.cat([edges, non_edges])).cpu().numpy()
    label = np.zeros(len(logits), dtype=np.int64)
    label[: edges.numel()] = 1
    return logits, label


def _hits(positive: np.ndarray, negative: np.ndarray, k: int) -> float | None:
    """Share of positives above the k-th best of the ascending negatives."""
    return float((positive > negative[-k]).mean()) if len(negative) >= k else None


def _mean_reciprocal_rank(positive: np.ndarray, negative: np.ndarray) -> float:
    above = len(negative) - np.searchsorted(negative, positive, side="right")
    equal = np.searchsorted(negative, positive, side="right") - np.searchsorted(negative, positive)
    return float((1 / (1 + above + equal / 2)).mean())


def rare_class(labels: Tensor, num_classes: int) -> int:
    """The class with the fewest labels ``[M]``; of several, the last.

    Example:
        >>> rare_class(torch.tensor([0, 0, 0, 1]), 2), rare_class(torch.tensor([0, 1]), 2)
        (1, 1)
    """
    counts = torch.bincount(labels.cpu(), minlength=num_classes).tolist()
    return max(range(num_classes), key=lambda label: (-counts[label], label))
