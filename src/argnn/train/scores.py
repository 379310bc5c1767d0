"""Numbers that judge a model."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from torch import Tensor


@dataclass(frozen=True)
class NodeScores:
    """Scores of a node classifier on one set of nodes.

    Attributes:
        f1: F1 weighted by class size, the paper's "F1".
        f1_macro: F1 averaged over the classes present in labels or predictions.
        accuracy: Share of right predictions.
        auroc: One-vs-rest area under the ROC curve, weighted by class size; None where fewer
            than two classes are present.
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
        f1=float(f1_score(label, predicted, average="weighted", zero_division=0)),
        f1_macro=float(f1_score(label, predicted, average="macro", zero_division=0)),
        accuracy=float((label == predicted).mean()),
        auroc=_one_vs_rest(roc_auc_score, label, probability, present, sizes),
        auprc=_one_vs_rest(average_precision_score, label, probability, present, sizes),
        absent_classes=tuple(absent),
        count=len(label),
    )


def _one_vs_rest(
    score: Any, label: np.ndarray, probability: np.ndarray, present: np.ndarray, sizes: np.ndarray
) -> float | None:
    """Mean of a binary score over the present classes, weighted by their size."""
    if len(present) < 2:
        return None
    values = [score(label == c, probability[:, c]) for c in present]
    return float(np.average(values, weights=sizes))
