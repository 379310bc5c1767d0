"""The ways in which a metric acts on messages, and the table they are found in."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from torch import Tensor

from argnn import functional as AF
from argnn.functional.edge_weights import message_weights
from argnn.functional.neighborhood import Neighborhood
from argnn.functional.precision import accumulation_dtype

if TYPE_CHECKING:
    from argnn.nn.conv.ar_conv import ARConv


class MessageForm(ABC):
    """How the metric acts on the messages of an :class:`~argnn.nn.ARConv`.

    A new form is a subclass and a line in :data:`MESSAGE_FORMS`.

    Class attributes:
        on_inputs: Whether the metric measures what enters the convolution, else what leaves it.
        many_hops: Whether messages may travel several hops.
    """

    on_inputs: ClassVar[bool]
    many_hops: ClassVar[bool]

    @abstractmethod
    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """Whether a node's result depends on the metrics of its neighbours."""

    @abstractmethod
    def convolved(self, conv: "ARConv", x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """The result of the convolution, ``[N, out_channels]``."""

    @abstractmethod
    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """What each message is multiplied by on its way, ``[E]``."""

    @abstractmethod
    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """The result from sums of weighted messages, one per direction and hop."""


class ScalarForm(MessageForm):
    """The paper's form: every edge has a number, which the metric and the features give."""

    on_inputs = True
    many_hops = False

    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """Attention may measure the neighbour by its own metric."""
        return attention and neighbor_norm == "own"

    def convolved(self, conv: "ARConv", x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """One sum per direction, before the weights of the messages.

        Weighting a sum is weighting its messages, and the features are gathered once.
        """
        sums = [
            AF.propagate(x, g, x, hood.relation(direction), conv.eps0, **_edge_options(conv))
            for direction in conv.directions()
        ]
        return self.from_sums(conv, x, g, sums)

    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """Modulation, attention and constant weight together."""
        return message_weights(x, g, relation, conv.eps0, **_edge_options(conv))

    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """Weights on the sums of messages and on the node's own features, all in one."""
        weights: list[Any] = [lin.weight for lin in conv.lins_neighbor]
        if conv.lin_self is not None:
            sums, weights = [*sums, x], [*weights, conv.lin_self.weight]
        return AF.joint_linear(sums, weights, conv.bias)


class OperatorForm(MessageForm):
    """The operator of the metric acts on the sum of the messages, which have constant weights."""

    on_inputs = False
    many_hops = True

    def reads_neighbor_metric(self, attention: bool, neighbor_norm: str) -> bool:
        """Only the metric of the node itself acts."""
        return False

    def convolved(self, conv: "ARConv", x: Tensor, g: Tensor, hood: Neighborhood) -> Tensor:
        """The operator on sums over directions and hops."""
        lins = iter(conv.lins_neighbor)
        # The order changes no value; sums first lets one hop reuse the sum of the hop before.
        sums_first = conv.hops > 1 and conv.in_channels <= conv.out_channels
        messages: list[Tensor] = []
        for direction in conv.directions():
            relation, summed = hood.relation(direction), x
            for hop in range(1, conv.hops + 1):
                if sums_first:
                    summed = AF.aggregate(summed, relation, conv.normalization)
                    messages.append(next(lins)(summed))
                    continue
                message = next(lins)(x)
                for _ in range(hop):
                    message = AF.aggregate(message, relation, conv.normalization)
                messages.append(message)
        return self._modulated(conv, x, g, messages)

    def edge_weights(self, conv: "ARConv", x: Tensor, g: Tensor, relation: Neighborhood) -> Tensor:
        """The constant weights; the metric acts later."""
        return relation.edge_weight(conv.normalization, accumulation_dtype(x.dtype))

    def from_sums(self, conv: "ARConv", x: Tensor, g: Tensor, sums: list[Tensor]) -> Tensor:
        """The operator on the sums, each under the weights of its direction and hop."""
        messages = [lin(h) for lin, h in zip(conv.lins_neighbor, sums, strict=True)]
        return self._modulated(conv, x, g, messages)

    def _modulated(self, conv: "ARConv", x: Tensor, g: Tensor, messages: list[Tensor]) -> Tensor:
        total = messages[0]
        for message in messages[1:]:
            total = total + message
        return conv.metric_net.modulate(total, g, conv.eps0, conv._self_part(x))


def _edge_options(conv: "ARConv") -> dict[str, Any]:
    return {
        "attention": conv.attention,
        "normalization": conv.normalization,
        "neighbor_norm": conv.neighbor_norm,
    }


#: Every form by the name that the option ``modulation`` uses.
MESSAGE_FORMS: dict[str, MessageForm] = {"scalar": ScalarForm(), "operator": OperatorForm()}
