"""A metric that is the same everywhere."""

import math

from torch import Tensor

from argnn.errors import require
from argnn.functional.neighborhood import Edges
from argnn.nn.metric.base import Metric


class ConstantMetric(Metric):
    r"""The same metric :math:`\mathbf{g}_i = c\,\mathbf{1}` at every node.

    The paper's fixed geometries: Euclidean :math:`c = 1`, hyperbolic 0.5, spherical 2.

    Args:
        metric_channels: Size :math:`D` of the metric.
        value: :math:`c > 0`.
    """

    switches = {"metric_value": "value"}

    def __init__(self, metric_channels: int, value: float = 0.5) -> None:
        super().__init__()
        require(0 < value < math.inf, "value", "positive and finite", value)
        self.metric_channels = metric_channels
        self.value = value

    def forward(self, h: Tensor, edge_index: Edges) -> Tensor:
        """Metric diagonals, ``[N, D]``."""
        return h.new_full((h.size(0), self.metric_channels), self.value)

    def extra_repr(self) -> str:
        """Size and value."""
        return f"{self.metric_channels}, value={self.value}"
