"""A learned curvature of edges, and the flow that it drives."""

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import Linear

from argnn.functional.curvature_flow import curvature_pull, unit_rows
from argnn.functional.dropout import dropout as drop
from argnn.functional.edge_values import (
    OrderedEdges,
    at_sources,
    at_targets,
    ordered_edges,
    sum_at_targets,
)
from argnn.functional.neighborhood import Edges

#: From this number of edges times channels on, the backward pass computes the field again instead
#: of keeping intermediate results.
MAX_KEPT_NUMBERS = 2**24


class EdgeMLP(nn.Module):
    r"""A perceptron with one hidden layer on the two ends of each edge, ``[E, out_channels]``.

    .. math:: W_2\, \mathrm{relu}(W_t \mathbf{x}_i + W_s \mathbf{x}_j + \mathbf{b}_1) + \mathbf{b}_2

    The first map acts on nodes, before its results are combined at edges. So the dropout on its
    input is the same for all edges that have a node as target, and for all that have it as source.

    Args:
        channels: Width of the nodes' features, and of the hidden layer.
        out_channels: Size of the result.
        dropout: Dropout on the input of each map.
    """

    def __init__(self, channels: int, out_channels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels, self.dropout = channels, dropout
        self.lin_target = Linear(channels, channels)
        self.lin_source = Linear(channels, channels, bias=False)
        self.lin_out = Linear(channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, scaled as in one map of the concatenated ends."""
        for lin in (self.lin_target, self.lin_source, self.lin_out):
            lin.reset_parameters()
        with torch.no_grad():
            for parameter in (*self.lin_target.parameters(), *self.lin_source.parameters()):
                parameter.mul_(0.5**0.5)

    def forward(self, x: Tensor, edges: OrderedEdges) -> Tensor:
        """The result of every edge, from features ``[N, channels]``."""
        target, source = (drop(x, self.dropout, self.training) for _ in range(2))
        hidden = at_targets(self.lin_target(target), edges)
        hidden = (hidden + at_sources(self.lin_source(source), edges)).relu_()
        return self.lin_out(drop(hidden, self.dropout, self.training))


class CurvatureField(nn.Module):
    r"""The velocity of a graph neural Ricci flow at every node, of length 1 or 0.

    .. math::
        \mathbf{u}_i = \sum_{j \in \mathcal{N}(i)} \mathrm{relu}(
        \mathrm{MLP}_1[\hat{\mathbf{h}}_i \| \hat{\mathbf{h}}_j]), \qquad
        \kappa_{ij} = \mathrm{MLP}_2[\mathbf{u}_i \| \mathbf{u}_j], \qquad
        \dot{\mathbf{h}}_i = \mathbf{g}_i / \|\mathbf{g}_i\|

    with directions :math:`\hat{\mathbf{h}} = \mathbf{h} / \|\mathbf{h}\|` and their
    :func:`~argnn.functional.curvature_flow.curvature_pull` :math:`\mathbf{g}`.

    Args:
        channels: Width of the features.
        channel_curvature: Whether an edge has one curvature per channel, instead of one in all.
        dropout: Dropout in the two networks.
    """

    def __init__(
        self, channels: int, *, channel_curvature: bool = True, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.channels = channels
        self.mlp_node = EdgeMLP(channels, channels, dropout=dropout)
        self.mlp_edge = EdgeMLP(channels, channels if channel_curvature else 1, dropout=dropout)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.mlp_node.reset_parameters()
        self.mlp_edge.reset_parameters()

    def forward(self, h: Tensor, edge_index: Edges) -> Tensor:
        """The velocity ``[N, channels]`` at features ``[N, channels]``."""
        edges = ordered_edges(edge_index, h.size(0))
        if torch.is_grad_enabled() and edges.num_edges * self.channels > MAX_KEPT_NUMBERS:
            return checkpoint(self._velocity, h, edges, use_reentrant=False)
        return self._velocity(h, edges)

    def _velocity(self, h: Tensor, edges: OrderedEdges) -> Tensor:
        direction = unit_rows(h)
        return unit_rows(curvature_pull(direction, self.curvature(direction, edges), edges))

    def curvature(self, direction: Tensor, edges: OrderedEdges) -> Tensor:
        """Learned curvature of every edge, ``[E, channels]`` or ``[E, 1]``."""
        sent = edges.weighted(self.mlp_node(direction, edges).relu_())
        u = sum_at_targets(sent, edges)
        return self.mlp_edge(u, edges)
