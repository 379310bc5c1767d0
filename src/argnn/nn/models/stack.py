"""Models that are a stack of layers."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import ClassVar

from torch import Tensor, nn
from torch_geometric.nn import Linear

from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.nn.input_linear import InputLinear
from argnn.nn.models.base import EUCLIDEAN_SEARCH_SPACE, AbstractNodeModel

#: Makes a layer from the sizes of its input and output.
InitConv = Callable[[int, int], nn.Module]


class AbstractStack(AbstractNodeModel):
    """A stack of layers, by default in Euclidean space.

    Class attributes:
        farther: Hops that scores depend on besides one per layer; degrees need one more.
    """

    space = "Euclidean"
    search_space = EUCLIDEAN_SEARCH_SPACE
    farther: ClassVar[int] = 0

    dropout: float
    convs: nn.ModuleList

    def sizes_to(self, last: int) -> list[int]:
        """Sizes of the features before each layer, and after the last one."""
        return [self.in_channels, *[self.hidden_channels] * (self.num_layers - 1), last]

    def stack_convs(
        self, init_conv: InitConv, sizes: Sequence[int], init_last: InitConv | None = None
    ) -> None:
        """Build ``convs``, which lead from each size to the next; the last may be different."""
        pairs = list(pairwise(sizes))
        kinds = [init_conv] * (len(pairs) - 1) + [init_last or init_conv]
        self.convs = nn.ModuleList(init(a, b) for init, (a, b) in zip(kinds, pairs, strict=False))

    def read_features(self, *maps: str, dropout: float | None, normalize: bool) -> None:
        """Replace linear maps of the first convolution, given by name, by ``InputLinear``."""
        first, dropout = self.convs[0], self.dropout if dropout is None else dropout
        for name in maps:
            setattr(first, name, InputLinear.in_place_of(getattr(first, name), dropout, normalize))

    def activation(self, h: Tensor) -> Tensor:
        """What stands between two layers."""
        return h.relu()

    def feature_maps(self, last: int, dropout: float | None, normalize: bool) -> nn.ModuleList:
        """Linear maps that lead to the size ``last``; the first one reads node features."""
        first, *others = pairwise(self.sizes_to(last))
        dropped = self.dropout if dropout is None else dropout
        reader = InputLinear(*first, dropout=dropped, normalize=normalize)
        return nn.ModuleList([reader, *(Linear(a, b) for a, b in others)])

    def through(self, layers: Iterable[nn.Module], h: Tensor, *edges: Edges) -> Tensor:
        """The result of layers one after the other, with activation and dropout between them."""
        for depth, layer in enumerate(layers):
            h = layer(drop(self.activation(h), self.dropout, self.training) if depth else h, *edges)
        return h

    def forward_with_metric(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        """Raw scores ``[N, out_channels]`` and no metric."""
        return self.through(self.convs, x, edge_index), []

    def reach(self) -> int | None:
        """How many hops around a node its scores depend on."""
        return self.num_layers + self.farther
