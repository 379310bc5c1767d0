"""A flow of directions along edges, and a step of its integration."""

from collections.abc import Callable

import torch
from torch import Tensor

from argnn.functional.edge_values import OrderedEdges, at_sources, at_targets, mean_at_targets
from argnn.functional.precision import safe_sqrt

#: The direction of a shorter vector is not reliable in float32.
MIN_LENGTH = 1e-6


def unit_rows(x: Tensor, min_length: float = MIN_LENGTH) -> Tensor:
    """Rows scaled to length one; rows shorter than ``min_length`` become zero, without gradient.

    A small number in the denominator would give them huge gradients instead, which grow with
    every further step.

    Example:
        >>> unit_rows(torch.tensor([[3.0, 4.0], [0.0, 1e-9]])).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    length = safe_sqrt(x.square().sum(-1, keepdim=True))
    long = length > min_length
    return torch.where(long, x / torch.where(long, length, 1.0), 0.0)


def curvature_pull(h: Tensor, curvature: Tensor, edges: OrderedEdges) -> Tensor:
    r"""Mean pull of the neighbours on each direction, ``[N, D]``.

    .. math::
        \mathbf{g}_i = \frac{1}{d_i} \sum_{j \in \mathcal{N}(i)} \kappa_{ij} \circ
        (\mathbf{h}_j - \langle \mathbf{h}_i, \mathbf{h}_j \rangle\, \mathbf{h}_i)

    Evaluated as :math:`\mathbf{h}_j - \mathbf{h}_i + (1 - \langle\mathbf{h}_i,\mathbf{h}_j\rangle)
    \mathbf{h}_i`, with the bracket from the squared difference, so that equal directions pull
    by exactly zero. Where the curvature of an edge is one number, the result is orthogonal to
    :math:`\mathbf{h}_i`.

    Args:
        h: Rows of length one, or zero, ``[N, D]``.
        curvature: Of each edge, ``[E, D]`` or ``[E, 1]``.
        edges: The edges, in the order of the curvatures.
    """
    own = at_targets(h, edges)
    difference = at_sources(h, edges) - own
    is_zero = (h == 0).all(-1, keepdim=True).to(h.dtype)
    zeros = is_zero[edges.source] + is_zero[edges.target]
    gap = 0.5 * (difference.square().sum(-1, keepdim=True) + zeros)
    return mean_at_targets(curvature * torch.addcmul(difference, gap, own), edges)


def three_eighths_step(field: Callable[[Tensor], Tensor], h: Tensor, size: float) -> Tensor:
    r"""One step of the Runge-Kutta method of order four with the 3/8 rule.

    .. math::
        \mathbf{h} + \Delta\,(\mathbf{k}_1 + 3\mathbf{k}_2 + 3\mathbf{k}_3 + \mathbf{k}_4) / 8

    ``field`` gives the velocity at a position.

    Example:
        >>> round(float(three_eighths_step(lambda h: h, torch.tensor(1.0), 0.1)), 5)
        1.10517
    """
    k1 = field(h)
    k2 = field(h + size / 3 * k1)
    k3 = field(h + size * (k2 - k1 / 3))
    k4 = field(h + size * (k1 - k2 + k3))
    return h + size / 8 * (k1 + 3 * (k2 + k3) + k4)
