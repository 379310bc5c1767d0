"""A metric that a small network learns."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import reset

from argnn import functional as AF
from argnn.errors import require
from argnn.functional.graph_part import computed_rows
from argnn.functional.neighborhood import Edges, Neighborhood, neighborhood
from argnn.functional.structure import NUM_DESCRIPTORS
from argnn.nn.graph_statistics import (
    OF_DESCRIPTOR,
    GraphStatistics,
    descriptor_statistics,
    standard_descriptor,
)
from argnn.nn.metric.learned import LearnedMetric

METRIC_INPUTS = ("features", "structure", "both", "message")


class MetricNet(LearnedMetric):
    r"""Metric of every node from its neighbourhood (:eq:`metric`).

    .. math:: \mathbf{g}_i = \mathrm{softplus}(\mathrm{MLP}(\boldsymbol\phi_i)) + \epsilon

    with :math:`\boldsymbol\phi_i = [\mathbf{h}_i; \mathbf{a}_i]` in the paper. By default the
    weights of the last layer start at zero, so that the metric starts exactly at the value that
    ``init`` names.

    The structural descriptor :math:`\mathbf{s}_i` is standardised by means and deviations over the
    training graph, and the start ``"degree"`` is divided by such a mean. These numbers are stored
    with the weights. :meth:`fit_to_graph` computes them, or else the first call in training mode.
    Before that, means are 0 and divisors are 1.

    Args:
        in_channels: Size of the node features.
        metric_channels: Size :math:`D` of the vectors that the metric measures.
        inputs: ``"features"`` is the paper's :math:`[\mathbf{h}_i; \mathbf{a}_i]`,
            ``"structure"`` the structural descriptor :math:`\mathbf{s}_i` alone, and ``"both"``
            is :math:`[\mathbf{h}_i; \mathbf{a}_i; \mathbf{v}_i; \mathbf{s}_i]` with the
            dispersion :math:`\mathbf{v}_i` of the neighbours. ``"message"`` is
            :math:`[\mathbf{h}_i; \mathbf{m}_i; \mathbf{s}_i]` with the sums
            :math:`\mathbf{m}_i` that carry the messages: the layer has computed them anyway, so
            that the metric gathers no row of a neighbour.
        hidden_channels: Width of the hidden layers.
        num_layers: Number of linear layers: 1, 2 or 3.
        init: Metric at the start, before ``start`` scales it: ``"ones"``; ``"uniform"`` in
            [0.5, 1.5] and ``"xavier"`` in :math:`1 \pm \sqrt{3/D}`, drawn per channel; or
            ``"degree"``, :math:`(1+\log(1+d_i))` divided by its mean over the training graph
            (the paper names a degree-based start without defining it).
        start: Factor on the metric at the start. At 1 no message passes in the first step.
        spread: Factor on the last layer's random weights at the start; 1 leaves PyTorch's weights.
        norm: Whether hidden layers are layer-normalised.
        num_sums: Number of sums of messages, for the inputs ``"message"``.
        closed: Whether :math:`\mathbf{a}_i` is a mean over node :math:`i` and its neighbours.
        **options: See :class:`~argnn.nn.LearnedMetric`: shape, floor, ceiling, softplus.
    """

    switches = {
        **LearnedMetric.switches,
        "metric_hidden": "hidden_channels",
        "metric_layers": "num_layers",
        "metric_spread": "spread",
        "metric_sharpness": "sharpness",
        "metric_clamp": "clamp",
        "metric_norm": "norm",
        "metric_closed": "closed",
    }

    def __init__(
        self,
        in_channels: int,
        metric_channels: int,
        *,
        inputs: str = "features",
        hidden_channels: int = 64,
        num_layers: int = 2,
        init: str = "xavier",
        start: float = 1.0,
        spread: float = 0.0,
        norm: bool = False,
        closed: bool = False,
        num_sums: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(metric_channels, init=init, start=start, **options)
        require(inputs in METRIC_INPUTS, "inputs", f"one of {METRIC_INPUTS}", repr(inputs))
        depth_fits = num_layers in (1, 2, 3)
        require(depth_fits, "num_layers of a metric network", "1, 2 or 3", num_layers)
        require(hidden_channels >= 1, "hidden_channels", "positive", hidden_channels)
        self.in_channels = in_channels
        self.num_sums = num_sums if inputs == "message" else 0
        self.inputs, self.closed, self.spread = inputs, closed, spread
        self.statistics = self._neutral_statistics()
        sizes = [self._input_size(), *[hidden_channels] * (num_layers - 1), self.num_numbers]
        self.lins = nn.ModuleList(Linear(a, b) for a, b in zip(sizes, sizes[1:], strict=False))
        self.norms = nn.ModuleList(
            nn.LayerNorm(size) if norm else nn.Identity() for size in sizes[1:-1]
        )
        self.reset_parameters()

    @classmethod
    def build(cls, name: str, in_channels: int, channels: int, **options: Any) -> "MetricNet":
        """See :class:`Metric`; the name says what the network reads, and ``start`` is 0.5."""
        return cls(in_channels, channels, inputs=name, **({"start": 0.5} | options))

    def _input_size(self) -> int:
        return {
            "features": 2 * self.in_channels,
            "structure": NUM_DESCRIPTORS,
            "both": 3 * self.in_channels + NUM_DESCRIPTORS,
            "message": (1 + self.num_sums) * self.in_channels + NUM_DESCRIPTORS,
        }[self.inputs]

    def _neutral_statistics(self) -> GraphStatistics | None:
        """The numbers of the training graph that this metric needs, if any."""
        needed = {} if self.inputs == "features" else OF_DESCRIPTOR
        if self.init == "degree":
            # One row: compiled code (torch 2.13) loses a copy into a float64 without dimensions.
            needed = {**needed, "mean_size": (1.0, (1,))}
        return GraphStatistics(**needed) if needed else None

    def reset_parameters(self) -> None:
        """Draw the weights anew, as at the start, and forget the training graph."""
        reset(self.lins)
        reset(self.norms)
        reset(self.statistics)
        last: Any = self.lins[-1]
        with torch.no_grad():
            last.weight.mul_(self.spread)
            last.bias.copy_(self.drawn_raw().to(last.bias.device))

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Compute and store the means and deviations of the training graph."""
        if self.statistics is None or num_nodes == 0:
            return
        hood = neighborhood(edge_index, num_nodes)
        values = {} if self.inputs == "features" else descriptor_statistics(hood, num_nodes)
        if self.init == "degree":
            values["mean_size"] = _log_size(hood).mean()
        self.statistics.store(**values)

    def forward(self, h: Tensor, edge_index: Edges, sums: Sequence[Tensor] = ()) -> Tensor:
        """Metrics, ``[N, D]``, or factored, ``[N, 1 + R, D]``; edges count in both directions.

        Sums of messages count them as the messages do.
        """
        hood = neighborhood(edge_index, h.size(0))
        if self.training and self.statistics is not None and not self.statistics.is_fitted:
            self.fit_to_graph(hood, h.size(0))
        raw = self._first_layer(h, hood, sums)
        for norm, lin in zip(self.norms, self.lins[1:], strict=True):
            raw = lin(norm(raw).relu_())  # in place: no gradient needs the old values
        if self.init == "degree":
            positive = torch.arange(self.num_numbers, device=raw.device) < self.shape.num_positive
            offset = computed_rows(self._degree_offset(hood), hood).to(raw)
            raw = raw + offset * positive.to(raw)
        return self.metric_of(raw)

    def _first_layer(self, h: Tensor, hood: Neighborhood, sums: Sequence[Tensor]) -> Tensor:
        """The first linear layer, computed part by part without concatenating the inputs."""
        first: Any = self.lins[0]
        parts = [computed_rows(part, hood) for part in self._inputs(h, hood, sums)]
        weights = first.weight.split([part.size(-1) for part in parts], dim=-1)
        return AF.joint_linear(parts, weights, first.bias)

    def _inputs(self, h: Tensor, hood: Neighborhood, sums: Sequence[Tensor]) -> list[Tensor]:
        if self.inputs == "structure":
            return [self._descriptor(h, hood)]
        if self.inputs == "message":
            fits = len(sums) == self.num_sums
            require(fits, "sums", f"as many as messages, {self.num_sums}", len(sums))
            return [h, *sums, self._descriptor(h, hood)]
        both = hood.relation("undirected")
        if self.inputs == "features":
            return [h, self._neighbor_mean(h, both)]
        mean, dispersion = AF.neighbor_moments(h, both)
        if self.closed:
            mean = self._neighbor_mean(h, both)
        return [h, mean, dispersion, self._descriptor(h, hood)]

    def _descriptor(self, h: Tensor, hood: Neighborhood) -> Tensor:
        assert self.statistics is not None
        return standard_descriptor(self.statistics, h, hood)

    def _neighbor_mean(self, h: Tensor, both: Neighborhood) -> Tensor:
        if not self.closed:
            return AF.neighbor_mean(h, both)
        size = (both.weighted_degree + 1).to(h).unsqueeze(-1)
        return (AF.aggregate(h, both, "sum") + h) / size

    def _degree_offset(self, hood: Neighborhood) -> Tensor:
        """Raw values that are added to start from degrees instead of ``start``, ``[N, 1]``."""
        assert self.statistics is not None
        size = _log_size(hood)
        g = self.start * size / self.statistics.get_buffer("mean_size").to(size).clamp_min(1.0)
        base = torch.full_like(g, self.start)
        return (self._raw(g) - self._raw(base)).unsqueeze(-1)

    def extra_repr(self) -> str:
        """The inputs and the start."""
        return f"inputs={self.inputs!r}, init={self.init!r}, start={self.start}"


def _log_size(hood: Neighborhood) -> Tensor:
    r""":math:`1 + \log(1 + d_i)` of every node, ``[N]``; in float32, with weights in float64."""
    degree = hood.relation("undirected").weighted_degree
    return 1 + (degree if degree.is_floating_point() else degree.float()).log1p()
