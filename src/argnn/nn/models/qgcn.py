"""Pseudo-Riemannian graph convolutional network."""

from typing import Any, ClassVar

from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.nn.inits import reset

from argnn.errors import ConfigError
from argnn.functional import pseudo_hyperboloid
from argnn.functional.dropout import dropout as drop
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.conv.qgcn_conv import QGCNConv
from argnn.nn.manifolds import Curvature
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, check_sizes
from argnn.nn.models.manifold import POINTS, AbstractManifoldModel, check_head


class QGCN(AbstractManifoldModel):
    r"""The pseudo-Riemannian graph convolutional network of Xiong and others.

    Points lie on pseudo-hyperboloids :math:`\langle x, x\rangle = \beta`, one for each layer. They
    are handed over as tangent vectors at the origin, since :math:`\log_0` and :math:`\exp_0`
    between layers cancel. Deviations from the authors' code: the first linear map acts
    on the features as they are, without a constant coordinate in front; a time-like part that would
    run past the antipode of the origin stops short of it, where the authors' comes back from the
    other side; the head is a linear map of the run's own tangent space; and the squared distance is
    squared in all of its cases and not cut off at 50.

    Args:
        in_channels: Size of the node features.
        hidden_channels: Width of the layers, the number of coordinates of a point.
        out_channels: Number of scores per node.
        num_layers: Number of convolutions; the authors' "2 layers" are one convolution and the
            linear head for classes, and two convolutions for links.
        dropout: Dropout on the weights of the convolutions, and on the scores.
        input_dropout: Dropout on the node features.
        time: Number of time-like coordinates; 1 is a hyperboloid, all is a sphere.
        curvature: :math:`-\beta` of every layer at the start.
        learnable_curvature: Whether it is learned.
        normalize_input: Whether rows of the features are scaled to sum one.
        head: ``"linear"`` for scores, ``"points"`` for points of the space.
    """

    citation: ClassVar[str] = "Xiong and others: Pseudo-Riemannian GCNs, NeurIPS 2022"
    space: ClassVar[str] = "pseudo-hyperboloid"
    search_space: ClassVar[dict[str, list[Any]]] = {
        **EUCLIDEAN_SEARCH_SPACE,
        "num_layers": [1, 2],
        "time": [1, 3, 8],
    }

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
        check_sizes(in_channels, hidden_channels, out_channels, num_layers)
        check_head(head, "linear")
        if not 1 <= time <= hidden_channels:
            raise ConfigError(f"time must be from 1 to {hidden_channels} (got {time})")
        last = out_channels if head == POINTS else hidden_channels
        self.in_channels, self.out_channels = in_channels, out_channels
        self.hidden_channels, self.dropout, self.time = hidden_channels, dropout, time
        self.input_dropout = input_dropout
        self.normalize_input, self.head = normalize_input, head
        sizes = [in_channels, *[hidden_channels] * (num_layers - 1), last]
        self.curvature = Curvature([-curvature] * (num_layers + 1), learnable=learnable_curvature)
        self.convs = nn.ModuleList(
            QGCNConv(a, b, min(time, b), dropout=dropout)
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
        betas, dropped = self.curvature(), self.input_dropout
        for conv, beta, next_beta in zip(self.convs, betas, betas[1:], strict=False):
            u = F.relu(conv(u, edge_index, beta, dropped))
            dropped = 0.0
            u = pseudo_hyperboloid.clip_tangent(u, next_beta, min(self.time, u.size(-1)))
        if self.classifier is None:
            return pseudo_hyperboloid.expmap0(u, betas[-1], min(self.time, u.size(-1))), []
        return drop(self.classifier(u), self.dropout, self.training), []

    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance on the pseudo-hyperboloid of the last layer, ``[P]``."""
        return pseudo_hyperboloid.squared_distance(
            a, b, self.curvature()[-1], min(self.time, a.size(-1))
        )
