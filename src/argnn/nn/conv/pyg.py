"""PyG's layers with sparse products instead of messages.

Weights, their names, initialisation and results are PyG's. Only the sum over neighbours is computed
in another way, without a tensor of edges x channels. One difference for edge lists with self-loops:
``SAGEConv`` and ``FAConv`` do not count a node as its own neighbour. Weights of edges come with
prepared edges (``argnn.functional.neighborhood.neighborhood``): ``GATConv`` multiplies the
exponential of its scores by them, the others their messages.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric import nn as gnn

from argnn.functional.dropout import dropout as drop
from argnn.functional.edge_values import (
    OrderedEdges,
    at_sources,
    at_targets,
    ordered_edges,
    softmax_at_targets,
    weighted_aggregate,
)
from argnn.functional.neighborhood import Edges, neighbor_mean, neighborhood
from argnn.functional.precision import in_autocast_dtype
from argnn.functional.self_loops import closed_aggregate, closed_feature_sum
from argnn.nn.input_linear import InputLinear


class GCNConv(gnn.GCNConv):
    r"""The layer of graph convolutional networks, :math:`\hat A X W + \mathbf{b}`.

    :math:`\hat A X` of node features that are no wider than the result is computed once.
    """

    def forward(self, x: Tensor, edge_index: Edges) -> Tensor:
        """The new features, ``[N, out_channels]``."""
        if isinstance(self.lin, InputLinear) and not self.lin.drops:
            summed = closed_feature_sum(self.lin.rows(x), edge_index, self.out_channels)
            if summed is not None:
                return F.linear(summed, self.lin.weight, self.bias)
        return closed_aggregate(self.lin(x), edge_index) + in_autocast_dtype(self.bias)

    def with_weights(self, x: Tensor, weight: Tensor, edges: OrderedEdges) -> Tensor:
        r"""The same with given weights of the edges, ``[E]``, in place of :math:`\hat A`."""
        return weighted_aggregate(self.lin(x), weight, edges) + self.bias


class SAGEConv(gnn.SAGEConv):
    r"""The layer of GraphSAGE with mean aggregation.

    .. math::
        \mathbf{y}_i = W_r \mathbf{x}_i + W_l \frac{1}{d_i} \sum_{j \in \mathcal{N}(i)} \mathbf{x}_j
        + \mathbf{b}

    The linear map comes before the mean, because its result is not as wide as the features.
    """

    def forward(self, x: Tensor, edge_index: Edges) -> Tensor:
        """The new features, ``[N, out_channels]``."""
        mean = neighbor_mean(self.lin_l(x), edge_index)
        # The bias is a part of the mean; nodes without neighbours have no mean.
        has_neighbors = neighborhood(edge_index, x.size(0)).weighted_degree.unsqueeze(-1) > 0
        out = self.lin_r(x) + torch.where(has_neighbors, mean, in_autocast_dtype(self.lin_l.bias))
        return F.normalize(out, dim=-1) if self.normalize else out


class GATConv(gnn.GATConv):
    r"""The layer of graph attention networks, with several heads.

    .. math::
        \mathbf{y}_i = \sum_{j \in \mathcal{N}(i) \cup \{i\}} \alpha_{ij} W \mathbf{x}_j, \qquad
        \alpha_{ij} = \mathrm{softmax}_j\, \mathrm{LeakyReLU}_{0.2}(
        \mathbf{a}_s^\top W \mathbf{x}_j + \mathbf{a}_t^\top W \mathbf{x}_i)
    """

    def forward(self, x: Tensor, edge_index: Edges) -> Tensor:
        """The new features, ``[N, heads * out_channels]`` or ``[N, out_channels]``."""
        sent = self.lin(x).view(x.size(0), self.heads, self.out_channels)
        edges = ordered_edges(edge_index, x.size(0), closed=True)
        alpha = drop(self.attention(sent, edges), self.dropout, self.training)
        heads = weighted_aggregate(sent, alpha, edges)
        out = heads.flatten(1) if self.concat else heads.mean(1)
        return out + in_autocast_dtype(self.bias)

    def attention(self, sent: Tensor, edges: OrderedEdges) -> Tensor:
        """Attention of each head on each edge, ``[N, heads, out_channels] -> [E, heads]``."""
        from_source = at_sources((sent * self.att_src).sum(-1), edges)
        from_target = at_targets((sent * self.att_dst).sum(-1), edges)
        score = F.leaky_relu(from_source + from_target, self.negative_slope)
        return softmax_at_targets(score, edges)


class FAConv(gnn.FAConv):
    r"""The layer of FAGCN, where a gate decides whether neighbours are added or subtracted.

    .. math::
        \mathbf{y}_i = \epsilon\,\mathbf{x}^0_i + \sum_{j \in \mathcal{N}(i)}
        \frac{\tanh(\mathbf{a}_l^\top \mathbf{x}_j + \mathbf{a}_r^\top \mathbf{x}_i + b)}
        {\sqrt{d_i d_j}}\, \mathbf{x}_j

    Unlike PyG's layer, it has the bias :math:`b` of the gate and adds no self-loops.

    Args:
        channels: Width of the features.
        eps: How much of the first features is kept.
        dropout: Dropout on the weights of the edges.
    """

    GAIN = 1.414

    def __init__(self, channels: int, eps: float = 0.3, dropout: float = 0.0, **kwargs: Any):
        super().__init__(channels, eps, dropout, add_self_loops=False, **kwargs)
        self.bias = nn.Parameter(torch.zeros(1))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew, as the method's own code does."""
        super().reset_parameters()
        # Xavier's rule for one map of both ends: the two gates together are such a map.
        std = self.GAIN * (2 / (2 * self.channels + 1)) ** 0.5
        for gate in (self.att_l, self.att_r):
            nn.init.normal_(gate.weight, std=std)
        if "bias" in self._parameters:  # PyG resets before there is one
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Edges) -> Tensor:
        """The new features, ``[N, channels]``; ``x_0`` are those before the first such layer."""
        edges = ordered_edges(edge_index, x.size(0))
        weight = self.gate(x, edges) * _symmetric_weight(edge_index, edges, x)
        weight = drop(weight, self.dropout, self.training)
        return self.eps * x_0 + weighted_aggregate(x, weight, edges)

    def gate(self, x: Tensor, edges: OrderedEdges) -> Tensor:
        """Sign and strength of each edge, between -1 and 1, ``[E]``."""
        from_source = at_sources(self.att_l(x).squeeze(-1), edges)
        from_target = at_targets(self.att_r(x).squeeze(-1), edges)
        return torch.tanh(from_source + from_target + self.bias)


def _symmetric_weight(edge_index: Edges, edges: OrderedEdges, x: Tensor) -> Tensor:
    left, right = neighborhood(edge_index, x.size(0)).scales("sym", x.dtype)
    assert left is not None
    assert right is not None
    return edges.weighted(left[edges.target] * right[edges.source])
