"""How a metric acts on messages: one class per form, and the table of their names."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from argnn import functional as AF
from argnn.functional.edge_weights import message_weights
from argnn.functional.graph_part import GraphPart, computed_rows
from argnn.functional.neighborhood import Neighborhood
from argnn.functional.precision import accumulation_dtype

if TYPE_CHECKING:
    from argnn.nn.conv.ar_conv import ARConv


class MessageForm(ABC):
    """How the metric acts on the messages of an :class:`~argnn.nn.ARConv`.

    A new form is a subclass and a line in :data:`MESSAGE_FORMS`.

    Class attributes:
        on_inputs: Whether the metric is one of the input channels, instead of the output channels.
        many_hops: Whether messages may travel several hops.
        on_edges: Whether the metric acts on single edges: then a node's result may depend on the
            metrics of its neighbours.
        has_weights: Whether a layer maps features by weights of its own. Without them it keeps
            their size, all layers of a model share one metric network, and nothing but the
            norm acts between two layers.
        eps0: The baseline of a form without weights.
        may_send: Whether a metric may act on messages before they are summed.
    """

    on_inputs: ClassVar[bool]
    many_hops: ClassVar[bool]
    on_edges: ClassVar[bool] = True
    has_weights: ClassVar[bool] = True
    eps0: ClassVar[float] = 0.0
    may_send: ClassVar[bool] = False

    @abstractmethod
    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """Whether a node's result depends on the metrics of its neighbours."""

    @abstractmethod
    def convolved(self, conv: "ARConv", x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """The result of the convolution, ``[N, out_channels]``.

        A form that does not act on single edges may also be given ``sums``, those of the features
        along each direction, which are known already. One that ``may_send`` also takes ``s``, the
        metric of the nodes that send.
        """

    @abstractmethod
    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """The factor on the message of each edge, ``[E]``."""

    @abstractmethod
    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """The result from sums of weighted messages, one sum per direction and hop."""


class ScalarForm(MessageForm):
    """The paper's form: one number per edge, computed from the metric and the features."""

    on_inputs = True
    many_hops = False

    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """True if attention measures a neighbour by the neighbour's metric."""
        return attention and neighbor_norm == "own"

    def convolved(self, conv: "ARConv", x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """Sum the features per direction, then apply the linear maps to the sums.

        This equals the sum of the mapped features, and features are gathered once.
        """
        sums = [
            AF.propagate(x, g, x, hood.relation(direction), conv.eps0, **_edge_options(conv))
            for direction in conv.directions()
        ]
        x, g, *sums = (computed_rows(h, hood) for h in (x, g, *sums))
        return self.from_sums(conv, x, g, sums)

    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """Product of modulation, attention and constant weight."""
        return message_weights(x, g, relation, conv.eps0, **_edge_options(conv))

    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """One joint linear map of the sums and of the node's own features."""
        weights: list[Any] = [lin.weight for lin in conv.lins_neighbor]
        if conv.lin_self is not None:
            sums, weights = [*sums, x], [*weights, conv.lin_self.weight]
        return AF.joint_linear(sums, weights, conv.bias)


class OperatorForm(MessageForm):
    """The operator of the metric acts on sums of messages with constant weights."""

    on_inputs = False
    many_hops = True
    on_edges = False
    may_send = True

    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """False: only the node's own metric acts."""
        return False

    def convolved(
        self,
        conv: "ARConv",
        x: Tensor,
        g: Tensor,
        hood: Neighborhood,
        sums: Sequence[Tensor] = (),
        s: Tensor | None = None,
    ) -> Tensor:
        """Apply the operator to the sum over directions and hops."""
        number = 0  # of the linear map
        # Sums and linear maps commute. With sums first, each hop reuses the sum of the last hop,
        # and rows that are not computed here are not mapped.
        own_only = isinstance(hood, GraphPart) and hood.own_only
        reuses = conv.hops > 1 and conv.width <= conv.out_channels
        sums_first = s is None and (own_only or reuses or len(sums) > 0)
        messages: list[Tensor] = []
        known: Sequence[Tensor | None] = sums or [None] * len(conv.directions())
        for direction, first in zip(conv.directions(), known, strict=True):
            relation, summed = hood.relation(direction), x
            for hop in range(1, conv.hops + 1):
                if sums_first:
                    if hop > 1 or first is None:
                        summed = hood.complete(summed) if hop > 1 else summed
                        summed = AF.aggregate(summed, relation, conv.normalization)
                    else:
                        summed = first
                    summed = computed_rows(summed, hood)
                    messages.append(conv.message_maps()[number](summed))
                    number += 1
                    continue
                message = conv.sent(number, x, s)
                number += 1
                for step in range(hop):
                    message = hood.complete(computed_rows(message, hood)) if step else message
                    message = AF.aggregate(message, relation, conv.normalization)
                messages.append(computed_rows(message, hood))
        return self._modulated(conv, computed_rows(x, hood), computed_rows(g, hood), messages)

    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """The constant weights; the metric acts on the sums."""
        return relation.edge_weight(conv.normalization, accumulation_dtype(x.dtype))

    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """Map each sum by the weights of its direction and hop, then apply the operator."""
        messages = [lin(h) for lin, h in zip(conv.lins_neighbor, sums, strict=True)]
        return self._modulated(conv, x, g, messages)

    def _modulated(self, conv: "ARConv", x: Tensor, g: Tensor, messages: list[Tensor]) -> Tensor:
        total = messages[0]
        for message in messages[1:]:
            total = total + message
        return conv.metric_net.modulate(total, g, conv.eps0, conv._self_part(x))


class InterpolationForm(MessageForm):
    r"""Each node moves towards the mean of its neighbours (:eq:`interpolation`).

    .. math::
        \mathbf{h}'_i = (\mathbf{I} - \mathbf{Q}_i)\,\mathbf{h}_i + \mathbf{Q}_i\,\mathbf{m}_i,
        \qquad \mathbf{Q}_i = (\mathbf{I} + \mathbf{G}_i^2)^{-1}, \qquad
        \mathbf{m}_i = \sum_{j \in \mathcal{N}(i)} w_{ij}\,\mathbf{h}_j

    :math:`\mathbf{Q} = (\mathbf{I} + \mathbf{T})/2` is the operator with a baseline of one half.
    """

    on_inputs = False
    many_hops = False
    on_edges = False
    has_weights = False
    eps0 = 0.5

    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """False: only the node's own metric acts."""
        return False

    def convolved(
        self,
        conv: "ARConv",
        x: Tensor,
        g: Tensor,
        hood: Neighborhood,
        sums: Sequence[Tensor] = (),
    ) -> Tensor:
        """Interpolate between the node and the sum of its neighbours."""
        if sums:
            summed = sums[0]
        else:
            summed = AF.aggregate(x, hood.relation(conv.direction), conv.normalization)
        own, g, summed = (computed_rows(h, hood) for h in (x, g, summed))
        return self.from_sums(conv, own, g, [summed])

    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """The constant weights; the metric acts on the sum."""
        return relation.edge_weight(conv.normalization, accumulation_dtype(x.dtype))

    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """The interpolation."""
        return conv.metric_net.modulate(sums[0] - x, g, conv.eps0, x)


def _edge_options(conv: "ARConv") -> dict[str, Any]:
    return {
        "attention": conv.attention,
        "normalization": conv.normalization,
        "neighbor_norm": conv.neighbor_norm,
    }


#: Every form by the name that the option ``modulation`` uses.
MESSAGE_FORMS: dict[str, MessageForm] = {
    "scalar": ScalarForm(),
    "operator": OperatorForm(),
    "interpolation": InterpolationForm(),
}
