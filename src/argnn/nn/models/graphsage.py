"""GraphSAGE with mean aggregation."""

from functools import partial

from argnn.nn.conv.pyg import SAGEConv
from argnn.nn.models.stack import AbstractStack


class GraphSAGE(AbstractStack):
    r"""GraphSAGE with mean aggregation, on the whole graph without sampling.

    .. math::
        \mathbf{h}_i \leftarrow \mathrm{relu}\Big(W_r \mathbf{h}_i + \mathbf{b} +
        W_n \frac{1}{d_i} \sum_{j \in \mathcal{N}(i)} \mathbf{h}_j\Big)

    without the activation in the last layer.

    Args:
        input_dropout: Dropout on the node features, drawn separately for the two maps.
        normalize: Whether each layer scales its rows to length 1.
    """

    citation = "Hamilton, Ying, Leskovec: Inductive representation, NeurIPS 2017"
    takes_edge_weight = True
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
        normalize: bool = False,
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.dropout = dropout
        self.stack_convs(partial(SAGEConv, normalize=normalize), self.sizes_to(out_channels))
        self.read_features("lin_l", "lin_r", dropout=input_dropout, normalize=normalize_input)
