"""The Ricci flow: where it ends, which functional it lowers, and how fast it is."""

import math
from collections.abc import Mapping

import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from argnn import functional as AF
from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import EdgesAndNodes, adjacency, laplacian_matrix, small_graphs
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, column

STEP = 0.1
#: A rise smaller than this share of the start is a rounding error.
ROUNDING = 1e-12
#: Distance from the limit at which the flow counts as ended, relative to the start.
ENDED = 1e-9
ENERGIES = {"Ricci energy": AF.ricci_energy, "smoothness energy": AF.smoothness_energy}


def measured_flow(effort: Effort) -> Finding:
    """Run the flow from a random start and from the worst one on several graphs."""
    generator = torch.Generator().manual_seed(effort.seed)
    graphs = small_graphs(effort.of(8, 30, 60), generator)
    (ring, nodes), (others, more) = graphs["ring"], graphs["random"]
    graphs["ring and random"] = torch.cat([ring, others + nodes], dim=1), nodes + more
    found = {name: _measured(graph, generator) for name, graph in graphs.items()}
    rows = [{"graph": name, **row} for name, (row, _) in found.items()]
    curves = {name: energies for name, (_, energies) in found.items()}
    return Finding.of(
        "flow",
        [
            converges(rows),
            *(lowers(energy, rows) for energy in ENERGIES),
            minimizes_curvature(rows),
            has_rate(rows),
        ],
        {"flow": rows},
        [_panel(energy, curves) for energy in ENERGIES],
        step=STEP,
    )


def _measured(
    graph: EdgesAndNodes, generator: torch.Generator
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """The numbers of a row, and the energies along the flow from the worst start."""
    edge_index, nodes = graph
    matrix = adjacency(*graph)
    degree = matrix.sum(1, keepdim=True)
    component = torch.from_numpy(connected_components(matrix.numpy())[1]).long()
    member = torch.nn.functional.one_hot(component).double()
    gap = float(torch.linalg.eigvalsh(laplacian_matrix(*graph, normalized=True))[member.size(1)])
    g = 0.5 + torch.rand(nodes, 1, generator=generator, dtype=torch.float64)
    limit = member @ (member.T @ (degree * g) / (member.T @ degree))

    def distance(field: Tensor) -> float:  # in the norm in which the flow is self-adjoint
        return float((degree * (field - limit).square()).sum().sqrt())

    field, distances = g, [distance(g)]
    while distances[-1] > ENDED * distances[0]:
        field = AF.ricci_flow(field, edge_index, steps=1, step_size=STEP)
        distances.append(distance(field))
    late = max(len(distances) // 2, 1)
    rate = -math.log(distances[-1] / distances[-late - 1]) / (late * STEP)
    energies = _energies(_worst_start(matrix / degree, degree * member), edge_index)
    row = {
        "lambda_2": -math.log(1 - STEP * gap) / STEP,
        "rate of the flow": rate,
        "off the weighted mean at the end": float((field - limit).abs().max()),
    }
    for energy, values in energies.items():
        row[f"{energy}, largest rise %"] = 100 * (max(values) / values[0] - 1)
    # The same start mirrored, 2 - g, has the total of the other sign.
    row["total curvature at the start"] = -abs(float(AF.discrete_ricci(g, edge_index).sum()))
    return row, energies


def _worst_start(walk: Tensor, weighted: Tensor) -> Tensor:
    """A metric in [0.5, 1.5] whose Ricci energy the flow raises most at first, ``[N, 1]``.

    With curvature r the energy r^T r has the slope -2 r^T (I - P) r, P the matrix of the mean over
    neighbours: the worst r is the lowest eigenvector of the symmetric part of I - P.

    Args:
        walk: P, ``[N, N]``.
        weighted: Degrees of each component, ``[N, C]``; curvatures are orthogonal to them.
    """
    rest = torch.eye(len(walk), dtype=torch.float64) - walk
    basis = torch.linalg.svd(weighted.T)[2][weighted.size(1) :].T
    curvature = basis @ torch.linalg.eigh(basis.T @ (rest + rest.T) @ basis)[1][:, :1]
    field = torch.linalg.lstsq(rest, curvature, driver="gelsd")[0]
    field = field - field.min()
    start: Tensor = 0.5 + field / field.max()
    return start


def _energies(start: Tensor, edge_index: Tensor, steps: int = 60) -> dict[str, list[float]]:
    fields = [start]
    while len(fields) < steps:
        fields.append(AF.ricci_flow(fields[-1], edge_index, steps=1, step_size=STEP))
    return {
        name: [float(energy(field, edge_index)) for field in fields]
        for name, energy in ENERGIES.items()
    }


def converges(rows: MeasuredRows) -> Statement:
    """Verdict on the limit, from the spread of the metric at the end."""
    off = max(column(rows, "off the weighted mean at the end"))
    return stated("limit of the Ricci flow", graded(off < 1e-7), graphs=len(rows), off=off)


def lowers(energy: str, rows: MeasuredRows) -> Statement:
    """Verdict on an energy, from its largest rise on each graph."""
    rises = {row["graph"]: row[f"{energy}, largest rise %"] for row in rows}
    rising = [name for name, rise in rises.items() if rise > 100 * ROUNDING]
    found = f"it never rises on {len(rows)} graphs"
    if rising:
        worst = max(rising, key=rises.__getitem__)
        found = f"it rises on {', '.join(rising)}; most, by {rises[worst]:.3g} %, on {worst}"
    return stated(f"flow lowers the {energy}", graded(not rising), found=found)


def minimizes_curvature(rows: MeasuredRows) -> Statement:
    """Verdict on the total curvature, which is zero at the end of the flow."""
    lowest = min(column(rows, "total curvature at the start"))
    return stated("flow minimises the total curvature", graded(lowest > -1e-9), lowest=lowest)


def has_rate(rows: MeasuredRows) -> Statement:
    """Verdict on the rate, beside the spectral gap."""
    ratios = [row["rate of the flow"] / row["lambda_2"] for row in rows]
    low, high = min(ratios), max(ratios)
    verdict = graded(max(1 - low, high - 1) <= 0.05, low >= 0.95)
    return stated("rate of the flow", verdict, low=low, high=high, step=STEP)


def _panel(energy: str, curves: Mapping[str, Mapping[str, list[float]]]) -> Panel:
    series = []
    for place, (name, found) in enumerate(curves.items()):
        values = [value / found[energy][0] for value in found[energy]]
        times = [STEP * step for step in range(len(values))]
        series.append(Series(name, times, values, "-" if place < 4 else "--"))
    ylabel = "energy over that of the start" if energy == "Ricci energy" else ""
    return Panel(series, "time of the flow", ylabel, energy.capitalize(), level=1)
