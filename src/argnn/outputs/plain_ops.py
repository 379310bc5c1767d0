"""The operators of the package in plain torch, for programs that run without the package.

A traced model calls operators such as ``argnn::aggregate``, which call kernels. The functions here
compute the same, and ``torch.export`` puts them in their place: they hold for any number of nodes
and edges, and nothing is prepared in advance.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.functional import structure  # noqa: F401 - registers the operators

OperatorTable = dict[Any, Callable[..., Any]]

#: Ends are near each other if the square of their distance is below this share of their squares.
_NEAR = 1 / 16


def plain_table(directed: bool) -> OperatorTable:
    """The function for each operator of the package.

    Args:
        directed: Whether the edges have directions. If not, every pair is listed once in each
            direction, so that all relations are the same. See :func:`cleaned`.
    """

    def related(
        edge_index: Tensor, direction: str, weight: Tensor | None, num_nodes: int
    ) -> tuple[Tensor, Tensor | None]:
        if not directed or direction == "in":
            return edge_index, weight
        if direction == "out":
            return edge_index.flip(0), weight
        return cleaned(edge_index, num_nodes, False, weight, reduce="amax")

    def aggregate(
        x: Tensor,
        edge_index: Tensor,
        direction: str,
        edge_weight: Tensor | None,
        normalization: str,
        transposed: bool,
    ) -> Tensor:
        edges, given = related(edge_index, direction, edge_weight, x.size(0))
        weight = _edge_weight(edges, given, x.size(0), normalization).to(x.dtype)
        return _summed(x, edges.flip(0) if transposed else edges, weight)

    def moments(
        h: Tensor, edge_index: Tensor, direction: str, edge_weight: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        edges, given = related(edge_index, direction, edge_weight, h.size(0))
        weight = _edge_weight(edges, given, h.size(0), "rw").to(h.dtype)
        return _moments(h, edges, weight)

    def degree(
        edge_index: Tensor, direction: str, edge_weight: Tensor | None, num_nodes: int
    ) -> Tensor:
        edges, given = related(edge_index, direction, edge_weight, num_nodes)
        return _degree(edges[1], num_nodes, given)

    def descriptor(edge_index: Tensor, edge_weight: Tensor | None, num_nodes: int) -> Tensor:
        both = related(edge_index, "undirected", edge_weight, num_nodes)
        return _descriptor((edge_index, edge_weight), both, num_nodes)

    def propagate(
        h: Tensor,
        g: Tensor,
        messages: Tensor | None,
        eps0: Tensor,
        edge_index: Tensor,
        direction: str,
        edge_weight: Tensor | None,
        attention: bool,
        target_norm: bool,
        normalization: str,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor]:
        edges, given = related(edge_index, direction, edge_weight, h.size(0))
        weight = _modulation(h, g, edges, eps0, eps)
        if attention:
            weight = weight * _attention(h, g, edges, target_norm, eps).sigmoid()
        weight = weight * _edge_weight(edges, given, h.size(0), normalization).to(weight.dtype)
        # The last two results are needed for gradients only.
        return _summed(h if messages is None else messages, edges, weight), h, h

    ops = torch.ops.argnn
    return {
        ops.aggregate.default: aggregate,
        ops.moments.default: moments,
        ops.degree.default: degree,
        ops.structural_descriptor.default: descriptor,
        ops.propagate.default: propagate,
    }


def cleaned(
    edge_index: Tensor,
    num_nodes: int,
    directed: bool,
    weight: Tensor | None = None,
    reduce: str = "mean",
) -> tuple[Tensor, Tensor | None]:
    """Edges by target, without self-loops and duplicates; without directions, pairs both ways.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        directed: Whether directions are kept.
        weight: Weight of each edge, ``[E]``; one of zero is no edge.
        reduce: How weights of merged edges are joined.
    """
    source, target = edge_index.unbind(0)
    first = target if directed else torch.minimum(source, target)
    second = source if directed else torch.maximum(source, target)
    is_edge = source != target
    is_edge = (is_edge if weight is None else is_edge & (weight != 0)).nonzero().squeeze(-1)
    listed = (first * num_nodes + second).index_select(0, is_edge)
    if weight is None:
        keys = torch.unique(listed)
    else:
        keys, place = torch.unique(listed, return_inverse=True)
        own, empty = weight.index_select(0, is_edge), weight.new_zeros(keys.size(0))
        weight = empty.scatter_reduce(0, place, own, reduce, include_self=False)
    edges = torch.stack([keys % num_nodes, keys // num_nodes])
    if directed:
        return edges, weight
    both = torch.cat([edges, edges.flip(0)], dim=1)
    order = torch.argsort(both[1], stable=True)
    twice = None if weight is None else torch.cat([weight, weight]).index_select(0, order)
    return both.index_select(1, order), twice


def _summed(x: Tensor, edges: Tensor, weight: Tensor) -> Tensor:
    """Weighted sums at the targets, ``[N, D]``, as bags of rows: no tensor ``[E, D]`` is made."""
    source, target = edges.unbind(0)
    order, start = _by_target(target, x.size(0))
    return F.embedding_bag(
        source.index_select(0, order),
        x,
        start,
        mode="sum",
        per_sample_weights=weight.index_select(0, order),
        include_last_offset=True,
    )


def _by_target(target: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The order of edges by target, and where those of each target begin, ``[N + 1]``."""
    start = _degree(target, num_nodes).cumsum(0)
    return torch.argsort(target, stable=True), torch.cat([start.new_zeros(1), start])


