"""Diagonal metrics."""

from torch import Tensor

from argnn.nn.metric.shapes.base import MetricShape


class DiagonalShape(MetricShape):
    r"""The paper's metric :math:`\mathrm{diag}(\mathbf{g})`: one number per channel."""

    def metric(self, positive: Tensor, free: Tensor, floor: float) -> Tensor:
        """The positive numbers themselves, ``[N, D]``."""
        return positive
