"""Edges by node: for every node its neighbours, in arrays that may be files on the disk."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from argnn.files import tensors_digest
from argnn.functional.graph_part import WholeDegrees
from argnn.functional.structure import triangles_of_rows
from argnn.functional.twins import twin_groups

#: Node numbers, as int32 or int64.
Nodes = NDArray[np.integer[Any]]


class Rows(NamedTuple):
    """Edges of each node, one node after the other.

    Attributes:
        start: Place of the first edge of each node, and the number of edges, ``[N + 1]``.
        other: The node at the other end of each edge, sorted within a node, ``[E]``.
        weight: Weight of each edge, ``[E]``; None where edges have none.
    """

    start: NDArray[np.int64]
    other: Nodes
    weight: NDArray[np.float32] | None = None

    def of(self, nodes: Nodes) -> "Rows":
        """The edges of some nodes, read from a file only as far as needed."""
        begin = np.asarray(self.start[nodes])
        counts = np.asarray(self.start[nodes + 1]) - begin
        start = np.concatenate([[0], counts.cumsum()])
        place: Any = np.arange(start[-1]) + np.repeat(begin - start[:-1], counts)
        if len(nodes) and np.array_equal(nodes, np.arange(nodes[0], nodes[0] + len(nodes))):
            place = slice(int(begin[0]), int(begin[0] + start[-1]))  # one run in the file
        weight = None if self.weight is None else np.asarray(self.weight[place])
        return Rows(start, np.asarray(self.other[place]), weight)

    @property
    def node(self) -> NDArray[np.int64]:
        """The node whose edge it is, for each edge, ``[E]``."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def degree(self) -> NDArray[np.int64] | NDArray[np.float64]:
        """Number of edges of each node, ``[N]``, or the sum of their weights."""
        if self.weight is None:
            return np.diff(self.start)
        return np.bincount(self.node, self.weight, minlength=len(self.start) - 1)