def _products(at_target: Tensor, values: Tensor, row: Tensor, target: Tensor) -> Tensor:
    """Inner product of each edge, ``[E]``: of the target's row with the given row of ``values``.

    These are the derivatives of a weighted sum with respect to its weights.
    """
    nothing = target.new_zeros(0)  # offsets are read only where bags are means or maxima
    products: Tensor = torch.ops.aten._embedding_bag_per_sample_weights_backward(
        at_target, values, row, nothing, target, 0
    )
    return products


def _moments(h: Tensor, edges: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """See :func:`argnn.functional.neighbor_moments`, whose plain path computes the same."""
    shift = h.mean(0)
    centred = h - shift
    sums = _summed(torch.cat([centred, centred.square()], dim=1), edges, weight)
    mean, mean_square = sums.split(h.size(1), dim=1)
    has_neighbors = (_degree(edges[1], h.size(0)) > 0).to(h.dtype).unsqueeze(-1)
    own = centred * has_neighbors
    dispersion = (mean_square + own * (own - 2 * mean)).clamp_min(0)
    return mean + shift * has_neighbors, dispersion


def _degree(nodes: Tensor, num_nodes: int, weight: Tensor | None = None) -> Tensor:
    if weight is not None:
        return weight.new_zeros(num_nodes, dtype=torch.float64).index_add(0, nodes, weight.double())
    return nodes.new_zeros(num_nodes).index_add(0, nodes, torch.ones_like(nodes))


def _edge_weight(edges: Tensor, given: Tensor | None, num_nodes: int, normalization: str) -> Tensor:
    source, target = edges.unbind(0)
    own = torch.ones_like(target) if given is None else given.double()
    if normalization == "sum":
        return own
    into = _degree(target, num_nodes, given).index_select(0, target).double()
    if normalization == "rw":
        return own * into.reciprocal()
    out = _degree(source, num_nodes, given).index_select(0, source).double()
    return own * (into * out).rsqrt()


def _modulation(h: Tensor, g: Tensor, edges: Tensor, eps0: Tensor, eps: float) -> Tensor:
    """See :func:`argnn.functional.edge_modulation`.

    Squares of differences are multiplied out, so that no tensor ``[E, D]`` is made. To lose one
    digit at most, the mean of all nodes is taken off, and ends near each other are subtracted.
    """
    source, target = edges.unbind(0)
    shift = h.mean(0)
    centred = h - torch.where(shift.isfinite(), shift, 0)
    squares, t = centred.square(), torch.tanh(-torch.log(g))
    own = squares.sum(-1)
    both = own.index_select(0, source) + own.index_select(0, target)
    square = both - 2 * _products(centred, centred, source, target)
    weighted = _products(t, squares, source, target)
    weighted = weighted - 2 * _products(t * centred, centred, source, target)
    weighted = weighted + (t * squares).sum(-1).index_select(0, target)
    near = _places(square < _NEAR * both)
    ends = source.index_select(0, near), target.index_select(0, near)
    small = (h.index_select(0, ends[0]) - h.index_select(0, ends[1])).square()
    square = square.index_copy(0, near, small.sum(-1))
    weighted = weighted.index_copy(0, near, (small * t.index_select(0, ends[1])).sum(-1))
    length = square.sqrt() + eps
    tau = weighted / length / length  # the square of eps may be zero
    return eps0 + (1 - eps0) * tau


def _attention(h: Tensor, g: Tensor, edges: Tensor, target_norm: bool, eps: float) -> Tensor:
    """See :func:`argnn.functional.edge_attention`."""
    source, target = edges.unbind(0)
    own = (g * h.square()).sum(-1).sqrt()
    far = own.index_select(0, source)
    if target_norm:
        far = _products(g, h.square(), source, target).sqrt()
    product = _products(g * h, h, source, target)
    return product / (own.index_select(0, target) * far + eps)


_Edges = tuple[Tensor, Tensor | None]


def _descriptor(edges: _Edges, both: _Edges, num_nodes: int) -> Tensor:
    """See :func:`argnn.functional.structure.structural_descriptor`."""
    (given, weight), (pairs, pair_weight) = edges, both
    log_degree = _degree(pairs[1], num_nodes, pair_weight).double().log1p()
    share = _edge_weight(pairs, pair_weight, num_nodes, "rw")
    mean = _summed(log_degree.unsqueeze(-1), pairs, share).squeeze(-1)
    degree = _degree(pairs[1], num_nodes)
    possible = (degree * (degree - 1)).double() / 2
    clustering = torch.where(
        possible > 0, _triangles(pairs, degree) / possible.clamp_min(1), possible
    )
    into, out = (_degree(given[end], num_nodes, weight).double().log1p() for end in (1, 0))
    return torch.stack([log_degree, into, out, mean, clustering], dim=-1)


def _triangles(both: Tensor, degree: Tensor) -> Tensor:
    """Number of triangles at each node, ``[N]``, from every pair listed both ways, once."""
    nodes = degree.size(0)
    # A pair begins at the end with fewer neighbours: then no node is the begin of many pairs.
    rank = torch.argsort(torch.argsort(degree, stable=True), stable=True)
    small, large = rank.index_select(0, both[0]), rank.index_select(0, both[1])
    listed = (small * nodes + large).index_select(0, _places(small < large))
    known = torch.sort(listed).values
    begin, end = known // nodes, known % nodes
    # Two pairs of one begin are two sides of a triangle if their ends are a pair.
    place = torch.cumsum(torch.ones_like(begin), 0) - 1
    width = _degree(begin, nodes).cumsum(0).index_select(0, begin) - place - 1
    first = torch.repeat_interleave(width)
    offset = torch.cumsum(torch.ones_like(first), 0) - 1
    second = first + 1 + offset - (width.cumsum(0) - width).index_select(0, first)
    wanted = end.index_select(0, first) * nodes + end.index_select(0, second)
    found = torch.searchsorted(known, wanted).clamp_max(known.size(0) - 1)
    joined = _places(known.index_select(0, found) == wanted)
    first, second = first.index_select(0, joined), second.index_select(0, joined)
    corners = [
        begin.index_select(0, first),
        *(end.index_select(0, each) for each in (first, second)),
    ]
    return _degree(torch.cat(corners), nodes).index_select(0, rank).double()


def _places(chosen: Tensor) -> Tensor:
    """The places that are true."""
    places = chosen.nonzero().squeeze(-1)
    torch._check(places.size(0) < 2**62)  # without a limit, torch finds one that ONNX cannot hold
    return places
