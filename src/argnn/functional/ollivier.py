"""Ollivier-Ricci curvature of edges, on the graph and under learned distances.

Transport is solved exactly: on the graph by :mod:`argnn.kernels.transport`; under learned
distances, and on very small graphs, by POT's network simplex (``pip install argnn[baselines]``).
Curvatures are computed in float64 and have no gradient.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from argnn.errors import ConfigError, package_needed, require
from argnn.functional.factored import metric_distance
from argnn.functional.neighborhood import Edges, Neighborhood, neighborhood
from argnn.functional.structure import shared_neighbors
from argnn.kernels.choice import current_mode, plain_path
from argnn.telling import TellCount

Cost = Callable[[int, Tensor, Tensor], Tensor]

#: How the curvature of a pair is found: ``"exact"``, as the middle of its ``"bounds"``, or
#: ``"auto"``: exact, except for pairs whose transport is larger than :data:`MAX_CELLS`.
CURVATURE_METHODS = ("auto", "exact", "bounds")
#: Largest transport problem that ``"auto"`` solves: nodes of one measure times nodes of the other,
#: such as two nodes with four thousand neighbours. No benchmark graph has a larger one.
MAX_CELLS = 2**24
#: Number of cells of all pairs below which POT is faster than to compile the kernel.
_SMALL = 2**17


@plain_path
@torch.no_grad()
def ollivier_ricci(
    edge_index: Edges, num_nodes: int, alpha: float = 0.5, *, method: str = "exact"
) -> Tensor:
    r"""Ollivier-Ricci curvature of every edge of the undirected graph, ``[E]`` (:eq:`ollivier`).

    .. math:: \kappa_{ij} = 1 - W_1(\mu_i, \mu_j) / d(i, j)

    with the lazy measure :math:`\mu_i` that keeps mass :math:`\alpha` at :math:`i` and spreads
    the rest over its neighbours, evenly or in proportion to the weights of the edges, and hop
    distances. Directions and duplicates do not matter; the curvature of a self-loop, or of an edge
    of weight zero, is not defined and is NaN.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        alpha: Laziness in [0, 1).
        method: One of :data:`CURVATURE_METHODS`.

    Example:
        >>> triangle = torch.tensor([[0, 1, 2], [1, 2, 0]])
        >>> ollivier_ricci(triangle, 3).tolist()
        [0.75, 0.75, 0.75]
    """
    return _by_edge(edge_index, num_nodes, pair_curvature(edge_index, num_nodes, alpha, method))


@plain_path
@torch.no_grad()
def node_curvature(
    edge_index: Edges, num_nodes: int, alpha: float = 0.5, *, method: str = "exact"
) -> Tensor:
    """Mean Ollivier-Ricci curvature of the edges at each node, zero where there is none, ``[N]``.

    A weighted mean where edges have weights. See :func:`ollivier_ricci`.

    Example:
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> node_curvature(path, 4).tolist()
        [0.5, 0.5, 0.5, 0.0]
    """

    def mean(hood: Neighborhood) -> Tensor:
        # On the CPU, since the order of sums on a GPU may change.
        values = pair_curvature(hood, num_nodes, alpha, method).cpu()
        pairs, weight = hood.pairs.cpu(), hood.pair_weight
        total, count = values.new_zeros(num_nodes), values.new_zeros(num_nodes)
        weight = torch.ones_like(values) if weight is None else weight.cpu()
        for ends in pairs:
            total.index_add_(0, ends, values * weight)
            count.index_add_(0, ends, weight)
        return (total / torch.where(count > 0, count, 1.0)).to(hood.source.device)

    hood = neighborhood(edge_index, num_nodes)
    return hood.prepared(f"{_key(alpha, method)}, by node", mean).clone()


@plain_path
@torch.no_grad()
def ollivier_ricci_bounds(
    edge_index: Edges, num_nodes: int, alpha: float = 0.5
) -> tuple[Tensor, Tensor]:
    r"""Bounds of :func:`ollivier_ricci` from degrees and triangles alone, ``[E]`` each.

    With degrees :math:`a \le b` of the ends and :math:`T` triangles on the edge. Without laziness
    they are those of Jost and Liu,

    .. math::
        T/b - (1 - 1/a - 1/b - T/a)_+ - (1 - 1/a - 1/b - T/b)_+ \le \kappa_0 \le T/b ,

    and for :math:`\alpha \ge 1/2`, by the same arguments on the lazy measures,

    .. math::
        (1 - \alpha)(2/a + 2/b - 2 + T/a + 2T/b) \le \kappa_\alpha \le (1 - \alpha)(2 + T)/b .

    Between the two, since :math:`\kappa_\alpha / (1 - \alpha)` does not fall with
    :math:`\alpha`, the lower bound is that of 0 and the upper that of 1/2, both scaled by
    :math:`1 - \alpha`.

    There are none for edges with weights.

    Args:
        edge_index: Source and target of each edge, ``[2, E]``.
        num_nodes: Number of nodes.
        alpha: Laziness in [0, 1).

    Example:
        >>> square = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])  # the curvature is 0.5
        >>> lower, upper = ollivier_ricci_bounds(square, 4)
        >>> lower.tolist(), upper.tolist()
        ([0.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.5, 0.5])
    """
    _check_alpha(alpha)
    lower, upper = _pair_bounds(neighborhood(edge_index, num_nodes).relation("undirected"), alpha)
    return _by_edge(edge_index, num_nodes, lower), _by_edge(edge_index, num_nodes, upper)


@torch.no_grad()
def learned_ollivier_ricci(h: Tensor, g: Tensor, edge_index: Edges, alpha: float = 0.5) -> Tensor:
    r"""Ollivier-Ricci curvature under the learned metric of the target, ``[E]``.

    .. math::
        \kappa^{\mathbf{G}}_{ij} =
        1 - W_1^{\mathbf{G}_i}(\mu_i, \mu_j) / d_{\mathbf{G}_i}(\mathbf{h}_i, \mathbf{h}_j)

    (:eq:`learned_ollivier`). The ground cost between two supporting nodes is their distance
    under the metric of node :math:`i`, the target of the edge, so that numerator and
    denominator share one geometry; the paper leaves this open. Where both ends have equal
    features, at self-loops and for weights of zero the curvature is not defined and is NaN.

    Args:
        h: Node features, ``[N, D]``.
        g: Metrics, ``[N, D]`` or factored, ``[N, 1 + R, D]``.
        edge_index: Source :math:`j` and target :math:`i` of each edge, ``[2, E]``.
        alpha: Laziness in [0, 1).
    """
    _check_alpha(alpha)
    hood = neighborhood(edge_index, h.size(0))
    points, metric = h.cpu().double(), g.cpu().double()
    source, target = hood.edge_index.cpu()

    def geodesics(center: int, first: Tensor, second: Tensor) -> Tensor:
        return metric_distance(
            points[first].unsqueeze(1), points[second].unsqueeze(0), metric[center][None, None]
        )

    length = metric_distance(points[source], points[target], metric[target])
    walks = _walks(hood.relation("undirected"))
    found = torch.full((hood.num_edges,), torch.nan, dtype=torch.float64)
    for edge, (j, i) in enumerate(hood.edge_index.t().tolist()):
        if length[edge] > 0:
            found[edge] = 1 - _transport(i, j, walks, geodesics, alpha) / length[edge]
    curvature = torch.full((hood.is_neighbor.numel(),), torch.nan, dtype=torch.float64)
    curvature[hood.is_neighbor.cpu()] = found
    return curvature.to(hood.source.device)


# --- pairs ------------------------------------------------------------------------------------


@torch.no_grad()
def pair_curvature(
    edge_index: Edges,
    num_nodes: int,
    alpha: float = 0.5,
    method: str = "exact",
    on_progress: TellCount | None = None,
) -> Tensor:
    """Curvature of each pair in :attr:`Neighborhood.pairs`, ``[P]``.

    Computed once per ``edge_index`` and kept with it, see :func:`neighborhood`.

    Arguments as for :func:`ollivier_ricci`; ``on_progress`` is called now and then.
    """

    def found(hood: Neighborhood) -> Tensor:
        return _pair_curvature(hood, alpha, method, on_progress).to(hood.source.device)

    return neighborhood(edge_index, num_nodes).prepared(_key(alpha, method), found)


def keep_pair_curvature(
    edge_index: Edges, num_nodes: int, values: Tensor, alpha: float = 0.5, method: str = "exact"
) -> None:
    """Make :func:`pair_curvature` return these values, from an earlier computation."""
    hood = neighborhood(edge_index, num_nodes)
    if values.shape != (hood.num_pairs,):
        raise ValueError(f"values must be one per pair, {hood.num_pairs} (got {values.numel()})")
    hood.derived[_key(alpha, method)] = values.to(hood.source.device, torch.float64)
    hood.derived.pop(f"{_key(alpha, method)}, by node", None)


def is_estimated(edge_index: Edges, num_nodes: int, method: str) -> Tensor:
    """Whether ``method`` estimates a pair by the middle of its bounds, ``[P]``."""
    _check_method(method)
    both = neighborhood(edge_index, num_nodes).relation("undirected")
    if method == "auto" and both.weight is None:
        return _cells(both) > MAX_CELLS
    return torch.full((both.num_pairs,), method == "bounds", device=both.source.device)


def _pair_curvature(
    hood: Neighborhood, alpha: float, method: str, on_progress: TellCount | None
) -> Tensor:
    both = hood.relation("undirected")
    weight = None if both.weight is None else both.weight.detach().cpu()
    both = Neighborhood(both.edge_index.cpu(), hood.num_nodes, weight)
    estimated = is_estimated(both, both.num_nodes, method)
    curvature = torch.empty(both.num_pairs, dtype=torch.float64)
    if estimated.any():
        lower, upper = _pair_bounds(both, alpha)
        curvature[estimated] = (lower + upper)[estimated] / 2
    pairs = both.pairs[:, ~estimated]
    if _is_plain(int(_cells(both)[~estimated].sum())):
        curvature[~estimated] = 1 - _plain_costs(both, pairs, alpha)
    else:
        from argnn.kernels.transport import transport_costs  # numba takes a while to import

        threads = torch.get_num_threads()
        costs = transport_costs(both.csr, pairs, alpha, threads, on_progress)
        curvature[~estimated] = 1 - costs
    return curvature


def _is_plain(cells: int) -> bool:
    """Whether POT solves the problems, which have so many cells in all."""
    if current_mode() != "auto":
        return current_mode() == "plain"
    return cells < _SMALL and _has_optimal_transport()


def _pair_bounds(both: Neighborhood, alpha: float) -> tuple[Tensor, Tensor]:
    if both.weight is not None:
        raise ConfigError("curvatures of weighted edges have no bounds: use 'auto' or 'exact'")
    ends = both.degree[both.pairs].double()
    a, b = ends.amin(0), ends.amax(0)
    triangles = shared_neighbors(both).double()
    if alpha >= 0.5:
        lower = 2 / a + 2 / b - 2 + triangles / a + 2 * triangles / b
    else:
        free = 1 - 1 / a - 1 / b
        lower = (
            triangles / b
            - (free - triangles / a).clamp_min(0)
            - (free - triangles / b).clamp_min(0)
        )
    upper = (triangles if alpha == 0 else 2 + triangles) / b
    return (1 - alpha) * lower, (1 - alpha) * upper


def _cells(both: Neighborhood) -> Tensor:
    """Size of the transport problem of each pair."""
    return (both.degree[both.pairs] + 1).prod(0)


def _by_edge(edge_index: Edges, num_nodes: int, values: Tensor) -> Tensor:
    """The value of each edge's pair, NaN at self-loops and where the weight is zero."""
    hood = neighborhood(edge_index, num_nodes)
    low, high = hood.edge_index.amin(0), hood.edge_index.amax(0)
    known = hood.pairs[0] * num_nodes + hood.pairs[1]
    out = values.new_full((hood.is_neighbor.numel(),), torch.nan)
    out[hood.is_neighbor] = values[torch.searchsorted(known, low * num_nodes + high)]
    return out


