"""GraphSAGE with mean aggregation."""

from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from argnn.functional.dropout import dropout as drop
from argnn.nn.conv.pyg import SAGEConv
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, AbstractNodeModel, check_sizes


class GraphSAGE(AbstractNodeModel):
    r"""GraphSAGE with mean aggregation, on the whole graph without sampling.

    .. math::
        \mathbf{h}_i \leftarrow \mathrm{relu}\Big(W_r \mathbf{h}_i + \mathbf{b} +
        W_n \frac{1}{d_i} \sum_{j \in \mathcal{N}(i)} \mathbf{h}_j\Big)

    without the activation in the last layer.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions.
        dropout: Dropout on the hidden features.
        input_dropout: Dropout on the node features, drawn for each of the two maps.
        normalize: Whether each layer scales its rows to length one.
        normalize_input: Whether each row of the features is scaled to sum one.
    """

    citation: ClassVar[str] = "Hamilton, Ying, Leskovec: Inductive representation, NeurIPS 2017"
    space: ClassVar[str] = "Euclidean"
    search_space: ClassVar[dict[str, list[Any]]] = EUCLIDEAN_SEARCH_SPACE

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
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.dropout = hidden_channels, dropout
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(SAGEConv(*size, normalize=normalize) for size in pairwise(sizes))
        first = self.convs[0]
        first.lin_l, first.lin_r = (
            InputLinear(*sizes[:2], bias=bias, dropout=input_dropout, normalize=normalize_input)
            for bias in (True, False)
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset(self.convs)

    def reach(self) -> int:
        """Hops that scores depend on."""
        return len(self.convs)

    def forward_with_metric(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h = x
        for depth, conv in enumerate(self.convs):
            h = conv(drop(h.relu(), self.dropout, self.training) if depth else h, edge_index)
        return h, []
