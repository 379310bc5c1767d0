"""A known graph that new nodes are joined to, and the part of it that they depend on."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import merged_edges
from argnn.data.node_ids import rows_by_id
from argnn.data.structural_features import degree_features, made_width
from argnn.errors import ConfigError, DataError

_RowNumbers = NDArray[np.int64]
#: One for each edge, or weights of type float64.
_Values = NDArray[Any]


class _KnownEdges:
    """The edges of the known graph with a number for each, and the sums of them at each node."""

    def __init__(
        self,
        source: _RowNumbers,
        target: _RowNumbers,
        values: _Values,
        num_nodes: int,
        directed: bool,
    ) -> None:
        shape = (num_nodes, num_nodes)
        # Row: where an edge begins. Column: where it ends.
        self.out = self.near = sparse.csr_array((values, (source, target)), shape=shape)
        if directed:
            self.near = self.out.maximum(self.out.T).tocsr()
        self._sums = (self.out.sum(axis=0), self.out.sum(axis=1), self.near.sum(axis=1))

    def value_of(self, edges: _RowNumbers, *, near: bool = False) -> _Values:
        """The number of each of some edges, of the joined graph; 0 if it is not there.

        With ``near``, the larger one of both directions.
        """
        found = np.zeros(edges.shape[1], dtype=self.out.dtype)
        known = (edges < self.out.shape[0]).all(axis=0)
        if known.any():
            source, target = edges[:, known]
            found[known] = np.asarray((self.near if near else self.out)[source, target]).ravel()
        return found

    def among(
        self, known: _RowNumbers, place: _RowNumbers, added: _RowNumbers, values: _Values
    ) -> tuple[Tensor, Tensor]:
        """All edges among the kept nodes, by places among these, ``[2, E]``, and their numbers."""
        old = self.out[known][:, known].tocoo()
        new = place[added]  # an edge between two known nodes may be far away
        near = (new >= 0).all(axis=0)
        edges = np.concatenate([np.stack(old.coords), new[:, near]], axis=1, dtype=np.int64)
        return torch.from_numpy(edges), torch.from_numpy(np.concatenate([old.data, values[near]]))

    def degrees(
        self, known: _RowNumbers, place: _RowNumbers, added: _RowNumbers, values: _Values
    ) -> dict[str, Tensor]:
        """Sums at the kept nodes in the joined graph, by name."""
        pairs, where = np.unique(np.sort(added, axis=0), axis=1, return_inverse=True)
        largest = np.zeros(pairs.shape[1], dtype=values.dtype)
        np.maximum.at(largest, where, values)
        old = self.value_of(pairs, near=True)
        more = (np.maximum(largest, old) - old).repeat(2)
        degrees = {}
        for name, before, ends, numbers in (
            ("degree", self._sums[0], added[1], values),
            ("out_degree", self._sums[1], added[0], values),
            ("neighbors", self._sums[2], pairs.T.ravel(), more),
        ):
            sums = np.zeros(int(place[-1]) + 1, dtype=before.dtype)
            sums[: len(known)] = before[known]
            at = place[ends]
            np.add.at(sums, at[at >= 0], numbers[at >= 0])
            degrees[name] = torch.from_numpy(sums)
        return degrees


class KnownGraph:
    """A graph that ``load`` gave, prepared once so that each request costs only its own part.

    In the joined graph, the known nodes keep their row numbers, and new ones come after them.

    Args:
        graph: Has no features that belong to its own nodes.
    """

    def __init__(self, graph: Data) -> None:
        self.graph, self.num_nodes = graph, graph.x.size(0)
        #: Row of each node, see :func:`argnn.data.node_ids.rows_by_id`.
        self.rows = rows_by_id(graph.get("node_ids") or range(self.num_nodes), 0)
        self.directed = "directions kept" in graph.edge_rule
        self._structure = (graph.get("schema") or {}).get("structure")
        if self._structure is not None and self._structure["kind"] != "degree":
            raise ConfigError(
                f"new nodes cannot have {self._structure['kind']} features: they belong to the "
                "nodes of one graph (degree features do not)"
            )
        source, target = graph.edge_index.numpy()
        size = (self.num_nodes, self.directed)
        self._counted = _KnownEdges(source, target, np.ones(source.size, dtype=np.int8), *size)
        self.weighted = graph.get("edge_weight") is not None
        self._weighed = self._counted
        if self.weighted:
            weight = graph.edge_weight.double().numpy()
            self._weighed = _KnownEdges(source, target, weight, *size)

    def part(
        self, x: Tensor, edge_index: Tensor, hops: int | None, edge_weight: Tensor | None = None
    ) -> Data:
        """The new nodes with everything around them.

        Args:
            x: Features of the new nodes, ``[M, F]``.
            edge_index: New edges by rows of the joined graph, ``[2, E]``. Both ends may be known.
            hops: How many hops around the new nodes to take; None takes the whole joined graph.
            edge_weight: Weights of the new edges, ``[E]``, where the graph has weights.

        Returns:
            A graph with ``x``, ``edge_index`` and ``edge_weight`` where there are weights;
            ``wanted``, the rows of the new nodes; and ``degree``, ``out_degree`` and ``neighbors``
            of its nodes in the joined graph, sums of weights where there are any.
        """
        total = self.num_nodes + x.size(0)
        joined, weight = merged_edges(edge_index, edge_weight, None, total, self.directed)[:2]
        added, values = self._not_there(joined, weight)
        kept = np.arange(total) if hops is None else self._within(hops, added, total)
        known, place = kept[kept < self.num_nodes], np.full(total, -1)
        place[kept] = np.arange(len(kept))
        edges, weights = self._weighed.among(known, place, added, values)
        part = Data(
            x=torch.cat([self.graph.x[torch.from_numpy(known)], x]),
            edge_index=edges,
            wanted=torch.arange(len(known), len(kept)),
            **self._weighed.degrees(known, place, added, values),
        )
        if self.weighted:
            part.edge_weight = weights.to(self.graph.edge_weight.dtype)
        if self._structure is not None:
            ones = np.ones(added.shape[1], dtype=np.int8)
            counts = self._counted.degrees(known, place, added, ones)
            names = {"in": "degree", "out": "out_degree", "both": "neighbors"}
            sides = {side: counts[names[side]] for side in self._structure["sides"]}
            made, _ = degree_features(sides)
            part.x[:, -made_width(self._structure) :] = torch.from_numpy(made)
        return part

    def _not_there(self, joined: Tensor, weight: Tensor | None) -> tuple[_RowNumbers, _Values]:
        """New edges that the known graph does not have, and the weight of each."""
        edges = joined.numpy()
        old = self._weighed.value_of(edges)
        values = np.ones_like(old) if weight is None else weight.double().numpy()
        other = (old != 0) & (old != values)
        if other.any():
            (source, target), first = edges[:, other][:, 0], np.flatnonzero(other)[0]
            names = {row: name for name, row in self.rows.items() if row in (source, target)}
            raise DataError(
                f"new edges: the graph has the edge from {names[source]} to {names[target]} "
                f"already, with the weight {old[first]:g} (got {values[first]:g})"
            )
        return edges[:, old == 0], values[old == 0]

    def _within(self, hops: int, added: _RowNumbers, total: int) -> _RowNumbers:
        """The new nodes and all within some hops of them, in any direction, sorted."""
        seen = np.zeros(total, dtype=bool)
        border = np.arange(self.num_nodes, total)
        seen[border] = True
        for _ in range(hops):
            on_border = np.zeros(total, dtype=bool)
            on_border[border] = True
            near = self._counted.near[border[border < self.num_nodes]].indices
            met = on_border[added]
            reached = np.concatenate([near, added[1, met[0]], added[0, met[1]]])
            border = np.unique(reached[~seen[reached]])
            if not border.size:
                break
            seen[border] = True
        return np.flatnonzero(seen)