def _key(alpha: float, method: str) -> str:
    _check_alpha(alpha)
    _check_method(method)
    return f"{method} curvature of pairs, alpha {alpha!r}"


def _check_alpha(alpha: float) -> None:
    require(0 <= alpha < 1, "alpha", "in [0, 1)", alpha)


def _check_method(method: str) -> None:
    require(method in CURVATURE_METHODS, "method", f"one of {CURVATURE_METHODS}", repr(method))


# --- transport by POT -------------------------------------------------------------------------


def _plain_costs(both: Neighborhood, pairs: Tensor, alpha: float) -> Tensor:
    walks = _walks(both)
    adjacency = [set(walk) for walk in walks]

    def hops(_: int, first: Tensor, second: Tensor) -> Tensor:
        rows = [[_hop_distance(u, v, adjacency) for v in second.tolist()] for u in first.tolist()]
        return torch.tensor(rows, dtype=torch.float64)

    costs = [_transport(i, j, walks, hops, alpha) for i, j in pairs.t().tolist()]
    return torch.tensor(costs, dtype=torch.float64)


def _walks(both: Neighborhood) -> list[dict[int, float]]:
    """The neighbours of every node, in order, with the weights of their edges."""
    weight = both.edge_weight("sum", torch.float64).tolist()
    walks: list[dict[int, float]] = [{} for _ in range(both.num_nodes)]
    for (j, i), of_edge in sorted(zip(both.edge_index.t().tolist(), weight, strict=True)):
        walks[i][j] = of_edge
    return walks


