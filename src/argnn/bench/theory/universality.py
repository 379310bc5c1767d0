"""Which metric fields the metric network can fit, and one that it cannot."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.training import adam_fit
from argnn.data.synthetic import cycle
from argnn.functional.neighborhood import neighborhood
from argnn.nn import MetricNet
from argnn.settings.options import seeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The error that a fit has to reach: largest of a node, relative to the typical metric.
EPSILON = 0.05
_CHANNELS = 4
_COLUMNS = ["field", "width", "depth", "largest error", "root mean square"]
_TWINS = "twins"
_STEPS = (3, 800, 3000)
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
    nodes = effort.of(12, 60, 100)
    with seeded(effort.seed):
        edges = random_graph(nodes, 2 * nodes, torch.Generator().manual_seed(effort.seed))
        h = torch.rand(nodes, _CHANNELS) * 2 - 1
        inputs = torch.cat([h, AF.neighbor_mean(h, edges)], dim=1)
        mapped = inputs @ torch.randn(inputs.size(1), _CHANNELS)
        fields = {name: field(mapped) for name, field in FIELDS.items()}
        rows: list[list[Any]] = [
            [name, width, depth, *_fit_errors(h, edges, field, width, depth, effort)]
            for name, field in fields.items()
            for width, depth in sizes
        ]
        ring = torch.cat([cycle(nodes), cycle(nodes).flip(0)], dim=1)
        target = 1.0 + (torch.arange(nodes) % 2).float().unsqueeze(1).expand(-1, _CHANNELS)
        width, depth = sizes[-1]
        same = torch.ones(nodes, _CHANNELS)
        rows.append([_TWINS, width, depth, *_fit_errors(same, ring, target, width, depth, effort)])
    best = {name: min(row[3] for row in rows if row[0] == name) for name in (*fields, _TWINS)}
    # Two nodes with one metric: one of them is at least half the gap of 1 to 2 off.
    least = 0.5 / 1.5
    return Finding(
        [fits_fields({n: e for n, e in best.items() if n != _TWINS}), twins(best[_TWINS], least)],
        [FoundTable("universality", _COLUMNS, rows)],
        f"{nodes} nodes, {_CHANNELS} channels, Adam for {effort.of(*_STEPS)} steps with a "
        "cosine schedule. Errors of a node are lengths, relative to the mean length of the "
        "field. It is the field at these nodes that is fitted; other nodes were not looked at.",
        lambda: _figure(rows),
    )


def _fit_errors(
    h: Tensor, edge_index: Tensor, target: Tensor, width: int, depth: int, effort: Effort
) -> list[float]:
    """Largest and root-mean-square error of the nodes, relative to the mean length."""
    net = MetricNet(h.size(1), _CHANNELS, hidden_channels=width, num_layers=depth, spread=1.0)
    hood = neighborhood(edge_index, h.size(0))
    adam_fit(
        list(net.parameters()),
        lambda: (net(h, hood) - target).square().mean(),
        effort.of(*_STEPS),
    )
    with torch.no_grad():
        gaps = (net(h, hood) - target).norm(dim=-1) / target.norm(dim=-1).mean()
    return [float(gaps.max()), float(gaps.square().mean().sqrt())]


def fits_fields(best: dict[str, float]) -> Statement:
    """Verdict on fields that are functions of the inputs, from the best error of each."""
    missed = [name for name, error in best.items() if error > EPSILON]
    found = ", ".join(f"{name} {100 * error:.2g} %" for name, error in best.items())
    return Statement(
        "universality for functions of the inputs",
        "The metric network comes as close as one likes to any target metric, at all nodes.",
        "app:universality_proof, step 4",
        f"largest error of a node, by the best network: {found}",
        f"verified if every field is fitted to {EPSILON:.0%}, with changes if more than half of "
        "them, else not reproduced",
        graded(not missed, 2 * len(missed) < len(best), "not reproduced"),
    )


def twins(error: float, least: float) -> Statement:
    """Verdict on a field that differs between nodes with equal inputs."""
    return Statement(
        "universality for any target",
        "For any target metric the network is closer than any epsilon at all nodes.",
        "app:universality_proof, step 4",
        f"nodes with equal inputs and other targets: error {100 * error:.1f} %, and none can be "
        f"below {100 * least:.1f} %",
        "refuted if the error is not below that limit, else verified",
        graded(error < 0.99 * least),
    )


@styled
def _figure(rows: Sequence[Sequence[Any]]) -> "Figure":
    figure = new_figure(6.6, 2.8)
    ax = figure.subplots()
    names = list(dict.fromkeys(row[0] for row in rows))
    sizes = list(dict.fromkeys((row[1], row[2]) for row in rows))
    for place, size in enumerate(sizes):
        own = [(row[3], names.index(row[0])) for row in rows if (row[1], row[2]) == size]
        label = f"width {size[0]}, depth {size[1]}"
        color = PALETTE[place]
        ax.plot(*zip(*own, strict=True), "os^D"[place % 4], color=color, label=label, ms=5)
    ax.axvline(EPSILON, color="#555555", linestyle=":", linewidth=0.9)
    ax.set_yticks(range(len(names)), names)
    ax.set(xscale="log", xlabel="largest relative error of a node", ylim=(len(names) - 0.5, -0.5))
    ax.legend(loc="best")
    return figure
