"""Families of metrics, one per file, and the table of their names."""

from argnn.nn.metric.base import Metric
from argnn.nn.metric.constant import ConstantMetric
from argnn.nn.metric.network import METRIC_INITS, METRIC_INPUTS, MetricNet

#: Every family by the name that the option ``metric`` uses.
METRICS: dict[str, type[Metric]] = {
    "fixed": ConstantMetric,
    "features": MetricNet,
    "structure": MetricNet,
    "both": MetricNet,
}

__all__ = ["METRICS", "METRIC_INITS", "METRIC_INPUTS", "ConstantMetric", "Metric", "MetricNet"]
