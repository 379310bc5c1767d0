"""Sums over a node and its neighbours, as in graph convolutional networks."""

from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from argnn.errors import require
from argnn.functional.features import sparse_features
from argnn.functional.neighborhood import Edges, aggregate, neighborhood
from argnn.functional.precision import accumulation_dtype, in_autocast_dtype
from argnn.kernels import fused
from argnn.kernels.choice import is_fused
from argnn.kernels.contents import ContentCache
from argnn.kernels.neighborhood import Neighborhood

CLOSED_NORMALIZATIONS = ("sym", "rw")

_SUMS: ContentCache[WeakKeyDictionary[Neighborhood, Tensor]] = ContentCache()


def closed_aggregate(x: Tensor, edge_index: Edges, normalization: str = "sym") -> Tensor:
    r"""Weighted sum over a node and its neighbours, ``[N, D] -> [N, D]``.

    .. math::
        \mathbf{y}_i = \sum_{j \in \mathcal{N}(i) \cup \{i\}} a_{ij}\,\mathbf{x}_j

    With :math:`\tilde d_i` one more than the number of edges into a node, self-loops not counted
    (with weights: than their sum, and :math:`a_{ij}` is multiplied by the weight of the edge),
    ``"sym"`` has :math:`a_{ij} = 1/\sqrt{\tilde d_i \tilde d_j}`, the normalised adjacency of graph
    convolutional networks, and ``"rw"`` has :math:`a_{ij} = 1/\tilde d_i`, the mean. No number per
    edge is stored.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> closed_aggregate(torch.tensor([[1.0], [5.0], [3.0]]), path, "rw").squeeze().tolist()
        [3.0, 3.0, 4.0]
    """
    known = CLOSED_NORMALIZATIONS
    require(normalization in known, "normalization", f"one of {known}", repr(normalization))
    hood = neighborhood(edge_index, x.size(0))
    of_result, x = x.dtype, in_autocast_dtype(x)
    fits = is_fused(x, num_edges=hood.num_edges, learns_weight=hood.learns_weight)
    if fits and not torch.compiler.is_compiling():  # a compiler joins the operations by itself
        return fused.aggregate(x, hood, f"closed-{normalization}").to(of_result)
    size = (hood.weighted_degree + 1).to(accumulation_dtype(x.dtype)).unsqueeze(-1)
    if normalization == "rw":
        return ((aggregate(x, hood) + x) / size).to(of_result)
    scale = size.rsqrt()
    own = (scale * x).to(x.dtype)
    return (scale * (aggregate(own, hood) + own)).to(of_result)


def closed_feature_sum(x: Tensor, edge_index: Edges, out_channels: int) -> Tensor | None:
    r""":func:`closed_aggregate` of constant node features, kept for all steps, ``[N, F]``.

    None where it is better to sum after the linear map to ``out_channels``: for wider features, for
    features that are mostly zeros, and on a GPU, where nothing is kept. Do not write to the result.
    """
    if x.requires_grad or x.device.type != "cpu" or torch.compiler.is_compiling():
        return None
    if x.size(-1) > out_channels or sparse_features(x) is not None:
        return None
    hood = neighborhood(edge_index, x.size(0))
    if hood.learns_weight:
        return None
    sums = _SUMS.of(x, WeakKeyDictionary)
    if hood not in sums:
        # Kept for later steps, which may need gradients and may be in another precision.
        with torch.inference_mode(False), torch.no_grad(), torch.autocast("cpu", enabled=False):
            sums[hood] = closed_aggregate(x, hood)
    return sums[hood]


def closed_row_sum(edge_index: Edges, num_nodes: int, dtype: torch.dtype) -> Tensor:
    r"""Sum of the weights ``"sym"`` of each node, :math:`\sum_j a_{ij}`, ``[N, 1]``; cached."""
    hood = neighborhood(edge_index, num_nodes)

    def summed() -> Tensor:
        one = hood.weighted_degree.new_ones(num_nodes, 1, dtype=dtype)
        with torch.autocast(one.device.type, enabled=False):  # kept for steps without it, too
            return closed_aggregate(one, hood).squeeze(-1)

    return hood.kept(("closed row sum", dtype), summed).unsqueeze(-1)
