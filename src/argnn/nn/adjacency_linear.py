"""A linear map of the rows of the adjacency matrix."""

import torch
from torch import Tensor, nn

from argnn.functional.neighborhood import Edges, aggregate
from argnn.nn.node_weights import NodeWeights


class AdjacencyLinear(NodeWeights):
    r"""Linear map of the rows of the adjacency matrix, :math:`A W + \mathbf{b}`.

    Row :math:`j` of :math:`W` belongs to node :math:`j`.

    Args:
        out_channels: Size of the result.
    """

    def __init__(self, out_channels: int) -> None:
        super().__init__(out_channels)
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def drawn(self, num_nodes: int, generator: torch.Generator) -> Tensor:
        """The rows at the start; draws the bias, too."""
        bound = max(num_nodes, 1) ** -0.5
        bias = torch.rand(self.out_channels, generator=generator)
        self.bias.data = (bound * (2 * bias - 1)).to(self.bias)
        rows: Tensor = torch.rand(num_nodes, self.out_channels, generator=generator)
        return (2 * rows - 1).mul_(bound)

    def forward(self, edge_index: Edges, num_nodes: int) -> Tensor:
        """The result of each node, ``[N, out_channels]``."""
        return aggregate(self.rows(edge_index, num_nodes), edge_index, "sum") + self.bias
