"""Metrics that are any positive definite matrix."""

from typing import Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.errors import require
from argnn.nn.metric.shapes.base import MetricShape

#: Most channels: a node has about D * D / 2 numbers, and a step takes D * D * D for each node.
MOST_CHANNELS = 64


class FullShape(MetricShape):
    r"""Any positive definite matrix: :math:`\frac{\epsilon}{2}\mathbf{I} + \mathbf{L}\mathbf{L}^\top`.

    :math:`\mathbf{L}` is a lower triangular matrix, the Cholesky factor. The free numbers are its
    entries below the diagonal; those on it are :math:`L_{kk} = \sqrt{g_k - \epsilon/2}`. So no
    eigenvalue is below half the floor :math:`\epsilon`, and at :math:`g_k = \epsilon` there is
    still a gradient.
    """  # noqa: E501

    def __init__(self, channels: int, **options: Any) -> None:
        super().__init__(channels, **options)
        fits = f"at most {MOST_CHANNELS} for full metrics (hidden_channels); lowrank takes more"
        require(channels <= MOST_CHANNELS, "the channels of a metric", fits, channels)
        self.num_free = channels * (channels - 1) // 2
        self.size = (1 + channels, channels)
        # Place of each entry of the transposed factor among roots, free numbers and a zero.
        place = torch.full((channels, channels), channels + self.num_free)
        row, column = torch.tril_indices(channels, channels, -1)
        place[column, row] = channels + torch.arange(self.num_free)
        self._place = place.fill_diagonal_(0) + torch.diag(torch.arange(channels))

    def metric(self, positive: Tensor, free: Tensor, floor: float) -> Tensor:
        """A factored field, ``[N, 1 + D, D]``."""
        roots = (positive - floor / 2).sqrt()
        numbers = torch.cat([roots, free, torch.zeros_like(roots[:, :1])], dim=1)
        place = self._place.to(numbers.device).flatten()
        factor = numbers.index_select(1, place).view(-1, self.channels, self.channels)
        return AF.factored_metric(torch.full_like(positive, floor / 2), factor)
