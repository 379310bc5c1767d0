"""CurvDrop on a jumping knowledge network."""

from typing import cast

import torch
from torch import Tensor
from torch_geometric.nn import Linear

from argnn.errors import require
from argnn.functional.curvature_weights import drop_chance, kept_edges, normalized_weight
from argnn.functional.dropout import dropout as drop
from argnn.functional.edge_values import ordered_edges
from argnn.functional.neighborhood import Edges
from argnn.functional.ollivier import CURVATURE_METHODS, pair_curvature
from argnn.nn.conv.pyg import GCNConv
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE
from argnn.nn.models.stack import AbstractStack


class CurvDrop(AbstractStack):
    r"""A jumping knowledge network that drops edges by their Ollivier-Ricci curvature.

    .. math::
        H_l = \mathrm{relu}(\hat A_l H_{l-1} W_l + b_l), \qquad Y = [H_1, \dots, H_L]\, W

    In training every layer draws its own :math:`\hat A_l`. Edges of strongly positive curvature,
    which are said to cause over-smoothing, are dropped more often than bridges (see
    :func:`~argnn.functional.curvature_weights.drop_chance`), and the remaining edges are normalised
    again. In evaluation :math:`\hat A` has all edges.

    This is a reconstruction: the authors published neither code nor their probabilities.

    Args:
        dropout: Dropout on the hidden features between convolutions and before the last map.
        edge_dropout: Mean share of the edges that a layer drops.
        drop_negative: Whether edges of negative curvature are dropped instead.
        ricci: How curvatures are computed: ``"auto"``, ``"exact"`` or ``"bounds"``.
    """

    citation = "Liu et al.: CurvDrop, a Ricci curvature based approach, WWW 2023"
    takes_edge_weight = True
    search_space = {
        **EUCLIDEAN_SEARCH_SPACE,
        "num_layers": [2, 4, 8],
        "edge_dropout": [0.2, 0.5, 0.7],
    }
    farther = 1

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        edge_dropout: float = 0.5,
        drop_negative: bool = False,
        ricci: str = "auto",
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(0 <= edge_dropout < 1, "edge_dropout", "in [0, 1)", edge_dropout)
        require(ricci in CURVATURE_METHODS, "ricci", f"one of {CURVATURE_METHODS}", repr(ricci))
        self.dropout, self.edge_dropout = dropout, edge_dropout
        self.drop_negative, self.ricci = drop_negative, ricci
        self.stack_convs(GCNConv, self.sizes_to(hidden_channels))
        self.read_features("lin", dropout=input_dropout, normalize=normalize_input)
        self.head = Linear(num_layers * hidden_channels, out_channels)

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h, layers = x, []
        for depth, conv in enumerate(self.convs):
            h = drop(h, self.dropout, self.training) if depth else h
            layers.append(h := self._convolved(cast(GCNConv, conv), h, edge_index).relu())
        return self.head(drop(torch.cat(layers, -1), self.dropout, self.training)), []

    def _convolved(self, conv: GCNConv, h: Tensor, edge_index: Edges) -> Tensor:
        """The layer on all edges, or in training on the edges that are kept."""
        if not self.training or self.edge_dropout == 0:
            return conv.forward(h, edge_index)
        nodes = h.size(0)
        curvature = pair_curvature(edge_index, nodes, method=self.ricci)
        chance = drop_chance(curvature, self.edge_dropout, self.drop_negative)
        edges = ordered_edges(edge_index, nodes, closed=True)
        weight = normalized_weight(kept_edges(edge_index, nodes, chance, h.dtype), edges)
        return conv.with_weights(h, weight, edges)
