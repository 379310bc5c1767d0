"""Multilayer perceptron, a reference that ignores the edges."""

from torch import Tensor
from torch_geometric.nn import MLP as PyGMLP

from argnn.functional.neighborhood import Edges
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, AbstractNodeModel


class MLP(AbstractNodeModel):
    """A multilayer perceptron on the node features; the edges are ignored.

    Args:
        num_layers: Number of linear layers.
    """

    citation = "reference without edges"
    takes_edge_weight = True
    space = "Euclidean"
    search_space = EUCLIDEAN_SEARCH_SPACE
    recordable = True

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.net = PyGMLP(sizes, dropout=dropout, norm=None)
        self.net.lins[0] = InputLinear.in_place_of(self.net.lins[0], input_dropout, normalize_input)

    def reach(self) -> int:
        """How many hops around a node its scores depend on."""
        return 0

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        return self.net(x), []
