"""The convolution of hyperbolic graph convolutional networks."""

import torch
from torch import Tensor, nn

from argnn.functional import stereographic
from argnn.functional.edge_values import at_sources, at_targets, ordered_edges, weighted_aggregate
from argnn.functional.neighborhood import Edges
from argnn.functional.self_loops import closed_aggregate
from argnn.nn.hyperbolic_linear import HyperbolicLinear


class HGCNConv(nn.Module):
    r"""Möbius linear map, then the mean over a node and its neighbours in the tangent space.

    .. math::
        u'_i = \frac{1}{d_i + 1} \sum_{j \in \mathcal{N}(i) \cup \{i\}} \log_0 z_j, \qquad
        z = (\mathbf{W} \otimes \exp_0 u) \oplus \exp_0 b

    Points are given as tangent vectors at the origin. With attention, each term is multiplied by
    :math:`\sigma(\langle a, [\log_0 z_i \,\|\, \log_0 z_j]\rangle + a_0)`.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output.
        dropout: Probability with which a weight is dropped.
        attention: Whether neighbours are weighted by attention.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, dropout: float = 0.0, attention: bool = False
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = HyperbolicLinear(in_channels, out_channels, dropout=dropout)
        self.gate_target = nn.Linear(out_channels, 1) if attention else None
        self.gate_source = nn.Linear(out_channels, 1, bias=False) if attention else None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.lin.reset_parameters()
        for gate in (self.gate_target, self.gate_source):
            if gate is not None:
                gate.reset_parameters()

    def forward(
        self, u: Tensor, edge_index: Edges, k: Tensor, input_dropout: float = 0.0
    ) -> Tensor:
        """Tangent vectors at the origin, ``[N, in_channels] -> [N, out_channels]``."""
        v = self.lin(u, k, input_dropout)
        return stereographic.clip_tangent(self._mean(v, edge_index), k)

    def _mean(self, v: Tensor, edge_index: Edges) -> Tensor:
        if self.gate_target is None or self.gate_source is None:
            return closed_aggregate(v, edge_index, "rw")
        edges = ordered_edges(edge_index, v.size(0), closed=True)
        score = at_targets(self.gate_target(v), edges) + at_sources(self.gate_source(v), edges)
        weight = edges.weighted(torch.sigmoid(score.to(v.dtype)).squeeze(-1))
        total = weighted_aggregate(v, weight, edges)
        return total / edges.weighted_degree.to(v.dtype).unsqueeze(-1)
