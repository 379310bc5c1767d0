"""Edges by node: for every node its neighbours, in arrays that may be files on the disk."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

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
        if len(nodes) and nodes[-1] - nodes[0] == len(nodes) - 1:  # neighbours in the file, too
            place: Any = slice(int(begin[0]), int(begin[0]) + int(start[-1]))
        else:
            place = np.arange(start[-1]) + np.repeat(begin - start[:-1], counts)
        weight = None if self.weight is None else np.asarray(self.weight[place])
        return Rows(start, np.asarray(self.other[place]), weight)


@dataclass(frozen=True)
class Adjacency:
    """The edges of a graph without self-loops, duplicates and weights of zero.

    Attributes:
        into: Edges into each node; ``other`` is where an edge begins.
        out: Edges out of each node; None if every edge is there in both directions.
    """

    into: Rows
    out: Rows | None = field(default=None)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return len(self.into.start) - 1

    @property
    def num_edges(self) -> int:
        """Number of edges; those of an undirected graph count in both directions."""
        return len(self.into.other)

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """Edges into each node, ``[N]``."""
        return np.diff(self.into.start)

    @classmethod
    def from_edges(
        cls, edge_index: Tensor, num_nodes: int, edge_weight: Tensor | None = None
    ) -> "Adjacency":
        """The adjacency of an edge list ``[2, E]`` as ``argnn.data.load`` gives it."""
        into = _rows(edge_index[1], edge_index[0], edge_weight, num_nodes)
        out = _rows(edge_index[0], edge_index[1], edge_weight, num_nodes)
        same = np.array_equal(into.start, out.start) and np.array_equal(into.other, out.other)
        if same and into.weight is not None:
            same = np.array_equal(into.weight, out.weight)
        return cls(into, None if same else out)


def _rows(node: Tensor, other: Tensor, weight: Tensor | None, num_nodes: int) -> Rows:
    order = torch.argsort(node * num_nodes + other)
    counts = torch.bincount(node, minlength=num_nodes)
    start = np.concatenate([[0], counts.cumsum(0).numpy()])
    sorted_weight = None if weight is None else weight[order].float().numpy()
    kind = np.int32 if num_nodes < 2**31 else np.int64
    return Rows(start, other[order].numpy().astype(kind), sorted_weight)
