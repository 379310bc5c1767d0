"""The convolution of pseudo-Riemannian graph convolutional networks."""

import math

import torch
from torch import Tensor, nn

from argnn.functional import pseudo_hyperboloid
from argnn.functional.analytic import squared_length
from argnn.functional.dropout import dropout as drop
from argnn.functional.neighborhood import Edges
from argnn.functional.self_loops import closed_aggregate
from argnn.nn.hyperbolic_linear import tangent_linear

#: Largest angle from the origin of a point to which a bias is transported.
_MAX_ANGLE = 1.4


class QGCNConv(nn.Module):
    r"""Linear map in the tangent space, a transported bias, and the mean over neighbours.

    .. math::
        u'_i = \frac{1}{d_i + 1} \sum_{j \in \mathcal{N}(i) \cup \{i\}}
        \log_0 \exp_{x_j}\bigl(P_{o \to x_j}(b)\bigr), \qquad
        x = \exp_0(\mathbf{W}u / \|\mathbf{W}u\|)

    Points are given as tangent vectors at the origin. Rows are not scaled to length 1 if all
    coordinates are time-like. Dropout acts on the weights.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output; its first coordinate is always zero.
        time: Number of time-like coordinates of the output, the first one included.
        dropout: Probability with which a weight is dropped.
    """

    def __init__(
        self, in_channels: int, out_channels: int, time: int, *, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.time, self.dropout = time, dropout
        self.weight = nn.Parameter(torch.empty(out_channels, in_channels))
        #: A tangent vector at the origin.
        self.bias = nn.Parameter(torch.empty(out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        nn.init.xavier_uniform_(self.weight, gain=math.sqrt(2))
        nn.init.zeros_(self.bias)

    def forward(
        self, u: Tensor, edge_index: Edges, beta: Tensor, input_dropout: float = 0.0
    ) -> Tensor:
        """Tangent vectors at the origin, ``[N, in_channels] -> [N, out_channels]``."""
        weight = drop(self.weight, self.dropout, self.training)
        v = tangent_linear(u, weight, input_dropout, self.training)
        if self.time < self.out_channels:
            v = _unit_rows(v)
        v = pseudo_hyperboloid.clip_tangent(v, beta, self.time, _MAX_ANGLE)
        x = pseudo_hyperboloid.expmap0(v, beta, self.time)
        shift = pseudo_hyperboloid.transport0(x, self.bias, beta, self.time)
        moved = pseudo_hyperboloid.expmap(x, shift, beta, self.time)
        v = pseudo_hyperboloid.logmap0(moved, beta, self.time)
        return closed_aggregate(v, edge_index, "rw")

    def extra_repr(self) -> str:
        """Sizes and options."""
        return f"{self.in_channels}, {self.out_channels}, time={self.time}, dropout={self.dropout}"


def _unit_rows(x: Tensor, eps: float = 1e-6) -> Tensor:
    """Rows scaled to length 1; zero rows stay zero and have a finite gradient."""
    return x * (squared_length(x) + eps**2).rsqrt()
