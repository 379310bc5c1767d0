"""The gradients and the Hessian that the paper prints, beside autograd in float64."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.bench.theory.graphs import EdgesAndNodes, adjacency, small_graphs
from argnn.functional.closed_forms import (
    attention_gradient,
    modulation_gradient,
    ricci_energy_gradient,
    ricci_energy_hessian,
    smoothness_energy_gradient,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Relative error of a right formula: sums of up to a thousand terms in float64, with a margin.
TOLERANCE = 1e-9
_RULE = f"verified if the relative error is at most {TOLERANCE:g} on every graph, else refuted"
#: Formula, what the paper prints for it, where, and what it should read.
FORMULAS = {
    "gradient of the Ricci energy": (
        "minus Ric_i / deg(i)",
        "lem:total_gradient (ii)",
        "Ric_i - sum over neighbours j of Ric_j / deg(j)",
    ),
    "Hessian of the Ricci energy": (
        "1 on the diagonal, -1/deg(i) at neighbours",
        "definition 'Graph-Geometric Hessian'",
        "(I - P)^T (I - P) / 2 with P = A / degree",
    ),
    "gradient of the smoothness energy": (
        "2 sum over neighbours of (g_i - g_j)",
        "lem:total_gradient (iii)",
        "as printed",
    ),
    "gradient of the modulation": (
        "minus d^2 sech^2(log g) / g",
        "app:backward_pass",
        "as printed",
    ),
    "gradient of the attention": (
        "h_i h_j / (n_i n_j) - p h_i^2 / (n_i^3 n_j)",
        "app:backward_pass",
        "the second term halved",
    ),
    "gradient of the task by a metric": (
        "a sum over the messages that node i receives",
        "app:backward_pass",
        "also those it sends, whose attention has its norm",
    ),
}


def measured_gradients(effort: Effort) -> Finding:
    """Compare every formula on small graphs with random metrics and features."""
    generator = torch.Generator().manual_seed(effort.seed)
    graphs = small_graphs(effort.of(8, 30, 100), generator)
    rows: list[list[Any]] = []
    for graph_name, graph in graphs.items():
        for name, (paper, ours, truth) in compared(graph, generator).items():
            errors = [relative_error(value, truth) for value in (paper, ours)]
            rows.append([name, graph_name, *errors])
    return Finding(
        [
            judged(name, *zip(*(row[2:] for row in rows if row[0] == name), strict=True))
            for name in FORMULAS
        ],
        [
            FoundTable(
                "gradients",
                ["formula", "graph", "error as printed", "error of the right formula"],
                rows,
            )
        ],
        "Float64, random metrics in [0.5, 2], random features; the error is the largest "
        "difference relative to the largest entry of autograd's result.",
        lambda: _figure(rows),
    )


def relative_error(value: Tensor, truth: Tensor) -> float:
    """Largest difference, relative to the largest entry of the truth."""
    return float((value - truth).abs().max() / truth.abs().max())


#: A formula as printed, as it should read, and by autograd.
Compared = dict[str, tuple[Tensor, Tensor, Tensor]]


def compared(graph: EdgesAndNodes, generator: torch.Generator, channels: int = 3) -> Compared:
    """Every formula on one graph with random metrics and features."""
    edge_index, nodes = graph
    g = 0.5 + 1.5 * torch.rand(nodes, channels, generator=generator, dtype=torch.float64)
    h, pull = (
        torch.randn(size, channels, generator=generator, dtype=torch.float64)
        for size in (nodes, edge_index.size(1))
    )
    values = (*_energies(g, edge_index), *_of_edges(h, g, edge_index, pull))
    return dict(zip(FORMULAS, values, strict=True))


def _gradient(function: Callable[[Tensor], Tensor], g: Tensor) -> Tensor:
    leaf = g.clone().requires_grad_()
    return torch.autograd.grad(function(leaf), leaf)[0]


def _energies(g: Tensor, edge_index: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
    nodes = g.size(0)
    matrix = adjacency(edge_index, nodes)
    degree = matrix.sum(1, keepdim=True)
    hessian = torch.autograd.functional.hessian(
        lambda channel: AF.ricci_energy(channel.unsqueeze(-1), edge_index), g[:, 0]
    )
    return [
        (
            -AF.discrete_ricci(g, edge_index) / degree,
            ricci_energy_gradient(g, edge_index),
            _gradient(lambda field: AF.ricci_energy(field, edge_index), g),
        ),
        (
            torch.eye(nodes, dtype=torch.float64) - matrix / degree,
            ricci_energy_hessian(edge_index, nodes),
            hessian,
        ),
        (
            2 * (degree * g - matrix @ g),
            smoothness_energy_gradient(g, edge_index),
            _gradient(lambda field: AF.smoothness_energy(field, edge_index), g),
        ),
    ]


def _of_edges(
    h: Tensor, g: Tensor, edge_index: Tensor, pull: Tensor
) -> list[tuple[Tensor, Tensor, Tensor]]:
    source, target = edge_index
    h_i, h_j, g_i, g_j = h[target], h[source], g[target], g[source]
    # Each edge with two nodes of its own, so that autograd tells the edges apart.
    apart = torch.arange(2 * target.numel()).view(2, -1).flip(0)
    ends = torch.cat([h_i, h_j])
    metrics = torch.cat([g_i, g_j])
    tau_truth = _gradient(lambda own: AF.edge_modulation(ends, own, apart, eps=0).sum(), metrics)
    alpha_truth = _gradient(lambda own: AF.edge_attention(ends, own, apart, eps=0).sum(), metrics)
    direction = (h_j - h_i) / (h_j - h_i).norm(dim=-1, keepdim=True)
    by_tau = modulation_gradient(direction, g_i)
    by_target, by_source = attention_gradient(h_i, h_j, g_i, g_j)
    n_i, n_j = AF.norm(h_i, g_i).unsqueeze(-1), AF.norm(h_j, g_j).unsqueeze(-1)
    product = AF.inner_product(h_i, h_j, g_i).unsqueeze(-1)

    def task(field: Tensor) -> Tensor:
        tau = AF.edge_modulation(h, field, edge_index, eps=0)
        gate = AF.edge_attention(h, field, edge_index, eps=0).sigmoid()
        return ((tau * gate).unsqueeze(-1) * h_j * pull).sum()

    tau = AF.edge_modulation(h, g, edge_index, eps=0).unsqueeze(-1)
    gate = AF.edge_attention(h, g, edge_index, eps=0).sigmoid().unsqueeze(-1)
    along = (h_j * pull).sum(-1, keepdim=True)
    steep = tau * gate * (1 - gate)
    received = torch.zeros_like(g).index_add(0, target, along * (by_tau * gate + steep * by_target))
    sent = torch.zeros_like(g).index_add(0, source, along * steep * by_source)
    half = target.numel()
    printed_tau = -direction.square() / g_i * torch.cosh(g_i.log()) ** -2
    printed_alpha = h_i * h_j / (n_i * n_j) - product * h_i.square() / (n_i**3 * n_j)
    return [
        (printed_tau, by_tau, tau_truth[:half]),
        (printed_alpha, by_target, alpha_truth[:half]),
        (received, received + sent, _gradient(task, g)),
    ]


def judged(name: str, printed_errors: Sequence[float], right_errors: Sequence[float]) -> Statement:
    """Verdict on one formula, from its largest errors over the graphs."""
    says, place, right = FORMULAS[name]
    worst, ours = max(printed_errors), max(right_errors)
    found = f"relative error {worst:.2g}"
    if worst > TOLERANCE:
        found += f"; right is: {right} (error {ours:.1g})"
    return Statement(name, says, place, found, _RULE, graded(worst <= TOLERANCE))


@styled
def _figure(rows: Sequence[Sequence[Any]]) -> "Figure":
    figure = new_figure(7.2, 2.8)
    ax = figure.subplots()
    names = list(FORMULAS)
    for column, label, marker in ((2, "as printed", "o"), (3, "right formula", "x")):
        points = [(max(row[column], 1e-18), names.index(row[0])) for row in rows]
        color = PALETTE[5 if column == 2 else 2]
        ax.plot(*zip(*points, strict=True), marker, color=color, label=label, ms=5)
    ax.axvline(TOLERANCE, color="#555555", linestyle=":", linewidth=0.9)
    ax.set_yticks(range(len(names)), names)
    ax.set(xscale="log", xlabel="largest error relative to autograd", ylim=(len(names), -1))
    ax.legend(loc="best")
    return figure
