r"""How much a metric field varies over the nodes, and what it goes along with.

Ranges are those between the 2nd and the 98th percentile of the known values, so that a few far
nodes do not decide; where both are equal, between the extremes.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from torch import Tensor

from argnn import functional as AF
from argnn.analysis.layers import Layer

#: What varies by a smaller share is nearly constant.
HARDLY = 0.05
#: Statistics of which one opens a page, the plainest first: all are means over the axes.
MAIN_STATISTICS = ("log_volume", "kappa", "main_variation")
# Two points always lie on a line: their correlation says nothing.
_FEWEST_FOR_CORRELATION = 3
_LARGEST_LOG = 50.0  # no metric in float32 has a larger range


class Peak(NamedTuple):
    """Layer (from 0) and statistic that vary most, and by how much."""

    layer: int
    statistic: str
    variation: float


def middle_range(values: NDArray[Any]) -> tuple[float, float]:
    """The 2nd and 98th percentile of the known values; the extremes where these are equal.

    Example:
        >>> middle_range(np.array([0.0] * 99 + [1.0, np.nan]))
        (0.0, 1.0)
    """
    known = values[np.isfinite(values)]
    if not known.size:
        return 0.0, 0.0
    low, high = np.percentile(known, [2, 98])
    if low == high:
        low, high = known.min(), known.max()
    return float(low), float(high)


def metric_variation(statistics: Mapping[str, NDArray[Any]], layer: Layer) -> dict[str, float]:
    r"""The relative change of the metric that the range of each statistic stands for.

    Of :math:`\kappa` and anisotropy, which are logarithms, :math:`e^{\Delta} - 1` of the range
    :math:`\Delta`; of the log volume, half a sum over :math:`D` axes, that of
    :math:`2\Delta / D`; of the main variation that of :math:`\Delta / \sqrt{D}`. Of the effective
    rank and the mean of 1/g the largest over the smallest value, less one. The dispersion is a
    relative difference already; the Ricci norm is compared with the mean length of the metric's
    diagonal.
    """
    axes = layer.g.size(-1)
    ranges = {name: middle_range(values) for name, values in statistics.items()}
    gap = {name: high - low for name, (low, high) in ranges.items()}
    length = float(AF.metric_diagonal(layer.g.double()).norm(dim=-1).mean())
    ratios = {
        name: high / low - 1
        for name, (low, high) in ranges.items()
        if name in ("effective_rank", "inverse_metric") and low > 0
    }
    return {
        "kappa": _growth(gap["kappa"]),
        "inverse_metric": ratios.get("inverse_metric", 0.0),
        "anisotropy": _growth(gap["anisotropy"]),
        "effective_rank": ratios.get("effective_rank", 0.0),
        "log_volume": _growth(2 * gap["log_volume"] / axes),
        "main_variation": _growth(gap["main_variation"] / axes**0.5),
        "ricci_norm": gap["ricci_norm"] / length,
        "dispersion": gap["dispersion"],
    }


def axis_variation(log_g: NDArray[Any]) -> NDArray[np.float64]:
    r"""Relative change of :math:`g` on each axis over the nodes, from ``[N, D]`` to ``[D]``."""
    low, high = np.percentile(log_g, [2, 98], axis=0)
    found: NDArray[np.float64] = np.expm1(np.minimum(high - low, _LARGEST_LOG))
    return found


def peak(variations: list[dict[str, float]]) -> Peak | None:
    """Layer and main statistic that vary most; None without layers."""
    found = [
        Peak(layer, name, variation[name])
        for layer, variation in enumerate(variations)
        for name in MAIN_STATISTICS
    ]
    return max(found, key=lambda each: each.variation, default=None)


def spearman(first: NDArray[Any], second: NDArray[Any]) -> tuple[float, int]:
    """Rank correlation over the places where both are known, and the number of these.

    NaN where there are fewer than three, or where one of the two is constant.
    """
    known = np.isfinite(first) & np.isfinite(second)
    count = int(known.sum())
    ranks = [rankdata(values[known]) for values in (first, second)]
    if count < _FEWEST_FOR_CORRELATION or any(np.ptp(each) == 0 for each in ranks):
        return float("nan"), count
    return float(np.corrcoef(*ranks)[0, 1]), count


def class_share(values: NDArray[Any], labels: NDArray[Any]) -> float | None:
    r"""Share of the variance of a statistic that lies between classes, from 0 to 1.

    :math:`1 - \frac{(N - 1)\,\mathrm{SS_{within}}}{(N - C)\,\mathrm{SS_{total}}}`, at least 0: the
    correction for :math:`C` means leaves 0 on average where classes do not matter. None where
    there are fewer than two classes, no more nodes than classes, or nothing varies.
    """
    known = np.isfinite(values) & (labels >= 0)
    values, (names, place) = values[known], np.unique(labels[known], return_inverse=True)
    total = float(((values - values.mean()) ** 2).sum()) if values.size else 0.0
    if len(names) < 2 or values.size <= len(names) or total == 0:
        return None
    means = np.bincount(place, weights=values) / np.bincount(place)
    within = float(((values - means[place]) ** 2).sum())
    return max(0.0, 1 - (values.size - 1) * within / ((values.size - len(names)) * total))


def farthest_nodes(log_g: Tensor, most: int) -> list[tuple[int, float]]:
    """Nodes whose metric is farthest from the mean, and how far: root mean square of log g."""
    apart = (log_g - log_g.mean(0)).square().mean(-1).sqrt()
    values, nodes = apart.topk(min(most, len(apart)))
    return list(zip(nodes.tolist(), values.tolist(), strict=True))


def _growth(difference: float) -> float:
    return float(np.expm1(min(difference, _LARGEST_LOG)))
