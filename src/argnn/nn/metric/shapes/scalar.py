"""Metrics that are a number times the unit matrix."""

from typing import Any

from argnn.nn.metric.shapes.block import BlockShape


class ScalarShape(BlockShape):
    r"""One number per node, :math:`g\,\mathbf{I}`: a single block of all channels."""

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__(channels, **{**options, "block": channels})
