"""What the models whose embeddings are points of a curved space have in common."""

from abc import abstractmethod
from typing import Any, ClassVar

from torch import Tensor, nn

from argnn.errors import ConfigError
from argnn.nn.models.base import AbstractNodeModel

#: The head that gives the points themselves.
POINTS = "points"


def check_head(head: str, classifier: str) -> None:
    """Raise unless a head is the classifier's or :data:`POINTS`."""
    if head not in (classifier, POINTS):
        raise ConfigError(f"head must be '{classifier}' or '{POINTS}' (got {head!r})")


class AbstractManifoldModel(AbstractNodeModel):
    """A model that gives scores of classes, or with ``head="points"`` points of its space."""

    link_decoder: ClassVar[str] = "distance"
    link_options: ClassVar[dict[str, Any]] = {"head": POINTS}

    head: str

    def metric_parameters(self) -> list[nn.Parameter]:
        """The learned curvatures."""
        names = self.named_parameters()
        return [parameter for name, parameter in names if name.endswith("curvature.raw")]

    def squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance of embeddings, ``[P, out_channels]`` each.

        That of the space for points of it; with another head, embeddings are Euclidean.
        """
        if self.head != POINTS:
            return super().squared_distance(a, b)
        return self.geodesic_squared_distance(a, b)

    @abstractmethod
    def geodesic_squared_distance(self, a: Tensor, b: Tensor) -> Tensor:
        """Squared distance of points of the space, ``[P, out_channels]`` each."""
