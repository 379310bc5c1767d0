"""Hyperbolic graph attention network."""

import math
from functools import partial

from argnn.errors import require
from argnn.nn.conv.hgat_conv import HGATConv
from argnn.nn.manifolds import Curvature
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE
from argnn.nn.models.manifold import AbstractTangentStack


class HGAT(AbstractTangentStack):
    r"""The hyperbolic graph attention network of Zhang and others, on the Poincaré ball.

    The authors published no code. ``attention="distance"`` is the attention of the paper,
    ``"learned"`` that of the GIL toolbox. Points between layers are given as tangent vectors at the
    origin, since :math:`\log_0` and :math:`\exp_0` cancel there. The last layer takes the mean of
    its heads, the others concatenate them.

    Args:
        hidden_channels: Width of the layers, all heads together; rounded up to a multiple of the
            number of heads.
        dropout: Dropout on features (``"learned"``: on weights) and on the attention.
        input_dropout: Dropout on the node features; None means the same as in other layers.
        heads: Number of heads.
        attention: ``"distance"`` or ``"learned"``.
        curvature: Minus the curvature of the ball.
        learnable_curvature: Whether the curvature is learned, starting from this value.
        head: ``"linear"`` for scores, ``"points"`` for points of the ball.
    """

    citation = "Zhang, Wang, Shi, Jiang, Ye: Hyperbolic GAT, IEEE TBD 2021"
    takes_edge_weight = True
    space = "Poincaré ball"
    search_space = {
        **EUCLIDEAN_SEARCH_SPACE,
        # Distances of unscaled features are so large that attention stays at the node itself.
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
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(heads >= 1, "heads", "positive", heads)
        self.input_dropout, self.normalize_input = input_dropout, normalize_input
        self.curvature = Curvature([-curvature], learnable=learnable_curvature)
        width = math.ceil(hidden_channels / heads)
        init = partial(HGATConv, heads=heads, attention=attention, dropout=dropout)
        self.stack_with_head(
            head,
            lambda a, b: init(a, b // heads),
            [in_channels, *[heads * width] * (num_layers - 1), width],
            partial(init, concat=False),
        )
