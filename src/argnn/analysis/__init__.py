"""Statistics, tables, explanations and figures of learned metrics."""

from argnn.analysis.explanation import NodeExplanation, explain_node
from argnn.analysis.geometry import (
    AxisStatistics,
    MetricStatistics,
    anisotropy,
    axis_statistics,
    dispersion,
    effective_rank,
    field_nrmd,
    learned_curvature,
    log_volume,
    main_variation,
    mean_curvature,
    mean_inverse,
    metric_statistics,
    ricci_norm,
)
from argnn.analysis.layers import Layer, learned_layers, learned_metrics
from argnn.analysis.rewiring import Rewiring, rewire
from argnn.analysis.tables import (
    axis_table,
    correlation_table,
    geometry_tables,
    group_table,
    layer_table,
    node_table,
    write_table,
    write_tables,
)

__all__ = [
    "AxisStatistics", "Layer", "MetricStatistics", "NodeExplanation", "Rewiring", "anisotropy",
    "axis_statistics", "axis_table", "correlation_table", "dispersion", "effective_rank",
    "explain_node", "field_nrmd", "geometry_tables", "group_table", "layer_table",
    "learned_curvature", "learned_layers", "learned_metrics", "log_volume", "main_variation",
    "mean_curvature", "mean_inverse", "metric_statistics", "node_table", "rewire", "ricci_norm",
    "write_table", "write_tables",
]  # fmt: skip
