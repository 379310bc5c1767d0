"""The first linear map of a network."""

from typing import Any

from torch import Tensor
from torch_geometric.nn import Linear

from argnn.functional.features import input_linear
from argnn.functional.row_normalization import normalized_rows


class InputLinear(Linear):
    """A linear map of constant node features, fast where these are mostly zeros.

    Args:
        in_channels: Size of the node features.
        out_channels: Size of the result.
        bias: Whether a bias is added.
        dropout: Dropout on the node features.
        normalize: Whether each row of the features is first scaled to sum one.
        weight_initializer: As in PyG: ``"glorot"``, ``"kaiming_uniform"`` or None.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        *,
        bias: bool = True,
        dropout: float = 0.0,
        normalize: bool = False,
        weight_initializer: str | None = None,
    ) -> None:
        super().__init__(in_channels, out_channels, bias, weight_initializer)
        self.dropout, self.normalize = dropout, normalize

    @classmethod
    def in_place_of(cls, lin: Any, dropout: float, normalize: bool) -> "InputLinear":
        """A map with the sizes and initialisation of another one, and new weights."""
        return cls(
            lin.in_channels,
            lin.out_channels,
            bias=lin.bias is not None,
            dropout=dropout,
            normalize=normalize,
            weight_initializer=lin.weight_initializer,
        )

    @property
    def drops(self) -> bool:
        """Whether dropout changes the features in each call."""
        return self.training and self.dropout > 0

    def rows(self, x: Tensor) -> Tensor:
        """The features that the map reads, before dropout."""
        return normalized_rows(x) if self.normalize else x

    def forward(self, x: Tensor) -> Tensor:
        """The result ``[N, D]`` from features ``[N, F]``."""
        return input_linear(self.rows(x), self.weight, self.bias, self.dropout, self.training)
