"""The validation scores that may choose the epoch, computed where the outputs are.

They are scikit-learn's scores, without a transfer from the device. Equal outputs count together.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from argnn.errors import ConfigError

#: What may choose the epoch of each task; the first is what does unless told otherwise.
SELECTIONS: Mapping[str, tuple[str, ...]] = {
    "node": ("accuracy", "f1_macro", "auroc", "average_precision", "loss"),
    "link": ("auroc", "average_precision", "loss"),
    "regression": ("r2", "loss"),
    "multilabel": ("average_precision", "f1_macro", "f1_micro", "loss"),
}
#: All of their names.
SELECTION_NAMES = tuple(dict.fromkeys(name for names in SELECTIONS.values() for name in names))
_RANKINGS = ("auroc", "average_precision")


def selection_of(task: str, select: str | None, option: str = "select") -> str:
    """The score that chooses the epoch of a task; the usual one if none is named."""
    known = SELECTIONS[task]
    if select is not None and select not in known:
        raise ConfigError(
            f"{option} must be one of {', '.join(known)} for task {task} (got {select})"
        )
    return select or known[0]


def average_precision(scores: Tensor, positive: Tensor) -> Tensor:
    r"""Average precision of each row, :math:`\sum_n (R_n - R_{n-1}) P_n`; NaN without positives.

    Args:
        scores: Larger for what should be positive, ``[..., M]``.
        positive: What is positive, boolean, ``[..., M]``.

    Example:
        >>> average_precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]))
        tensor(0.8333, dtype=torch.float64)
    """
    label, _, last = _ranked(scores, positive)
    # All of equal scores are found at once: precision is that at the last of them.
    precision = label.cumsum(-1).gather(-1, last) / (last + 1)
    return (label * precision).sum(-1) / label.sum(-1)


def area_under_curve(scores: Tensor, positive: Tensor) -> Tensor:
    """Area under the ROC curve of each row; the arguments are those of `average_precision`.

    It is the share of pairs of a positive and a negative that are in the right order, where equal
    scores count half; NaN if there is no such pair.

    Example:
        >>> area_under_curve(torch.tensor([3.0, 2.0, 2.0]), torch.tensor([True, False, True]))
        tensor(0.7500, dtype=torch.float64)
    """
    label, first, last = _ranked(scores, positive)
    count, found = label.size(-1), label.sum(-1)
    below = count - 1 - (first + last).double() / 2
    pairs = (label * below).sum(-1) - found * (found - 1) / 2
    return pairs / (found * (count - found))


def _ranked(scores: Tensor, positive: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Labels by falling score, and the places of the first and last of each one's equals."""
    scores, order = scores.sort(dim=-1, descending=True, stable=True)
    label = positive.double().gather(-1, order)
    place = torch.arange(scores.size(-1), device=scores.device).expand(scores.shape)
    changes = scores[..., 1:] != scores[..., :-1]
    edge = torch.ones_like(scores[..., :1], dtype=torch.bool)
    first = torch.where(torch.cat([edge, changes], -1), place, 0).cummax(-1).values
    last = torch.where(torch.cat([changes, edge], -1), place, scores.size(-1))
    return label, first, last.flip(-1).cummin(-1).values.flip(-1)


def f1_macro(predicted: Tensor, labels: Tensor, num_classes: int) -> Tensor:
    """F1 averaged over the classes present in labels ``[M]`` or predictions ``[M]``."""
    classes = torch.arange(num_classes, device=labels.device)
    said, true = predicted.unsqueeze(-1) == classes, labels.unsqueeze(-1) == classes
    return f1_mean(said, true)


def f1_mean(said: Tensor, true: Tensor) -> Tensor:
    """Mean F1 of the columns of decisions ``[M, C]`` in which something is said or true."""
    both, either = (said & true).sum(0).double(), (said.sum(0) + true.sum(0)).double()
    return (2 * both / either.clamp_min(1)).sum() / (either > 0).sum().clamp_min(1)


def f1_micro(said: Tensor, true: Tensor) -> Tensor:
    """F1 of all decisions ``[M, C]`` together; 0 if nothing is said or true."""
    both, either = (said & true).sum().double(), (said.sum() + true.sum()).double()
    return 2 * both / either.clamp_min(1)


def class_score(select: str, logits: Tensor, labels: Tensor, rare: int) -> Tensor:
    """A score of raw outputs ``[M, C]``, larger for better, as a scalar on their device.

    For two classes, ``auroc`` and ``average_precision`` are those of the class ``rare``. For more,
    they are means of one class against the rest, over the classes that are present.
    """
    if select == "accuracy":
        return (logits.argmax(-1) == labels).double().mean()
    if select == "f1_macro":
        return f1_macro(logits.argmax(-1), labels, logits.size(-1))
    probability = torch.softmax(logits.double(), dim=-1)
    classes = torch.arange(logits.size(-1), device=labels.device)
    if logits.size(-1) == 2:
        classes, probability = classes[rare : rare + 1], probability[:, rare : rare + 1]
    return ranking_mean(select, probability, labels.unsqueeze(-1) == classes)


def ranking_mean(select: str, scores: Tensor, positive: Tensor) -> Tensor:
    """Mean of a ranking score over the columns ``[M, C]`` that have one."""
    score = {"auroc": area_under_curve, "average_precision": average_precision}[select]
    values = score(scores.t().contiguous(), positive.t().contiguous())
    return values.nanmean()


def require_classes(select: str, labels: Tensor) -> None:
    """Raise unless a score can be computed for validation labels ``[M]``."""
    found = labels.unique().numel()
    if select in _RANKINGS and found < 2:
        raise ConfigError(f"select {select} needs validation nodes of two classes (got {found})")
