"""Message passing under a learned metric."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.nn.inits import reset, zeros
from torch_geometric.utils import is_sparse, to_edge_index

from argnn import functional as AF
from argnn.functional.edge_weights import NEIGHBOR_NORMS, message_weights, weighted_sum
from argnn.functional.neighborhood import (
    DIRECTIONS,
    NORMALIZATIONS,
    Edges,
    Neighborhood,
    neighborhood,
)
from argnn.functional.precision import accumulation_dtype
from argnn.nn.conv.edge_masks import message_mask
from argnn.nn.metric import ConstantMetric, MetricNet

MODULATIONS = ("scalar", "operator")


class ARConv(MessagePassing):
    r"""Adaptive Riemannian convolution (:eq:`update`).

    .. math::
        \mathbf{h}'_i = \mathbf{W}_s\mathbf{h}_i + \sum_r \sum_{j \in \mathcal{N}_r(i)}
        w^r_{ij}\,\tau'_{ij}\,\sigma(\alpha_{ij})\,\mathbf{W}_r\mathbf{h}_j

    with the modulation :math:`\tau'` and attention :math:`\alpha` of the paper
    (``modulation="scalar"``), or with the operator they are a Rayleigh quotient of
    (``modulation="operator"``, :eq:`operator`):

    .. math::
        \mathbf{h}'_i = \mathbf{W}_s\mathbf{h}_i + \sum_r \mathbf{T}_i
        \sum_{j \in \mathcal{N}_r(i)} w^r_{ij}\,\mathbf{W}_r\mathbf{h}_j

    The activation is left to the model, as in PyG. The metric lives on the input channels in
    the scalar form and on the output channels in the operator form. By default it starts at
    :math:`g = 0.5`: the paper starts near 1, where :math:`\tau = 0` and no message passes.

    A metric that sees degrees standardises them by the training graph: the first one that is seen
    in training mode, or that of ``metric_net.fit_to_graph(edge_index, num_nodes)``.

    PyG's explainers work as they are: an edge mask multiplies the messages of its edge. Constant
    weights and what the metric network reads of the neighbours stay those of the whole graph.

    Args:
        in_channels: Size of the node features.
        out_channels: Size of the result.
        modulation: ``"scalar"`` or ``"operator"``.
        attention: Whether messages are weighed by :math:`\sigma(\alpha_{ij})` (scalar form).
        self_path: Whether the node's own features enter through :math:`\mathbf{W}_s`.
        direction: Along which edges messages travel: ``"in"`` as listed, as in PyG,
            ``"out"`` reversed, ``"both"`` with separate weights, or ``"undirected"``.
        normalization: Constant weights :math:`w_{ij}`: ``"sum"``, ``"sym"`` or ``"rw"``.
        hops: In the operator form, how many powers of the normalised adjacency send messages,
            each with its own weights.
        eps0: Baseline of the modulation.
        neighbor_norm: See :func:`argnn.functional.edge_attention`.
        metric: ``"features"``, ``"structure"`` or ``"both"`` learn the metric from these inputs
            (see :class:`~argnn.nn.MetricNet`), ``"fixed"`` keeps it at ``metric_options["value"]``.
        metric_options: Further arguments of the metric module.
        bias: Whether to add a bias.

    Shapes:
        - **input:** features ``[N, in_channels]``, edges ``[2, E]``, optionally a metric
        - **output:** ``[N, out_channels]``
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        modulation: str = "scalar",
        attention: bool = True,
        self_path: bool = True,
        direction: str = "in",
        normalization: str = "sum",
        hops: int = 1,
        eps0: float = 0.0,
        neighbor_norm: str = "own",
        metric: str = "features",
        metric_options: dict[str, Any] | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__(aggr="add")
        if in_channels < 1 or out_channels < 1:
            raise ValueError(
                f"in_channels and out_channels must be positive (got {in_channels}, {out_channels})"
            )
        _check(modulation, direction, normalization, neighbor_norm, hops, eps0)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.modulation, self.attention = modulation, attention
        self.direction, self.normalization, self.hops = direction, normalization, hops
        self.eps0, self.neighbor_norm = eps0, neighbor_norm
        self.metric_channels = in_channels if modulation == "scalar" else out_channels
        self.metric_net = _metric_module(
            in_channels, self.metric_channels, metric, metric_options or {}
        )
        self.lin_self = Linear(in_channels, out_channels, bias=False) if self_path else None
        self.lins_neighbor = nn.ModuleList(
            Linear(in_channels, out_channels, bias=False)
            for _ in range(len(self.directions()) * hops)
        )
        if bias:
            self.bias = nn.Parameter(torch.empty(out_channels))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, those of the metric network included."""
        super().reset_parameters()
        self.metric_net.reset_parameters()
        reset(self.lin_self)
        reset(self.lins_neighbor)
        zeros(self.bias)

    def directions(self) -> tuple[str, ...]:
        """The relations whose messages are summed, in the order of ``lins_neighbor``."""
        return ("in", "out") if self.direction == "both" else (self.direction,)

    def metric(self, x: Tensor, edge_index: Edges) -> Tensor:
        """Metric of every node, ``[N, metric_channels]``."""
        g: Tensor = self.metric_net(x, prepared_edges(edge_index, x))
        return g

    def forward(self, x: Tensor, edge_index: Edges, g: Tensor | None = None) -> Tensor:
        """Convolve, under the metric ``g`` where one is given and the learned one otherwise."""
        hood = prepared_edges(edge_index, x)
        if g is None:
            g = self.metric(x, hood)
        elif g.shape != (x.size(0), self.metric_channels):
            expected = [x.size(0), self.metric_channels]
            raise ValueError(f"the metric must have shape {expected} (got {list(g.shape)})")
        if self.explain:
            return self._masked(x, g, hood)
        if self.modulation == "operator":
            return AF.modulate(self._aggregated(x, hood), g, self.eps0, added=self._self_part(x))
        return self._weighted(x, self._modulated(x, g, hood))

    def _self_part(self, x: Tensor) -> Tensor | None:
        """What does not depend on the neighbours."""
        if self.lin_self is not None:
            return F.linear(x, self.lin_self.weight, self.bias)
        return None if self.bias is None else self.bias.expand(x.size(0), -1)

    def _weighted(self, x: Tensor, sums: list[Tensor]) -> Tensor:
        """Weights on the sums of messages and on the node's own features, all in one."""
        weights: list[Any] = [lin.weight for lin in self.lins_neighbor]
        if self.lin_self is not None:
            sums, weights = [*sums, x], [*weights, self.lin_self.weight]
        return AF.joint_linear(sums, weights, self.bias)

    def _aggregated(self, x: Tensor, hood: Neighborhood) -> Tensor:
        """Sum over directions and hops of constant-weight aggregation."""
        messages = []
        lins = iter(self.lins_neighbor)
        for direction in self.directions():
            relation = hood.relation(direction)
            if self._sums_before_weights():
                messages += self._sums_then_weights(x, relation, lins)
            else:
                messages += self._weights_then_sums(x, relation, lins)
        return _total(messages)

    def _sums_before_weights(self) -> bool:
        """Whether to reuse the sum of one hop for the next: the order changes no value."""
        return self.hops > 1 and self.in_channels <= self.out_channels

    def _sums_then_weights(
        self, x: Tensor, relation: Neighborhood, lins: Iterator[nn.Module]
    ) -> list[Tensor]:
        messages = []
        for _ in range(self.hops):
            x = AF.aggregate(x, relation, self.normalization)
            messages.append(next(lins)(x))
        return messages

    def _weights_then_sums(
        self, x: Tensor, relation: Neighborhood, lins: Iterator[nn.Module]
    ) -> list[Tensor]:
        messages = []
        for hop in range(1, self.hops + 1):
            message = next(lins)(x)
            for _ in range(hop):
                message = AF.aggregate(message, relation, self.normalization)
            messages.append(message)
        return messages

    def _modulated(self, x: Tensor, g: Tensor, hood: Neighborhood) -> list[Tensor]:
        """The paper's form, one sum per direction, before the weights of the messages.

        Weighting a sum is weighting its messages, and the features are gathered once.
        """
        return [
            AF.propagate(
                x,
                g,
                x,
                hood.relation(direction),
                self.eps0,
                attention=self.attention,
                normalization=self.normalization,
                neighbor_norm=self.neighbor_norm,
            )
            for direction in self.directions()
        ]

    def _masked(self, x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """The same by plain operations, with every message times the mask of its edge."""
        sums = []
        for direction in self.directions():
            relation = hood.relation(direction)
            weight = self._message_weights(x, g, relation)
            weight = weight * message_mask(self, hood, direction).to(weight)
            h = x
            for _ in range(self.hops):
                h = weighted_sum(h, weight, relation)
                sums.append(h)
        if self.modulation == "scalar":
            return self._weighted(x, sums)
        messages = [lin(h) for lin, h in zip(self.lins_neighbor, sums, strict=True)]
        return AF.modulate(_total(messages), g, self.eps0, added=self._self_part(x))

    def _message_weights(self, x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """What each message is multiplied by; in the operator form without the metric's part."""
        if self.modulation == "operator":
            return relation.edge_weight(self.normalization, accumulation_dtype(x.dtype))
        return message_weights(
            x,
            g,
            relation,
            self.eps0,
            attention=self.attention,
            normalization=self.normalization,
            neighbor_norm=self.neighbor_norm,
        )

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, "
            f"modulation={self.modulation!r}, direction={self.direction!r}, "
            f"normalization={self.normalization!r})"
        )


def _total(messages: list[Tensor]) -> Tensor:
    total = messages[0]
    for message in messages[1:]:
        total = total + message
    return total


def prepared_edges(edge_index: Edges, x: Tensor) -> Neighborhood:
    """The edges of all layers, from what PyG accepts: a list or a transposed sparse adjacency."""
    if isinstance(edge_index, Tensor) and is_sparse(edge_index):
        target_source, value = to_edge_index(edge_index)
        if not bool((value == 1).all()):
            raise ValueError("ARConv has no edge weights: the adjacency must hold ones only")
        edge_index = target_source.flip(0)
    return neighborhood(edge_index, x.size(0))


def _metric_module(
    in_channels: int, metric_channels: int, metric: str, options: dict[str, Any]
) -> ConstantMetric | MetricNet:
    if metric == "fixed":
        return ConstantMetric(metric_channels, **options)
    return MetricNet(in_channels, metric_channels, inputs=metric, **({"start": 0.5} | options))


def _check(
    modulation: str,
    direction: str,
    normalization: str,
    neighbor_norm: str,
    hops: int,
    eps0: float,
) -> None:
    for name, value, choices in (
        ("modulation", modulation, MODULATIONS),
        ("direction", direction, DIRECTIONS),
        ("normalization", normalization, NORMALIZATIONS),
        ("neighbor_norm", neighbor_norm, NEIGHBOR_NORMS),
    ):
        if value not in choices:
            raise ValueError(f"{name} must be one of {choices} (got {value!r})")
    if hops < 1 or (hops > 1 and modulation == "scalar"):
        raise ValueError(f"hops must be 1, or more in the operator form (got {hops})")
    if not 0 <= eps0 <= 1:
        raise ValueError(f"eps0 must be in [0, 1] (got {eps0})")
