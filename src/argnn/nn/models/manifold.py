"""Models whose embeddings are points of a curved space."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn
from torch.nn import functional as F

from argnn.errors import require
from argnn.functional import stereographic
from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.functional.row_normalization import normalized_rows
from argnn.nn.manifolds import Curvature
from argnn.nn.models.stack import AbstractStack, InitConv

#: The value of ``head`` for points instead of scores.
POINTS = "points"


def check_head(head: str, classifier: str) -> None:
    """Raise unless ``head`` is the name of the classifier or :data:`POINTS`."""
    require(head in (classifier, POINTS), "head", f"'{classifier}' or '{POINTS}'", repr(head))


class AbstractManifoldModel(AbstractStack):
    """A model that gives scores of classes, or with ``head="points"`` points of its space."""

    link_decoder = "distance"
    link_options = {"head": POINTS}

    encoder_head = ("classifier",)

    head: str

    def metric_parameters(self) -> list[nn.Parameter]:
        """The learned curvatures."""
        names = self.named_parameters()
        return [parameter for name, parameter in names if name.endswith("curvature.raw")]

    def squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance of embeddings, ``[P, out_channels]`` each.

        It is measured in the curved space; if ``head`` is not ``"points"``, in Euclidean space.
        """
        if self.head != POINTS:
            return super().squared_distance(a, b)
        return self.geodesic_squared_distance(a, b)

    @abstractmethod
    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance of points of the space, ``[P, out_channels]`` each."""


class AbstractTangentStack(AbstractManifoldModel):
    """A stack of convolutions from tangent vectors at the origin to such vectors.

    After each convolution come an activation and a clipping for the space of the next one.

    Attributes:
        curvature: One curvature for each of these spaces, or one for all of them.
        geometry: Has the functions ``clip_tangent``, ``expmap0`` and ``squared_distance`` of a
            space, each with the curvature as the last argument.
        normalize_input: Whether each row of the features is scaled to sum 1.
        input_dropout: Dropout on the node features; None takes the convolution's own.
        score_dropout: Dropout on the scores.
    """

    curvature: Curvature
    geometry: Any = stereographic
    normalize_input: bool
    input_dropout: float | None
    score_dropout: float = 0.0

    def layer_curvatures(self) -> Sequence[Tensor] | Tensor:
        """Curvature of the space before each convolution, and after the last one."""
        k: Tensor = self.curvature()
        return k if k.numel() > 1 else [k.squeeze(0)] * (self.num_layers + 1)

    def stack_with_head(
        self,
        head: str,
        init_conv: InitConv,
        sizes: Sequence[int],
        init_last: InitConv | None = None,
    ) -> None:
        """Build the convolutions, and a linear map after them unless ``head`` is ``"points"``.

        Points have ``out_channels`` coordinates instead of the last of the sizes.
        """
        check_head(head, "linear")
        self.head = head
        last = self.out_channels if head == POINTS else sizes[-1]
        self.stack_convs(init_conv, [*sizes[:-1], last], init_last)
        self.classifier = None if head == POINTS else nn.Linear(last, self.out_channels)

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores or points, ``[N, out_channels]``, and no metric."""
        u = normalized_rows(x) if self.normalize_input else x
        k, dropped = self.layer_curvatures(), {"input_dropout": self.input_dropout}
        for conv, here, after in zip(self.convs, k, k[1:], strict=False):
            u = self.geometry.clip_tangent(F.relu(conv(u, edge_index, here, **dropped)), after)
            dropped = {}
        if self.classifier is None:
            return self.geometry.expmap0(u, k[-1]), []
        return drop(self.classifier(u), self.score_dropout, self.training), []

    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance in the space after the last convolution, ``[P]``."""
        return self.geometry.squared_distance(a, b, self.layer_curvatures()[-1])
