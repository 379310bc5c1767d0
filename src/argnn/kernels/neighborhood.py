r"""The neighbourhoods of a graph, prepared once per ``edge_index`` and reused.

What an edge list means, here and in every function of this package:

* row 0 of ``edge_index`` is the source :math:`j`, row 1 the target :math:`i`;
* :math:`\mathcal{N}(i)` are the sources of edges into :math:`i` without :math:`i` itself, so a
  self-loop is ignored by every sum over neighbours;
* a duplicate edge counts as often as it is listed, as in PyG;
* the smoothness energy, NRMD and homophily count each unordered pair once, however often and
  in whichever direction it is listed;
* an edge may have a weight, finite and not negative: sums multiply by it, and degrees are sums of
  weights. A weight of zero is no edge. Where all weights are one they are dropped, so that the
  result has the same bits as without weights.
"""

import warnings
from collections.abc import Callable, Hashable
from functools import cached_property, wraps
from typing import Any, TypeVar, cast

import torch
from torch import Tensor

from argnn.errors import require
from argnn.kernels.contents import ContentCache, plain_tensor
from argnn.kernels.csr import Csr, row_starts
from argnn.kernels.wide import is_wide, moved

T = TypeVar("T")

NORMALIZATIONS = ("sum", "sym", "rw")
DIRECTIONS = ("undirected", "out", "in", "both")


def _derived(make: Callable[[Any], T]) -> cached_property[T]:
    """A property that is made on first use, outside of inference mode, and where float64 is."""

    @wraps(make)
    @torch.inference_mode(False)
    def made(hood: "Neighborhood") -> T:
        if hood.on_cpu is None:
            return make(hood)
        return moved(cast(T, getattr(hood.on_cpu, make.__name__)), hood.source.device)

    return cached_property(made)


