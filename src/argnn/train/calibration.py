"""Calibrated probabilities by one temperature, chosen on validation."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from scipy.optimize import minimize_scalar
from torch import Tensor
from torch.nn import functional as F

from argnn.functional.precision import at_wide, widened

#: Bins of equal width that confidences are sorted into.
NUM_BINS = 15
#: Smallest and largest temperature.
TEMPERATURES = (0.05, 20.0)
#: Expected standard deviation of the logarithm of the temperature. Without it, a few nodes that are
#: all predicted rightly would push every probability to 0 or 1.
USUAL_SPREAD = math.log(2)


@dataclass(frozen=True)
class Calibration:
    """A temperature, and its effect on the nodes or pairs that it was chosen on.

    Attributes:
        temperature: Divisor of raw scores; above 1 if the model is too confident.
        ece: Expected calibration error with it.
        ece_uncalibrated: The same at temperature 1.
        nll: Mean negative log-likelihood with it.
        nll_uncalibrated: The same at temperature 1.
        count: Number of nodes or pairs.
    """

    temperature: float
    ece: float
    ece_uncalibrated: float
    nll: float
    nll_uncalibrated: float
    count: int


def calibrate(logits: Tensor, y: Tensor) -> Calibration:
    """Choose a temperature for raw scores ``[M, C]`` and labels ``[M]``; measure its effect."""
    temperature = best_temperature(logits, y)
    return Calibration(
        temperature=temperature,
        ece=calibration_error(probabilities(logits, temperature), y),
        ece_uncalibrated=calibration_error(probabilities(logits), y),
        nll=_negative_log_likelihood(logits, y, temperature),
        nll_uncalibrated=_negative_log_likelihood(logits, y, 1.0),
        count=y.numel(),
    )


def best_temperature(logits: Tensor, y: Tensor) -> float:
    r"""The most probable temperature, within :data:`TEMPERATURES`.

    .. math::
        \min_T\; -\sum_i \log \mathrm{softmax}(\mathbf{z}_i / T)_{y_i}
        + \frac{(\log T)^2}{2 \sigma^2}

    with :math:`\sigma` of :data:`USUAL_SPREAD`, which matters for small validation sets only. The
    order of scores, and so the predictions, do not change (Guo et al. 2017). If all classes always
    have the same score, the temperature is 1.
    """
    _check(logits, y)
    if not bool((logits.amax(-1) > logits.amin(-1)).any()):
        return 1.0

    def objective(log_t: float) -> float:
        likelihood = y.numel() * _negative_log_likelihood(logits, y, math.exp(log_t))
        return likelihood + (log_t / USUAL_SPREAD) ** 2 / 2

    limits = tuple(math.log(t) for t in TEMPERATURES)
    found = float(minimize_scalar(objective, bounds=limits, method="bounded").x)
    return math.exp(found) if objective(found) < objective(0.0) else 1.0


def probabilities(logits: Tensor, temperature: float = 1.0) -> Tensor:
    """Softmax of raw scores ``[M, C]`` at a temperature, in double precision."""
    return torch.softmax(widened(logits) / temperature, dim=-1)


def two_class_logits(logits: Tensor) -> Tensor:
    """Raw scores ``[P, 2]`` of "no" and "yes" from logits ``[P]`` of "yes"."""
    return torch.stack([torch.zeros_like(logits), logits], dim=-1)


def calibration_error(probability: Tensor, y: Tensor, num_bins: int = NUM_BINS) -> float:
    """Expected calibration error: mean difference of confidence and accuracy over bins.

    Example:
        >>> sure = torch.tensor([[0.1, 0.9]] * 10)
        >>> round(calibration_error(sure, torch.tensor([1] * 9 + [0])), 6)
        0.0
        >>> round(calibration_error(sure, torch.tensor([1] * 5 + [0] * 5)), 6)
        0.4
    """
    bins = reliability(probability, y, num_bins)
    gaps = [each.size * abs(each.right - each.confidence) for each in bins]
    return float(sum(gaps) / len(y))


class Bin(NamedTuple):
    """Nodes of similar confidence: their number, mean confidence, and the share that is right."""

    size: int
    confidence: float
    right: float


def reliability(
    probability: Tensor, y: Tensor, num_bins: int = NUM_BINS, predicted: Tensor | None = None
) -> list[Bin]:
    """Nodes by the probability of their predicted class, in bins of equal width; no empty ones.

    Args:
        probability: Of each class, ``[M, C]``.
        y: Labels, ``[M]``.
        num_bins: Bins between 0 and 1.
        predicted: The predicted classes, ``[M]``; the most probable ones if not given.
    """
    _check(probability, y)
    chosen = probability.argmax(-1) if predicted is None else predicted
    confidence = (
        widened(probability).gather(-1, at_wide(chosen).unsqueeze(-1)).squeeze(-1).cpu().numpy()
    )
    right = (chosen == y).cpu().numpy()
    place = np.minimum((confidence * num_bins).astype(np.int64), num_bins - 1)
    return [
        Bin(int(inside.sum()), float(confidence[inside].mean()), float(right[inside].mean()))
        for inside in (place == number for number in np.unique(place))
    ]


def _negative_log_likelihood(logits: Tensor, y: Tensor, temperature: float) -> float:
    return float(F.cross_entropy(widened(logits) / temperature, at_wide(y)))


def _check(values: Tensor, y: Tensor) -> None:
    if values.dim() != 2 or y.shape != values.shape[:1] or y.numel() == 0:
        raise ValueError(
            f"calibration needs values [M, C] and labels [M], M > 0 "
            f"(got {list(values.shape)} and {list(y.shape)})"
        )
