"""How much a metric field changes along the edges."""

from torch import Tensor

from argnn.functional.neighborhood import Edges, neighborhood
from argnn.functional.precision import accumulation_dtype
from argnn.functional.ricci import reduce_energy


def smoothness_energy(g: Tensor, edge_index: Edges, reduction: str = "sum") -> Tensor:
    r"""Squared metric differences over the edges, a scalar (:eq:`smoothness_energy`).

    .. math::
        \mathcal{L}_{\mathrm{smooth}} =
        \sum_{\{i,j\} \in \mathcal{E}} \|\mathbf{g}_i - \mathbf{g}_j\|^2

    Each unordered pair counts once.

    Args:
        g: Metric diagonals, ``[N, D]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        reduction: ``"sum"`` as above, or ``"mean"`` over pairs and channels.

    Example:
        >>> import torch
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> smoothness_energy(torch.tensor([[1.0], [3.0]]), pair).item()
        4.0
    """
    difference = _pair_difference(g, edge_index)[0]
    return reduce_energy(difference.square(), reduction).to(g.dtype)


def nrmd(g: Tensor, edge_index: Edges) -> Tensor:
    r"""Neighbour-relative metric dispersion, a scalar (:eq:`nrmd`).

    .. math::
        \frac{1}{|\mathcal{E}|} \sum_{\{i,j\}}
        \frac{\|\mathbf{g}_i - \mathbf{g}_j\|}{\frac{1}{2}(\|\mathbf{g}_i\| + \|\mathbf{g}_j\|)}

    Zero where there are no edges. Each unordered pair counts once.
    """
    # In float64: the squares of metrics of 1e30 leave float32.
    difference, first, second = _pair_difference(
        g.to(accumulation_dtype(g.dtype)).double(), edge_index
    )
    scale = 0.5 * (first.norm(dim=-1) + second.norm(dim=-1))
    return reduce_energy(difference.norm(dim=-1) / scale, "mean").to(g.dtype)


def _pair_difference(g: Tensor, edge_index: Edges) -> tuple[Tensor, Tensor, Tensor]:
    low, high = neighborhood(edge_index, g.size(0)).pairs
    g_ = g.to(accumulation_dtype(g.dtype))
    first, second = g_.index_select(0, low), g_.index_select(0, high)
    return first - second, first, second
