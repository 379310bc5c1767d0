"""The contract of every model in the registry."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn


class AbstractNodeModel(nn.Module, ABC):
    """A network from node features and edges to one vector of raw scores per node.

    Class attributes:
        citation: Where the method was published.
        space: The geometry it computes in.
        search_space: Settings worth tuning, by name.
    """

    citation: ClassVar[str]
    space: ClassVar[str]
    search_space: ClassVar[dict[str, list[Any]]]

    in_channels: int
    out_channels: int

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Raw scores, ``[N, out_channels]``."""
        return self.forward_with_metric(x, edge_index)[0]

    @abstractmethod
    def forward_with_metric(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Raw scores, and the metric diagonals of each layer; none for fixed geometries."""

    @abstractmethod
    def reset_parameters(self) -> None:
        """Draw all weights anew."""

    def metric_parameters(self) -> list[nn.Parameter]:
        """The parameters that only shape the metric, for a learning rate of their own."""
        return []
