"""A linear map of the rows of the adjacency matrix."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import Edges, aggregate


class AdjacencyLinear(nn.Module):
    r"""Linear map of the rows of the adjacency matrix, :math:`A W + \mathbf{b}`.

    Row :math:`j` of :math:`W` belongs to node :math:`j`. So the weight gets its size from the first
    graph, or from a state that is loaded, and keeps it.

    The seed of the weights is drawn when the layer is built or reset. So the weights do not depend
    on when they get their size, and drawing them then uses no other random numbers.

    Args:
        out_channels: Size of the result.
    """

    def __init__(self, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(0, out_channels))
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph; 0 before the first graph."""
        return self.weight.size(0)

    def reset_parameters(self) -> None:
        """Draw all weights anew, for the same graph if there was one."""
        self._seed = int(torch.randint(2**62, ()))
        self._draw(self.num_nodes)

    @torch.inference_mode(False)
    @torch.no_grad()
    def _draw(self, num_nodes: int) -> None:
        generator = torch.Generator().manual_seed(self._seed)
        bound = max(num_nodes, 1) ** -0.5
        for parameter, rows in ((self.bias, ()), (self.weight, (num_nodes,))):
            drawn = torch.rand(*rows, self.out_channels, generator=generator)
            parameter.data = (bound * (2 * drawn - 1)).to(parameter)

    def fit_to_graph(self, num_nodes: int) -> None:
        """Draw the weights for a graph, if there was none before."""
        if self.num_nodes == 0:
            self._draw(num_nodes)

    def forward(self, edge_index: Edges, num_nodes: int) -> Tensor:
        """The result of each node, ``[N, out_channels]``."""
        place = edge_index.place if isinstance(edge_index, GraphPart) else None
        num_nodes = num_nodes if place is None else place.whole_nodes
        self.fit_to_graph(num_nodes)
        if self.num_nodes != num_nodes:
            raise ValueError(
                f"the model has a weight for each of the {self.num_nodes} nodes of its training "
                f"graph and cannot be used on a graph of another size (got {num_nodes} nodes)"
            )
        weight = self.weight if place is None else F.embedding(place.nodes, self.weight)
        return aggregate(weight, edge_index, "sum") + self.bias

    def _load_from_state_dict(self, state_dict, prefix, *rest):  # type: ignore[no-untyped-def]
        loaded = state_dict.get(f"{prefix}weight")
        if self.num_nodes == 0 and loaded is not None:
            self.weight.data = self.weight.new_empty(loaded.size(0), self.out_channels)
        super()._load_from_state_dict(state_dict, prefix, *rest)
