"""The structural inputs of a metric network as plain features."""

import torch
from torch import Tensor, nn
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import reset

from argnn.functional.neighborhood import Edges
from argnn.functional.structure import NUM_DESCRIPTORS
from argnn.nn.graph_statistics import (
    OF_DESCRIPTOR,
    GraphStatistics,
    descriptor_statistics,
    standard_descriptor,
)


class StructureFeatures(nn.Module):
    r"""Adds the structural descriptor :math:`\mathbf{s}_i` to the inputs and scores of a network.

    For a control experiment: does a learned metric help, or only the numbers that the metric
    network reads? Here a network with a fixed metric gets these numbers, before the first layer and
    again at the scores, so that they also act where a node's own features do not. As in a metric
    network, they have no dropout and are standardised by stored numbers of the training graph.

    Args:
        hidden_channels: Width of the encoded features. None if features are not encoded: then the
            descriptor is appended to them as columns.
        out_channels: Number of scores per node.
    """

    def __init__(self, hidden_channels: int | None, out_channels: int) -> None:
        super().__init__()
        encoded = hidden_channels is not None
        self.lin_hidden = Linear(NUM_DESCRIPTORS, hidden_channels, bias=False) if encoded else None
        self.lin_scores = Linear(NUM_DESCRIPTORS, out_channels, bias=False)
        self.statistics = GraphStatistics(**OF_DESCRIPTOR)

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in self.children():
            reset(part)

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Keep the statistics of the training graph."""
        if num_nodes:
            self.statistics.store(**descriptor_statistics(edge_index, num_nodes))

    def descriptor(self, h: Tensor, edge_index: Edges) -> Tensor:
        """The descriptor of every node, ``[N, 5]``, with the type and device of ``h``."""
        if self.training and not self.statistics.is_fitted:
            self.fit_to_graph(edge_index, h.size(0))
        return standard_descriptor(self.statistics, h, edge_index)

    def joined(self, h: Tensor, edge_index: Edges) -> Tensor:
        """Features with the descriptor: encoded ones ``[N, D]``, raw ones ``[N, F + 5]``."""
        s = self.descriptor(h, edge_index)
        return torch.cat([h, s], dim=-1) if self.lin_hidden is None else h + self.lin_hidden(s)

    def added_to(self, scores: Tensor, edge_index: Edges) -> Tensor:
        """Scores plus a linear map of the descriptor, ``[N, out_channels]``."""
        from_structure: Tensor = self.lin_scores(self.descriptor(scores, edge_index))
        return scores + from_structure
