"""How far a metric moves in a step, beside the stated bound; convexity of the penalties."""

import torch
from scipy.sparse.csgraph import shortest_path

from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import laplacian_matrix, small_graphs
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, column, grouped, power
from argnn.bench.theory.training import network_descent, paper_weights, planted_graph
from argnn.functional.closed_forms import ricci_energy_hessian

RATES = (0.01, 0.03, 0.1, 0.3)
#: On the weights of the paper.
FACTORS = (1.0, 10.0, 100.0, 1000.0)


def measured_stability(effort: Effort) -> Finding:
    """Measure the metric's changes over step sizes and penalty weights, and the Hessians."""
    graph, steps = planted_graph(effort.seed), effort.of(2, 10, 40)
    alpha, beta = paper_weights(graph)
    rows = []
    for factor, size in [(1.0, rate) for rate in RATES] + [(f, RATES[0]) for f in FACTORS[1:]]:
        # A free metric is the setting of the proof: descent on the metrics themselves.
        found = network_descent(
            graph,
            effort.seed,
            factors=(factor, factor),
            free=True,
            steps=steps + 1,
            rate=lambda _, size=size: size,
        )
        metrics = torch.stack([step.metric for step in found])
        change = float(metrics.diff(dim=0).norm(dim=-1).max())
        total = factor * alpha + factor * beta
        rows.append(
            {
                "factor on alpha, beta": factor,
                "eta": size,
                "alpha + beta": total,
                "largest change": change,
                "C it needs": change * total / size,
            }
        )
    by_step = grouped(rows, "factor on alpha, beta")[1.0]
    by_weight = grouped(rows, "eta")[RATES[0]]
    spectra = _spectra(effort)
    return Finding.of(
        "stability",
        [grows_with_step(by_step), falls_with_weights(by_weight), strongly_convex(spectra)],
        {"stability": rows, "stability-convexity": spectra},
        [_panel(by_step, "eta", 1), _panel(by_weight, "alpha + beta", -1)],
        nodes=graph.num_nodes,
        steps=steps,
    )


def _spectra(effort: Effort) -> MeasuredRows:
    """Eigenvalues of the Hessian of both penalties beside min(mu_Ricci, mu_smooth)."""
    graphs = small_graphs(effort.of(8, 30, 100), torch.Generator().manual_seed(effort.seed))
    rows = []
    for name, graph in graphs.items():
        plain, normal = (laplacian_matrix(*graph, normalized=flag) for flag in (False, True))
        values = torch.linalg.eigvalsh(ricci_energy_hessian(*graph) + 2 * plain)
        hops = shortest_path(-(plain - plain.diag().diag()).numpy(), unweighted=True).max()
        ricci = 1 / (float(plain.diag().max()) * hops**2)
        rows.append(
            {
                "graph": name,
                "smallest eigenvalue": abs(float(values[0])),
                "second smallest": float(values[1]),
                "stated bound": min(ricci, float(torch.linalg.eigvalsh(normal)[1])),
            }
        )
    return rows


def grows_with_step(rows: MeasuredRows) -> Statement:
    """Verdict on the dependence on the step size."""
    exponent, width = power(rows, "eta", "largest change")
    verdict = graded(exponent + width >= 0.9, exponent + width >= 0.5)
    return stated("metric change against step size", verdict, exponent=exponent, width=width)


def falls_with_weights(rows: MeasuredRows) -> Statement:
    """Verdict on the dependence on the weights of the penalties."""
    exponent, width = power(rows, "alpha + beta", "largest change")
    needed = column(rows, "C it needs")
    return stated(
        "metric change against penalty weights",
        graded(exponent - width <= -0.9, exponent + width < 0),
        exponent=exponent,
        width=width,
        least=min(needed),
        most=max(needed),
    )


def strongly_convex(rows: MeasuredRows) -> Statement:
    """Verdict on the smallest eigenvalues of the penalties' Hessian."""
    lowest = min(column(rows, "smallest eigenvalue"))
    everywhere = all(row["smallest eigenvalue"] >= row["stated bound"] for row in rows)
    on_the_rest = all(row["second smallest"] >= row["stated bound"] for row in rows)
    often = "never" if on_the_rest else "sometimes"
    verdict = graded(everywhere, on_the_rest)
    return stated("penalties are strongly convex", verdict, lowest=lowest, often=often)


def _panel(rows: MeasuredRows, name: str, sign: int) -> Panel:
    x, y = column(rows, name), column(rows, "largest change")
    stated_line = [y[0] * (v / x[0]) ** sign for v in x]
    series = [Series("measured", x, y, "o-"), Series("stated", x, stated_line, ":")]
    return Panel(series, name, "largest metric change", log="xy")
