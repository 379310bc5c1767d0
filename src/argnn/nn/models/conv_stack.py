"""What models that are convolutions one after the other have in common."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from argnn.functional.dropout import dropout as drop
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import AbstractNodeModel


class AbstractConvStack(AbstractNodeModel):
    """A model with convolutions one after the other, ``convs``.

    A model says in :meth:`init_conv` what one convolution is, and calls :meth:`stack_convs`.

    Class attributes:
        farther: Hops that scores depend on beyond one for each convolution; degrees are one more.
    """

    farther: ClassVar[int] = 0

    convs: nn.ModuleList

    @abstractmethod
    def init_conv(self, in_channels: int, out_channels: int, *, last: bool) -> nn.Module:
        """One convolution; ``last`` says whether it is the last one."""

    def stack_convs(self, sizes: Sequence[int]) -> None:
        """Build the convolutions, which lead from each size to the next."""
        pairs = list(pairwise(sizes))
        self.convs = nn.ModuleList(
            self.init_conv(a, b, last=number == len(pairs))
            for number, (a, b) in enumerate(pairs, start=1)
        )

    def sizes_to(self, last: int) -> list[int]:
        """Sizes of the features before each convolution, and after the last one."""
        return [self.in_channels, *[self.hidden_channels] * (self.num_layers - 1), last]

    def read_features(self, *maps: str, dropout: float, normalize: bool) -> None:
        """Let linear maps of the first convolution read node features; see :class:`InputLinear`."""
        first = self.convs[0]
        for name in maps:
            lin = InputLinear.in_place_of(
                getattr(first, name), dropout=dropout, normalize=normalize
            )
            setattr(first, name, lin)

    def reach(self) -> int | None:
        """Hops that scores depend on."""
        return self.num_layers + self.farther


def one_after_the_other(
    layers: Iterable[nn.Module],
    x: Tensor,
    *edges: Tensor,
    dropout: float,
    training: bool,
    activation: Callable[[Tensor], Tensor] = F.relu,
) -> Tensor:
    """The result of layers with activation and dropout between them, ``[N, D]``.

    Args:
        layers: Called with features and ``edges``.
        x: What the first of them sees, ``[N, F]``.
        *edges: Further arguments of every layer.
        dropout: Probability with which a hidden feature is dropped.
        training: Whether anything is dropped.
        activation: What acts on the result of every layer but the last.
    """
    h = x
    for depth, layer in enumerate(layers):
        h = layer(drop(activation(h), dropout, training) if depth else h, *edges)
    return h
