"""The gradients and the Hessian that the paper prints, beside autograd in float64."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import EdgesAndNodes, adjacency, small_graphs
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import column, grouped
from argnn.functional import closed_forms

#: Relative error of a right formula: sums of up to a thousand terms in float64, with a margin.
TOLERANCE = 1e-9
#: What each formula should read.
FORMULAS = {
    "gradient of the Ricci energy": "Ric_i - sum over neighbours j of Ric_j / deg(j)",
    "Hessian of the Ricci energy": "(I - P)^T (I - P) / 2 with P = A / degree",
    "gradient of the smoothness energy": "as printed",
    "gradient of the modulation": "as printed",
    "gradient of the attention": "the second term halved",
    "gradient of the task by a metric": "also those it sends, whose attention has its norm",
}
_PRINTED, _RIGHT = "error as printed", "error of the right formula"
#: A formula as printed, as it should read, and by autograd.
Compared = tuple[Tensor, Tensor, Tensor]


def measured_gradients(effort: Effort) -> Finding:
    """Compare every formula on small graphs with random metrics and features."""
    generator = torch.Generator().manual_seed(effort.seed)
    rows = [
        {
            "formula": name,
            "graph": graph_name,
            _PRINTED: relative_error(printed, truth),
            _RIGHT: relative_error(right, truth),
        }
        for graph_name, graph in small_graphs(effort.of(8, 30, 100), generator).items()
        for name, (printed, right, truth) in compared(graph, generator).items()
    ]
    series = [
        Series(label, [max(e, 1e-18) for e in column(rows, name)], column(rows, "formula"), mark)
        for label, name, mark in (("as printed", _PRINTED, "o"), ("right formula", _RIGHT, "x"))
    ]
    return Finding.of(
        "gradients",
        [
            judged(name, column(own, _PRINTED), column(own, _RIGHT))
            for name, own in grouped(rows, "formula").items()
        ],
        {"gradients": rows},
        [Panel(series, "largest error relative to autograd", log="x", level=TOLERANCE)],
    )


def relative_error(value: Tensor, truth: Tensor) -> float:
    """Largest difference, relative to the largest entry of the truth."""
    return float((value - truth).abs().max() / truth.abs().max())


def compared(
    graph: EdgesAndNodes, generator: torch.Generator, channels: int = 3
) -> dict[str, Compared]:
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


def _energies(g: Tensor, edge_index: Tensor) -> list[Compared]:
    nodes = g.size(0)
    matrix = adjacency(edge_index, nodes)
    degree = matrix.sum(1, keepdim=True)
    hessian = torch.autograd.functional.hessian(
        lambda channel: AF.ricci_energy(channel.unsqueeze(-1), edge_index), g[:, 0]
    )
    return [
        (
            -AF.discrete_ricci(g, edge_index) / degree,
            closed_forms.ricci_energy_gradient(g, edge_index),
            _gradient(lambda field: AF.ricci_energy(field, edge_index), g),
        ),
        (
            torch.eye(nodes, dtype=torch.float64) - matrix / degree,
            closed_forms.ricci_energy_hessian(edge_index, nodes),
            hessian,
        ),
        (
            2 * (degree * g - matrix @ g),
            closed_forms.smoothness_energy_gradient(g, edge_index),
            _gradient(lambda field: AF.smoothness_energy(field, edge_index), g),
        ),
    ]


def _of_edges(h: Tensor, g: Tensor, edge_index: Tensor, pull: Tensor) -> list[Compared]:
    source, target = edge_index
    h_i, h_j, g_i, g_j = h[target], h[source], g[target], g[source]
    # Each edge with two nodes of its own, so that autograd tells the edges apart.
    apart = torch.arange(2 * target.numel()).view(2, -1).flip(0)
    ends = torch.cat([h_i, h_j])
    metrics = torch.cat([g_i, g_j])
    tau_truth = _gradient(lambda own: AF.edge_modulation(ends, own, apart, eps=0).sum(), metrics)
    alpha_truth = _gradient(lambda own: AF.edge_attention(ends, own, apart, eps=0).sum(), metrics)
    direction = (h_j - h_i) / (h_j - h_i).norm(dim=-1, keepdim=True)
    by_tau = closed_forms.modulation_gradient(direction, g_i)
    by_target, by_source = closed_forms.attention_gradient(h_i, h_j, g_i, g_j)
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
    worst, right = max(printed_errors), ""
    if worst > TOLERANCE:
        right = f"; right is: {FORMULAS[name]} (error {max(right_errors):.1g})"
    return stated(name, graded(worst <= TOLERANCE), worst=worst, right=right, tolerance=TOLERANCE)
