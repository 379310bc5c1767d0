"""The equations of the paper as slow loops over nodes, edges and channels.

Written from ``paper/argnn.tex`` and the specification, not from the package, and it imports
nothing of it. Node tensors are lists of rows ``h[i][k]``, and edges are pairs ``(j, i)`` of a
source and a target. A list of neighbours is a multiset without the node itself.
"""

import itertools
import math
from collections import deque

import networkx
import numpy
from scipy.optimize import linprog

Rows = list[list[float]]
EdgeList = list[tuple[int, int]]

EPS = 1e-12


# -- the graph ------------------------------------------------------------------------------------


def neighbors(edges: EdgeList, num_nodes: int) -> list[list[int]]:
    near = [[] for _ in range(num_nodes)]
    for j, i in edges:
        if j != i:
            near[i].append(j)
    return near


def unordered_pairs(edges: EdgeList) -> list[tuple[int, int]]:
    return sorted({(min(j, i), max(j, i)) for j, i in edges if j != i})


def undirected_sets(edges: EdgeList, num_nodes: int) -> list[set[int]]:
    near = [set() for _ in range(num_nodes)]
    for a, b in unordered_pairs(edges):
        near[a].add(b)
        near[b].add(a)
    return near


def components(edges: EdgeList, num_nodes: int) -> list[list[int]]:
    distance = hop_distances(edges, num_nodes)
    reached = {tuple(sorted(row)) for row in distance}
    return [list(nodes) for nodes in sorted(reached)]


def hop_distances(edges: EdgeList, num_nodes: int) -> list[dict[int, int]]:
    """Shortest paths between all pairs of the undirected graph, by breadth-first search."""
    near = undirected_sets(edges, num_nodes)
    table = []
    for start in range(num_nodes):
        distance = {start: 0}
        queue = deque([start])
        while queue:
            u = queue.popleft()
            for v in near[u]:
                if v not in distance:
                    distance[v] = distance[u] + 1
                    queue.append(v)
        table.append(distance)
    return table


# -- the metric -----------------------------------------------------------------------------------


def inner_product(u: list[float], v: list[float], g: list[float]) -> float:
    total = 0.0
    for k in range(len(g)):
        total += g[k] * u[k] * v[k]
    return total


def norm(u: list[float], g: list[float]) -> float:
    return math.sqrt(inner_product(u, u, g))


def geodesic_distance(x: list[float], y: list[float], g: list[float]) -> float:
    total = 0.0
    for k in range(len(g)):
        total += g[k] * (x[k] - y[k]) ** 2
    return math.sqrt(total)


# -- sums over neighbours -------------------------------------------------------------------------


def neighbor_mean(h: Rows, edges: EdgeList) -> Rows:
    out = []
    for near in neighbors(edges, len(h)):
        row = [0.0] * len(h[0])
        for j in near:
            for k in range(len(row)):
                row[k] += h[j][k] / len(near)
        out.append(row)
    return out


def neighbor_dispersion(h: Rows, edges: EdgeList) -> Rows:
    out = []
    for i, near in enumerate(neighbors(edges, len(h))):
        row = [0.0] * len(h[0])
        for j in near:
            for k in range(len(row)):
                row[k] += (h[j][k] - h[i][k]) ** 2 / len(near)
        out.append(row)
    return out


def edge_weight(edges: EdgeList, num_nodes: int, normalization: str) -> list[float]:
    """Constant weight of every edge; a self-loop weighs nothing."""
    into, out_of = [0] * num_nodes, [0] * num_nodes
    for j, i in edges:
        if j != i:
            into[i] += 1
            out_of[j] += 1
    weights = []
    for j, i in edges:
        if j == i:
            weights.append(0.0)
        elif normalization == "sum":
            weights.append(1.0)
        elif normalization == "rw":
            weights.append(1 / into[i])
        else:
            weights.append(1 / math.sqrt(into[i] * out_of[j]))
    return weights


def aggregate(x: Rows, edges: EdgeList, normalization: str) -> Rows:
    out = [[0.0] * len(x[0]) for _ in x]
    for (j, i), weight in zip(edges, edge_weight(edges, len(x), normalization), strict=True):
        for k in range(len(x[0])):
            out[i][k] += weight * x[j][k]
    return out


# -- message passing ------------------------------------------------------------------------------


def channel_modulation(g: Rows, eps0: float = 0.0) -> Rows:
    return [[eps0 + (1 - eps0) * math.tanh(-math.log(value)) for value in row] for row in g]


def edge_modulation(h: Rows, g: Rows, edges: EdgeList, eps0: float = 0.0) -> list[float]:
    out = []
    for j, i in edges:
        u = [h[j][k] - h[i][k] for k in range(len(h[0]))]
        length = math.sqrt(sum(value * value for value in u))
        tau = 0.0
        for k in range(len(u)):
            d = u[k] / (length + EPS)
            tau += d**2 * math.tanh(-math.log(g[i][k]))
        out.append(eps0 + (1 - eps0) * tau)
    return out


