"""A weight with a row for every node of one graph."""

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from argnn.functional.graph_part import GraphPart
from argnn.functional.neighborhood import Edges


class NodeWeights(nn.Module, ABC):
    """A weight of which row :math:`j` belongs to node :math:`j`.

    It gets its size from the first graph, or from a state that is loaded, and keeps it.

    The seed of the weights is drawn when the module is built or reset. So the weights do not depend
    on when they get their size, and drawing them then uses no other random numbers.

    Args:
        out_channels: Size of a row.
    """

    def __init__(self, out_channels: int) -> None:
        super().__init__()
        self.out_channels = out_channels
        self.weight = nn.Parameter(torch.empty(0, out_channels))

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the graph; 0 before the first graph."""
        return self.weight.size(0)

    @abstractmethod
    def drawn(self, num_nodes: int, generator: torch.Generator) -> Tensor:
        """The rows at the start, ``[N, out_channels]``."""

    def reset_parameters(self) -> None:
        """Draw all weights anew, for the same graph if there was one."""
        self._seed = int(torch.randint(2**62, ()))
        self._draw(self.num_nodes)

    @torch.inference_mode(False)
    @torch.no_grad()
    def _draw(self, num_nodes: int) -> None:
        generator = torch.Generator().manual_seed(self._seed)
        self.weight.data = self.drawn(num_nodes, generator).to(self.weight)

    def fit_to_graph(self, num_nodes: int) -> None:
        """Draw the weights for a graph, if there was none before."""
        if self.num_nodes == 0:
            self._draw(num_nodes)

    def rows(self, edge_index: Edges, num_nodes: int) -> Tensor:
        """The rows of all nodes of a graph, or of a part of it, ``[N, out_channels]``."""
        place = edge_index.place if isinstance(edge_index, GraphPart) else None
        num_nodes = num_nodes if place is None else place.whole_nodes
        self.fit_to_graph(num_nodes)
        if self.num_nodes != num_nodes:
            raise ValueError(
                f"the model has a weight for each of the {self.num_nodes} nodes of its training "
                f"graph and cannot be used on a graph of another size (got {num_nodes} nodes)"
            )
        return self.weight if place is None else F.embedding(place.nodes, self.weight)

    def _load_from_state_dict(self, state_dict, prefix, *rest):  # type: ignore[no-untyped-def]
        loaded = state_dict.get(f"{prefix}weight")
        if self.num_nodes == 0 and loaded is not None:
            self.weight.data = self.weight.new_empty(loaded.size(0), self.out_channels)
        super()._load_from_state_dict(state_dict, prefix, *rest)
