"""Where the metric of a node comes from, one family per file, and the table they are found in."""

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
