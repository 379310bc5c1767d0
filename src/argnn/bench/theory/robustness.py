"""How much learned metrics change with edges, beside k / (beta degree)."""

from collections.abc import Mapping

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import laplacian_matrix
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, column, grouped
from argnn.bench.theory.training import network_descent, paper_weights, planted_graph
from argnn.data.synthetic import clique

#: On the paper's weight of smoothness.
FACTORS = (1.0, 10.0, 100.0)
#: Nodes between the two cliques, so that the graph stays connected without the bridge.
_PATH = 300
#: The form of the bound, a column of both tables.
_FORM = "k / (beta degree)"


def measured_robustness(effort: Effort) -> Finding:
    """One solvable case with a bridge, and networks trained on a graph and on a changed one."""
    betas = effort.of((1, 100), (1, 10, 100, 1e3), (1, 10, 100, 1e3, 1e4))
    exact = [bridge_row(beta) for beta in betas]
    steps = effort.of(3, 60, 200)
    trained = _trained(effort, steps)
    changes = [
        Series("change", betas, column(exact, "change"), "o-"),
        Series(_FORM, betas, column(exact, _FORM), ":"),
    ]
    clouds = [
        Series(f"beta x {factor:g}", column(own, _FORM), column(own, "mean change"))
        for factor, own in grouped(trained, "factor on beta").items()
    ]
    return Finding.of(
        "robustness",
        [bounded_at_bridge(exact), falls_as_bound(fitted_powers(trained))],
        {"robustness-bridge": exact, "robustness": trained},
        [
            Panel(changes, "beta", title="A bridge taken away", log="xy"),
            Panel(clouds, _FORM, "mean change", "Trained networks", log="xy"),
        ],
        path=_PATH,
        steps=steps,
    )


def bridge_row(beta: float, size: int = 10) -> dict[str, float]:
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
    return {"beta": beta, "change": change, _FORM: form, "C it needs": change / form}


def _minimizer(edge_index: Tensor, target: Tensor, beta: float) -> Tensor:
    """Where sum (g - t)^2 + beta L_smooth is least: (I + beta L) g = t."""
    plain = laplacian_matrix(edge_index, target.size(0), normalized=False)
    matrix = torch.eye(len(target), dtype=torch.float64) + beta * plain
    solution: Tensor = torch.linalg.solve(matrix, target)
    return solution


def _trained(effort: Effort, steps: int) -> MeasuredRows:
    graph = planted_graph(effort.seed)
    beta = paper_weights(graph)[1]
    once = graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]]
    degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
    bins = degree.clamp_max(31).float().log2().floor()

    def metric(edges: Tensor, factor: float) -> Tensor:
        found = network_descent(
            graph,
            effort.seed,
            factors=(1.0, factor),
            edge_index=torch.cat([edges, edges.flip(0)], dim=1),
            steps=steps,
            rate=lambda _: 5e-3,
            adam=True,
        )
        return list(found)[-1].metric

    rows = []
    for factor in FACTORS:
        first = metric(once, factor)
        for k in effort.of((4, 64), (4, 16, 64), (1, 4, 16, 64)):
            changed = metric(_replaced(once, k, graph.num_nodes, effort.seed), factor)
            change = (changed - first).norm(dim=-1)
            for own in (bins == group for group in bins.unique()):
                typical = float(degree[own].double().mean())
                row = {"factor on beta": factor, "k": k, "degree": typical}
                row |= {"mean change": float(change[own].mean())}
                rows.append(row | {_FORM: k / (factor * beta * typical)})
    return rows


def _replaced(once: Tensor, count: int, nodes: int, seed: int) -> Tensor:
    """The edges with ``count`` of them replaced by random pairs."""
    generator = torch.Generator().manual_seed(seed + count)
    kept = torch.randperm(once.size(1), generator=generator)[count:]
    first = torch.randint(nodes, (count,), generator=generator)
    second = (first + torch.randint(1, nodes, (count,), generator=generator)) % nodes
    return torch.cat([once[:, kept], torch.stack([first, second])], dim=1)


def fitted_powers(rows: MeasuredRows) -> dict[str, tuple[float, float]]:
    """Exponents of k, beta and degree in the change, with half the width of their 95 % intervals.

    Least squares on logarithms.
    """
    names = ("k", "factor on beta", "degree", "mean change")
    logs = np.log(np.column_stack([column(rows, name) for name in names]))
    design = np.column_stack([logs[:, :3], np.ones(len(logs))])
    found = np.linalg.lstsq(design, logs[:, 3], rcond=None)[0]
    free = len(logs) - design.shape[1]
    variance = np.sum((logs[:, 3] - design @ found) ** 2) / free
    errors = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    widths = stats.t.ppf(0.975, free) * errors
    pairs = zip(found[:3].tolist(), widths[:3].tolist(), strict=True)
    return dict(zip(("k", "beta", "degree"), pairs, strict=True))


def bounded_at_bridge(rows: MeasuredRows) -> Statement:
    """Verdict on the solvable case, from the constant that the bound needs."""
    first, last = rows[0], rows[-1]
    growth = last["C it needs"] / first["C it needs"] / (last["beta"] / first["beta"])
    return stated(
        "robustness at a bridge",
        graded(growth < 0.5),
        change=last["change"],
        beta=last["beta"],
        least=first["C it needs"],
        most=last["C it needs"],
    )


def falls_as_bound(powers: Mapping[str, tuple[float, float]]) -> Statement:
    """Verdict on trained networks, from the fitted exponents and their intervals."""
    k, beta, degree = (powers[name][0] for name in ("k", "beta", "degree"))
    falling = all(sum(powers[name]) < 0 for name in ("beta", "degree"))
    found = " ".join(
        f"{name}^({power:.2f} ± {width:.2f})" for name, (power, width) in powers.items()
    )
    within = k <= 1.1
    verdict = graded(within and max(beta, degree) <= -0.9, within and falling, "not reproduced")
    return stated("robustness of trained metrics", verdict, found=found)
