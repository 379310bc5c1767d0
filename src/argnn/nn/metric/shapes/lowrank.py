"""Metrics of low rank plus a diagonal."""

import math
from typing import Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.nn.metric.shapes.base import MetricShape

#: Squared length of a column of the factor at the start, as a share of the diagonal.
_START_SHARE = 0.1


class LowRankShape(MetricShape):
    r""":math:`\mathrm{diag}(\mathbf{g}) + \mathbf{U}\mathbf{U}^\top` with ``rank`` columns.

    The paper's future work. The free numbers are :math:`\mathbf{U}`. It starts with small random
    columns, since at :math:`\mathbf{U} = 0` its gradient is zero.
    """

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__(channels, **options)
        self.num_free = self.rank * channels
        self.size = (1 + self.rank, channels)

    def metric(self, positive: Tensor, free: Tensor, floor: float) -> Tensor:
        """A factored field, ``[N, 1 + R, D]``."""
        return AF.factored_metric(positive, free.view(-1, self.rank, self.channels))

    def drawn_free(self, start: float, generator: torch.Generator | None = None) -> Tensor:
        """Small random numbers, ``[R * D]``."""
        scale = math.sqrt(_START_SHARE * start / self.channels)
        return scale * torch.randn(self.num_free, generator=generator)
