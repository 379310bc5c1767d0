"""Divide the nodes of a graph into parts with few edges between them."""

import os
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argnn.data.adjacency import Adjacency, Rows
from argnn.errors import ConfigError
from argnn.files import cache_file, from_cache, to_cache
from argnn.functional.partition import runs_of_nodes, streaming_partition

METHODS = ("auto", "metis", "streaming")
#: Raise it when a method gives other parts, and files are made anew.
_FORMAT = 1
#: Memory that METIS takes at its peak, in bytes; measured on graphs without a good cut.
_METIS_PER_EDGE, _METIS_PER_NODE = 160, 100


@dataclass(frozen=True)
class Partition:
    """The part of each node.

    Attributes:
        part: Number of each node's part, ``[N]``.
        num_parts: How many parts there are.
        method: ``"metis"`` or ``"streaming"``.
        cut: Share of the edges that lie between two parts.
    """

    part: NDArray[np.int32]
    num_parts: int
    method: str
    cut: float

    @cached_property
    def _order(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        order = np.argsort(self.part, kind="stable")
        counts = np.bincount(self.part, minlength=self.num_parts)
        return order, np.concatenate([[0], counts.cumsum()])

    def nodes(self, part: int) -> NDArray[np.int64]:
        """The nodes of a part, sorted."""
        order, start = self._order
        return order[start[part] : start[part + 1]]


def partition(adjacency: Adjacency, num_parts: int, method: str = "auto") -> Partition:
    """Divide a graph, or read from the cache how it was divided before.

    Directions and weights of edges do not matter. Every part has a node.

    Args:
        adjacency: The edges.
        num_parts: Number of parts, at most one per node.
        method: ``"metis"``; ``"streaming"``, which goes through the nodes a few times and puts each
            one where most of its neighbours are, in little memory; or ``"auto"``, METIS where it
            fits into the free memory.
    """
    if method not in METHODS:
        raise ConfigError(f"a partition is made by {', '.join(METHODS)} (got '{method}')")
    if not 1 <= num_parts <= adjacency.num_nodes:
        count = adjacency.num_nodes
        raise ConfigError(f"parts must be from 1 to the number of nodes, {count} (got {num_parts})")
    if method == "auto":
        method = "metis" if metis_memory(adjacency) < free_memory() else "streaming"
    about = {"edges": adjacency.digest, "parts": num_parts, "method": method}
    path = cache_file("partitions", {"format": _FORMAT, **about})
    known = from_cache(path, partial(_kept, adjacency.num_nodes, num_parts))
    if known is not None:
        return known
    both = adjacency.both
    if method == "metis":
        part = _by_metis(both, num_parts)
    else:
        start, other = map(torch.from_numpy, both[:2])
        part = streaming_partition(start, other, num_parts).numpy()
    part = _without_empty_parts(part, num_parts)
    found = Partition(part, num_parts, method, _cut(adjacency.both, part))
    facts = {"method": found.method, "cut": found.cut}
    to_cache(path, {"part": torch.from_numpy(part)}, facts, "the partition is")
    return found


def metis_memory(adjacency: Adjacency) -> int:
    """About how much memory METIS needs for a graph, in bytes."""
    return _METIS_PER_EDGE * len(adjacency.both.other) + _METIS_PER_NODE * adjacency.num_nodes


def free_memory() -> int:
    """Memory that is not used on this machine, in bytes."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _by_metis(rows: Rows, num_parts: int) -> NDArray[np.int32]:
    import pymetis

    if num_parts == 1 or not len(rows.other):
        return runs_of_nodes(len(rows.start) - 1, num_parts).numpy()
    kind = pymetis.zero_copy_dtype()
    options = pymetis.Options(seed=0)
    edges = pymetis.CSRAdjacency(rows.start.astype(kind), np.asarray(rows.other, dtype=kind))
    _, part = pymetis.part_graph(num_parts, edges, options=options)
    return np.asarray(part, dtype=np.int32)


def _without_empty_parts(part: NDArray[np.int32], num_parts: int) -> NDArray[np.int32]:
    """Every part gets a node: an empty one the last node of the largest part."""
    counts = np.bincount(part, minlength=num_parts)
    for empty in np.flatnonzero(counts == 0):
        largest = counts.argmax()
        part[np.flatnonzero(part == largest)[-1]] = empty
        counts[largest] -= 1
        counts[empty] += 1
    return part


def _cut(rows: Rows, part: NDArray[np.int32]) -> float:
    """Share of the edges between two parts, found piece by piece."""
    if not len(rows.other):
        return 0.0
    between, nodes = 0, len(rows.start) - 1
    for first in range(0, nodes, 1 << 18):
        piece = rows.of(np.arange(first, min(first + (1 << 18), nodes)))
        between += int((part[piece.other] != part[first + piece.node]).sum())
    return between / len(rows.other)


def _kept(
    num_nodes: int, num_parts: int, tensors: dict[str, Tensor], facts: dict[str, Any]
) -> Partition:
    part = tensors["part"].numpy()
    if part.shape != (num_nodes,) or part.min() < 0 or part.max() >= num_parts:
        raise ValueError("it is the partition of another graph")
    return Partition(part, num_parts, str(facts["method"]), float(facts["cut"]))
