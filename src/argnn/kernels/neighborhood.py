r"""The neighbourhoods of a graph, prepared once per ``edge_index`` and reused.

What an edge list means, here and in every function of this package:

* row 0 of ``edge_index`` is the source :math:`j`, row 1 the target :math:`i`;
* :math:`\mathcal{N}(i)` are the sources of edges into :math:`i` without :math:`i` itself, so a
  self-loop is ignored by every sum over neighbours;
* a duplicate edge counts as often as it is listed, as in PyG;
* the smoothness energy, NRMD and homophily count each unordered pair once, however often and
  in whichever direction it is listed.
"""

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import cast

import torch
from torch import Tensor

from argnn.kernels.contents import ContentCache, plain_tensor
from argnn.kernels.csr import Csr

NORMALIZATIONS = ("sum", "sym", "rw")
DIRECTIONS = ("undirected", "out", "in", "both")


class Neighborhood:
    """Everything about the edges that does not depend on features.

    Holds only tensors derived from ``edge_index``, never ``edge_index`` itself: the cache
    below would otherwise keep its own keys alive. What is derived is made outside of
    inference mode, since it outlives the call and may be needed for training later.
    """

    @torch.inference_mode(False)
    def __init__(self, edge_index: Tensor, num_nodes: int) -> None:
        _check_edge_index(edge_index, num_nodes)
        loop = edge_index[0] == edge_index[1]
        self.num_nodes = num_nodes
        self.is_neighbor = ~loop
        #: The edges without self-loops, ``[2, E']``.
        self.edge_index = edge_index[:, ~loop].clone()
        self.source, self.target = self.edge_index
        #: Node tensors that other functions derive from the edges alone and want to keep.
        self.derived: dict[str, Tensor] = {}
        self._operators: dict[tuple[str, torch.dtype], LinearOperator] = {}
        #: Graphs on the same nodes that follow from the edges, made on first use.
        self.relations: dict[str, Neighborhood] = {}
        self._vectors: dict[tuple[str, torch.dtype], Tensor] = {}
        self._scales: dict[tuple[str, torch.dtype], tuple[Tensor | None, Tensor | None]] = {}

    @cached_property
    @torch.inference_mode(False)
    def degree(self) -> Tensor:
        """Number of edges into each node, ``[N]``."""
        return torch.bincount(self.target, minlength=self.num_nodes)

    @cached_property
    @torch.inference_mode(False)
    def has_no_isolated_node(self) -> bool:
        """Whether every node has a neighbour."""
        return bool((self.degree > 0).all())

    @cached_property
    @torch.inference_mode(False)
    def out_degree(self) -> Tensor:
        """Number of edges out of each node, ``[N]``."""
        return torch.bincount(self.source, minlength=self.num_nodes)

    @cached_property
    @torch.inference_mode(False)
    def pairs(self) -> Tensor:
        """Each unordered pair of neighbours once, ``[2, P]``."""
        low = torch.minimum(self.source, self.target)
        high = torch.maximum(self.source, self.target)
        key = torch.unique(low * self.num_nodes + high)
        return torch.stack([key // self.num_nodes, key % self.num_nodes])

    @property
    def num_edges(self) -> int:
        """Number of edges that sums go over."""
        return int(self.source.numel())

    @property
    def num_pairs(self) -> int:
        """Number of unordered pairs of neighbours."""
        return self.pairs.size(1)

    @cached_property
    @torch.inference_mode(False)
    def is_undirected(self) -> bool:
        """Whether every edge is listed in both directions."""
        forward = torch.unique(self.source * self.num_nodes + self.target)
        backward = torch.unique(self.target * self.num_nodes + self.source)
        return torch.equal(forward, backward)

    @cached_property
    def is_simple(self) -> bool:
        """Whether the edges are each pair in both directions, once."""
        return 2 * self.pairs.size(1) == self.source.numel() and self.is_undirected

    @cached_property
    @torch.inference_mode(False)
    def _matrices(self) -> tuple[Csr, Csr]:
        return Csr.pair(self.source, self.target, self.num_nodes)

    @property
    def csr(self) -> Csr:
        """For every target its sources."""
        return self._matrices[0]

    @property
    def transpose(self) -> Csr:
        """For every source its targets."""
        return self._matrices[1]

    def float_degree(self, dtype: torch.dtype) -> Tensor:
        """:attr:`degree` as floating point numbers, ``[N]``."""
        return self.vector("degree", dtype, lambda: self.degree.to(dtype))

    def inverse_degree(self, dtype: torch.dtype) -> Tensor:
        """One over the degree, zero at isolated nodes, ``[N]``."""

        def inverse() -> Tensor:
            degree = self.float_degree(dtype)
            return torch.where(degree > 0, 1 / degree.clamp_min(1), 0.0)

        return self.vector("inverse degree", dtype, inverse)

    def vector(self, name: str, dtype: torch.dtype, make: Callable[[], Tensor]) -> Tensor:
        """A vector over the nodes that follows from the edges, made on first use."""
        if (name, dtype) not in self._vectors:
            with torch.inference_mode(False):
                self._vectors[name, dtype] = make()
        return self._vectors[name, dtype]

    def scales(self, normalization: str, dtype: torch.dtype) -> tuple[Tensor | None, Tensor | None]:
        r"""Factors :math:`l_i, r_j` with :math:`w_{ij} = l_i r_j`, ``[N]`` each; None is 1.

        The same weights as :meth:`edge_weight`, without a number per edge.
        """
        key = (normalization, dtype)
        if key not in self._scales:
            with torch.inference_mode(False):
                self._scales[key] = self._node_scales(normalization, dtype)
        return self._scales[key]

    def _node_scales(
        self, normalization: str, dtype: torch.dtype
    ) -> tuple[Tensor | None, Tensor | None]:
        _check_normalization(normalization)
        if normalization == "sum":
            return None, None
        if normalization == "rw":
            return self.inverse_degree(dtype), None
        out_degree = self.out_degree.clamp_min(1).to(dtype)
        return self.float_degree(dtype).clamp_min(1).rsqrt(), out_degree.rsqrt()

    def relation(self, direction: str) -> "Neighborhood":
        """The same nodes with the edges a message travels along.

        Args:
            direction: ``"in"`` keeps the edges (a node hears from those that point at it),
                ``"out"`` reverses them (a node hears from those it points at),
                ``"undirected"`` lists each pair in both directions once.
        """
        if direction not in ("undirected", "out", "in"):
            raise ValueError(f"direction must be 'undirected', 'out' or 'in' (got {direction!r})")
        if direction == "in" or self.is_simple:
            return self
        if direction not in self.relations:
            with torch.inference_mode(False):
                edges = self._directed(direction)
                self.relations[direction] = Neighborhood(edges, self.num_nodes)
        return self.relations[direction]

    def _directed(self, direction: str) -> Tensor:
        if direction == "out":
            return torch.stack([self.target, self.source])
        return torch.cat([self.pairs, self.pairs.flip(0)], dim=1)

    def edge_weight(self, normalization: str, dtype: torch.dtype) -> Tensor:
        r"""Constant weight of each edge, ``[E']``.

        ``"sum"`` is 1, ``"rw"`` is :math:`1/d_i` and ``"sym"`` is
        :math:`1/\sqrt{d_i d_j}` with the in-degree of the target and the out-degree of
        the source.
        """
        _check_normalization(normalization)
        if normalization == "sum":
            return torch.ones(self.source.numel(), dtype=dtype, device=self.source.device)
        target_degree = self.degree.to(dtype).index_select(0, self.target)
        if normalization == "rw":
            return target_degree.reciprocal()
        source_degree = self.out_degree.to(dtype).index_select(0, self.source)
        return (target_degree * source_degree).rsqrt()

    def operator(self, normalization: str, dtype: torch.dtype) -> "LinearOperator":
        """The weighted adjacency as a matrix product with a fast transpose."""
        key = (normalization, dtype)
        if key not in self._operators:
            size = (self.num_nodes, self.num_nodes)
            with torch.inference_mode(False):
                weight = self.edge_weight(normalization, dtype)
                self._operators[key] = LinearOperator(self.source, self.target, weight, size)
        return self._operators[key]


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
        product: Tensor = _Product.apply(x, self.forward_csr, self.backward_csr)
        return product


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
    counts = torch.bincount(key // max(size[1], 1), minlength=size[0])
    crow = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
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

    def __init__(self, edge_index: Tensor, num_nodes: int, direction: str = "in") -> None:
        self.edge_index, self.num_nodes, self.direction = edge_index, num_nodes, direction

    def relation(self, direction: str) -> "TracedNeighborhood":
        """See :meth:`Neighborhood.relation`."""
        if direction == "in" or self.direction == "undirected":
            return self
        if self.direction == "out" and direction == "out":
            direction = "in"
        return TracedNeighborhood(self.edge_index, self.num_nodes, direction)

    @property
    def num_edges(self) -> int:
        """Number of edges that sums go over."""
        return self.edge_index.size(1)

    @property
    def is_simple(self) -> bool:
        """Whether the edges are known to be each pair in both directions, once."""
        return self.direction == "undirected"

    @property
    def degree(self) -> Tensor:
        """See :attr:`Neighborhood.degree`."""
        degree: Tensor = _degree_op(self.edge_index, self.num_nodes, self.direction)
        return degree

    @property
    def num_pairs(self) -> Tensor:
        """See :attr:`Neighborhood.num_pairs`; a tensor, since the trace knows no values."""
        pairs: Tensor = _num_pairs_op(self.edge_index, self.num_nodes)
        return pairs


@torch.library.custom_op("argnn::degree", mutates_args=())
def _degree_op(edge_index: Tensor, num_nodes: int, direction: str) -> Tensor:
    # A copy: a compiler may write into what an operator returned.
    return neighborhood(edge_index, num_nodes).relation(direction).degree.clone()


@_degree_op.register_fake
def _(edge_index, num_nodes, direction):  # type: ignore[no-untyped-def]
    return edge_index.new_empty(num_nodes)


@torch.library.custom_op("argnn::num_pairs", mutates_args=())
def _num_pairs_op(edge_index: Tensor, num_nodes: int) -> Tensor:
    return edge_index.new_tensor(neighborhood(edge_index, num_nodes).num_pairs)


@_num_pairs_op.register_fake
def _(edge_index, num_nodes):  # type: ignore[no-untyped-def]
    return edge_index.new_empty(())


#: What every function of this package takes as its edges.
Edges = Tensor | Neighborhood | TracedNeighborhood

_CACHE: ContentCache[Neighborhood] = ContentCache()


def neighborhood(edge_index: Edges, num_nodes: int) -> Neighborhood:
    """The prepared neighbourhoods of a graph.

    The same tensor with the same contents gives the same result: the contents are read at every
    call, so that a change is noticed however it was made, and prepared anew only where they have
    changed. Inside of :class:`~argnn.kernels.unchanged` they are not even read. What is prepared
    already is returned as it is: it does not follow later changes of the edges. Under
    ``torch.compile`` the result is a :class:`TracedNeighborhood`.
    """
    if torch.compiler.is_compiling():
        return cast(Neighborhood, _traced(edge_index, num_nodes))
    if isinstance(edge_index, TracedNeighborhood):  # on its way out of a compiled function
        return neighborhood(edge_index.edge_index, num_nodes).relation(edge_index.direction)
    if isinstance(edge_index, Neighborhood):
        _check_num_nodes(edge_index.num_nodes, num_nodes)
        return edge_index
    edges = plain_tensor(edge_index)
    _check_form(edges)
    return _CACHE.of(edges, lambda: Neighborhood(edges, num_nodes), key=num_nodes)


def _traced(edge_index: Edges, num_nodes: int) -> TracedNeighborhood:
    if isinstance(edge_index, TracedNeighborhood):
        return edge_index
    if isinstance(edge_index, Neighborhood):
        edge_index = edge_index.edge_index
    return TracedNeighborhood(edge_index, num_nodes)


def _check_num_nodes(prepared: int, given: int) -> None:
    if prepared != given:
        raise ValueError(f"edges among {prepared} nodes, but {given} nodes")


def _check_normalization(normalization: str) -> None:
    if normalization not in NORMALIZATIONS:
        raise ValueError(f"normalization must be one of {NORMALIZATIONS} (got {normalization!r})")


def _check_form(edge_index: Tensor) -> None:
    if edge_index.dim() != 2 or edge_index.size(0) != 2:
        raise ValueError(f"edge_index must have shape [2, E] (got {list(edge_index.shape)})")
    if edge_index.dtype != torch.int64:
        raise ValueError(f"edge_index must be int64 (got {edge_index.dtype})")


def _check_edge_index(edge_index: Tensor, num_nodes: int) -> None:
    _check_form(edge_index)
    if edge_index.numel() == 0:
        return
    low, high = int(edge_index.min()), int(edge_index.max())
    if low < 0 or high >= num_nodes:
        wrong = low if low < 0 else high
        raise ValueError(f"edge_index names node {wrong}, but nodes are 0 to {num_nodes - 1}")
