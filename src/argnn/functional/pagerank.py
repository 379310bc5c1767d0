"""Polynomials of the normalised adjacency."""

from torch import Tensor

from argnn.errors import require
from argnn.functional.neighborhood import Edges, neighborhood
from argnn.functional.self_loops import closed_aggregate


def pagerank_coefficients(teleport: float, hops: int) -> list[float]:
    r"""The ``hops + 1`` coefficients of a personalised PageRank with a limited number of hops.

    .. math::
        \gamma_k = \alpha (1-\alpha)^k \quad (k < K), \qquad \gamma_K = (1-\alpha)^K

    Their sum is one.

    Args:
        teleport: Probability :math:`\alpha` of going back to the start, in [0, 1].
        hops: Number of hops :math:`K`.

    Example:
        >>> pagerank_coefficients(0.5, 2)
        [0.5, 0.25, 0.25]
    """
    require(0 <= teleport <= 1, "teleport", "in [0, 1]", teleport)
    inner = [teleport * (1 - teleport) ** k for k in range(hops)]
    return [*inner, (1 - teleport) ** hops]


def polynomial_aggregate(x: Tensor, coefficients: Tensor, edge_index: Edges) -> Tensor:
    r"""Weighted sum of the features some hops away, ``[N, D] -> [N, D]``.

    .. math::
        \mathbf{y} = \sum_{k=0}^K \gamma_k \hat A^k \mathbf{x}, \qquad
        \hat A = \tilde D^{-1/2} (A + I) \tilde D^{-1/2}

    ``coefficients`` are :math:`\gamma`, ``[K + 1]``.
    """
    hood = neighborhood(edge_index, x.size(0))
    total = coefficients[0] * x
    for coefficient in coefficients[1:]:
        x = closed_aggregate(x, hood, "sym")
        total = total + coefficient * x
    return total
