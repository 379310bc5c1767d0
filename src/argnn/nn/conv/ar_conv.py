"""Message passing under a learned metric."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn import Linear, MessagePassing
from torch_geometric.nn.inits import reset, zeros
from torch_geometric.utils import is_sparse, to_edge_index

from argnn.errors import require
from argnn.functional.edge_weights import NEIGHBOR_NORMS, weighted_sum
from argnn.functional.neighborhood import (
    DIRECTIONS,
    NORMALIZATIONS,
    Edges,
    Neighborhood,
    needs_gradient,
    neighborhood,
    plain_path,
)
from argnn.nn.conv.edge_masks import message_mask
from argnn.nn.conv.message_forms import MESSAGE_FORMS, MessageForm
from argnn.nn.metric import METRICS


class ARConv(MessagePassing):
    r"""Adaptive Riemannian convolution (:eq:`update`).

    .. math::
        \mathbf{h}'_i = \mathbf{W}_s\mathbf{h}_i + \sum_r \sum_{j \in \mathcal{N}_r(i)}
        w^r_{ij}\,\tau'_{ij}\,\sigma(\alpha_{ij})\,\mathbf{W}_r\mathbf{h}_j

    with the modulation :math:`\tau'` and attention :math:`\alpha` of the paper
    (``modulation="scalar"``). The modulation is a Rayleigh quotient of an operator
    :math:`\mathbf{T}_i`, and ``modulation="operator"`` applies this operator (:eq:`operator`):

    .. math::
        \mathbf{h}'_i = \mathbf{W}_s\mathbf{h}_i + \sum_r \mathbf{T}_i
        \sum_{j \in \mathcal{N}_r(i)} w^r_{ij}\,\mathbf{W}_r\mathbf{h}_j

    There is no activation, as in PyG. The metric has the size of the input channels in the scalar
    form and of the output channels in the operator form. By default it starts at :math:`g = 0.5`:
    the paper starts near 1, where :math:`\tau = 0` and no message passes.

    A metric that reads degrees standardises them by the training graph: that of
    ``metric_net.fit_to_graph(edge_index, num_nodes)``, or else the first one in training mode.

    PyG's explainers work: an edge mask multiplies the messages of its edge. Constant weights, and
    what the metric network reads from neighbours, are not masked.

    Weights of edges are a part of :math:`w^r_{ij}`, and degrees are sums of weights; a weight of
    zero is no edge. Where weights need a gradient, plain operations compute it.

    Args:
        in_channels: Size of the node features.
        out_channels: Size of the result.
        modulation: ``"scalar"`` or ``"operator"``.
        attention: Whether messages are multiplied by :math:`\sigma(\alpha_{ij})` (scalar form).
        self_path: Whether the node's own features are added, mapped by :math:`\mathbf{W}_s`.
        direction: Along which edges messages travel: ``"in"`` as listed, as in PyG,
            ``"out"`` reversed, ``"both"`` with separate weights, or ``"undirected"``.
        normalization: Constant weights :math:`w_{ij}`: ``"sum"``, ``"sym"`` or ``"rw"``.
        hops: Number of powers of the normalised adjacency that send messages, each with its own
            weights (operator form).
        eps0: Baseline of the modulation.
        neighbor_norm: See :func:`argnn.functional.edge_attention`.
        metric: ``"features"``, ``"structure"`` or ``"both"`` learn the metric from these inputs
            (see :class:`~argnn.nn.MetricNet`), ``"fixed"`` keeps it at ``metric_options["value"]``.
        metric_options: Further arguments of the metric module.
        bias: Whether to add a bias.

    Shapes:
        - **input:** features ``[N, in_channels]``, edges ``[2, E]``, optionally weights ``[E]``
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
        fit, sizes = min(in_channels, out_channels) >= 1, f"{in_channels}, {out_channels}"
        require(fit, "in_channels and out_channels", "positive", sizes)
        choices: dict[str, tuple[str, Iterable[str]]] = {
            "modulation": (modulation, MESSAGE_FORMS),
            "direction": (direction, DIRECTIONS),
            "normalization": (normalization, NORMALIZATIONS),
            "neighbor_norm": (neighbor_norm, NEIGHBOR_NORMS),
            "metric": (metric, METRICS),
        }
        for name, (value, known) in choices.items():
            require(value in known, name, f"one of {tuple(known)}", repr(value))
        hops_fit = hops == 1 or (hops > 1 and MESSAGE_FORMS[modulation].many_hops)
        require(hops_fit, "hops", "1, or more in the operator form", hops)
        require(0 <= eps0 <= 1, "eps0", "in [0, 1]", eps0)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.modulation, self.attention = modulation, attention
        self.direction, self.normalization, self.hops = direction, normalization, hops
        self.eps0, self.neighbor_norm = eps0, neighbor_norm
        measured = in_channels if self.message_form.on_inputs else out_channels
        self.metric_net = METRICS[metric].build(
            metric, in_channels, measured, **(metric_options or {})
        )
        self.metric_channels = self.metric_net.metric_channels
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

    @property
    def message_form(self) -> MessageForm:
        """How the metric acts on messages."""
        return MESSAGE_FORMS[self.modulation]

    def directions(self) -> tuple[str, ...]:
        """The relations whose messages are summed, in the order of ``lins_neighbor``."""
        return ("in", "out") if self.direction == "both" else (self.direction,)

    def metric(self, x: Tensor, edge_index: Edges, edge_weight: Tensor | None = None) -> Tensor:
        """Metric of every node, ``[N, metric_channels]``."""
        g: Tensor = self.metric_net(x, prepared_edges(edge_index, x.size(0), edge_weight))
        return g

    def forward(
        self,
        x: Tensor,
        edge_index: Edges,
        edge_weight: Tensor | None = None,
        *,
        g: Tensor | None = None,
    ) -> Tensor:
        """The result under the metric ``g``, or under the learned metric if it is None.

        Args:
            x: Node features, ``[N, in_channels]``.
            edge_index: Source and target of each edge, ``[2, E]``, or a transposed sparse
                adjacency of PyG, whose values are the weights.
            edge_weight: Weight of each edge, finite and not negative, ``[E]``.
            g: A metric to use instead of the learned one, ``[N, metric_channels]``.
        """
        if torch.compiler.is_compiling() and needs_gradient(edge_weight):
            return self._uncompiled(x, edge_index, edge_weight, g=g)
        hood = prepared_edges(edge_index, x.size(0), edge_weight)
        if g is None:
            g = self.metric(x, hood)
        elif g.shape != (x.size(0), self.metric_channels):
            expected = [x.size(0), self.metric_channels]
            raise ValueError(f"the metric must have shape {expected} (got {list(g.shape)})")
        if self.explain:
            return self._masked(x, g, hood)
        return self.message_form.convolved(self, x, g, hood)

    @plain_path
    def _uncompiled(self, *arguments: Any, **options: Any) -> Tensor:
        return self.forward(*arguments, **options)

    def _self_part(self, x: Tensor) -> Tensor | None:
        """The part that does not depend on neighbours."""
        if self.lin_self is not None:
            return F.linear(x, self.lin_self.weight, self.bias)
        return None if self.bias is None else self.bias.expand(x.size(0), -1)

    def _masked(self, x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """The result by plain operations, with every message times the mask of its edge."""
        sums: list[Tensor] = []
        form = self.message_form
        for direction in self.directions():
            relation = hood.relation(direction)
            weight = form.edge_weights(self, x, g, relation)
            weight = weight * message_mask(self, hood, direction).to(weight)
            h = x
            for _ in range(self.hops):
                h = weighted_sum(h, weight, relation)
                sums.append(h)
        return form.from_sums(self, x, g, sums)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.in_channels}, {self.out_channels}, "
            f"modulation={self.modulation!r}, direction={self.direction!r}, "
            f"normalization={self.normalization!r})"
        )


def prepared_edges(
    edge_index: Edges, num_nodes: int, edge_weight: Tensor | None = None
) -> Neighborhood:
    """Edges in the form that layers share, from a list or a transposed sparse adjacency of PyG."""
    if isinstance(edge_index, Tensor) and is_sparse(edge_index):
        if edge_weight is not None:
            raise ValueError("the values of a sparse adjacency are its weights: give no others")
        target_source, edge_weight = to_edge_index(edge_index)
        edge_index = target_source.flip(0)
    return neighborhood(edge_index, num_nodes, edge_weight)
