"""The interface of all families of metrics."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from torch import Tensor, nn

from argnn import functional as AF
from argnn.functional.neighborhood import Edges


class Metric(nn.Module, ABC):
    """Gives each node its metric, and lets a metric act on messages.

    A new family is a subclass in a new file and a line in ``argnn.nn.metric.METRICS``.

    Class attributes:
        switches: Names of the switches of :class:`~argnn.nn.Formulation` that the family reads,
            each with the constructor argument that it sets.
    """

    switches: ClassVar[Mapping[str, str]] = {}

    #: How many sums of neighbours, one per direction of messages, :meth:`forward` reads.
    num_sums: int = 0

    #: Size :math:`D` of the vectors that the metric measures.
    metric_channels: int

    @property
    def metric_size(self) -> tuple[int, ...]:
        """Shape of the metric of one node, ``(D,)``, or ``(1 + R, D)`` if it is factored."""
        return (self.metric_channels,)

    @classmethod
    def build(cls, name: str, in_channels: int, channels: int, **options: Any) -> "Metric":
        """A metric for a convolution; here one that reads no node features.

        Args:
            name: The name in ``METRICS`` that was asked for.
            in_channels: Size of the node features that the metric may read.
            channels: Size of the vectors that the metric measures.
            **options: Further arguments of the family.
        """
        return cls(channels, **options)

    @abstractmethod
    def forward(self, h: Tensor, edge_index: Edges) -> Tensor:
        """The metric of every node, ``[N, *metric_size]``.

        A family with ``num_sums`` takes a third argument, the sums: one ``[N, in_channels]`` each.
        """

    def reset_parameters(self) -> None:
        """Draw all weights anew; nothing to do without weights."""

    def fit_to_graph(self, edge_index: Edges, num_nodes: int) -> None:
        """Store what the metric needs to know about the training graph; mostly nothing."""

    def node_parameters(self) -> list[nn.Parameter]:
        """The parameters with one row per node; mostly none."""
        return []

    def positive_parameters(self) -> list[nn.Parameter]:
        """The parameters that must stay positive; mostly none."""
        return []

    def constrain(self) -> None:
        """Bring parameters back into their bounds after a step; mostly nothing."""

    def modulate(self, message: Tensor, g: Tensor, eps0: float, added: Tensor | None) -> Tensor:
        """Apply the operator of the metric to messages, ``[N, channels]``.

        Args:
            message: The messages, ``[N, channels]``.
            g: The metric that :meth:`forward` gave.
            eps0: Baseline of the modulation.
            added: A tensor to add to the result, or None.
        """
        return AF.modulate(message, g, eps0, added=added)
