"""Scores of predictions."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score, roc_curve
from torch import Tensor


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


def node_scores(logits: Tensor, y: Tensor) -> NodeScores:
    """Score raw outputs ``[M, C]`` against labels ``[M]``."""
    if y.numel() == 0:
        raise ValueError("cannot score an empty set of nodes")
    probability = torch.softmax(logits.double(), dim=-1).cpu().numpy()
    label = y.cpu().numpy()
    predicted = probability.argmax(-1)
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
    return float(roc_auc_score(labels.cpu().numpy(), logits.double().cpu().numpy()))


def _labelled_pairs(edges: Tensor, non_edges: Tensor) -> tuple[np.ndarray, np.ndarray]:
    if 0 in (edges.numel(), non_edges.numel()):
        raise ValueError("cannot score an empty set of pairs")
    logits = torch.cat([edges, non_edges]).double().cpu().numpy()
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
