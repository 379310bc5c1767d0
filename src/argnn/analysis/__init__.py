"""Looking at what was learned."""

from argnn.analysis.geometry import MetricStatistics, learned_metrics, metric_statistics

__all__ = ["MetricStatistics", "learned_metrics", "metric_statistics"]
