"""A part of a graph whose nodes keep what they have in the whole graph."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from argnn.functional.neighborhood import Neighborhood


class WholeDegrees(NamedTuple):
    """Degrees of some nodes in the whole graph, ``[N]`` each; with weights, sums of weights.

    Attributes:
        into: Edges into each node.
        out: Edges out of each node.
        both: Neighbours of each node, in any direction.
    """

    into: Tensor
    out: Tensor
    both: Tensor


class Exchange(Protocol):
    """How a part gets what other processes compute."""

    def halo(self, own: Tensor) -> Tensor:
        """Rows of the halo from the processes that own them, ``[M - num_own, D]``."""

    def total(self, value: Tensor) -> Tensor:
        """Sum of a tensor over all processes."""


@dataclass(frozen=True)
class Place:
    """Where a part lies in its graph.

    Attributes:
        nodes: Number of each node of the part in the whole graph, ``[M]``; own nodes come first.
        num_own: How many nodes are own nodes. The others are the halo: own nodes read them.
        whole_nodes: Number of nodes of the whole graph.
        whole_pairs: Number of its pairs of neighbours, or the sum of their weights.
        describe: Gives the structural descriptor of the nodes in the whole graph, ``[M, 5]``.
        exchange: How rows of the halo come from other processes; None if they are computed here.
            With it, a layer computes the rows of own nodes only.
        halo_metrics: Whether penalties read the metrics of the halo.
    """

    nodes: Tensor
    num_own: int
    whole_nodes: int
    whole_pairs: float
    describe: Callable[[], Tensor]
    exchange: Exchange | None = None
    halo_metrics: bool = True


class GraphPart(Neighborhood):
    """Some nodes of a graph and edges among them, weighed as in the whole graph.

    A node at the border lacks some of its edges, and yet counts all of them. With a
    :class:`Place`, energies are the share of the part's own nodes in those of the whole graph: the
    shares of all parts add up to the whole.

    Args:
        edge_index: Source and target of each edge in the part, ``[2, E]``.
        degrees: WholeDegrees of the nodes in the whole graph.
        edge_weight: Weight of each edge, ``[E]``.
        place: Where the part lies; None if only degrees are known.
        is_simple: Whether the edges of the whole graph have no directions; None if that is not
            known, and has to be found out.
    """

    @torch.inference_mode(False)
    def __init__(
        self,
        edge_index: Tensor,
        degrees: WholeDegrees,
        edge_weight: Tensor | None = None,
        place: Place | None = None,
        *,
        is_simple: bool | None = None,
    ) -> None:
        self._set(edge_index, degrees.into, degrees.out, edge_weight, place)
        if is_simple is None:
            # Directions may be missing in the whole graph, or only by chance in this part of it.
            no_directions = all(torch.equal(side, degrees.both) for side in degrees[:2])
            is_simple = self.is_simple and no_directions
        self.is_simple = is_simple
        if not self.is_simple:
            pair_weight = None if self.pair_weight is None else self.pair_weight.repeat(2)
            pairs = torch.cat([self.pairs, self.pairs.flip(0)], dim=1)
            turned = self.edge_index.flip(0)
            both = self._related(pairs, degrees.both, degrees.both, pair_weight)
            out = self._related(turned, degrees.out, degrees.into, self.weight)
            self.derived |= {("relation", "undirected"): both, ("relation", "out"): out}
            if self.on_cpu is not None:
                self.on_cpu.derived |= {
                    ("relation", "undirected"): both.on_cpu,
                    ("relation", "out"): out.on_cpu,
                }
        if self.on_cpu is not None:
            self.on_cpu.is_simple = self.is_simple

    def _set(
        self,
        edge_index: Tensor,
        into: Tensor,
        out: Tensor,
        edge_weight: Tensor | None,
        place: Place | None,
    ) -> None:
        super().__init__(edge_index, into.numel(), edge_weight)
        self.place = place
        if self.on_cpu is not None:
            weight = None if edge_weight is None else edge_weight.cpu()
            on_cpu = GraphPart.__new__(GraphPart)
            on_cpu._set(edge_index.cpu(), into.cpu(), out.cpu(), weight, place)
            self._copy(on_cpu, edge_index.device)
        elif edge_weight is None:
            self.degree, self.out_degree = into, out
        else:
            # Also where all weights of this part are one.
            self.weight = edge_weight.double()[self.is_neighbor]
            self.weighted_degree, self.weighted_out_degree = into.double(), out.double()

    def _related(
        self, edge_index: Tensor, into: Tensor, out: Tensor, edge_weight: Tensor | None
    ) -> "GraphPart":
        made = GraphPart.__new__(GraphPart)
        made._set(edge_index, into, out, edge_weight, self.place)
        made.is_simple = False
        return made

    @property
    def num_own(self) -> int:
        """Number of own nodes."""
        return self.num_nodes if self.place is None else self.place.num_own

    @property
    def whole_nodes(self) -> int:
        """Number of nodes of the whole graph; of the part, if its place is not known."""
        return self.num_nodes if self.place is None else self.place.whole_nodes

    @property
    def pair_total(self) -> float | Tensor:
        """As of the whole graph, if its place is known."""
        return super().pair_total if self.place is None else self.place.whole_pairs

    def complete(self, h: Tensor) -> Tensor:
        """Rows of own nodes with the rows of the halo that other processes have computed."""
        exchange = None if self.place is None else self.place.exchange
        return h if exchange is None else torch.cat([h, exchange.halo(h)])

    @property
    def own_only(self) -> bool:
        """Whether layers compute own rows only, because those of the halo come from elsewhere."""
        return self.place is not None and self.place.exchange is not None

    def total(self, value: Tensor) -> Tensor:
        """Sum over the parts of all processes."""
        exchange = None if self.place is None else self.place.exchange
        return value if exchange is None else exchange.total(value)

    @cached_property
    @torch.inference_mode(False)
    def own_pairs(self) -> Neighborhood:
        """The pairs of neighbours, each weighed by how much of it belongs to own nodes.

        A pair belongs to its two nodes, half to each.
        """
        both = self.relation("undirected")
        is_own = torch.arange(self.num_nodes, device=both.source.device) < self.num_own
        share = (is_own[both.source].double() + is_own[both.target].double()) / 2
        weight = share if both.weight is None else share * both.weight
        return Neighborhood(both.edge_index, self.num_nodes, weight)


def own_rows(h: Tensor, hood: Neighborhood) -> Tensor:
    """The rows of own nodes: all rows, if the edges are not those of a part."""
    return h[: hood.num_own] if isinstance(hood, GraphPart) else h


def computed_rows(h: Tensor, hood: Neighborhood) -> Tensor:
    """The rows that a layer computes: not those of a halo that comes from other processes."""
    return h[: hood.num_own] if isinstance(hood, GraphPart) and hood.own_only else h


def with_halo_metrics(g: Tensor, hood: Neighborhood, on_edges: bool) -> Tensor:
    """A metric with rows of the halo, if messages or penalties read them.

    Args:
        g: The metric of the computed rows, ``[N, D]``.
        hood: The edges.
        on_edges: Whether messages read the metric of each edge's nodes.
    """
    unread = isinstance(hood, GraphPart) and hood.place is not None and not hood.place.halo_metrics
    return g if unread and not on_edges else hood.complete(g)


def whole_size(hood: Neighborhood) -> int:
    """Number of nodes of the whole graph."""
    return hood.whole_nodes if isinstance(hood, GraphPart) else hood.num_nodes
