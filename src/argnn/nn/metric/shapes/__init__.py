"""Shapes of metrics, one per file, and the table of their names."""

from argnn.nn.metric.shapes.base import MetricShape
from argnn.nn.metric.shapes.block import BlockShape
from argnn.nn.metric.shapes.diagonal import DiagonalShape
from argnn.nn.metric.shapes.full import FullShape
from argnn.nn.metric.shapes.lowrank import LowRankShape
from argnn.nn.metric.shapes.scalar import ScalarShape

#: Every shape by the name that the option ``metric_shape`` uses.
METRIC_SHAPES: dict[str, type[MetricShape]] = {
    "diagonal": DiagonalShape,
    "scalar": ScalarShape,
    "block": BlockShape,
    "lowrank": LowRankShape,
    "full": FullShape,
}

__all__ = ["METRIC_SHAPES", "MetricShape"]
