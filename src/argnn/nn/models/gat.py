"""Graph attention network."""

from torch import Tensor
from torch.nn import functional as F

from argnn.errors import require
from argnn.nn.conv.pyg import GATConv
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, UNSCALED_ROWS
from argnn.nn.models.stack import AbstractStack


class GAT(AbstractStack):
    """The graph attention network of Veličković et al.

    Layers of :class:`~argnn.nn.conv.pyg.GATConv` with ELU between them.

    Args:
        hidden_channels: Width of the layers, all heads together.
        dropout: Dropout on the input of each layer and on the attention.
        heads: Number of heads of the hidden layers; must divide ``hidden_channels``.
        out_heads: Number of heads of the last layer, whose mean is taken.
    """

    citation = "Veličković et al.: Graph attention networks, ICLR 2018"
    takes_edge_weight = True
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "heads": [1, 8]}
    link_options = UNSCALED_ROWS

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        heads: int = 8,
        out_heads: int = 1,
        normalize_input: bool = True,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(heads >= 1, "heads", "at least 1", heads)
        require(out_heads >= 1, "out_heads", "at least 1", out_heads)
        divides = hidden_channels % heads == 0
        require(divides, "hidden_channels", f"a multiple of the {heads} heads", hidden_channels)
        self.dropout = dropout
        self.stack_convs(
            lambda a, b: GATConv(a, b // heads, heads=heads, dropout=dropout),
            self.sizes_to(out_channels),
            lambda a, b: GATConv(a, b, heads=out_heads, concat=False, dropout=dropout),
        )
        self.read_features("lin", dropout=input_dropout, normalize=normalize_input)

    def activation(self, h: Tensor) -> Tensor:
        """What stands between two layers."""
        return F.elu(h)
