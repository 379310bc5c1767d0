"""How much learned metrics change with edges, beside k / (beta degree)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.bench.theory.graphs import laplacian_matrix
from argnn.bench.theory.training import (
    descent,
    paper_model,
    paper_weights,
    planted_graph,
    total_loss,
)
from argnn.data.synthetic import clique

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: On the paper's weight of smoothness.
FACTORS = (1.0, 10.0, 100.0)
_EXACT = ["beta", "change", "k / (beta degree)", "C it needs"]
#: Nodes between the two cliques, so that the graph stays connected without the bridge.
_PATH = 300
_TRAINED = ["factor on beta", "k", "degree", "mean change", "k / (beta degree)"]


def measured_robustness(effort: Effort) -> Finding:
    """One solvable case with a bridge, and networks trained on a graph and on a changed one."""
    exact = [
        bridge_row(beta) for beta in effort.of((1, 100), (1, 10, 100, 1e3), (1, 10, 100, 1e3, 1e4))
    ]
    trained = _trained(effort)
    powers = fitted_powers(trained)
    steps = effort.of(3, 60, 200)
    return Finding(
        [bounded_at_bridge(exact), falls_as_bound(powers)],
        [
            FoundTable("robustness-bridge", _EXACT, exact),
            FoundTable("robustness", _TRAINED, trained),
        ],
        "Bridge: two cliques of ten nodes, joined by one edge, which is taken away, and by a path "
        f"of {_PATH} nodes, which stays; the metric minimises sum (g - t)^2 + beta L_smooth with "
        "t = 1 in one clique, 2 in the other and between them on the path, solved exactly; the "
        "change is that of a node of degree 9 beside the bridge. Networks: the same start, "
        f"{steps} steps of Adam on a planted graph and on one with k random edges replaced; nodes "
        "in bins of degree.",
        lambda: _figure(exact, trained),
    )


def bridge_row(beta: float, size: int = 10) -> list[float]:
    """Change of the metric at the bridge's ends when it is taken away, beside the bound's form."""
    way = torch.arange(size - 1, size + _PATH + 1)  # from the last of one to the first of the other
    parts = [clique(size), clique(size) + size + _PATH, torch.stack([way[:-1], way[1:]])]
    inside, bridge = torch.cat(parts, dim=1), torch.tensor([[0], [2 * size + _PATH - 1]])
    between = torch.linspace(1, 2, _PATH + 2, dtype=torch.float64)[1:-1]
    target = torch.cat([torch.ones(size), between, torch.full((size,), 2.0)]).double().unsqueeze(1)
    before, after = (
        _minimizer(torch.cat([once, once.flip(0)], dim=1), target, beta)
        for once in (torch.cat([inside, bridge], dim=1), inside)
    )
    change, form = float((before - after).abs()[1]), 1 / (beta * (size - 1))
    return [beta, change, form, change / form]


def _minimizer(edge_index: Tensor, target: Tensor, beta: float) -> Tensor:
    """Where sum (g - t)^2 + beta L_smooth is least: (I + beta L) g = t."""
    plain = laplacian_matrix(edge_index, target.size(0), normalized=False)
    matrix = torch.eye(len(target), dtype=torch.float64) + beta * plain
    solution: Tensor = torch.linalg.solve(matrix, target)
    return solution


def _trained(effort: Effort) -> list[list[Any]]:
    graph, steps = planted_graph(effort.seed), effort.of(3, 60, 200)
    weights = paper_weights(graph)
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    bins = degree.clamp_max(31).float().log2().floor()
    rows = []
    for factor in FACTORS:
        scaled = (weights[0], factor * weights[1])

        def metric(edges: Tensor, scaled: tuple[float, float] = scaled) -> Tensor:
            model = paper_model(graph, effort.seed)
            both = torch.cat([edges, edges.flip(0)], dim=1)
            found = descent(
                list(model.parameters()),
                total_loss(model, graph, both, scaled),
                steps=steps,
                rate=lambda _: 5e-3,
                adam=True,
            )
            return list(found)[-1].metric

        first = metric(once)
        for k in effort.of((4, 64), (4, 16, 64), (1, 4, 16, 64)):
            change = (metric(_replaced(once, k, graph.num_nodes, effort.seed)) - first).norm(dim=-1)
            for group in bins.unique():
                own = bins == group
                typical = float(degree[own].double().mean())
                form = k / (scaled[1] * typical)
                rows.append([factor, k, typical, float(change[own].mean()), form])
    return rows


def _replaced(once: Tensor, count: int, nodes: int, seed: int) -> Tensor:
    """The edges with ``count`` of them replaced by random pairs."""
    generator = torch.Generator().manual_seed(seed + count)
    kept = torch.randperm(once.size(1), generator=generator)[count:]
    first = torch.randint(nodes, (count,), generator=generator)
    second = (first + torch.randint(1, nodes, (count,), generator=generator)) % nodes
    return torch.cat([once[:, kept], torch.stack([first, second])], dim=1)


def fitted_powers(rows: Sequence[Sequence[Any]]) -> dict[str, tuple[float, float]]:
    """Exponents of k, beta and degree in the change, with half the width of their 95 % intervals.

    Least squares on logarithms.
    """
    logs = np.log([[row[1], row[0], row[2], row[3]] for row in rows])
    design = np.column_stack([logs[:, :3], np.ones(len(logs))])
    found = np.linalg.lstsq(design, logs[:, 3], rcond=None)[0]
    free = len(logs) - design.shape[1]
    variance = np.sum((logs[:, 3] - design @ found) ** 2) / free
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    widths = stats.t.ppf(0.975, free) * errors
    pairs = zip(found[:3].tolist(), widths[:3].tolist(), strict=True)
    return dict(zip(("k", "beta", "degree"), pairs, strict=True))


def bounded_at_bridge(rows: Sequence[Sequence[float]]) -> Statement:
    """Verdict on the solvable case, from the constant that the bound needs."""
    growth = rows[-1][3] / rows[0][3] / (rows[-1][0] / rows[0][0])
    return Statement(
        "robustness at a bridge",
        "After k changes of edges a metric changes by O(k / (beta deg(i))).",
        "thm:robustness",
        f"without the bridge the metric beside it changes by {rows[-1][1]:.3g} at beta = "
        f"{rows[-1][0]:g}; C would have to be {rows[0][3]:.3g} to {rows[-1][3]:.3g}",
        "refuted if C grows at least half as fast as beta, else verified",
        graded(growth < 0.5),
    )


def falls_as_bound(powers: Mapping[str, tuple[float, float]]) -> Statement:
    """Verdict on trained networks, from the fitted exponents and their intervals."""
    k, beta, degree = (powers[name][0] for name in ("k", "beta", "degree"))
    within = k <= 1.1, beta <= -0.9, degree <= -0.9
    falling = all(sum(powers[name]) < 0 for name in ("beta", "degree"))
    found = " ".join(
        f"{name}^({power:.2f} ± {width:.2f})" for name, (power, width) in powers.items()
    )
    return Statement(
        "robustness of trained metrics",
        "After k changes of edges a metric changes by O(k / (beta deg(i))).",
        "thm:robustness",
        f"the change goes as {found}",
        "verified if it falls at least as fast as the bound (exponents at most 1.1, -0.9, -0.9), "
        "with changes if k fits and beta's and the degree's are below 0 by their intervals, else "
        "not reproduced",
        graded(all(within), within[0] and falling, "not reproduced"),
    )


@styled
def _figure(exact: Sequence[Sequence[float]], trained: Sequence[Sequence[Any]]) -> "Figure":
    figure = new_figure(7.2, 2.9)
    left, right = figure.subplots(1, 2)
    beta = [row[0] for row in exact]
    left.plot(beta, [row[1] for row in exact], "o-", color=PALETTE[0], label="change")
    left.plot(beta, [row[2] for row in exact], ":", color="#555555", label="k / (beta degree)")
    left.set(xscale="log", yscale="log", xlabel="beta", title="A bridge taken away")
    left.legend(loc="best")
    for place, factor in enumerate(FACTORS):
        own = [row for row in trained if row[0] == factor]
        points = ([row[4] for row in own], [row[3] for row in own])
        right.plot(*points, "os^"[place], color=PALETTE[place], label=f"beta x {factor:g}", ms=4)
    right.set(xscale="log", yscale="log", xlabel="k / (beta degree)", ylabel="mean change")
    right.set_title("Trained networks")
    right.legend(loc="best")
    return figure
