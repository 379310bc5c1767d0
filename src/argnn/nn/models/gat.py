"""Graph attention network."""

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.inits import reset

from argnn.checks import require
from argnn.functional.dropout import dropout as drop
from argnn.nn.conv.pyg import GATConv
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, AbstractNodeModel, check_sizes


class GAT(AbstractNodeModel):
    """The graph attention network of Veličković et al.

    Layers of :class:`~argnn.nn.conv.pyg.GATConv` with ELU between them.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers, all heads together.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions.
        dropout: Dropout on the input of each layer and on the attention.
        input_dropout: Dropout on the node features; as ``dropout`` where it is None.
        heads: Number of heads of the hidden layers, which divides ``hidden_channels``.
        out_heads: Number of heads of the last layer, which are averaged.
        normalize_input: Whether each row of the features is scaled to sum one, as in the
            method's own code.
    """

    citation: ClassVar[str] = "Veličković et al.: Graph attention networks, ICLR 2018"
    space: ClassVar[str] = "Euclidean"
    search_space: ClassVar[dict[str, list[Any]]] = {**EUCLIDEAN_SEARCH_SPACE, "heads": [1, 8]}

    # Embeddings of scaled rows are so small that their products say nothing for many epochs.
    link_options: ClassVar[dict[str, Any]] = {"normalize_input": False}

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
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(heads >= 1, "heads", "at least 1", heads)
        require(out_heads >= 1, "out_heads", "at least 1", out_heads)
        divides = hidden_channels % heads == 0
        require(divides, "hidden_channels", f"a multiple of the {heads} heads", hidden_channels)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.dropout = hidden_channels, dropout
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1)]
        convs = [
            GATConv(size, hidden_channels // heads, heads=heads, dropout=dropout)
            for size in sizes[:-1]
        ]
        convs.append(
            GATConv(sizes[-1], out_channels, heads=out_heads, concat=False, dropout=dropout)
        )
        self.convs = nn.ModuleList(convs)
        convs[0].lin = InputLinear(
            in_channels,
            convs[0].heads * convs[0].out_channels,
            bias=False,
            dropout=dropout if input_dropout is None else input_dropout,
            normalize=normalize_input,
            weight_initializer="glorot",
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
            h = conv(drop(F.elu(h), self.dropout, self.training) if depth else h, edge_index)
        return h, []
