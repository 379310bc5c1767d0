"""What all learned metrics share: a shape, bounds, and where they start."""

import math

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.errors import require
from argnn.functional.metric import xavier_half_width
from argnn.nn.metric.base import Metric
from argnn.nn.metric.shapes import METRIC_SHAPES

METRIC_INITS = ("uniform", "ones", "degree", "xavier")


class LearnedMetric(Metric):
    r"""A metric of a given shape whose numbers are learned.

    Args:
        metric_channels: Size :math:`D` of the vectors that the metric measures.
        shape: A name in ``argnn.nn.metric.METRIC_SHAPES``.
        rank: Columns of the factor, for the shape ``"lowrank"``.
        block: Channels of a block, for the shape ``"block"``.
        init: Metric at the start, before ``start`` scales it, see :class:`~argnn.nn.MetricNet`.
        start: Factor on the metric at the start. At 1 no message passes in the first step.
        floor: Smallest metric :math:`\epsilon`.
        ceiling: Largest metric; none by default. It bounds the positive numbers of a shape, not its
            free ones.
        sharpness: :math:`\beta` of the softplus.
        clamp: Whether smaller values are raised to the floor, instead of adding it to all values.
    """

    switches = {
        "metric_shape": "shape",
        "metric_rank": "rank",
        "metric_block": "block",
        "metric_init": "init",
        "metric_start": "start",
        "metric_floor": "floor",
        "metric_ceiling": "ceiling",
    }

    def __init__(
        self,
        metric_channels: int,
        *,
        shape: str = "diagonal",
        rank: int = 2,
        block: int = 8,
        init: str = "ones",
        start: float = 0.5,
        floor: float = 1e-6,
        ceiling: float | None = None,
        sharpness: float = 1.0,
        clamp: bool = False,
    ) -> None:
        super().__init__()
        known = tuple(METRIC_SHAPES)
        require(shape in METRIC_SHAPES, "shape", f"one of {known}", repr(shape))
        require(rank >= 1 and block >= 1, "rank and block", "positive", f"{rank}, {block}")
        require(init in METRIC_INITS, "init", f"one of {METRIC_INITS}", repr(init))
        require(0 < sharpness < math.inf, "sharpness", "positive and finite", sharpness)
        highest = math.inf if ceiling is None else ceiling
        if not 0 < 2 * floor < start < highest:
            # At or beyond its bounds a metric has no gradient.
            raise ValueError(
                f"need 0 < 2 * floor < start < ceiling (got floor {floor}, start {start}, "
                f"ceiling {ceiling})"
            )
        self.metric_channels = metric_channels
        self.shape = METRIC_SHAPES[shape](metric_channels, rank=rank, block=block)
        self.init, self.start = init, start
        self.floor, self.ceiling = floor, ceiling
        self.sharpness, self.clamp = sharpness, clamp

    @property
    def metric_size(self) -> tuple[int, ...]:
        """Shape of the metric of one node."""
        return self.shape.size

    @property
    def num_numbers(self) -> int:
        """How many numbers of a node its metric is made from; positive ones, then free ones."""
        return self.shape.num_positive + self.shape.num_free

    def metric_of(self, raw: Tensor) -> Tensor:
        """Metrics from numbers without bounds, ``[N, num_numbers] -> [N, *metric_size]``."""
        count = self.shape.num_positive
        free = raw[:, count:]
        positive = AF.positive_diagonal(
            raw if self.num_numbers == count else raw[:, :count],
            floor=self.floor,
            ceiling=self.ceiling,
            sharpness=self.sharpness,
            clamp=self.clamp,
        )
        return self.shape.metric(positive, free, self.floor)

    def drawn_raw(self) -> Tensor:
        """Numbers that :meth:`metric_of` maps to the start, ``[num_numbers]``."""
        positive = self._raw(self._drawn_positive())
        if self.shape.num_free == 0:
            return positive
        return torch.cat([positive, self.shape.drawn_free(self.start)])

    @property
    def half_width(self) -> float:
        """How far the positive numbers may be from ``start`` at the start, relative to it."""
        widths = {"uniform": 0.5, "xavier": xavier_half_width(self.metric_channels)}
        return widths.get(self.init, 0.0)

    def _drawn_positive(self) -> Tensor:
        half = self.half_width
        if half == 0:
            return torch.full((self.shape.num_positive,), self.start)
        return self.start * torch.empty(self.shape.num_positive).uniform_(1 - half, 1 + half)

    def _raw(self, g: Tensor) -> Tensor:
        lowest = 2 * self.floor
        return AF.raw_from_diagonal(
            g.clamp_min(lowest), floor=self.floor, sharpness=self.sharpness, clamp=self.clamp
        )
