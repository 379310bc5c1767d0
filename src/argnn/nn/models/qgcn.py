"""Pseudo-Riemannian graph convolutional network."""

from dataclasses import dataclass

from torch import Tensor

from argnn.errors import require
from argnn.functional import pseudo_hyperboloid
from argnn.nn.conv.qgcn_conv import QGCNConv
from argnn.nn.manifolds import Curvature
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE
from argnn.nn.models.manifold import AbstractTangentStack


@dataclass(frozen=True)
class _PseudoHyperboloid:
    """Pseudo-hyperboloids with at most ``time`` time-like coordinates."""

    time: int

    def clip_tangent(self, u: Tensor, beta: Tensor) -> Tensor:
        return pseudo_hyperboloid.clip_tangent(u, beta, self._time_of(u))

    def expmap0(self, u: Tensor, beta: Tensor) -> Tensor:
        return pseudo_hyperboloid.expmap0(u, beta, self._time_of(u))

    def squared_distance(self, a: Tensor, b: Tensor, beta: Tensor) -> Tensor:
        return pseudo_hyperboloid.squared_distance(a, b, beta, self._time_of(a))

    def _time_of(self, u: Tensor) -> int:
        return min(self.time, u.size(-1))


class QGCN(AbstractTangentStack):
    r"""The pseudo-Riemannian graph convolutional network of Xiong and others.

    Points lie on pseudo-hyperboloids :math:`\langle x, x\rangle = \beta`, one for each layer.
    Between layers they are given as tangent vectors at the origin, since :math:`\log_0` and
    :math:`\exp_0` cancel there. Deviations from the authors' code: the first linear map acts on the
    features without an additional constant coordinate; a time-like part stops before the antipode
    of the origin instead of passing through it; the head is a linear map of the tangent space; the
    squared distance is squared in all of its cases and has no upper limit of 50.

    Args:
        hidden_channels: Width of the layers, the number of coordinates of a point.
        num_layers: Number of convolutions. The authors' "2 layers" are one convolution and the
            linear head for classes, but two convolutions for links.
        dropout: Dropout on the weights of the convolutions, and on the scores.
        time: Number of time-like coordinates. 1 is a hyperboloid; all coordinates, a sphere.
        curvature: :math:`-\beta` of every layer at the start.
        learnable_curvature: Whether :math:`\beta` is learned.
        head: ``"linear"`` for scores, ``"points"`` for points of the space.
    """

    citation = "Xiong and others: Pseudo-Riemannian GCNs, NeurIPS 2022"
    takes_edge_weight = True
    space = "pseudo-hyperboloid"
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "num_layers": [1, 2], "time": [1, 3, 8]}
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
        time: int = 1,
        curvature: float = 1.0,
        learnable_curvature: bool = True,
        normalize_input: bool = False,
        head: str = "linear",
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        require(1 <= time <= hidden_channels, "time", f"from 1 to {hidden_channels}", time)
        self.dropout = self.score_dropout = dropout
        self.input_dropout, self.normalize_input = input_dropout, normalize_input
        self.geometry = _PseudoHyperboloid(time)
        self.curvature = Curvature([-curvature] * (num_layers + 1), learnable=learnable_curvature)
        self.stack_with_head(
            head,
            lambda a, b: QGCNConv(a, b, min(time, b), dropout=dropout),
            self.sizes_to(hidden_channels),
        )
