"""Metrics that are constant on blocks of channels."""

from typing import Any

from torch import Tensor

from argnn.nn.metric.shapes.base import MetricShape


class BlockShape(MetricShape):
    r"""A product of spaces with one scale each: :math:`\mathrm{diag}(g_1\mathbf{1}, g_2\mathbf{1}, \dots)`.

    A block has ``block`` channels, the last one perhaps fewer. Blocks of one channel are a diagonal
    metric.
    """  # noqa: E501

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__(channels, **options)
        self.num_positive = -(-channels // self.block)

    def metric(self, positive: Tensor, free: Tensor, floor: float) -> Tensor:
        """The number of the block of each channel, ``[N, D]``."""
        spread = positive.unsqueeze(-1).expand(-1, -1, self.block)
        return spread.reshape(positive.size(0), -1)[:, : self.channels].contiguous()
