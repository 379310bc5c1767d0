"""A linear map of points in a ball, in the coordinates of the tangent space at its centre."""

import math

import torch
from torch import Tensor, nn

from argnn.functional import stereographic
from argnn.functional.dropout import dropout as drop
from argnn.functional.features import input_linear
from argnn.functional.precision import accumulation_dtype


def tangent_linear(u: Tensor, weight: Tensor, dropout: float, training: bool) -> Tensor:
    """A linear map of tangent vectors; the result is at least float32, which later maps need."""
    v = input_linear(u, weight, None, dropout, training)
    return v.to(accumulation_dtype(v.dtype))


def with_bias(v: Tensor, bias: Tensor | None, k: Tensor) -> Tensor:
    """Tangent vectors after a Möbius addition of a bias; without one, clipped to the ball."""
    if bias is None:
        return stereographic.clip_tangent(v, k)
    points, shift = stereographic.expmap0(v, k), stereographic.expmap0(bias, k)
    return stereographic.logmap0(stereographic.mobius_add(points, shift, k), k)


class HyperbolicLinear(nn.Module):
    r"""Möbius linear map with a bias of Ganea, Bécigneul and Hofmann.

    .. math:: \log_0\bigl((\mathbf{W} \otimes \exp_0 u) \oplus \exp_0 b\bigr), \qquad
        \mathbf{W} \otimes x = \exp_0(\mathbf{W} \log_0 x)

    Input and output points :math:`x` are given by tangent vectors :math:`u = \log_0 x` at the
    origin, because the maps :math:`\exp_0` and :math:`\log_0` between two layers cancel. Dropout
    acts on the weights, as in HGCN.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output.
        dropout: Probability with which a weight is dropped.
        bias: Whether a bias is added.
    """

    def __init__(
        self, in_channels: int, out_channels: int, *, dropout: float = 0.0, bias: bool = True
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels, self.dropout = in_channels, out_channels, dropout
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels))
        #: A tangent vector at the origin.
        self.bias = nn.Parameter(torch.empty(out_channels)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        nn.init.xavier_uniform_(self.weight, gain=math.sqrt(2))
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, u: Tensor, k: Tensor, input_dropout: float = 0.0) -> Tensor:
        """Tangent vectors at the origin, ``[N, in_channels] -> [N, out_channels]``."""
        weight = drop(self.weight, self.dropout, self.training)
        return with_bias(tangent_linear(u, weight, input_dropout, self.training), self.bias, k)

    def extra_repr(self) -> str:
        """Sizes and options."""
        return (
            f"{self.in_channels}, {self.out_channels}, dropout={self.dropout}, "
            f"bias={self.bias is not None}"
        )
