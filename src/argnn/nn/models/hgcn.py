"""Hyperbolic graph convolutional network."""

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.inits import reset

from argnn.functional import stereographic
from argnn.functional.dropout import dropout as drop
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.conv.hgcn_conv import HGCNConv
from argnn.nn.manifolds import Curvature
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, check_sizes
from argnn.nn.models.manifold import POINTS, AbstractManifoldModel, check_head


class HGCN(AbstractManifoldModel):
    r"""The hyperbolic graph convolutional network of Chami and others, on the Poincaré ball.

    Layers hand points over as tangent vectors at the origin, since :math:`\log_0` and
    :math:`\exp_0` between them cancel; the projection into the ball acts on those. The curvature of
    the next layer follows the activation. Deviations from the authors' code: learned curvatures
    cannot change their sign, nodes are classified end to end where the authors train on frozen
    embeddings of a link predictor, and the norm of an input with ``normalize_input=False`` is not
    cut at the rim of the ball.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions; the authors' "2 layers" are one convolution and the
            linear head for classes, and two convolutions for links.
        dropout: Dropout on the weights of the convolutions, and on the scores.
        input_dropout: Dropout on the node features.
        curvature: Minus the curvature of every layer at the start.
        learnable_curvature: Whether curvatures are learned, one for each layer.
        attention: Whether to weigh neighbours.
        normalize_input: Whether rows of the features are scaled to sum one.
        head: ``"linear"`` for scores, ``"points"`` for points of the ball.
    """

    citation: ClassVar[str] = "Chami, Ying, Ré, Leskovec: Hyperbolic GCNs, NeurIPS 2019"
    space: ClassVar[str] = "Poincaré ball"
    search_space: ClassVar[dict[str, list[Any]]] = {
        **EUCLIDEAN_SEARCH_SPACE,
        "num_layers": [1, 2],
    }

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float = 0.0,
        curvature: float = 1.0,
        learnable_curvature: bool = True,
        attention: bool = False,
        normalize_input: bool = True,
        head: str = "linear",
    ) -> None:
        super().__init__()
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        check_head(head, "linear")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.dropout = hidden_channels, dropout
        self.input_dropout = input_dropout
        self.normalize_input, self.head = normalize_input, head
        self.recordable = not attention
        last = out_channels if head == POINTS else hidden_channels
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), last]
        self.curvature = Curvature([-curvature] * (num_layers + 1), learnable=learnable_curvature)
        self.convs = nn.ModuleList(
            HGCNConv(a, b, dropout=dropout, attention=attention)
            for a, b in zip(sizes, sizes[1:], strict=False)
        )
        self.classifier = nn.Linear(last, out_channels) if head == "linear" else None

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        for part in (self.curvature, self.convs, self.classifier):
            reset(part)

    def reach(self) -> int:
        """Hops that scores depend on."""
        return len(self.convs)

    def forward_with_metric(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Raw scores or points, ``[N, out_channels]``, and no metric."""
        u = normalized_rows(x) if self.normalize_input else x
        curvatures, dropped = self.curvature(), self.input_dropout
        for conv, k, next_k in zip(self.convs, curvatures, curvatures[1:], strict=False):
            u = stereographic.clip_tangent(F.relu(conv(u, edge_index, k, dropped)), next_k)
            dropped = 0.0
        if self.classifier is None:
            return stereographic.expmap0(u, curvatures[-1]), []
        return drop(self.classifier(u), self.dropout, self.training), []

    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance in the ball of the last layer, ``[P]``."""
        return stereographic.squared_distance(a, b, self.curvature()[-1])
