"""Ollivier-Ricci curvature of edges, on the graph and under learned distances.

Exact optimal transport by POT's network simplex (``pip install argnn[baselines]``). These
describe a finished geometry: they are computed in float64 and carry no gradient.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from argnn.functional.metric import geodesic_distance
from argnn.functional.neighborhood import Neighborhood, neighborhood

Cost = Callable[[int, Tensor, Tensor], Tensor]


@torch.no_grad()
def ollivier_ricci(edge_index: Tensor, num_nodes: int, alpha: float = 0.5) -> Tensor:
    r"""Ollivier-Ricci curvature of every edge of the undirected graph, ``[E]`` (:eq:`ollivier`).

    .. math:: \kappa_{ij} = 1 - W_1(\mu_i, \mu_j) / d(i, j)

    with the lazy measure :math:`\mu_i` that keeps mass :math:`\alpha` at :math:`i` and spreads
    the rest evenly over its neighbours, and hop distances. Directions and duplicates do not
    matter; the curvature of a self-loop is not defined and is NaN.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        alpha: Laziness in [0, 1).

    Example:
        >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> ollivier_ricci(triangle, 3).tolist()
        [0.75, 0.75, 0.75]
    """
    both = neighborhood(edge_index, num_nodes).relation("undirected")
    adjacency = _neighbor_sets(both)

    def hops(_: int, first: Tensor, second: Tensor) -> Tensor:
        rows = [[_hop_distance(u, v, adjacency) for v in second.tolist()] for u in first.tolist()]
        return torch.tensor(rows, dtype=torch.float64)

    ones = torch.ones(edge_index.size(1), dtype=torch.float64)
    return _curvature(edge_index, both, hops, ones, alpha)


@torch.no_grad()
def learned_ollivier_ricci(h: Tensor, g: Tensor, edge_index: Tensor, alpha: float = 0.5) -> Tensor:
    r"""Ollivier-Ricci curvature under the learned metric of the target, ``[E]``.

    .. math::
        \kappa^{\mathbf{G}}_{ij} =
        1 - W_1^{\mathbf{G}_i}(\mu_i, \mu_j) / d_{\mathbf{G}_i}(\mathbf{h}_i, \mathbf{h}_j)

    (:eq:`learned_ollivier`). The ground cost between two supporting nodes is their distance
    under the metric of node :math:`i`, the target of the edge, so that numerator and
    denominator share one geometry; the paper leaves this open. Where both ends have equal
    features the curvature is not defined and is NaN.

    Args:
        h: Node features, ``[N, D]``.
        g: Metric diagonals, ``[N, D]``.
        edge_index: Source :math:`j` and target :math:`i` of each edge, ``[2, E]``.
        alpha: Laziness in [0, 1).
    """
    both = neighborhood(edge_index, h.size(0)).relation("undirected")
    points, metric = h.double().cpu(), g.double().cpu()
    source, target = edge_index.cpu()

    def geodesics(center: int, first: Tensor, second: Tensor) -> Tensor:
        return geodesic_distance(
            points[first].unsqueeze(1), points[second].unsqueeze(0), metric[center]
        )

    length = geodesic_distance(points[source], points[target], metric[target])
    return _curvature(edge_index, both, geodesics, length, alpha)


def _curvature(
    edge_index: Tensor, both: Neighborhood, cost: Cost, length: Tensor, alpha: float
) -> Tensor:
    if not 0 <= alpha < 1:
        raise ValueError(f"alpha must be in [0, 1) (got {alpha})")
    neighbors = [torch.tensor(sorted(near), dtype=torch.int64) for near in _neighbor_sets(both)]
    curvature = torch.full((edge_index.size(1),), torch.nan, dtype=torch.float64)
    for edge, (j, i) in enumerate(edge_index.t().tolist()):
        if i != j and length[edge] > 0:
            transport = _transport(i, j, neighbors, cost, alpha)
            curvature[edge] = 1 - transport / length[edge]
    return curvature.to(edge_index.device)


def _transport(i: int, j: int, neighbors: list[Tensor], cost: Cost, alpha: float) -> float:
    """Cost of moving the lazy measure of ``i`` to that of ``j``."""
    ot = _optimal_transport()
    surplus: dict[int, float] = {}
    for sign, node in ((1.0, i), (-1.0, j)):
        surplus[node] = surplus.get(node, 0.0) + sign * alpha
        share = sign * (1 - alpha) / neighbors[node].numel()
        for near in neighbors[node].tolist():
            surplus[near] = surplus.get(near, 0.0) + share
    # Mass that both measures put on a node need not move, so only the difference is shipped.
    send = {node: mass for node, mass in surplus.items() if mass > 1e-15}
    receive = {node: -mass for node, mass in surplus.items() if mass < -1e-15}
    if not send:
        return 0.0
    ground = cost(i, torch.tensor(list(send)), torch.tensor(list(receive)))
    supply = torch.tensor(list(send.values()), dtype=torch.float64)
    demand = torch.tensor(list(receive.values()), dtype=torch.float64)
    total = float(supply.sum())
    plan_cost = ot.emd2(
        (supply / total).numpy(),
        (demand / demand.sum()).numpy(),
        ground.numpy(),
    )
    return total * float(plan_cost)


def _optimal_transport():  # type: ignore[no-untyped-def]
    try:
        import ot
    except ImportError as error:
        raise ImportError(
            "Ollivier-Ricci curvature needs POT: pip install argnn[baselines]"
        ) from error
    return ot


def _neighbor_sets(both: Neighborhood) -> list[set[int]]:
    sets: list[set[int]] = [set() for _ in range(both.num_nodes)]
    for j, i in both.edge_index.t().tolist():
        sets[i].add(j)
    return sets


def _hop_distance(u: int, v: int, adjacency: list[set[int]]) -> float:
    """Hops between supporting nodes of one edge's measures, which are at most three apart."""
    if u == v:
        return 0.0
    if v in adjacency[u]:
        return 1.0
    return 2.0 if not adjacency[u].isdisjoint(adjacency[v]) else 3.0
