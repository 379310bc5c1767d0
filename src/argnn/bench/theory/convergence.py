"""How fast the gradient falls along training, beside the stated rate."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import (
    Effort,
    Finding,
    FoundTable,
    Statement,
    Verdict,
    graded,
    slope,
)
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.training import (
    descent,
    paper_model,
    paper_weights,
    penalty,
    planted_graph,
    total_loss,
)
from argnn.functional.neighborhood import neighborhood

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Forms of log |gradient|^2 over the step t, each a straight line in its own variable.
FORMS = ("stated", "stretched", "power")
_COLUMNS = [
    "setting",
    "mu, first half",
    "mu, second half",
    "exponent p",
    "interval of p",
    *(f"residual, {form}" for form in FORMS),
]


def measured_convergence(effort: Effort) -> Finding:
    """Descend on the penalties alone and on a network, with the proof's steps and with Adam."""
    curves = _curves(effort)
    rows: list[list[Any]] = [[name, *fitted(values)] for name, values in curves.items()]
    table = FoundTable("convergence", _COLUMNS, rows)
    known = table.records()
    return Finding(
        [falls_as_stated(known[:1], convex=True), falls_as_stated(known[1:], convex=False)],
        [table],
        "Whole-graph gradients, no noise. Fits of the logarithm of the squared gradient norm over "
        "the later nine tenths of the steps: stated is a - log(t)/2 - mu t, stretched is "
        "a - c sqrt(t), power is a - p log(t); the residual is a root mean square. Penalties alone "
        "are a convex quadratic, the theorem's best case. The constant mu_eff is not compared.",
        lambda: _figure(curves),
    )


def _curves(effort: Effort) -> dict[str, list[float]]:
    generator = torch.Generator().manual_seed(effort.seed)
    nodes = effort.of(20, 100, 200)
    edges = neighborhood(random_graph(nodes, 2 * nodes, generator), nodes)
    g = torch.rand(nodes, 4, generator=generator, dtype=torch.float64).add(0.5).requires_grad_()
    most = 4.0 * edges.degree.max().item() + 2.0  # of the Hessian's eigenvalues

    def alone() -> tuple[torch.Tensor, torch.Tensor]:
        return penalty([g], edges, (1.0, 1.0)), g

    falling = descent(
        [g], alone, steps=effort.of(60, 2000, 4000), rate=lambda t: 1 / (most * math.sqrt(t))
    )
    curves = {"penalties alone, 1/sqrt(t)": [step.squared_gradient for step in falling]}
    graph = planted_graph(effort.seed)
    for name, adam in (("network, 0.5/sqrt(t)", False), ("network, Adam", True)):
        model = paper_model(graph, effort.seed)
        objective = total_loss(model, graph, graph.edge_index, paper_weights(graph))
        found = descent(
            list(model.parameters()),
            objective,
            steps=effort.of(20, 600, 3000),
            rate=(lambda t: 5e-3) if adam else (lambda t: 0.5 / math.sqrt(t)),
            adam=adam,
        )
        curves[name] = [step.squared_gradient for step in found]
    return curves


def fitted(values: Sequence[float]) -> list[float]:
    """The numbers of a row from the squared gradient norm of every step."""
    start = len(values) // 10
    t = np.arange(start + 1, len(values) + 1, dtype=float)
    y = np.log(np.maximum(values[start:], 1e-300))
    half = len(t) // 2
    stated = y + 0.5 * np.log(t)
    slopes = [-slope(t[part], stated[part])[0] for part in (slice(half), slice(half, None))]
    exponent, width = slope(np.log(t), y)
    residuals = [_residual(t, stated), _residual(np.sqrt(t), y), _residual(np.log(t), y)]
    return [*slopes, -exponent, width, *residuals]


def _residual(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    line = np.polynomial.Polynomial.fit(x, y, 1)
    return float(np.sqrt(np.mean((y - line(x)) ** 2)))


def falls_as_stated(rows: Sequence[Mapping[str, Any]], convex: bool) -> Statement:
    """Verdict from the fits of the settings.

    A network is not refuted: the rate is a limit, and a finite run may end before it.
    """

    def stated(row: Mapping[str, Any]) -> bool:
        best = min(FORMS, key=lambda form: row[f"residual, {form}"])
        return best == "stated" and row["mu, second half"] > 0.5 * row["mu, first half"] > 0

    slowest = min(row["exponent p"] + row["interval of p"] for row in rows)
    found = "; ".join(
        f"{row['setting']}: p = {row['exponent p']:.2f}, mu from {row['mu, first half']:.2g} to "
        f"{row['mu, second half']:.2g}, residuals "
        + ", ".join(f"{form} {row[f'residual, {form}']:.2g}" for form in FORMS)
        for row in rows
    )
    failure: Verdict = "refuted" if convex else "not reproduced"
    return Statement(
        f"rate of convergence, {'penalties alone' if convex else 'network'}",
        "The squared gradient norm is O(exp(-mu t / L) / sqrt(t)) with steps of eta / sqrt(t).",
        "thm:convergence",
        found,
        "verified if the stated form fits best and mu stays above half of its first value; with "
        f"changes if it falls at least as t^-p with p = 1/2; else {failure}",
        graded(all(map(stated, rows)), slowest >= 0.5, failure),
    )


@styled
def _figure(curves: Mapping[str, Sequence[float]]) -> "Figure":
    figure = new_figure(7.2, 3.0)
    for ax, scale in zip(figure.subplots(1, 2), ("linear", "log"), strict=True):
        for place, (name, values) in enumerate(curves.items()):
            t = range(1, len(values) + 1)
            ax.plot(t, [v / values[0] for v in values], color=PALETTE[place], label=name)
        ax.set(xscale=scale, yscale="log", xlabel=f"step, {scale} axis")
    figure.axes[0].set(ylabel="squared gradient, over the first", title="Straight: exponential")
    ax.set_title("Straight: power of t")
    longest = max(map(len, curves.values()))
    ax.plot([1, longest], [1, longest**-0.5], ":", color="#555555", label="1/sqrt(t)")
    ax.legend(loc="lower left")
    return figure
