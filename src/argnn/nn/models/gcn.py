"""Graph convolutional network."""

from itertools import pairwise
from typing import Any, ClassVar

from torch import Tensor, nn
from torch_geometric.nn.inits import reset

from argnn.functional.dropout import dropout as drop
from argnn.nn.conv.pyg import GCNConv
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, AbstractNodeModel, check_sizes


class GCN(AbstractNodeModel):
    r"""The graph convolutional network of Kipf and Welling.

    .. math::
        H \leftarrow \mathrm{relu}(\hat A H W + b), \qquad
        \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    without the activation in the last layer.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions.
        dropout: Dropout on the hidden features.
        input_dropout: Dropout on the node features; the method's own code has ``dropout`` there.
        normalize_input: Whether each row of the features is scaled to sum one, as in the
            method's own code.
    """

    citation: ClassVar[str] = "Kipf, Welling: Semi-supervised classification with GCNs, ICLR 2017"
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
        normalize_input: bool = False,
    ) -> None:
        super().__init__()
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.dropout = hidden_channels, dropout
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), out_channels]
        self.convs = nn.ModuleList(GCNConv(*size) for size in pairwise(sizes))
        self.convs[0].lin = InputLinear(
            *sizes[:2],
            bias=False,
            dropout=input_dropout,
            normalize=normalize_input,
            weight_initializer="glorot",
        )

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        reset(self.convs)

    def reach(self) -> int:
        """Hops that scores depend on, one more for degrees."""
        return len(self.convs) + 1

    def forward_with_metric(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        h = x
        for depth, conv in enumerate(self.convs):
            h = conv(drop(h.relu(), self.dropout, self.training) if depth else h, edge_index)
        return h, []
