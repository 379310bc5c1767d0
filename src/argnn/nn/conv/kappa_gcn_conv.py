"""The convolution of constant curvature graph convolutional networks."""

from torch import Tensor, nn

from argnn.functional.neighborhood import Edges
from argnn.functional.self_loops import closed_row_sum
from argnn.functional.stereographic import HEMISPHERE
from argnn.nn.hyperbolic_linear import tangent_linear
from argnn.nn.manifolds import StereographicProduct


class KappaGCNConv(nn.Module):
    r"""Möbius linear map, then scaled gyromidpoints of a node and its neighbours.

    .. math::
        u'_i = \log_0\Bigl(\bigl({\textstyle\sum_j} a_{ij}\bigr) \otimes m_i\Bigr)
        = \bigl({\textstyle\sum_j} a_{ij}\bigr) \log_0 m_i

    with the midpoints :math:`m_i` of :func:`~argnn.functional.stereographic.gyromidpoint` of the
    points :math:`\mathbf{W} \otimes \exp_0 u` and GCN's weights :math:`a_{ij}`. Points are given as
    tangent vectors at the origin. At curvature zero this is GCN's convolution without bias. In
    spherical factors, points are kept in the hemisphere around the origin.

    Args:
        in_channels: Size of the input.
        out_channels: Size of the output.
    """

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.lin = nn.Linear(in_channels, out_channels, bias=False)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        nn.init.xavier_uniform_(self.lin.weight)

    def forward(
        self, u: Tensor, edge_index: Edges, space: StereographicProduct, dropout: float = 0.0
    ) -> Tensor:
        """Tangent vectors at the origin, ``[N, in_channels] -> [N, out_channels]``.

        The factors of ``space`` divide ``out_channels``.
        """
        v = tangent_linear(u, self.lin.weight, dropout, self.training)
        x = space.expmap0(space.clip_tangent(v, HEMISPHERE))
        middle = space.logmap0(space.gyromidpoint(x, edge_index))
        return closed_row_sum(edge_index, v.size(0), v.dtype) * middle
