"""Cut parts out of a graph: some nodes, the nodes around them, and the edges among these."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from argnn.data.adjacency import Adjacency
from argnn.functional.graph_part import Exchange, GraphPart, Place, WholeDegrees
from argnn.functional.precision import is_wide, moved

_Numbers = NDArray[np.int64]


class GraphParts:
    """Gives parts of one graph, with features ``x`` ``[N, F]``, on a device.

    Only what is asked for is read: features and edges may be files on the disk.
    """

    def __init__(self, x: Tensor, adjacency: Adjacency, device: str | torch.device = "cpu") -> None:
        self.x, self.adjacency, self.device = x, adjacency, torch.device(device)
        # Number of each node in the part that is being cut; -1 for all others.
        kind = np.int32 if adjacency.num_edges < 2**31 else np.int64
        self._number: NDArray[Any] = np.full(adjacency.num_nodes, -1, dtype=kind)

    @property
    def num_nodes(self) -> int:
        """Number of nodes of the whole graph."""
        return self.adjacency.num_nodes

    @cached_property
    def all_nodes(self) -> GraphPart:
        """All nodes without edges, as far as degrees and descriptors tell about the graph."""
        nodes, none = torch.arange(self.num_nodes), torch.empty(2, 0, dtype=torch.int64)
        return GraphPart(none, self.adjacency.degrees, None, self._place(nodes, self.num_nodes))

    def features(self, part: GraphPart) -> Tensor:
        """Features of the nodes of a part, ``[M, F]``."""
        assert part.place is not None
        return self.x[part.place.nodes.cpu()].to(self.device)

    def around(self, own: _Numbers, hops: int) -> GraphPart:
        """Some nodes, sorted, and all within some hops in any direction, with all edges among them.

        With at least one hop, degrees are those of the whole graph, and so are sums over the
        neighbours of own nodes. Without, degrees count the edges of the part: edges that lead out
        of it are left out, as if they did not exist.
        """
        nodes, border = own, own
        self._number[own] = 0
        for _ in range(hops):
            near = self.adjacency.both.of(border).other
            border = np.unique(near[self._number[near] < 0]).astype(np.int64)
            self._number[border] = 0
            nodes = np.concatenate([nodes, border])
        self._number[nodes] = np.arange(len(nodes))
        rows = self.adjacency.into.of(nodes)
        inside = self._number[rows.other] >= 0
        edges = np.stack([self._number[rows.other[inside]], rows.node[inside]])
        weight = None if rows.weight is None else rows.weight[inside]
        self._number[nodes] = -1
        place = self._place(torch.from_numpy(nodes), len(own))
        return self._part(place, edges, weight, whole_degrees=hops > 0)

    def halo_of(self, own: _Numbers) -> _Numbers:
        """The nodes outside of some nodes that are neighbours of them, sorted."""
        near = self.adjacency.both.of(own).other
        place = np.arange(len(near), dtype=self._number.dtype)
        self._number[near] = place  # of several equal ones, the last is kept
        self._number[own] = -1
        found = near[self._number[near] == place].astype(np.int64)
        self._number[near] = -1
        return np.sort(found)

    def with_halo(
        self,
        own: _Numbers,
        halo: _Numbers,
        exchange: Exchange | None,
        *,
        halo_metrics: bool = True,
    ) -> GraphPart:
        """Some nodes, sorted, and those of :meth:`halo_of`, with the edges of the own nodes only.

        With an exchange, layers compute the rows of own nodes; those of the halo come from it.
        ``halo_metrics`` says whether penalties read the metrics of the halo.
        """
        nodes = np.concatenate([own, halo])
        self._number[nodes] = np.arange(len(nodes))
        into = self.adjacency.into.of(own)
        out = into if self.adjacency.out is None else self.adjacency.out.of(own)
        outside = self._number[out.other] >= len(own)
        edges = np.concatenate(
            [
                np.stack([self._number[into.other], into.node]),
                np.stack([out.node[outside], self._number[out.other[outside]]]),
            ],
            axis=1,
        )
        weight = None
        if into.weight is not None and out.weight is not None:
            weight = np.concatenate([into.weight, out.weight[outside]])
        self._number[nodes] = -1
        place = self._place(torch.from_numpy(nodes), len(own), exchange, halo_metrics)
        return self._part(place, edges, weight)

    def _part(
        self,
        place: Place,
        edges: NDArray[Any],
        weight: NDArray[np.float32] | None,
        *,
        whole_degrees: bool = True,
    ) -> GraphPart:
        rows = place.nodes.cpu()
        edge_index = torch.from_numpy(edges.astype(np.int64))
        edge_weight = None if weight is None else torch.from_numpy(weight)
        if whole_degrees:
            degrees = WholeDegrees(*(degree[rows] for degree in self.adjacency.degrees))
        else:
            degrees = _degrees_of(edge_index, edge_weight, len(rows))
        return GraphPart(
            edge_index.to(self.device),
            moved(degrees, self.device),
            None if edge_weight is None else edge_weight.to(self.device),
            place,
            is_simple=self.adjacency.out is None,
        )

    def _place(
        self,
        nodes: Tensor,
        num_own: int,
        exchange: Exchange | None = None,
        halo_metrics: bool = True,
    ) -> Place:
        adjacency, device = self.adjacency, self.device
        return Place(
            nodes=nodes.to(device),
            num_own=num_own,
            whole_nodes=adjacency.num_nodes,
            whole_pairs=adjacency.num_pairs,
            describe=lambda: adjacency.descriptor[nodes].to(device if is_wide(device) else "cpu"),
            exchange=exchange,
            halo_metrics=halo_metrics,
        )


def _degrees_of(edge_index: Tensor, weight: Tensor | None, num_nodes: int) -> WholeDegrees:
    """Degrees as far as the edges of a part tell."""
    if not edge_index.size(1):
        none = torch.zeros(num_nodes, dtype=torch.int64 if weight is None else torch.float64)
        return WholeDegrees(none, none, none)
    return Adjacency.from_edges(edge_index, num_nodes, weight).degrees
