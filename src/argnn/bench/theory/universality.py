"""Which metric fields the metric network can fit, and one that it cannot."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import column, grouped
from argnn.bench.theory.training import adam_fit
from argnn.data.synthetic import cycle
from argnn.functional.neighborhood import neighborhood
from argnn.nn import MetricNet
from argnn.settings.options import seeded

#: The error that a fit has to reach: largest of a node, relative to the typical metric.
EPSILON = 0.05
_CHANNELS = 4
_TWINS = "twins"
#: Fields as functions of a linear image of the network's inputs, from simple to hard.
FIELDS: dict[str, Callable[[Tensor], Tensor]] = {
    "constant": lambda z: torch.full_like(z, 1.7),
    "softplus of a linear map": torch.nn.functional.softplus,
    "slow sine": lambda z: 1 + 0.5 * torch.sin(2 * z),
    "fast sine": lambda z: 1 + 0.5 * torch.sin(8 * z),
    "step": lambda z: 1 + 0.5 * torch.sign(z),
    "random per node": lambda z: 0.5 + torch.rand_like(z),
}


def measured_universality(effort: Effort) -> Finding:
    """Fit fields on a random graph with growing networks, and a field that differs at twins."""
    sizes = effort.of(((16, 2),), ((32, 2), (128, 3)), ((16, 2), (64, 2), (256, 3)))
    nodes, steps = effort.of(12, 60, 100), effort.of(3, 800, 3000)
    with seeded(effort.seed):
        edges = random_graph(nodes, 2 * nodes, torch.Generator().manual_seed(effort.seed))
        h = torch.rand(nodes, _CHANNELS) * 2 - 1
        inputs = torch.cat([h, AF.neighbor_mean(h, edges)], dim=1)
        mapped = inputs @ torch.randn(inputs.size(1), _CHANNELS)
        fields = {name: field(mapped) for name, field in FIELDS.items()}
        cases = [(name, size, h, edges, field) for name, field in fields.items() for size in sizes]
        ring = torch.cat([cycle(nodes), cycle(nodes).flip(0)], dim=1)
        target = 1.0 + (torch.arange(nodes) % 2).float().unsqueeze(1).expand(-1, _CHANNELS)
        cases.append((_TWINS, sizes[-1], torch.ones(nodes, _CHANNELS), ring, target))
        rows = [_fitted_row(*case, steps) for case in cases]
    best = {name: min(column(own, "largest error")) for name, own in grouped(rows, "field").items()}
    # Two nodes with one metric: one of them is at least half the gap of 1 to 2 off.
    apart = twins(best.pop(_TWINS), 0.5 / 1.5)
    series = [
        Series(f"width {width}, depth {depth}", column(own, "largest error"), column(own, "field"))
        for (width, depth), own in zip(sizes, grouped(rows, "width").values(), strict=True)
    ]
    return Finding.of(
        "universality",
        [fits_fields(best), apart],
        {"universality": rows},
        [Panel(series, "largest relative error of a node", log="x", level=EPSILON)],
        nodes=nodes,
        channels=_CHANNELS,
        steps=steps,
    )


def _fitted_row(
    name: str, size: tuple[int, int], h: Tensor, edge_index: Tensor, target: Tensor, steps: int
) -> dict[str, Any]:
    """Errors of the nodes after a fit, relative to the mean length of the field."""
    width, depth = size
    net = MetricNet(h.size(1), _CHANNELS, hidden_channels=width, num_layers=depth, spread=1.0)
    hood = neighborhood(edge_index, h.size(0))
    adam_fit(list(net.parameters()), lambda: (net(h, hood) - target).square().mean(), steps)
    with torch.no_grad():
        gaps = (net(h, hood) - target).norm(dim=-1) / target.norm(dim=-1).mean()
    return {
        "field": name,
        "width": width,
        "depth": depth,
        "largest error": float(gaps.max()),
        "root mean square": float(gaps.square().mean().sqrt()),
    }


def fits_fields(best: Mapping[str, float]) -> Statement:
    """Verdict on fields that are functions of the inputs, from the best error of each."""
    missed = [name for name, error in best.items() if error > EPSILON]
    found = ", ".join(f"{name} {100 * error:.2g} %" for name, error in best.items())
    verdict = graded(not missed, 2 * len(missed) < len(best), "not reproduced")
    name = "universality for functions of the inputs"
    return stated(name, verdict, found=found, epsilon=EPSILON)


def twins(error: float, least: float) -> Statement:
    """Verdict on a field that differs between nodes with equal inputs."""
    verdict = graded(error < 0.99 * least)
    return stated("universality for any target", verdict, error=100 * error, least=100 * least)
