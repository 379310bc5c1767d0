"""The interface of all shapes of metrics."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor


class MetricShape(ABC):
    """Which matrices the metrics of a layer can be, and how numbers of a node become its matrix.

    A new shape is a subclass in a new file and a line in ``argnn.nn.metric.METRIC_SHAPES``.

    Args:
        channels: Size :math:`D` of the vectors that the metric measures.
        rank: For shapes that have one.
        block: Channels of a block, for shapes that have blocks.

    Attributes:
        num_positive: How many positive numbers of each node a metric is made from.
        num_free: How many numbers without any bound.
        size: Shape of the metric of one node, ``(D,)`` or ``(1 + R, D)``.
    """

    num_positive: int
    num_free: int = 0
    size: tuple[int, ...]

    def __init__(self, channels: int, *, rank: int, block: int) -> None:
        self.channels, self.rank, self.block = channels, rank, block
        self.num_positive, self.size = channels, (channels,)

    @abstractmethod
    def metric(self, positive: Tensor, free: Tensor, floor: float) -> Tensor:
        """The metrics, ``[N, *size]``.

        Args:
            positive: Numbers from ``floor`` up, ``[N, num_positive]``.
            free: Any numbers, ``[N, num_free]``; zero gives a diagonal metric.
            floor: Bound of the positive numbers.
        """

    def drawn_free(self, start: float, generator: torch.Generator | None = None) -> Tensor:
        """The free numbers of a node at the start of training, ``[num_free]``."""
        return torch.zeros(self.num_free)
