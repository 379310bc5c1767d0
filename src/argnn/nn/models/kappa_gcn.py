"""Constant curvature graph convolutional network."""

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from argnn.errors import require
from argnn.functional import stereographic
from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import accumulation_dtype
from argnn.functional.row_normalization import normalized_rows
from argnn.functional.self_loops import closed_aggregate
from argnn.nn.conv.kappa_gcn_conv import KappaGCNConv
from argnn.nn.manifolds import StereographicProduct
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE
from argnn.nn.models.manifold import POINTS, AbstractManifoldModel, check_head


class KappaGCN(AbstractManifoldModel):
    r"""The constant curvature graph convolutional network of Bachmann and others.

    Each layer and factor has its own curvature, whose sign training can change. The last layer
    scores classes by hyperplanes of the space and averages the scores over neighbours. At curvature
    zero the network is a GCN without biases in hidden layers, with scores times four. In a product,
    the scores of the factors are added, so that this holds for any number of factors; other authors
    take a signed Euclidean norm. The authors published no code.

    Args:
        num_layers: Number of averages over neighbours, including the one of the scores.
        dropout: Dropout on the features of every layer.
        curvature: Curvature of every layer at the start, between -1 and 1.
        learnable_curvature: Whether curvatures are learned.
        factors: Number of factors of the space, of equal width.
        head: ``"hyperplanes"`` for scores, ``"points"`` for points of the space.
    """

    citation = "Bachmann, Bécigneul, Ganea: Constant curvature GCNs, ICML 2020"
    takes_edge_weight = True
    space = "κ-stereographic, κ of either sign"
    search_space = {**EUCLIDEAN_SEARCH_SPACE, "curvature": [-0.5, 0.0, 0.5]}
    recordable = True
    farther = 1

    def __init__(
        self,
        in_channels: int,
        hidden_channels: int,
        out_channels: int,
        num_layers: int = 2,
        *,
        dropout: float = 0.5,
        input_dropout: float | None = None,
        curvature: float = 0.0,
        learnable_curvature: bool = True,
        factors: int = 1,
        normalize_input: bool = True,
        head: str = "hyperplanes",
    ) -> None:
        super().__init__()
        self.set_sizes(in_channels, hidden_channels, out_channels, num_layers)
        check_head(head, "hyperplanes")
        last = out_channels if head == POINTS else hidden_channels
        divides = factors >= 1 and hidden_channels % factors == 0 and last % factors == 0
        require(divides, "the width", "a multiple of factors", f"{last} and {factors}")
        self.dropout = dropout
        self.input_dropout = dropout if input_dropout is None else input_dropout
        self.normalize_input, self.head = normalize_input, head
        self.spaces = nn.ModuleList(
            StereographicProduct([curvature] * factors, learnable=learnable_curvature, free=True)
            for _ in range(num_layers)
        )
        sizes = self.sizes_to(out_channels)
        self.stack_convs(KappaGCNConv, sizes if head == POINTS else sizes[:-1])
        self.classifier = None if head == POINTS else _Hyperplanes(sizes[-2], out_channels)

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores or points, ``[N, out_channels]``, and no metric."""
        u = normalized_rows(x) if self.normalize_input else x
        dropped = self.input_dropout
        for layer, conv in enumerate(self.convs):
            u = u if layer == 0 else F.relu(u)
            u = conv(u, edge_index, self.spaces[layer], dropped)
            dropped = self.dropout
        if self.classifier is None:
            return self._points(u), []
        u = drop(F.relu(u) if len(self.convs) else u, dropped, self.training)
        return closed_aggregate(self.classifier(self._points(u), self._last_space), edge_index), []

    @property
    def _last_space(self) -> StereographicProduct:
        return cast(StereographicProduct, self.spaces[-1])

    def _points(self, u: Tensor) -> Tensor:
        space = self._last_space
        return space.expmap0(space.clip_tangent(u, stereographic.HEMISPHERE))

    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance in the space of the last layer, ``[P]``."""
        return self._last_space.squared_distance(a, b)


class _Hyperplanes(nn.Module):
    """A hyperplane for each class in every factor of a product."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.normal = nn.Parameter(torch.empty(out_channels, in_channels))
        #: A point of each hyperplane, as a tangent vector at the origin.
        self.point = nn.Parameter(torch.empty(out_channels, in_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.xavier_uniform_(self.normal)
        nn.init.zeros_(self.point)

    def forward(self, x: Tensor, space: StereographicProduct) -> Tensor:
        dtype = accumulation_dtype(x.dtype)
        with torch.autocast(x.device.type, enabled=False):
            points = space.split(
                space.expmap0(space.clip_tangent(self.point, stereographic.HEMISPHERE))
            )
            parts = zip(
                space.split(x.to(dtype)).unbind(-2),
                points.unbind(-2),
                space.split(self.normal).unbind(-2),
                space.curvatures(),
                strict=True,
            )
            scores = [stereographic.hyperplane_scores(*part) for part in parts]
        return torch.stack(scores).sum(0)
