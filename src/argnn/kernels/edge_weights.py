"""What the weight of an edge is made of, as the kernels take it."""

from typing import NamedTuple

from torch import Tensor


class EdgeWeights(NamedTuple):
    r"""The terms of :math:`l_i r_j (\epsilon_0 + (1-\epsilon_0)\tau_{ij})\,\sigma(\alpha_{ij})`.

    The kernels multiply by the weights of edges that the matrix has.

    Attributes:
        norm: Metric norm of each node, ``[N]``; None without attention.
        left: :math:`l_i` of each target, ``[N]``; 1 where None.
        right: :math:`r_j` of each source, ``[N]``; 1 where None.
        eps0: Baseline of the modulation, ``[1]``, on the device of the kernel.
        attention: Whether the factor :math:`\sigma(\alpha_{ij})` is there.
        target_norm: Whether a source is measured in the metric of its target.
        eps: Added to denominators.
    """

    norm: Tensor | None
    left: Tensor | None
    right: Tensor | None
    eps0: Tensor
    attention: bool
    target_norm: bool
    eps: float


def num_saved(attention: bool) -> int:
    """Numbers that the sum of messages keeps of every edge for its gradient."""
    return 4 if attention else 2
