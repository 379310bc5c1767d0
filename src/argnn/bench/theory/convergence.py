"""How fast the gradient falls along training, beside the stated rate."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from argnn.bench.theory.finding import Effort, Finding, Statement, Verdict, graded, stated
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, slope
from argnn.bench.theory.training import descent, network_descent, penalty, planted_graph
from argnn.functional.neighborhood import neighborhood

#: Forms of log |gradient|^2 over the step t, each a straight line in its own variable.
FORMS = ("stated", "stretched", "power")


def measured_convergence(effort: Effort) -> Finding:
    """Descend on the penalties alone and on a network, with the proof's steps and with Adam."""
    curves = _curves(effort)
    rows = [{"setting": name, **fitted(values)} for name, values in curves.items()]
    series = [
        Series(name, range(1, len(values) + 1), [v / values[0] for v in values], "-")
        for name, values in curves.items()
    ]
    longest = max(map(len, curves.values()))
    power = Series("1/sqrt(t)", [1, longest], [1, longest**-0.5], ":")
    falls = "squared gradient, over the first"
    return Finding.of(
        "convergence",
        [falls_as_stated(rows[:1], convex=True), falls_as_stated(rows[1:], convex=False)],
        {"convergence": rows},
        [
            Panel(series, "step, linear axis", falls, "Straight: exponential", log="y"),
            Panel([*series, power], "step, log axis", title="Straight: power of t", log="xy"),
        ],
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
        rate = (lambda t: 5e-3) if adam else (lambda t: 0.5 / math.sqrt(t))
        steps = effort.of(20, 600, 3000)
        found = network_descent(graph, effort.seed, steps=steps, rate=rate, adam=adam)
        curves[name] = [step.squared_gradient for step in found]
    return curves


def fitted(values: Sequence[float]) -> dict[str, float]:
    """The numbers of a row from the squared gradient norm of every step."""
    start = len(values) // 10
    t = np.arange(start + 1, len(values) + 1, dtype=float)
    y = np.log(np.maximum(values[start:], 1e-300))
    half = len(t) // 2
    straight = y + 0.5 * np.log(t)
    exponent, width = slope(np.log(t), y)
    return {
        "mu, first half": -slope(t[:half], straight[:half])[0],
        "mu, second half": -slope(t[half:], straight[half:])[0],
        "exponent p": -exponent,
        "interval of p": width,
        "residual, stated": _residual(t, straight),
        "residual, stretched": _residual(np.sqrt(t), y),
        "residual, power": _residual(np.log(t), y),
    }


def _residual(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    line = np.polynomial.Polynomial.fit(x, y, 1)
    return float(np.sqrt(np.mean((y - line(x)) ** 2)))


def falls_as_stated(rows: MeasuredRows, convex: bool) -> Statement:
    """Verdict from the fits of the settings.

    A network is not refuted: the rate is a limit, and a finite run may end before it.
    """

    def as_stated(row: Mapping[str, Any]) -> bool:
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
    return stated(
        "rate of convergence, {setting}",
        graded(all(map(as_stated, rows)), slowest >= 0.5, failure),
        setting="penalties alone" if convex else "network",
        found=found,
        failure=failure,
    )
