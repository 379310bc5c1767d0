"""The Ricci flow: where it ends, which functional it lowers, and how fast it is."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from argnn import functional as AF
from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.bench.theory.graphs import EdgesAndNodes, adjacency, laplacian_matrix, small_graphs

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STEP = 0.1
#: A rise smaller than this share of the start is a rounding error.
ROUNDING = 1e-12
#: Distance from the limit at which the flow counts as ended, relative to the start.
ENDED = 1e-9
_THEOREM = "thm:app_ricci_flow_convergence"
_COLUMNS = [
    "graph",
    "lambda_2",
    "rate of the flow",
    "off the weighted mean at the end",
    "Ricci energy, largest rise %",
    "smoothness energy, largest rise %",
    "total curvature at the start",
]


def measured_flow(effort: Effort) -> Finding:
    """Run the flow from a random start and from the worst one on several graphs."""
    generator = torch.Generator().manual_seed(effort.seed)
    graphs = small_graphs(effort.of(8, 30, 60), generator)
    (ring, nodes), (others, more) = graphs["ring"], graphs["random"]
    graphs["ring and random"] = torch.cat([ring, others + nodes], dim=1), nodes + more
    rows, curves = [], {}
    for name, graph in graphs.items():
        row, curves[name] = _measured(name, graph, generator)
        rows.append(row)
    table = FoundTable("flow", _COLUMNS, rows)
    known = table.records()
    return Finding(
        [
            converges(known),
            lowers("Ricci energy", known),
            lowers("smoothness energy", known),
            minimizes_curvature(known),
            has_rate(known),
        ],
        [table],
        f"Explicit steps of {STEP} in float64, as AF.ricci_flow takes them; one graph has two "
        "components. Energies: the largest rise above the start along the flow, from the start "
        "that raises the Ricci energy most; all else from a random start in [0.5, 1.5].",
        lambda: _figure(curves),
    )


def _measured(
    name: str, graph: EdgesAndNodes, generator: torch.Generator
) -> tuple[list[Any], Mapping[str, Sequence[float]]]:
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
    rises = [100 * (max(values) / values[0] - 1) for values in energies.values()]
    # The same start mirrored, 2 - g, has the total of the other sign.
    total = -abs(float(AF.discrete_ricci(g, edge_index).sum()))
    end = float((field - limit).abs().max())
    return [name, -math.log(1 - STEP * gap) / STEP, rate, end, *rises, total], energies


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
    field = start
    energies: dict[str, list[float]] = {"Ricci energy": [], "smoothness energy": []}
    for _ in range(steps):
        energies["Ricci energy"].append(float(AF.ricci_energy(field, edge_index)))
        energies["smoothness energy"].append(float(AF.smoothness_energy(field, edge_index)))
        field = AF.ricci_flow(field, edge_index, steps=1, step_size=STEP)
    return energies


def converges(rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Verdict on the limit, from the spread of the metric at the end."""
    off = max(row["off the weighted mean at the end"] for row in rows)
    return Statement(
        "limit of the Ricci flow",
        "The metric converges to a steady state without curvature.",
        _THEOREM,
        f"on {len(rows)} graphs it ends, up to {off:.1g}, constant on each component, at the mean "
        "of the start weighted by degree",
        "verified if the distance is below 1e-7, else refuted",
        graded(off < 1e-7),
    )


def lowers(energy: str, rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Verdict on an energy, from its largest rise on each graph."""
    rises = {row["graph"]: row[f"{energy}, largest rise %"] for row in rows}
    rising = [name for name, rise in rises.items() if rise > 100 * ROUNDING]
    found = f"it never rises on {len(rows)} graphs"
    if rising:
        worst = max(rising, key=rises.__getitem__)
        found = f"it rises on {', '.join(rising)}; most, by {rises[worst]:.3g} %, on {worst}"
    says, place = {
        "Ricci energy": (
            "The sum of squared curvatures never rises along the flow.",
            "eq:app_lyapunov_functional",
        ),
        "smoothness energy": (
            "Not in the paper: an energy that the flow does lower.",
            "eq:smoothness_regularization",
        ),
    }[energy]
    return Statement(
        f"flow lowers the {energy}",
        says,
        place,
        found,
        "verified if it rises on no graph, refuted if on any",
        graded(not rising),
    )


def minimizes_curvature(rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Verdict on the total curvature, which is zero at the end of the flow."""
    lowest = min(row["total curvature at the start"] for row in rows)
    return Statement(
        "flow minimises the total curvature",
        "The steady state minimises the total scalar curvature.",
        _THEOREM,
        f"at the end the sum over nodes of Ric is 0; at a start it is {lowest:.3g}",
        "refuted if a start has less than the end, else verified",
        graded(lowest > -1e-9),
    )


def has_rate(rows: Sequence[Mapping[str, Any]]) -> Statement:
    """Verdict on the rate, beside the spectral gap."""
    ratios = [row["rate of the flow"] / row["lambda_2"] for row in rows]
    off = max(abs(ratio - 1) for ratio in ratios)
    return Statement(
        "rate of the flow",
        "The effective curvature of smoothing is lambda_2 of the normalised Laplacian.",
        "lem:effective_curvature",
        f"late rate over lambda_2: {min(ratios):.3f} to {max(ratios):.3f} (steps of {STEP} "
        "taken into account)",
        "verified within 5 %, with changes if never slower, else refuted",
        graded(off <= 0.05, min(ratios) >= 0.95),
    )


@styled
def _figure(curves: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    figure = new_figure(7.2, 3.0)
    for ax, energy in zip(
        figure.subplots(1, 2), ("Ricci energy", "smoothness energy"), strict=True
    ):
        for place, (name, found) in enumerate(curves.items()):
            values = [value / found[energy][0] for value in found[energy]]
            times = [STEP * step for step in range(len(values))]
            ax.plot(times, values, "-" if place < 4 else "--", color=PALETTE[place], label=name)
        ax.axhline(1, color="#555555", linestyle=":", linewidth=0.9)
        ax.set(title=energy.capitalize(), xlabel="time of the flow", ylim=(0, None))
    figure.axes[0].set_ylabel("energy over that of the start")
    figure.axes[0].legend(loc="best")
    return figure
