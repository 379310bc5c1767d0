"""Graph convolutional network."""

from argnn.nn.conv.pyg import GCNConv
from argnn.nn.models.stack import AbstractStack


class GCN(AbstractStack):
    r"""The graph convolutional network of Kipf and Welling.

    .. math::
        H \leftarrow \mathrm{relu}(\hat A H W + b), \qquad
        \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    without the activation in the last layer.

    Args:
        input_dropout: Dropout on the node features; the method's own code has ``dropout`` there.
        normalize_input: Whether each row of the features is scaled to sum 1, as the method's own
            code does.
    """

    citation = "Kipf, Welling: Semi-supervised classification with GCNs, ICLR 2017"
    takes_edge_weight = True
    recordable = True
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
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.dropout = dropout
        self.stack_convs(GCNConv, self.sizes_to(out_channels))
        self.read_features("lin", dropout=input_dropout, normalize=normalize_input)
