"""Families of metrics: where their numbers come from, which shape they have.

One file and one line of a table for each.
"""

from argnn.nn.metric.base import Metric
from argnn.nn.metric.constant import ConstantMetric
from argnn.nn.metric.free import FreeMetric
from argnn.nn.metric.learned import METRIC_INITS, LearnedMetric
from argnn.nn.metric.network import METRIC_INPUTS, MetricNet
from argnn.nn.metric.shapes import METRIC_SHAPES, MetricShape
from argnn.nn.metric.shared import SharedMetric

#: Where the numbers of a metric come from, by the name that the option ``metric`` uses.
METRICS: dict[str, type[Metric]] = {
    "fixed": ConstantMetric,
    "features": MetricNet,
    "structure": MetricNet,
    "both": MetricNet,
    "message": MetricNet,
    "shared": SharedMetric,
    "free": FreeMetric,
}

__all__ = [
    "METRICS", "METRIC_INITS", "METRIC_INPUTS", "METRIC_SHAPES", "ConstantMetric", "FreeMetric",
    "LearnedMetric", "Metric", "MetricNet", "MetricShape", "SharedMetric",
]  # fmt: skip
