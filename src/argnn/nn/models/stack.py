"""Models that are a stack of layers."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch.nn import functional as F

from argnn.functional.dropout import dropout as drop
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import AbstractNodeModel

#: Makes a layer from the sizes of its input and output.
InitConv = Callable[[int, int], nn.Module]


class AbstractStack(AbstractNodeModel):
    """A stack of layers.

    Class attributes:
        farther: Hops that scores depend on besides one per layer; degrees need one more.
    """

    farther: ClassVar[int] = 0

    dropout: float
    convs: nn.ModuleList

    def sizes_to(self, last: int) -> list[int]:
        """Sizes of the features before each layer, and after the last one."""
        return [self.in_channels, *[self.hidden_channels] * (self.num_layers - 1), last]

    def stack_convs(
        self, init_conv: InitConv, sizes: Sequence[int], init_last: InitConv | None = None
    ) -> None:
        """Build ``convs``, which lead from each size to the next.

        Args:
            init_conv: Makes a convolution.
            sizes: Sizes of the features before each convolution, and after the last one.
            init_last: Makes the last convolution, if that is different.
        """
        pairs = list(pairwise(sizes))
        kinds = [init_conv] * (len(pairs) - 1) + [init_last or init_conv]
        self.convs = nn.ModuleList(init(a, b) for init, (a, b) in zip(kinds, pairs, strict=False))

    def read_features(self, *maps: str, dropout: float, normalize: bool) -> None:
        """Replace linear maps of the first convolution, given by name, by ``InputLinear``."""
        first = self.convs[0]
        for name in maps:
            setattr(first, name, InputLinear.in_place_of(getattr(first, name), dropout, normalize))

    def through(
        self,
        layers: Iterable[nn.Module],
        h: Tensor,
        *edges: Tensor,
        activation: Callable[[Tensor], Tensor] = F.relu,
    ) -> Tensor:
        """The result of layers one after the other, with activation and dropout between them."""
        for depth, layer in enumerate(layers):
            h = layer(drop(activation(h), self.dropout, self.training) if depth else h, *edges)
        return h

    def reach(self) -> int | None:
        """How many hops around a node its scores depend on."""
        return self.num_layers + self.farther