def _transport(i: int, j: int, walks: list[dict[int, float]], cost: Cost, alpha: float) -> float:
    """Cost of moving the lazy measure of ``i`` to that of ``j``."""
    ot = _optimal_transport()
    surplus: dict[int, float] = {}
    for sign, node in ((1.0, i), (-1.0, j)):
        surplus[node] = surplus.get(node, 0.0) + sign * alpha
        total = sum(walks[node].values())
        for near, weight in walks[node].items():
            surplus[near] = surplus.get(near, 0.0) + sign * (1 - alpha) * weight / total
    # Mass that both measures have at a node does not move, so only the difference is transported.
    send = {node: mass for node, mass in surplus.items() if mass > 1e-15}
    receive = {node: -mass for node, mass in surplus.items() if mass < -1e-15}
    if not send:
        return 0.0
    ground = cost(i, torch.tensor(list(send)), torch.tensor(list(receive)))
    supply = torch.tensor(list(send.values()), dtype=torch.float64)
    demand = torch.tensor(list(receive.values()), dtype=torch.float64)
    moved = float(supply.sum())
    plan_cost = ot.emd2((supply / moved).numpy(), (demand / demand.sum()).numpy(), ground.numpy())
    return moved * float(plan_cost)


def _has_optimal_transport() -> bool:
    try:
        _optimal_transport()
    except ImportError:
        return False
    return True


def _optimal_transport():  # type: ignore[no-untyped-def]
    advice = "Ollivier-Ricci curvature needs POT: pip install argnn[baselines]"
    with package_needed(advice, ImportError):
        import ot
    return ot


def _hop_distance(u: int, v: int, adjacency: list[set[int]]) -> float:
    """Hops between two nodes in the measures of one edge: at most three."""
    if u == v:
        return 0.0
    if v in adjacency[u]:
        return 1.0
    return 2.0 if not adjacency[u].isdisjoint(adjacency[v]) else 3.0
