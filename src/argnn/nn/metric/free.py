"""A metric whose numbers are parameters of each node."""

from typing import Any

import torch
from torch import Tensor, nn

from argnn.errors import require
from argnn.functional.neighborhood import Edges, neighborhood
from argnn.nn.metric.learned import LearnedMetric
from argnn.nn.metric.shapes import MetricShape
from argnn.nn.node_weights import NodeWeights


class FreeMetric(LearnedMetric):
    r"""Parameters of each node instead of a network; for the graph of the training only.

    The positive numbers of a shape are parameters themselves, without a softplus. So they have a
    constraint :math:`g \ge \epsilon`, which :meth:`constrain` restores after every step of an
    optimiser, and a Riemannian optimiser can move them along geodesics
    (``argnn.train.riemannian``). Weight decay pulls them to the floor.

    Args:
        metric_channels: Size :math:`D` of the vectors that the metric measures.
        **options: See :class:`~argnn.nn.LearnedMetric`; ``"uniform"`` and ``"xavier"`` are drawn
            for each node.
    """

    def __init__(self, metric_channels: int, **options: Any) -> None:
        super().__init__(metric_channels, **options)
        require(self.init != "degree", "init of a free metric", "not 'degree'", repr(self.init))
        shape = self.shape
        self.positive = _PositiveRows(shape.num_positive, self.start, self.half_width)
        self.free = _FreeRows(shape, self.start) if shape.num_free else None

    def _tables(self) -> list[NodeWeights]:
        return [self.positive, *([] if self.free is None else [self.free])]

    def reset_parameters(self) -> None:
        """Draw all rows anew, for the same graph if there was one."""
        for table in self._tables():
            table.reset_parameters()

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Make the rows of a graph, if there was none before."""
        for table in self._tables():
            table.fit_to_graph(num_nodes)

    def node_parameters(self) -> list[nn.Parameter]:
        """All parameters: each has one row per node."""
        return [table.weight for table in self._tables()]

    def positive_parameters(self) -> list[nn.Parameter]:
        """The positive numbers."""
        return [self.positive.weight]

    @torch.no_grad()
    def constrain(self) -> None:
        """Bring the positive numbers back between floor and ceiling."""
        self.positive.weight.clamp_(self.floor, self.ceiling)

    def forward(self, h: Tensor, edge_index: Edges) -> Tensor:
        """Metrics, ``[N, *metric_size]``."""
        hood = neighborhood(edge_index, h.size(0))
        # A copy, since the next step changes the parameter, and the metric may be kept.
        positive = self.positive.rows(hood, h.size(0)).clone()
        free = positive[:, :0] if self.free is None else self.free.rows(hood, h.size(0))
        return self.shape.metric(positive, free, self.floor)


class _PositiveRows(NodeWeights):
    def __init__(self, channels: int, start: float, half_width: float) -> None:
        super().__init__(channels)
        self.start, self.half_width = start, half_width
        self.reset_parameters()

    def drawn(self, num_nodes: int, generator: torch.Generator) -> Tensor:
        """Numbers around the start."""
        low, high = 1 - self.half_width, 1 + self.half_width
        drawn = torch.rand(num_nodes, self.out_channels, generator=generator)
        return self.start * (low + (high - low) * drawn)


class _FreeRows(NodeWeights):
    def __init__(self, shape: MetricShape, start: float) -> None:
        super().__init__(shape.num_free)
        self.shape, self.start = shape, start
        self.reset_parameters()

    def drawn(self, num_nodes: int, generator: torch.Generator) -> Tensor:
        """The same numbers in all rows."""
        return self.shape.drawn_free(self.start, generator).repeat(num_nodes, 1)
