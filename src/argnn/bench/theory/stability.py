"""How far a metric moves in a step, beside the stated bound; convexity of the penalties."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from scipy.sparse.csgraph import shortest_path

from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded, slope
from argnn.bench.theory.graphs import laplacian_matrix, small_graphs
from argnn.bench.theory.training import (
    descent,
    paper_model,
    paper_weights,
    planted_graph,
    total_loss,
)
from argnn.functional.closed_forms import ricci_energy_hessian

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RATES = (0.01, 0.03, 0.1, 0.3)
#: On the weights of the paper.
FACTORS = (1.0, 10.0, 100.0, 1000.0)
_COLUMNS = ["factor on alpha, beta", "eta", "alpha + beta", "largest change", "C it needs"]
_SPECTRUM = ["graph", "smallest eigenvalue", "second smallest", "stated bound"]


def measured_stability(effort: Effort) -> Finding:
    """Measure the metric's changes over step sizes and penalty weights, and the Hessians."""
    graph, steps = planted_graph(effort.seed), effort.of(2, 10, 40)
    weights = paper_weights(graph)
    rows = []
    cases = [(1.0, rate) for rate in RATES]
    cases += [(factor, RATES[0]) for factor in FACTORS if factor != 1]
    for factor, size in cases:
        # A free metric is the setting of the proof: descent on the metrics themselves.
        model = paper_model(graph, effort.seed, metric="free", metric_init="uniform")
        model.fit_to_graph(graph.edge_index, graph.num_nodes)
        scaled = (factor * weights[0], factor * weights[1])
        objective = total_loss(model, graph, graph.edge_index, scaled)
        rate = partial(_constant, size)
        found = descent(model.metric_parameters(), objective, steps=steps + 1, rate=rate)
        metrics = torch.stack([step.metric for step in found])
        change, total = float(metrics.diff(dim=0).norm(dim=-1).max()), sum(scaled)
        rows.append([factor, size, total, change, change * total / size])
    spectra = _spectra(effort)
    table = FoundTable("stability", _COLUMNS, rows)
    known = table.records()
    return Finding(
        [
            grows_with_step([row for row in known if row[_COLUMNS[0]] == 1]),
            falls_with_weights([row for row in known if row["eta"] == RATES[0]]),
            strongly_convex(spectra),
        ],
        [
            table,
            FoundTable("stability-convexity", _SPECTRUM, spectra),
        ],
        f"Free metrics of two layers on a planted graph of {graph.num_nodes} nodes, plain "
        f"gradient descent on the metrics alone, {steps} steps, largest change of a node's metric "
        "in a step. The weights of the paper times a factor. Hessians on small graphs with "
        "alpha = beta = 1. Other optimisers and the metric network were not measured.",
        lambda: _figure(known),
    )


def _constant(rate: float, step: int) -> float:
    return rate


def _spectra(effort: Effort) -> list[list[Any]]:
    """Eigenvalues of the Hessian of both penalties beside min(mu_Ricci, mu_smooth)."""
    graphs = small_graphs(effort.of(8, 30, 100), torch.Generator().manual_seed(effort.seed))
    rows = []
    for name, graph in graphs.items():
        plain, normal = (laplacian_matrix(*graph, normalized=flag) for flag in (False, True))
        values = torch.linalg.eigvalsh(ricci_energy_hessian(*graph) + 2 * plain)
        hops = shortest_path(-(plain - plain.diag().diag()).numpy(), unweighted=True).max()
        stated = min(
            1 / (float(plain.diag().max()) * hops**2), float(torch.linalg.eigvalsh(normal)[1])
        )
        rows.append([name, abs(float(values[0])), float(values[1]), stated])
    return rows


def grows_with_step(rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Verdict on the dependence on the step size."""
    power, width = _power("eta", rows)
    return Statement(
        "metric change against step size",
        "A metric changes by at most C eta / (alpha + beta) in a step of size eta.",
        "prop:stability",
        f"the change grows as eta^({power:.2f} ± {width:.2f})",
        "verified if the exponent is at least 0.9, with changes if at least 0.5, else refuted",
        graded(power + width >= 0.9, power + width >= 0.5),
    )


def falls_with_weights(rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Verdict on the dependence on the weights of the penalties."""
    power, width = _power("alpha + beta", rows)
    needed = [row["C it needs"] for row in rows]
    return Statement(
        "metric change against penalty weights",
        "A metric changes by at most C eta / (alpha + beta): less with stronger penalties.",
        "prop:stability",
        f"the change goes as (alpha + beta)^({power:.2f} ± {width:.2f}); C would have to be "
        f"{min(needed):.2g} to {max(needed):.2g}",
        "verified if the exponent is at most -0.9, with changes if below 0 by its interval, else "
        "refuted",
        graded(power - width <= -0.9, power + width < 0),
    )


def strongly_convex(rows: Sequence[Sequence[Any]]) -> Statement:
    """Verdict on the smallest eigenvalues of the penalties' Hessian."""
    lowest = min(row[1] for row in rows)
    on_the_rest = all(row[2] >= row[3] for row in rows)
    return Statement(
        "penalties are strongly convex",
        "The smallest eigenvalue of their Hessian is at least min(alpha mu, beta lambda_2) > 0.",
        "prop:stability, thm:lyapunov (rho_min)",
        f"the smallest eigenvalue is {lowest:.1g} (constant metrics); the second one is "
        f"{'never' if on_the_rest else 'sometimes'} below the bound",
        "verified if the smallest is above the bound, with changes if the second one is (strongly "
        "convex across constant metrics only), else refuted",
        graded(all(row[1] >= row[3] for row in rows), on_the_rest),
    )


def _power(column: str, rows: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    logs = ([math.log(row[name]) for row in rows] for name in (column, "largest change"))
    return slope(*logs)


@styled
def _figure(rows: Sequence[Mapping[str, Any]]) -> "Figure":
    figure = new_figure(7.2, 2.8)
    cases = {
        "eta": [row for row in rows if row[_COLUMNS[0]] == 1],
        "alpha + beta": [row for row in rows if row["eta"] == RATES[0]],
    }
    for ax, (column, chosen) in zip(figure.subplots(1, 2), cases.items(), strict=True):
        x = [row[column] for row in chosen]
        y = [row["largest change"] for row in chosen]
        ax.plot(x, y, "o-", color=PALETTE[0], label="measured")
        sign = 1 if column == "eta" else -1
        ax.plot(x, [y[0] * (v / x[0]) ** sign for v in x], ":", color="#555555", label="stated")
        ax.set(xscale="log", yscale="log", xlabel=column, ylabel="largest metric change")
        ax.legend(loc="best")
    return figure