def edge_attention(h: Rows, g: Rows, edges: EdgeList, neighbor_norm: str = "own") -> list[float]:
    out = []
    for j, i in edges:
        metric_of_j = g[j] if neighbor_norm == "own" else g[i]
        denominator = norm(h[i], g[i]) * norm(h[j], metric_of_j) + EPS
        out.append(inner_product(h[i], h[j], g[i]) / denominator)
    return out


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def propagate(
    h: Rows,
    g: Rows,
    messages: Rows,
    edges: EdgeList,
    eps0: float = 0.0,
    *,
    attention: bool = True,
    normalization: str = "sum",
    neighbor_norm: str = "own",
) -> Rows:
    tau = edge_modulation(h, g, edges, eps0)
    alpha = edge_attention(h, g, edges, neighbor_norm)
    constant = edge_weight(edges, len(h), normalization)
    out = [[0.0] * len(messages[0]) for _ in h]
    for e, (j, i) in enumerate(edges):
        weight = constant[e] * tau[e]
        if attention:
            weight *= sigmoid(alpha[e])
        for k in range(len(messages[0])):
            out[i][k] += weight * messages[j][k]
    return out


# -- curvature and energies -----------------------------------------------------------------------


def discrete_ricci(g: Rows, edges: EdgeList) -> Rows:
    out = []
    for i, near in enumerate(neighbors(edges, len(g))):
        row = [0.0] * len(g[0])
        for k in range(len(row)):
            for j in near:
                row[k] += (g[j][k] - g[i][k]) / len(near)
            row[k] = -0.5 * row[k]
        out.append(row)
    return out


def ricci_energy(g: Rows, edges: EdgeList, reduction: str = "sum") -> float:
    terms = [value**2 for row in discrete_ricci(g, edges) for value in row]
    return sum(terms) if reduction == "sum" else sum(terms) / len(terms)


def smoothness_energy(g: Rows, edges: EdgeList, reduction: str = "sum") -> float:
    terms = []
    for a, b in unordered_pairs(edges):
        terms += [(g[a][k] - g[b][k]) ** 2 for k in range(len(g[0]))]
    if not terms:
        return 0.0
    return sum(terms) if reduction == "sum" else sum(terms) / len(terms)


def ricci_flow(g: Rows, edges: EdgeList, steps: int, step_size: float) -> Rows:
    for _ in range(steps):
        curvature = discrete_ricci(g, edges)
        g = [
            [g[i][k] + step_size * -2 * curvature[i][k] for k in range(len(g[0]))]
            for i in range(len(g))
        ]
    return g


def flow_limit(g: Rows, edges: EdgeList) -> Rows:
    """Degree-weighted mean over each component of an undirected graph listed both ways."""
    degree = [len(near) for near in neighbors(edges, len(g))]
    out = [list(row) for row in g]
    for nodes in components(edges, len(g)):
        total = sum(degree[i] for i in nodes)
        if total == 0:
            continue
        for k in range(len(g[0])):
            mean = sum(degree[i] * g[i][k] for i in nodes) / total
            for i in nodes:
                out[i][k] = mean
    return out


def nrmd(g: Rows, edges: EdgeList) -> float:
    pairs = unordered_pairs(edges)
    total = 0.0
    for a, b in pairs:
        difference = math.sqrt(sum((g[a][k] - g[b][k]) ** 2 for k in range(len(g[0]))))
        lengths = [math.sqrt(sum(value**2 for value in g[i])) for i in (a, b)]
        total += difference / (0.5 * (lengths[0] + lengths[1]))
    return total / len(pairs) if pairs else 0.0


def theory_weights(
    homophily: float, nodes: int, edges: int, layers: int, channels: int, form: str
) -> tuple[float, float]:
    c1 = (1 - homophily) + 0.1
    c2 = 0.1 * (1 + homophily)
    alpha = c1 / layers * min(1, channels / edges)
    beta = c2 * math.sqrt(channels) / nodes
    if form == "theorem":
        alpha, beta = alpha * homophily, beta * homophily
    return alpha, beta


# -- labels ---------------------------------------------------------------------------------------


def edge_homophily(edges: EdgeList, y: list[int]) -> float:
    known = [(a, b) for a, b in unordered_pairs(edges) if y[a] >= 0 and y[b] >= 0]
    if not known:
        return math.nan
    return sum(1 for a, b in known if y[a] == y[b]) / len(known)


def node_homophily(edges: EdgeList, y: list[int]) -> float:
    shares = []
    for i, near in enumerate(neighbors(edges, len(y))):
        labelled = [j for j in near if y[j] >= 0]
        if y[i] >= 0 and labelled:
            shares.append(sum(1 for j in labelled if y[j] == y[i]) / len(labelled))
    return sum(shares) / len(shares) if shares else math.nan


