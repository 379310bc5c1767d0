"""Hyperbolic graph convolutional network."""

from functools import partial

from argnn.nn.conv.hgcn_conv import HGCNConv
from argnn.nn.manifolds import Curvature
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE
from argnn.nn.models.manifold import AbstractTangentStack


class HGCN(AbstractTangentStack):
    r"""The hyperbolic graph convolutional network of Chami and others, on the Poincaré ball.

    Points between layers are given as tangent vectors at the origin, since :math:`\log_0` and
    :math:`\exp_0` cancel there, and the projection into the ball acts on these vectors. Deviations
    from the authors' code: learned curvatures cannot change their sign; nodes are classified end to
    end, while the authors train a classifier on frozen embeddings of a link predictor; inputs with
    ``normalize_input=False`` are not projected into the ball.

    Args:
        num_layers: Number of convolutions. The authors' "2 layers" are one convolution and the
            linear head for classes, but two convolutions for links.
        dropout: Dropout on the weights of the convolutions, and on the scores.
        curvature: Minus the curvature of every layer at the start.
        learnable_curvature: Whether curvatures are learned, one for each layer.
        attention: Whether neighbours are weighted by attention.
        head: ``"linear"`` for scores, ``"points"`` for points of the ball.
    """

    citation = "Chami, Ying, Ré, Leskovec: Hyperbolic GCNs, NeurIPS 2019"
    takes_edge_weight = True
    space = "Poincaré ball"
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "num_layers": [1, 2]}

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
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        self.dropout = self.score_dropout = dropout
        self.input_dropout, self.normalize_input = input_dropout, normalize_input
        self.recordable = not attention
        init_conv = partial(HGCNConv, dropout=dropout, attention=attention)
        self.curvature = Curvature([-curvature] * (num_layers + 1), learnable=learnable_curvature)
        self.stack_with_head(head, init_conv, self.sizes_to(hidden_channels))
