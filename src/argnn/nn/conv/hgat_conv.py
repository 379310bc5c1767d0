"""The convolution of hyperbolic graph attention networks."""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from argnn.errors import require
from argnn.functional import stereographic
from argnn.functional.analytic import squared_length
from argnn.functional.dropout import dropout as drop
from argnn.functional.edge_gaps import edge_gaps
from argnn.functional.edge_values import (
    OrderedEdges,
    at_sources,
    at_targets,
    ordered_edges,
    softmax_at_targets,
    weighted_aggregate,
)
from argnn.functional.neighborhood import Edges
from argnn.nn.hyperbolic_linear import tangent_linear, with_bias

ATTENTIONS = ("distance", "learned")


class HGATConv(nn.Module):
    r"""Attention over a node and its neighbours, with sums in the tangent space of a ball.

    .. math::
        u'_i = \sum_{j \in \mathcal{N}(i) \cup \{i\}} w_{ij} \log_0 z_j, \qquad
        w_{ij} = \operatorname{softmax}_j e_{ij}, \qquad z = \mathbf{W} \otimes \exp_0 u

    ``"distance"`` is the attention of the paper, :math:`e_{ij} = -d(z_i, z_j)`, with dropout on the
    input. ``"learned"`` is that of the GIL toolbox, :math:`e_{ij} = \mathrm{LeakyReLU}_{0.2}\langle
    a, [\log_0 z_i \,\|\, \log_0 z_j]\rangle`, with a Möbius bias after the linear map, a bias after
    the sum, and dropout on the weights of the map. Both have dropout on :math:`w_{ij}`. Each head
    has its own ball.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output of each head.
        heads: Number of heads.
        attention: ``"distance"`` or ``"learned"``.
        concat: Whether to concatenate the heads, in the tangent space, instead of taking their
            mean.
        dropout: Probability of dropout.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        heads: int = 1,
        *,
        attention: str = "distance",
        concat: bool = True,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        require(attention in ATTENTIONS, "attention", f"one of {ATTENTIONS}", repr(attention))
        require(heads >= 1, "heads", "positive", heads)
        self.in_channels, self.out_channels, self.heads = in_channels, out_channels, heads
        self.attention, self.concat, self.dropout = attention, concat, dropout
        self.weight = nn.Parameter(torch.empty(heads * out_channels, in_channels))
        learned = attention == "learned"
        self.score_target = nn.Parameter(torch.empty(heads, out_channels)) if learned else None
        self.score_source = nn.Parameter(torch.empty(heads, out_channels)) if learned else None
        self.point_bias = nn.Parameter(torch.empty(heads, out_channels)) if learned else None
        width = heads * out_channels if concat else out_channels
        self.bias = nn.Parameter(torch.empty(width)) if learned else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        nn.init.xavier_uniform_(self.weight, gain=math.sqrt(2))
        for score in (self.score_target, self.score_source):
            if score is not None:
                nn.init.xavier_uniform_(score)
        for bias in (self.point_bias, self.bias):
            if bias is not None:
                nn.init.zeros_(bias)

    def forward(
        self, u: Tensor, edge_index: Edges, k: Tensor, input_dropout: float | None = None
    ) -> Tensor:
        """Tangent vectors, ``[N, heads * out_channels]``, or ``[N, out_channels]``.

        ``u`` are tangent vectors at the origin, ``[N, in_channels]``, of a ball of curvature ``k``.
        An ``input_dropout`` of None is the usual one of this attention.
        """
        v = self._linear(u, k, input_dropout)
        edges = ordered_edges(edge_index, u.size(0), closed=True)
        weight = drop(self.edge_weights(v, edges, k), self.dropout, self.training)
        total = weighted_aggregate(v, weight, edges)
        out = total.flatten(1) if self.concat else total.mean(1)
        return out if self.bias is None else out + self.bias

    def _linear(self, u: Tensor, k: Tensor, input_dropout: float | None) -> Tensor:
        """Tangent vectors of each head, ``[N, heads, out_channels]``."""
        learned = self.point_bias is not None
        weight = drop(self.weight, self.dropout if learned else 0.0, self.training)
        usual = 0.0 if learned else self.dropout
        dropped = usual if input_dropout is None else input_dropout
        v = tangent_linear(u, weight, dropped, self.training)
        return with_bias(v.view(-1, self.heads, self.out_channels), self.point_bias, k)

    def edge_weights(self, v: Tensor, edges: OrderedEdges, k: Tensor) -> Tensor:
        """The attention of each edge, self-loops among them, ``[N, heads, D] -> [E, heads]``."""
        if self.score_target is None or self.score_source is None:
            return softmax_at_targets(-_distances(stereographic.expmap0(v, k), edges, k), edges)
        to_target = at_targets((v * self.score_target).sum(-1), edges)
        to_source = at_sources((v * self.score_source).sum(-1), edges)
        return softmax_at_targets(F.leaky_relu(to_target + to_source, 0.2), edges)

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"{self.in_channels}, {self.out_channels}, heads={self.heads}, "
            f"attention={self.attention!r}, concat={self.concat}, dropout={self.dropout}"
        )


def _distances(x: Tensor, edges: OrderedEdges, k: Tensor) -> Tensor:
    """Distance of the two ends of each edge, ``[E, heads]``; 0 without gradient for self-loops."""
    square = squared_length(x).squeeze(-1)
    ends = at_targets(square, edges), at_sources(square, edges)
    return stereographic.ball_distance(edge_gaps(x, edges), *ends, k)
