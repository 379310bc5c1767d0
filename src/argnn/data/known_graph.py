"""A known graph that new nodes are joined to, and the part of it that they depend on."""

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import arranged_edges
from argnn.data.node_ids import rows_by_id
from argnn.data.structural_features import degree_features, made_width
from argnn.errors import ConfigError

Rows = NDArray[np.int64]


class KnownGraph:
    """A graph that ``load`` gave, prepared once so that each request costs only its own part.

    In the joined graph, the known nodes keep their row numbers, and new ones come after them.

    Args:
        graph: Has neither edge weights nor features that belong to its own nodes.
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
        if graph.get("edge_weight") is not None:
            raise ConfigError("new nodes cannot be joined to a graph with edge weights")
        source, target = graph.edge_index.numpy()
        shape, ones = (self.num_nodes, self.num_nodes), np.ones(source.size, dtype=np.int8)
        # Row: where an edge begins. Column: where it ends.
        self._edges = sparse.csr_array((ones, (source, target)), shape=shape)
        self._near = self._edges
        if self.directed:
            self._near = self._edges.maximum(self._edges.T).tocsr()
        self._into = np.bincount(target, minlength=self.num_nodes)
        self._out, self._neighbors = np.diff(self._edges.indptr), np.diff(self._near.indptr)

    def part(self, x: Tensor, edge_index: Tensor, hops: int | None) -> Data:
        """The new nodes with everything around them.

        Args:
            x: Features of the new nodes, ``[M, F]``.
            edge_index: New edges by rows of the joined graph, ``[2, E]``. Both ends may be known.
            hops: How many hops around the new nodes to take; None takes the whole joined graph.

        Returns:
            A graph with ``x`` and ``edge_index``; ``wanted``, the rows of the new nodes; and
            ``degree``, ``out_degree`` and ``neighbors`` of its nodes in the joined graph.
        """
        total = self.num_nodes + x.size(0)
        joined = arranged_edges(edge_index, total, self.directed).numpy()
        added = joined[:, ~self._has(self._edges, joined)]
        kept = np.arange(total) if hops is None else self._within(hops, added, total)
        known, place = kept[kept < self.num_nodes], np.full(total, -1)
        place[kept] = np.arange(len(kept))
        part = Data(
            x=torch.cat([self.graph.x[torch.from_numpy(known)], x]),
            edge_index=self._edges_among(known, place, added),
            wanted=torch.arange(len(known), len(kept)),
            **self._degrees(known, place, added),
        )
        if self._structure is not None:
            sides = {"in": part.degree, "out": part.out_degree, "both": part.neighbors}
            made, _ = degree_features({side: sides[side] for side in self._structure["sides"]})
            part.x[:, -made_width(self._structure) :] = torch.from_numpy(made)
        return part

    def _has(self, matrix: sparse.csr_array, edges: Rows) -> NDArray[np.bool_]:
        """Which of some edges are in a matrix of the known graph."""
        found: NDArray[np.bool_] = (edges < self.num_nodes).all(axis=0)
        source, target = edges[:, found]
        if source.size:
            found[found] = np.asarray(matrix[source, target]).ravel() != 0
        return found

    def _within(self, hops: int, added: Rows, total: int) -> Rows:
        """The new nodes and all within some hops of them, in any direction, sorted."""
        seen = np.zeros(total, dtype=bool)
        border = np.arange(self.num_nodes, total)
        seen[border] = True
        for _ in range(hops):
            on_border = np.zeros(total, dtype=bool)
            on_border[border] = True
            near = self._near[border[border < self.num_nodes]].indices
            met = on_border[added]
            reached = np.concatenate([near, added[1, met[0]], added[0, met[1]]])
            border = np.unique(reached[~seen[reached]])
            if not border.size:
                break
            seen[border] = True
        return np.flatnonzero(seen)

    def _edges_among(self, known: Rows, place: Rows, added: Rows) -> Tensor:
        """All edges among the kept nodes, by their place among them, ``[2, E]``."""
        old = self._edges[known][:, known].tocoo()
        new = place[added]  # an edge between two known nodes may be far away
        new = new[:, (new >= 0).all(axis=0)]
        return torch.from_numpy(np.concatenate([np.stack(old.coords), new], axis=1, dtype=np.int64))

    def _degrees(self, known: Rows, place: Rows, added: Rows) -> dict[str, Tensor]:
        """Degrees of the kept nodes in the joined graph, by name."""
        pairs = np.unique(np.sort(added, axis=0), axis=1)
        pairs = pairs[:, ~self._has(self._near, pairs)]
        degrees, new = {}, np.zeros(int(place[-1]) + 1 - len(known), dtype=np.int64)
        for name, before, more in (
            ("degree", self._into, added[1]),
            ("out_degree", self._out, added[0]),
            ("neighbors", self._neighbors, pairs.ravel()),
        ):
            counts = np.concatenate([before[known], new])
            ends = place[more]
            np.add.at(counts, ends[ends >= 0], 1)
            degrees[name] = torch.from_numpy(counts)
        return degrees
