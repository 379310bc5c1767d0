"""LINKX."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import MLP as PyGMLP

from argnn.errors import require
from argnn.functional.neighborhood import Edges
from argnn.nn.adjacency_linear import AdjacencyLinear
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, AbstractNodeModel


class LINKX(AbstractNodeModel):
    r"""LINKX of Lim et al.: the features and the rows of the adjacency matrix, side by side.

    .. math::
        H_A = \mathrm{MLP}_A(A), \quad H_X = \mathrm{MLP}_X(X), \quad
        Y = \mathrm{MLP}_f(\mathrm{relu}(W [H_A \| H_X] + H_A + H_X))

    **The weights belong to the nodes of one graph**, the first one that the model is given. A graph
    of another size is an error, and the same nodes in another order give wrong results. The model
    cannot score nodes that were not in its training graph.

    Args:
        num_layers: Number of linear maps of the last perceptron.
        dropout: Dropout in the last perceptron.
        edge_layers: Number of linear maps of the adjacency.
        node_layers: Number of linear maps of the features.
    """

    citation = "Lim et al.: Large scale learning on non-homophilous graphs, 2021"
    takes_edge_weight = True
    space = "Euclidean, weights per node"
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "num_layers": [1, 2, 3]}
    encoder_head = ("edge_lin", "edge_norm", "edge_mlp", "node_mlp", "final_mlp")

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        edge_layers: int = 1,
        node_layers: int = 1,
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(edge_layers >= 1, "edge_layers", "at least 1", edge_layers)
        require(node_layers >= 1, "node_layers", "at least 1", node_layers)
        self.edge_lin = AdjacencyLinear(hidden_channels)
        deeper = edge_layers > 1
        self.edge_norm = nn.BatchNorm1d(hidden_channels) if deeper else None
        self.edge_mlp = _mlp([hidden_channels] * edge_layers) if deeper else None
        self.node_mlp = _mlp([in_channels] + [hidden_channels] * node_layers)
        self.node_mlp.lins[0] = InputLinear.in_place_of(
            self.node_mlp.lins[0], input_dropout, normalize_input
        )
        self.mix = nn.Linear(2 * hidden_channels, hidden_channels)
        self.final_mlp = _mlp([hidden_channels] * num_layers + [out_channels], dropout)

    def node_parameters(self) -> list[nn.Parameter]:
        """The weight of the adjacency matrix."""
        return [self.edge_lin.weight]

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        from_edges = self.edge_lin(edge_index, x.size(0))
        if self.edge_mlp is not None and self.edge_norm is not None:
            from_edges = self.edge_mlp(self.edge_norm(from_edges.relu()))
        from_nodes = self.node_mlp(x)
        mixed = self.mix(torch.cat([from_edges, from_nodes], dim=-1))
        return self.final_mlp((mixed + from_edges + from_nodes).relu()), []


def _mlp(sizes: list[int], dropout: float = 0.0) -> PyGMLP:
    """Linear maps; between them an activation, then batch normalisation."""
    return PyGMLP(sizes, dropout=dropout, act_first=True)
