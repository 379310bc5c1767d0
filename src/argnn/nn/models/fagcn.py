"""FAGCN."""

from torch import Tensor, nn
from torch_geometric.nn import Linear
from torch_geometric.nn.inits import reset

from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.nn.conv.pyg import FAConv
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, UNSCALED_ROWS
from argnn.nn.models.stack import AbstractStack


class FAGCN(AbstractStack):
    """The frequency adaptive network of Bo et al.: neighbours may attract or repel.

    A linear map with activation, layers of :class:`~argnn.nn.conv.pyg.FAConv`, a linear map.

    Args:
        dropout: Dropout on input and result of the first map, and on the weights of edges.
        eps: Factor on the first hidden features, which every layer adds.
    """

    citation = "Bo, Wang, Shi, Shen: Beyond low-frequency information, AAAI 2021"
    takes_edge_weight = True
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "eps": [0.1, 0.3, 0.5, 1.0]}
    link_options = UNSCALED_ROWS
    farther = 1

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        eps: float = 0.3,
        normalize_input: bool = True,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.dropout = dropout
        dropped = dropout if input_dropout is None else input_dropout
        self.encoder = InputLinear(
            in_channels, hidden_channels, dropout=dropped, normalize=normalize_input
        )
        self.stack_convs(
            lambda width, _: FAConv(width, eps=eps, dropout=dropout),
            [hidden_channels] * (num_layers + 1),
        )
        self.head = Linear(hidden_channels, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for lin in (self.encoder, self.head):
            lin.reset_parameters()
            nn.init.xavier_normal_(lin.weight, gain=FAConv.GAIN)
        reset(self.convs)

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        first = h = drop(self.encoder(x).relu(), self.dropout, self.training)
        for conv in self.convs:
            h = conv(h, first, edge_index)
        return self.head(h), []