@dataclass(frozen=True)
class Adjacency:
    """The edges of a graph without self-loops, duplicates and weights of zero.

    Attributes:
        into: Edges into each node; ``other`` is where an edge begins.
        out: Edges out of each node; None if every edge is there in both directions.
    """

    into: Rows
    out: Rows | None = None

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.into.start) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges; those of an undirected graph count in both directions."""
        return len(self.into.other)

    @cached_property
    def both(self) -> Rows:
        """Neighbours of each node in any direction, with the larger of two weights."""
        if self.out is None:
            return self.into
        shape = (self.num_nodes, self.num_nodes)
        ones = np.ones(self.num_edges, dtype=np.float32)
        sides = [
            sparse.csr_array(
                (ones if rows.weight is None else rows.weight, rows.other, rows.start), shape=shape
            )
            for rows in (self.into, self.out)
        ]
        joined = sides[0].maximum(sides[1]).tocsr()
        joined.sort_indices()
        weight = None if self.into.weight is None else joined.data
        return Rows(joined.indptr.astype(np.int64), joined.indices, weight)

    @cached_property
    def num_pairs(self) -> float:
        """Number of pairs of neighbours, or the sum of their weights."""
        weight = self.both.weight
        if weight is None:
            return len(self.both.other) / 2
        return float(weight.sum(dtype=np.float64)) / 2

    @cached_property
    def degrees(self) -> WholeDegrees:
        """Degrees of all nodes."""
        into = torch.from_numpy(self.into.degree())
        if self.out is None:
            return WholeDegrees(into, into, into)
        out, both = (torch.from_numpy(rows.degree()) for rows in (self.out, self.both))
        return WholeDegrees(into, out, both)

    @cached_property
    def descriptor(self) -> Tensor:
        """The structural descriptor of all nodes, ``[N, 5]``.

        See :func:`argnn.functional.structural_descriptor`, which needs more memory.
        """
        logs = [degree.double().log1p() for degree in self.degrees]
        both, log_degree = self.both, logs[2].numpy()
        weight = both.weight
        sums = np.zeros(self.num_nodes)
        for node in range(0, self.num_nodes, _NODES_AT_ONCE):
            rows = both.of(np.arange(node, min(node + _NODES_AT_ONCE, self.num_nodes)))
            values = log_degree[rows.other]
            values = values if weight is None else values * rows.weight
            count = len(rows.start) - 1
            sums[node : node + count] = np.bincount(rows.node, values, minlength=count)
        mean = sums / np.maximum(self.degrees.both.numpy(), _TINY)
        near = np.diff(both.start).astype(np.float64)
        possible = np.maximum(near * (near - 1) / 2, 1)
        triangles = triangles_of_rows(*map(_tensor, (both.start, both.other)))
        clustering = triangles.numpy() / possible
        columns = [logs[2], logs[0], logs[1], *map(torch.from_numpy, (mean, clustering))]
        return torch.stack(columns, dim=-1)

    def twin_groups(self) -> Tensor:
        """The smallest node with the same neighbours, ``[N]``; -1 for a node without neighbours.

        See :func:`argnn.functional.twin_groups`, which needs more memory. Sums of random numbers
        of the neighbours tell which nodes may have a twin, and only these are compared.
        """
        rows = self.into if self.out is None else self.out
        number = np.random.default_rng(0).integers(2**63 - 1, size=self.num_nodes)
        sums = np.zeros(self.num_nodes, dtype=np.int64)
        for node in range(0, self.num_nodes, _NODES_AT_ONCE):
            some = rows.of(np.arange(node, min(node + _NODES_AT_ONCE, self.num_nodes)))
            np.add.at(sums, node + some.node, number[some.other])  # overflow does no harm
        degree = np.diff(rows.start)
        _, first, count = np.unique(sums[degree > 0], return_inverse=True, return_counts=True)
        candidates = np.flatnonzero(degree > 0)[count[first] > 1]
        some = rows.of(candidates)
        edges = np.stack([candidates[some.node], np.asarray(some.other, dtype=np.int64)])
        groups = twin_groups(torch.from_numpy(edges), self.num_nodes)
        alone = torch.from_numpy(degree > 0) & (groups < 0)
        return torch.where(alone, torch.arange(self.num_nodes), groups)

    @cached_property
    def digest(self) -> str:
        """One number for the edges and their weights; it is the same for both kinds of integers."""
        arrays = {"start": self.into.start, "other": self.into.other, "weight": self.into.weight}
        tensors = {name: _tensor(array) for name, array in arrays.items() if array is not None}
        return tensors_digest(tensors)

    @classmethod
    def from_edges(
        cls, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
    ) -> "Adjacency":
        """The adjacency of an edge list ``[2, E]`` as ``argnn.data.load`` gives it."""
        into = _rows(edge_index[1], edge_index[0], edge_weight, num_nodes)
        out = _rows(edge_index[0], edge_index[1], edge_weight, num_nodes)
        same = np.array_equal(into.start, out.start) and np.array_equal(into.other, out.other)
        if same and into.weight is not None and out.weight is not None:
            same = np.array_equal(into.weight, out.weight)
        return cls(into, None if same else out)


#: Nodes whose edges are read at once where all are read.
_NODES_AT_ONCE = 1 << 18
#: In place of a degree of zero.
_TINY = np.finfo(np.float64).tiny


def _rows(node: Tensor, other: Tensor, weight: Tensor | None, num_nodes: int) -> Rows:
    order = torch.argsort(node * num_nodes + other)
    counts = torch.bincount(node, minlength=num_nodes)
    start = np.concatenate([[0], counts.cumsum(0).numpy()])
    sorted_weight = None if weight is None else weight[order].float().numpy()
    kind = np.int32 if num_nodes < 2**31 else np.int64
    return Rows(start, other[order].numpy().astype(kind), sorted_weight)


def _tensor(array: NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.asarray(array))