class Neighborhood:
    """Everything about the edges that does not depend on features.

    Holds only tensors derived from ``edge_index``, never ``edge_index`` itself: the cache
    below would otherwise keep its own keys alive. What is derived is made outside of
    inference mode, since it outlives the call and may be needed for training later.

    Weights that need a gradient keep their edges also where they are zero or one, since they may
    change; the neighbourhood is then of use for one step of training only.
    """

    @torch.inference_mode(False)
    def __init__(
        self, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
    ) -> None:
        self.num_nodes = num_nodes
        #: What :meth:`kept` has made.
        self.derived: dict[Hashable, Any] = {}
        #: The same graph on the CPU, where this device has no float64; everything is made there.
        self.on_cpu: Neighborhood | None = None
        if not is_wide(edge_index.device):
            weight = None if edge_weight is None else edge_weight.cpu()
            self._copy(Neighborhood(edge_index.cpu(), num_nodes, weight), edge_index.device)
            return
        _check_edge_index(edge_index, num_nodes)
        #: Which of the given edges are no self-loops and have a weight, ``[E]``.
        self.is_neighbor = edge_index[0] != edge_index[1]
        weight = None
        if edge_weight is not None:
            weight = _checked_weight(edge_weight, edge_index)
            if not weight.requires_grad:
                self.is_neighbor &= weight != 0
            weight = weight[self.is_neighbor]
            if not weight.requires_grad and bool((weight == 1).all()):
                weight = None
        #: Weight of each edge in float64, ``[E']``; None where all are one.
        self.weight = weight
        #: The edges without self-loops, ``[2, E']``.
        self.edge_index = edge_index[:, self.is_neighbor].clone()
        self.source, self.target = self.edge_index

    def _copy(self, on_cpu: "Neighborhood", device: torch.device) -> None:
        """Become that graph, on a device without float64."""
        self.on_cpu = on_cpu
        self.is_neighbor, self.weight = moved((on_cpu.is_neighbor, on_cpu.weight), device)
        self.edge_index = on_cpu.edge_index.to(device)
        self.source, self.target = self.edge_index

    @property
    def wide(self) -> "Neighborhood":
        """The same graph where float64 is: this one, or that on the CPU."""
        return self if self.on_cpu is None else self.on_cpu

    def kept(self, key: Hashable, make: Callable[[], T]) -> T:
        """What follows from the edges alone, made on first use."""
        if key not in self.derived:
            with torch.inference_mode(False):
                self.derived[key] = make()
        return self.derived[key]

    def prepared(self, key: Hashable, make: Callable[["Neighborhood"], T]) -> T:
        """As :meth:`kept`, and made where float64 is."""
        on_cpu = self.on_cpu
        if on_cpu is None:
            return self.kept(key, lambda: make(self))
        return self.kept(key, lambda: moved(on_cpu.prepared(key, make), self.source.device))

    @_derived
    def degree(self) -> Tensor:
        """Number of edges into each node, ``[N]``."""
        return torch.bincount(self.target, minlength=self.num_nodes)

    @property
    def learns_weight(self) -> bool:
        """Whether the weights need a gradient, which only plain operations give."""
        return self.weight is not None and self.weight.requires_grad

    @_derived
    def weighted_degree(self) -> Tensor:
        """Sum of the weights of the edges into each node, ``[N]``; :attr:`degree` without."""
        return self.degree if self.weight is None else self._weight_at(self.target)

    @_derived
    def weighted_out_degree(self) -> Tensor:
        """Sum of the weights of the edges out of each node, ``[N]``; :attr:`out_degree` without."""
        return self.out_degree if self.weight is None else self._weight_at(self.source)

    def _weight_at(self, node: Tensor) -> Tensor:
        assert self.weight is not None
        # On the CPU, since the order of sums on a GPU may change.
        device = self.weight.device if self.learns_weight else torch.device("cpu")
        total = torch.zeros(self.num_nodes, dtype=self.weight.dtype, device=device)
        total = total.index_add(0, node.to(device), self.weight.to(device))
        return total.to(self.weight.device)

    @_derived
    def has_no_isolated_node(self) -> bool:
        """Whether every node has a neighbour."""
        return bool((self.weighted_degree > 0).all())

    @_derived
    def out_degree(self) -> Tensor:
        """Number of edges out of each node, ``[N]``."""
        return torch.bincount(self.source, minlength=self.num_nodes)

    @_derived
    def pairs(self) -> Tensor:
        """Each unordered pair of neighbours once, ``[2, P]``."""
        key = torch.unique(self._pair_key())
        return torch.stack([key // self.num_nodes, key % self.num_nodes])

    def _pair_key(self) -> Tensor:
        low = torch.minimum(self.source, self.target)
        high = torch.maximum(self.source, self.target)
        return low * self.num_nodes + high

    @_derived
    def pair_weight(self) -> Tensor | None:
        """Largest weight of the edges between each pair, ``[P]``; None where all are one.

        Unlike a sum or a mean, the largest is one where all are one, and does not jump where a
        weight becomes zero.
        """
        if self.weight is None:
            return None
        low, high = self.pairs
        place = torch.searchsorted(low * self.num_nodes + high, self._pair_key())
        return self.weight.new_zeros(low.numel()).scatter_reduce(0, place, self.weight, "amax")

    @property
    def num_edges(self) -> int:
        """Number of edges that sums go over."""
        return int(self.source.numel())

    @property
    def num_pairs(self) -> int:
        """Number of unordered pairs of neighbours."""
        return self.pairs.size(1)

    @property
    def pair_total(self) -> float | Tensor:
        """Sum of the weights of all pairs; their number without weights."""
        return self.num_pairs if self.pair_weight is None else self.pair_weight.sum()

    def complete(self, h: Tensor) -> Tensor:
        """Rows of all nodes; a part of a graph gets some of them from other processes."""
        return h

    @_derived
    def is_undirected(self) -> bool:
        """Whether every edge is listed in both directions."""
        forward = torch.unique(self.source * self.num_nodes + self.target)
        backward = torch.unique(self.target * self.num_nodes + self.source)
        return torch.equal(forward, backward)

    @_derived
    def is_simple(self) -> bool:
        """Whether the edges are each pair in both directions, once, with equal weights."""
        if not (2 * self.pairs.size(1) == self.source.numel() and self.is_undirected):
            return False
        if self.weight is None or self.learns_weight:
            return self.weight is None
        there = torch.argsort(self.source * self.num_nodes + self.target)
        back = torch.argsort(self.target * self.num_nodes + self.source)
        return torch.equal(self.weight[there], self.weight[back])

    @_derived
    def _matrices(self) -> tuple[Csr, Csr]:
        return Csr.pair(self.source, self.target, self.num_nodes, self.weight)

    @property
    def csr(self) -> Csr:
        """For every target its sources."""
        return self._matrices[0]

    @property
    def transpose(self) -> Csr:
        """For every source its targets."""
        return self._matrices[1]

    def float_degree(self, dtype: torch.dtype) -> Tensor:
        """:attr:`weighted_degree` as floating point numbers, ``[N]``."""
        return self.kept(("degree", dtype), lambda: self.weighted_degree.to(dtype))

    def inverse_degree(self, dtype: torch.dtype) -> Tensor:
        """One over the degree, zero at isolated nodes, ``[N]``."""

        def inverse() -> Tensor:
            degree = self.float_degree(dtype)
            return torch.where(degree > 0, 1 / _or_one(degree), 0.0)

        return self.kept(("inverse degree", dtype), inverse)

    def scales(self, normalization: str, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
        r"""Factors :math:`l_i, r_j` on the weights of edges, ``[N]`` each; None is 1.

        Times the weight of the edge, if it has one, the product is :meth:`edge_weight`.
        """
        key = ("scales", normalization, dtype)
        return self.kept(key, lambda: self._node_scales(normalization, dtype))

    def _node_scales(
        self, normalization: str, dtype: torch.dtype
    ) -> tuple[Tensor | None, Tensor | None]:
        if normalization == "closed-sym":
            scale = self._closed_degree(dtype).rsqrt()
            return scale, scale
        if normalization == "closed-rw":
            return self._closed_degree(dtype).reciprocal(), None
        _check_normalization(normalization)
        if normalization == "sum":
            return None, None
        if normalization == "rw":
            return self.inverse_degree(dtype), None
        out_degree = _or_one(self.weighted_out_degree).to(dtype)
        return _or_one(self.float_degree(dtype)).rsqrt(), out_degree.rsqrt()

    def own_scale(self, normalization: str, dtype: torch.dtype) -> Tensor | None:
        """Factor on the node itself in a closed sum, ``[N]``; None where it is left out."""
        if not normalization.startswith("closed-"):
            return None
        key = ("own scale", dtype)
        return self.kept(key, lambda: self._closed_degree(dtype).reciprocal())

    def _closed_degree(self, dtype: torch.dtype) -> Tensor:
        return (self.weighted_degree + 1).to(dtype)

    def relation(self, direction: str) -> "Neighborhood":
        """The same nodes with the edges a message travels along.

        Args:
            direction: ``"in"`` keeps the edges (a node hears from those that point at it),
                ``"out"`` reverses them (a node hears from those it points at),
                ``"undirected"`` lists each pair in both directions once, with the largest of its
                weights.
        """
        known = direction in ("undirected", "out", "in")
        require(known, "direction", "'undirected', 'out' or 'in'", repr(direction))
        if direction == "in" or self.is_simple:
            return self
        return self.kept(("relation", direction), lambda: self._directed(direction))

    def _directed(self, direction: str) -> "Neighborhood":
        edges, weight = self.edge_index.flip(0), self.weight
        if direction == "undirected":
            edges = torch.cat([self.pairs, self.pairs.flip(0)], dim=1)
            weight = None if self.pair_weight is None else self.pair_weight.repeat(2)
        return Neighborhood(edges, self.num_nodes, weight)

    def edge_weight(self, normalization: str, dtype: torch.dtype) -> Tensor:
        r"""Constant weight of each edge, ``[E']``.

        ``"sum"`` is 1, ``"rw"`` is :math:`1/d_i` and ``"sym"`` is
        :math:`1/\sqrt{d_i d_j}` with the in-degree of the target and the out-degree of
        the source. All are multiplied by the weight of the edge, and degrees are sums of weights.
        """
        _check_normalization(normalization)
        if self.on_cpu is not None:
            key = ("edge weight", normalization, dtype)
            return self.prepared(key, lambda hood: hood.edge_weight(normalization, dtype))
        if self.weight is not None:
            left, right = self.scales(normalization, torch.float64)
            weight = self.weight if left is None else self.weight * left[self.target]
            return (weight if right is None else weight * right[self.source]).to(dtype)
        if normalization == "sum":
            return torch.ones(self.source.numel(), dtype=dtype, device=self.source.device)
        target_degree = self.degree.to(dtype).index_select(0, self.target)
        if normalization == "rw":
            return target_degree.reciprocal()
        source_degree = self.out_degree.to(dtype).index_select(0, self.source)
        return (target_degree * source_degree).rsqrt()

    def operator(self, normalization: str, dtype: torch.dtype) -> "LinearOperator":
        """The weighted adjacency as a matrix product with a fast transpose."""

        def made() -> LinearOperator:
            weight, size = self.edge_weight(normalization, dtype), (self.num_nodes, self.num_nodes)
            return LinearOperator(self.source, self.target, weight, size)

        return self.kept(("operator", normalization, dtype), made)


class LinearOperator:
    """A constant sparse matrix and its transpose, both in CSR.

    PyTorch's own backward of a CSR product transposes at every step; here the transpose is
    built once and the backward is another CSR product.
    """

    def __init__(self, column: Tensor, row: Tensor, value: Tensor, size: tuple[int, int]) -> None:
        self.size = size
        self.forward_csr = _csr(row, column, value, size)
        self.backward_csr = _csr(column, row, value, (size[1], size[0]))

    def __matmul__(self, x: Tensor) -> Tensor:
        """Product with dense ``x``, ``[N, D] -> [M, D]``, differentiable any number of times."""
        return _Product.apply(x, self.forward_csr, self.backward_csr)


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, matrix, transpose):  # type: ignore[no-untyped-def]
        ctx.matrix, ctx.transpose = matrix, transpose
        with torch.autocast(x.device.type, enabled=False):  # sparse products know no bfloat16
            return matrix @ x

    @staticmethod
    def backward(ctx, grad):  # type: ignore[no-untyped-def]
        return _Product.apply(grad.contiguous(), ctx.transpose, ctx.matrix), None, None


def _csr(row: Tensor, column: Tensor, value: Tensor, size: tuple[int, int]) -> Tensor:
    """A CSR tensor from unsorted coordinates; weights of duplicates are added."""
    key, inverse = torch.unique(row * size[1] + column, return_inverse=True)
    merged = value.new_zeros(key.numel()).index_add_(0, inverse, value)
    crow = row_starts(key // max(size[1], 1), size[0])
    return csr_tensor(crow, key % max(size[1], 1), merged, size)


def csr_tensor(crow: Tensor, column: Tensor, value: Tensor, size: tuple[int, int]) -> Tensor:
    """A CSR tensor from its three arrays, which the caller vouches for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # "CSR support is in beta state"
        return torch.sparse_csr_tensor(crow, column, value, size, check_invariants=False)


class TracedNeighborhood:
    """Edges that ``torch.compile`` is looking at: no values yet, only which edges are meant.

    The operators that the trace calls find the prepared :class:`Neighborhood` by themselves.
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_nodes: int,
        direction: str = "in",
        edge_weight: Tensor | None = None,
    ) -> None:
        self.edge_index, self.num_nodes, self.direction = edge_index, num_nodes, direction
        self.weight = edge_weight

    @property
    def edges(self) -> tuple[Tensor, str, Tensor | None]:
        """What the operators take: the edges, the relation that is meant, and the weights."""
        return self.edge_index, self.direction, self.weight

    @property
    def learns_weight(self) -> bool:
        """See :attr:`Neighborhood.learns_weight`."""
        return needs_gradient(self.weight)

    def relation(self, direction: str) -> "TracedNeighborhood":
        """See :meth:`Neighborhood.relation`."""
        if direction == "in" or self.direction == "undirected":
            return self
        if self.direction == "out" and direction == "out":
            direction = "in"
        return TracedNeighborhood(self.edge_index, self.num_nodes, direction, self.weight)

    def complete(self, h: Tensor) -> Tensor:
        """See :meth:`Neighborhood.complete`."""
        return h

    @property
    def num_edges(self) -> int:
        """Number of edges that sums go over."""
        return self.edge_index.size(1)

    @property
    def is_simple(self) -> bool:
        """Whether the edges are known to be each pair in both directions, once."""
        return self.direction == "undirected"

    @property
    def weighted_degree(self) -> Tensor:
        """See :attr:`Neighborhood.weighted_degree`."""
        return _degree_op(*self.edges, self.num_nodes)

    @property
    def pair_total(self) -> Tensor:
        """See :attr:`Neighborhood.pair_total`; a tensor, since the trace knows no values."""
        return _pair_total_op(*self.edges, self.num_nodes)


def related(
    edge_index: Tensor, direction: str, edge_weight: Tensor | None, num_nodes: int
) -> Neighborhood:
    """The neighbourhood that the arguments of an operator mean."""
    return neighborhood(edge_index, num_nodes, edge_weight).relation(direction)


def _empty_like_weights(edge_index: Tensor, edge_weight: Tensor | None, *shape: int) -> Tensor:
    if edge_weight is None:
        return edge_index.new_empty(shape)
    return edge_weight.new_empty(shape, dtype=torch.float64)


@torch.library.custom_op("argnn::degree", mutates_args=())
def _degree_op(
    edge_index: Tensor, direction: str, edge_weight: Tensor | None, num_nodes: int
) -> Tensor:
    # A copy: a compiler may write into what an operator returned.
    degree = related(edge_index, direction, edge_weight, num_nodes).weighted_degree.clone()
    return degree if edge_weight is None else degree.double()


@_degree_op.register_fake
def _(edge_index, direction, edge_weight, num_nodes):  # type: ignore[no-untyped-def]
    return _empty_like_weights(edge_index, edge_weight, num_nodes)


@torch.library.custom_op("argnn::pair_total", mutates_args=())
def _pair_total_op(
    edge_index: Tensor, direction: str, edge_weight: Tensor | None, num_nodes: int
) -> Tensor:
    total = related(edge_index, direction, edge_weight, num_nodes).pair_total
    if edge_weight is None:
        return edge_index.new_tensor(total)
    return torch.as_tensor(total, dtype=torch.float64, device=edge_index.device).clone()


@_pair_total_op.register_fake
def _(edge_index, direction, edge_weight, num_nodes):  # type: ignore[no-untyped-def]
    return _empty_like_weights(edge_index, edge_weight)


#: What every function of this package takes as its edges.
Edges = Tensor | Neighborhood | TracedNeighborhood

_CACHE: ContentCache[Any] = ContentCache()


def neighborhood(
    edge_index: Edges, num_nodes: int, edge_weight: Tensor | None = None
) -> Neighborhood:
    """The prepared neighbourhoods of a graph.

    The same tensors with the same contents give the same result: the contents are read at every
    call, so that a change is noticed however it was made, and prepared anew only where they have
    changed. Inside of :class:`~argnn.kernels.unchanged` they are not even read. What is prepared
    already is returned as it is: it does not follow later changes of the edges. Weights that need
    a gradient are prepared at every call. Under ``torch.compile`` the result is a
    :class:`TracedNeighborhood`.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``, or what was prepared.
        num_nodes: Number of nodes.
        edge_weight: Weight of each edge, finite and not negative, ``[E]``.
    """
    if edge_weight is not None and not isinstance(edge_index, Tensor):
        raise ValueError("prepared edges have their weights already: edge_weight must be None")
    if torch.compiler.is_compiling():
        return cast(Neighborhood, _traced(edge_index, num_nodes, edge_weight))
    if isinstance(edge_index, TracedNeighborhood):  # on its way out of a compiled function
        return related(*edge_index.edges, num_nodes)
    if isinstance(edge_index, Neighborhood):
        _check_num_nodes(edge_index.num_nodes, num_nodes)
        return edge_index
    edges = plain_tensor(edge_index)
    _check_form(edges)
    if edge_weight is None:
        return _CACHE.of(edges, lambda: Neighborhood(edges, num_nodes), key=num_nodes)
    if needs_gradient(edge_weight):
        return Neighborhood(edges, num_nodes, edge_weight)
    weight = edge_weight.detach() if edge_weight.requires_grad else edge_weight
    # Kept by the weights, for as long as the edges stay the same.
    known: ContentCache[Neighborhood] = _CACHE.of(edges, ContentCache, key=(num_nodes, "weights"))
    return known.of(edge_weight, lambda: Neighborhood(edges, num_nodes, weight))


def _traced(edge_index: Edges, num_nodes: int, edge_weight: Tensor | None) -> TracedNeighborhood:
    if isinstance(edge_index, TracedNeighborhood):
        return edge_index
    if isinstance(edge_index, Neighborhood):
        return TracedNeighborhood(edge_index.edge_index, num_nodes, "in", edge_index.weight)
    return TracedNeighborhood(edge_index, num_nodes, "in", edge_weight)


def needs_gradient(weight: Tensor | None) -> bool:
    """Whether the weights of edges need a gradient here."""
    return weight is not None and weight.requires_grad and torch.is_grad_enabled()


def _or_one(degree: Tensor) -> Tensor:
    """Degrees to divide by: one where there is no neighbour."""
    return torch.where(degree > 0, degree, 1)


def _check_num_nodes(prepared: int, given: int) -> None:
    if prepared != given:
        raise ValueError(f"edges among {prepared} nodes, but {given} nodes")


def _check_normalization(normalization: str) -> None:
    known = NORMALIZATIONS
    require(normalization in known, "normalization", f"one of {known}", repr(normalization))


def _check_form(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, E] (got {list(edge_index.shape)})")
    require(edge_index.dtype == torch.int64, "edge_index", "int64", edge_index.dtype)


def _checked_weight(edge_weight: Tensor, edge_index: Tensor) -> Tensor:
    if edge_weight.shape != edge_index.shape[1:]:
        expected, got = [edge_index.size(1)], list(edge_weight.shape)
        raise ValueError(f"edge_weight must have one number per edge, {expected} (got {got})")
    weight = edge_weight.double()
    wrong = ~(weight.isfinite() & (weight >= 0))
    if bool(wrong.any()):
        row = int(wrong.nonzero()[0])
        raise ValueError(
            f"edge_weight[{row}] must be finite and not negative (got {weight[row].item()})"
        )
    return weight


def _check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    _check_form(edge_index)
    if edge_index.numel() == 0:
        return
    low, high = int(edge_index.min()), int(edge_index.max())
    if low < 0 or high >= num_nodes:
        wrong = low if low < 0 else high
        raise ValueError(f"edge_index names node {wrong}, but nodes are 0 to {num_nodes - 1}")