# -- optimal transport ----------------------------------------------------------------------------


def wasserstein(mu: dict[int, float], nu: dict[int, float], cost) -> float:
    """Optimal transport between two measures as a linear program; nothing is cancelled."""
    rows, columns = list(mu), list(nu)
    objective = [cost(u, v) for u in rows for v in columns]
    constraints, masses = [], []
    for a, u in enumerate(rows):
        constraints.append(
            [1.0 if a == p else 0.0 for p in range(len(rows)) for _ in range(len(columns))]
        )
        masses.append(mu[u])
    for b, v in enumerate(columns):
        constraints.append(
            [1.0 if b == q else 0.0 for _ in range(len(rows)) for q in range(len(columns))]
        )
        masses.append(nu[v])
    result = linprog(
        objective, A_eq=numpy.array(constraints), b_eq=masses, bounds=(0, None), method="highs"
    )
    assert result.status == 0, result.message
    return float(result.fun)


def lazy_measure(node: int, near: set[int], alpha: float) -> dict[int, float]:
    measure = {j: (1 - alpha) / len(near) for j in sorted(near)}
    if alpha > 0:
        measure[node] = alpha
    return measure


def ollivier_ricci(edges: EdgeList, num_nodes: int, alpha: float) -> list[float]:
    near, hops = undirected_sets(edges, num_nodes), hop_distances(edges, num_nodes)
    out = []
    for j, i in edges:
        if i == j:
            out.append(math.nan)
            continue
        mu, nu = lazy_measure(i, near[i], alpha), lazy_measure(j, near[j], alpha)
        out.append(1 - wasserstein(mu, nu, lambda u, v: hops[u][v]) / hops[i][j])
    return out


def learned_ollivier_ricci(h: Rows, g: Rows, edges: EdgeList, alpha: float) -> list[float]:
    near = undirected_sets(edges, len(h))
    out = []
    for j, i in edges:
        length = geodesic_distance(h[i], h[j], g[i])
        if i == j or length == 0:
            out.append(math.nan)
            continue
        mu, nu = lazy_measure(i, near[i], alpha), lazy_measure(j, near[j], alpha)
        metric = g[i]

        def cost(u: int, v: int, metric: list[float] = metric) -> float:
            return geodesic_distance(h[u], h[v], metric)

        out.append(1 - wasserstein(mu, nu, cost) / length)
    return out


# -- structure ------------------------------------------------------------------------------------


def twin_groups(edges: EdgeList, num_nodes: int) -> list[int]:
    """The smallest node that points at the same nodes; -1 for a node that points at none."""
    near = [{i for j, i in edges if j == node and i != node} for node in range(num_nodes)]
    return [near.index(near[node]) if near[node] else -1 for node in range(num_nodes)]


def clustering_coefficient(edges: EdgeList, num_nodes: int) -> list[float]:
    near = undirected_sets(edges, num_nodes)
    out = []
    for i in range(num_nodes):
        pairs = list(itertools.combinations(sorted(near[i]), 2))
        joined = sum(1 for a, b in pairs if b in near[a])
        out.append(joined / len(pairs) if pairs else 0.0)
    return out


def networkx_clustering(edges: EdgeList, num_nodes: int) -> list[float]:
    graph = networkx.Graph()
    graph.add_nodes_from(range(num_nodes))
    graph.add_edges_from(unordered_pairs(edges))
    found = networkx.clustering(graph)
    return [float(found[i]) for i in range(num_nodes)]


def structural_columns(edges: EdgeList, num_nodes: int) -> Rows:
    near = undirected_sets(edges, num_nodes)
    proper = [(j, i) for j, i in edges if j != i]
    log_degree = [math.log(1 + len(near[i])) for i in range(num_nodes)]
    log_in = [math.log(1 + sum(1 for _, t in proper if t == i)) for i in range(num_nodes)]
    log_out = [math.log(1 + sum(1 for s, _ in proper if s == i)) for i in range(num_nodes)]
    around = [
        sum(log_degree[j] for j in near[i]) / len(near[i]) if near[i] else 0.0
        for i in range(num_nodes)
    ]
    return [log_degree, log_in, log_out, around, clustering_coefficient(edges, num_nodes)]


def structural_descriptor(edges: EdgeList, num_nodes: int) -> Rows:
    """Standardised over the nodes, as on the graph that a metric network is fitted to."""
    scaled = []
    for column in structural_columns(edges, num_nodes):
        mean = sum(column) / num_nodes
        spread = math.sqrt(sum((value - mean) ** 2 for value in column) / num_nodes)
        scaled.append([(value - mean) / spread if spread > 1e-9 else 0.0 for value in column])
    return [[column[i] for column in scaled] for i in range(num_nodes)]
