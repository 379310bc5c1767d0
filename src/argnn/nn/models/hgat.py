"""Hyperbolic graph attention network."""

import math
from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.inits import reset

from argnn.errors import ConfigError
from argnn.functional import stereographic
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.conv.hgat_conv import HGATConv
from argnn.nn.manifolds import Curvature
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, check_sizes
from argnn.nn.models.manifold import POINTS, AbstractManifoldModel, check_head


class HGAT(AbstractManifoldModel):
    r"""The hyperbolic graph attention network of Zhang and others, on the Poincaré ball.

    No code of the authors is public. ``attention="distance"`` is the mechanism of the paper,
    ``"learned"`` that of the GIL toolbox. Layers hand points over as tangent vectors at the
    origin, since :math:`\log_0` and :math:`\exp_0` between them cancel. All layers but the last
    concatenate their heads, the last one takes their mean.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers, all heads together; where the heads do not divide it,
            they are a little wider.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions.
        dropout: Dropout on features (``"learned"``: on weights) and on the attention.
        input_dropout: Dropout on the node features; as on those of other layers where it is None.
        heads: Number of heads.
        attention: ``"distance"`` or ``"learned"``.
        curvature: Minus the curvature of the ball.
        learnable_curvature: Whether the curvature is learned, starting from there.
        normalize_input: Whether rows of the features are scaled to sum one.
        head: ``"linear"`` for scores, ``"points"`` for points of the ball.
    """

    citation: ClassVar[str] = "Zhang, Wang, Shi, Jiang, Ye: Hyperbolic GAT, IEEE TBD 2021"
    space: ClassVar[str] = "Poincaré ball"
    search_space: ClassVar[dict[str, list[Any]]] = {
        **EUCLIDEAN_SEARCH_SPACE,
        # Distances of features as stored are so large that nodes hear little but themselves.
        "normalize_input": [True, False],
    }

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        heads: int = 4,
        attention: str = "distance",
        curvature: float = 1.0,
        learnable_curvature: bool = False,
        normalize_input: bool = True,
        head: str = "linear",
    ) -> None:
        super().__init__()
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        check_head(head, "linear")
        if heads < 1:
            raise ConfigError(f"heads must be positive (got {heads})")
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.head = hidden_channels, head
        self.normalize_input, self.input_dropout = normalize_input, input_dropout
        width = math.ceil(hidden_channels / heads)
        last = out_channels if head == POINTS else width
        self.curvature = Curvature([-curvature], learnable=learnable_curvature)
        self.convs = nn.ModuleList(
            HGATConv(
                in_channels if layer == 0 else heads * width,
                last if layer == num_layers - 1 else width,
                heads,
                attention=attention,
                concat=layer < num_layers - 1,
                dropout=dropout,
            )
            for layer in range(num_layers)
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
        k, dropped = self.curvature().squeeze(0), self.input_dropout
        for conv in self.convs:
            u = stereographic.clip_tangent(F.relu(conv(u, edge_index, k, dropped)), k)
            dropped = None
        if self.classifier is None:
            return stereographic.expmap0(u, k), []
        return self.classifier(u), []

    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance in the ball, ``[P]``."""
        return stereographic.squared_distance(a, b, self.curvature().squeeze(0))
