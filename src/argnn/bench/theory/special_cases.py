"""Constant metrics, and whether networks of fixed curvature are special cases."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.analysis.figures.style import PALETTE, new_figure, styled
from argnn.bench.theory.finding import Effort, Finding, FoundTable, Statement, graded
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.training import adam_fit
from argnn.functional.neighborhood import neighborhood
from argnn.functional.stereographic import expmap0, squared_distance
from argnn.nn import ARConv
from argnn.nn.conv.hgcn_conv import HGCNConv
from argnn.nn.conv.pyg import GATConv, GCNConv
from argnn.settings.options import seeded

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CONSTANTS = {"hyperbolic": 0.5, "Euclidean": 1.0, "spherical": 2.0}
#: Relative error up to which a layer counts as approximated, and with changes.
CLOSE, ROUGH = 0.01, 0.1
_NODES, _CHANNELS = 40, 8
Layer = Callable[[Tensor, Any], Tensor]


def measured_special_cases(effort: Effort) -> Finding:
    """Constant metrics on a random graph, distances of curved spaces, and fits of other layers."""
    generator = torch.Generator().manual_seed(effort.seed)
    edges = random_graph(_NODES, 2 * _NODES, generator)
    h = torch.randn(_NODES, _CHANNELS, generator=generator, dtype=torch.float64)
    constant = [_constant_row(name, c, h, edges) for name, c in CONSTANTS.items()]
    random = torch.rand(h.shape, generator=generator, dtype=h.dtype)
    bounds = AF.edge_modulation(h, (6 * random - 3).exp(), edges, eps=0)
    spread = [_distance_row(name, k, generator) for name, k in _SPACES.items()]
    layers = [_layer_row(name, edges, effort) for name in _LAYERS]
    return Finding(
        [
            constant_modulation([row[4] for row in constant], float(bounds.abs().max())),
            euclidean_messages(constant[1][5], constant[1][6]),
            proportional_distances(spread),
            approximated_layers(layers),
        ],
        [
            FoundTable("special-cases", _CONSTANT, constant),
            FoundTable("special-distances", _DISTANCES, spread),
            FoundTable("special-layers", _FITS, layers),
        ],
        f"A random graph of {_NODES} nodes, {_CHANNELS} channels. Distances from one point to "
        "500 others with tangent vectors of length up to 1, against the best metric of that point. "
        "Layers: "
        "an ARConv with a free metric for every node, fitted to the outputs of the other layer on "
        "random features, its error on fresh ones relative to the size of the outputs.",
        lambda: _figure(layers),
    )


_CONSTANT = ["space", "c", "smallest tau", "largest tau", "off tanh(-log c)"]
_CONSTANT += ["size of messages", "size with eps0 = 0.1"]
_DISTANCES = ["space", "curvature", "smallest ratio", "largest ratio", "largest over smallest"]
_FITS = ["layer", "error, metric fixed at 0.5", "error, free metrics"]
_SPACES = {"hyperbolic": -1.0, "spherical": 1.0, "Euclidean": 0.0}


def _constant_row(name: str, c: float, h: Tensor, edges: Tensor) -> list[Any]:
    g = torch.full_like(h, c)
    tau = AF.edge_modulation(h, g, edges, eps=0)
    off = float((tau - math.tanh(-math.log(c))).abs().max())
    sizes = [float(AF.propagate(h, g, h, edges, eps0).abs().max()) for eps0 in (0.0, 0.1)]
    return [name, c, float(tau.min()), float(tau.max()), off, *sizes]


def _distance_row(name: str, curvature: float, generator: torch.Generator) -> list[Any]:
    """Distances from a point of a curved space over those of the metric that fits them best."""
    k = torch.tensor(curvature, dtype=torch.float64)
    u = torch.randn(501, 2, generator=generator, dtype=torch.float64)
    length = torch.rand(501, 1, generator=generator, dtype=torch.float64)
    points = expmap0(u / u.norm(dim=-1, keepdim=True) * length, k)
    x, y = points[:1].expand(500, -1), points[1:]
    squares = squared_distance(x, y, k).reshape(-1, 1)
    gaps = (x - y).square()
    g = torch.linalg.lstsq(gaps, squares)[0].clamp_min(1e-9).T
    ratio = squares.squeeze().sqrt() / AF.geodesic_distance(x, y, g.expand_as(x))
    low, high = float(ratio.min()), float(ratio.max())
    return [name, curvature, low, high, high / low]


def _hyperbolic(curvature: float) -> Layer:
    conv, k = HGCNConv(_CHANNELS, _CHANNELS), torch.tensor(curvature)
    return lambda x, edges: conv(x, edges, k)


_LAYERS: dict[str, Callable[[], Layer]] = {
    "GCN": lambda: GCNConv(_CHANNELS, _CHANNELS),
    "GAT": lambda: GATConv(_CHANNELS, _CHANNELS),
    "hyperbolic, curvature -1": lambda: _hyperbolic(-1.0),
    "spherical, curvature 1": lambda: _hyperbolic(1.0),
}


def _layer_row(name: str, edges: Tensor, effort: Effort) -> list[Any]:
    with seeded(effort.seed):
        target, many = _LAYERS[name](), effort.of(2, 8, 16)
        copies = torch.cat([edges + _NODES * n for n in range(2 * many)], dim=1)
        hood = neighborhood(copies, 2 * many * _NODES)
        x = torch.randn(2 * many * _NODES, _CHANNELS)
        with torch.no_grad():
            wanted = target(x, hood)
        errors = [
            _fit_error(x, wanted, hood, many * _NODES, learned, effort) for learned in (False, True)
        ]
    return [name, *errors]


def _fit_error(
    x: Tensor, wanted: Tensor, hood: Any, known: int, learned: bool, effort: Effort
) -> float:
    """Relative error on the later half of the copies, after fitting to the first ones."""
    conv = ARConv(_CHANNELS, _CHANNELS, metric="fixed", metric_options={"value": 0.5})
    raw = torch.zeros(_NODES, _CHANNELS).sub(0.4).requires_grad_(learned)

    def outputs() -> Tensor:
        g = AF.positive_diagonal(raw).repeat(x.size(0) // _NODES, 1)
        result: Tensor = conv(x, hood, g=g)
        return result

    adam_fit(
        [*conv.parameters(), *([raw] if learned else [])],
        lambda: (outputs()[:known] - wanted[:known]).square().mean(),
        effort.of(3, 300, 2000),
    )
    with torch.no_grad():
        gap = outputs()[known:] - wanted[known:]
    return float((gap.square().mean() / wanted[known:].square().mean()).sqrt())


def constant_modulation(off: Sequence[float], largest: float) -> Statement:
    """Verdict on the properties of the modulation."""
    return Statement(
        "modulation of a constant metric",
        "tau = tanh(-log c) on every edge for g = c 1, 0 at c = 1, and in [-1, 1].",
        "prop:message_modulation",
        f"off by at most {max(off):.1g}; of random metrics it is at most {largest:.3f} in size",
        "verified if off by at most 1e-12 and never above 1, else refuted",
        graded(max(off) <= 1e-12 and largest <= 1),
    )


def euclidean_messages(size: float, with_baseline: float) -> Statement:
    """Verdict on Euclidean networks as the case g = 1."""
    return Statement(
        "Euclidean networks are the case g = 1",
        "Euclidean GNNs, and so GCN, correspond to g = 1.",
        "thm:universality, remark 'Euclidean Singularity'",
        f"the largest message at g = 1 is {size:.2g}: a network without edges; with eps0 = 0.1 "
        f"it is {with_baseline:.2g}",
        "verified if messages pass, with changes if they pass only with a baseline eps0, else "
        "refuted",
        graded(size > 0, with_baseline > 0),
    )


def proportional_distances(rows: Sequence[Sequence[Any]]) -> Statement:
    """Verdict on the lemma, from how much the ratio of distances varies."""
    varied = {row[0]: row[4] for row in rows}
    found = ", ".join(f"{name} {ratio:.3g}" for name, ratio in varied.items())
    return Statement(
        "distances of curved spaces",
        "For every manifold some diagonal metric gives proportional geodesic distances.",
        "lem:geometric_equiv",
        f"largest over smallest ratio of distances from a point to those of its best diagonal "
        f"metric: {found}",
        "verified if at most 1.01 in every space, else refuted",
        graded(max(varied.values()) <= 1.01),
    )


def approximated_layers(rows: Sequence[Sequence[Any]]) -> Statement:
    """Verdict on the layers, from their test errors."""
    worst = max(row[2] for row in rows)
    found = ", ".join(f"{row[0]} {100 * row[2]:.0f} %" for row in rows)
    return Statement(
        "layers of other networks",
        "GNNs on a space of fixed curvature can be sufficiently approximated.",
        "thm:universality",
        f"one layer with free metrics misses by: {found}",
        f"verified if all errors are at most {CLOSE:.0%}, with changes if at most {ROUGH:.0%}, "
        "else not reproduced (a fit may miss what exists)",
        graded(worst <= CLOSE, worst <= ROUGH, "not reproduced"),
    )


@styled
def _figure(rows: Sequence[Sequence[Any]]) -> "Figure":
    figure = new_figure(6.0, 2.4)
    ax = figure.subplots()
    for column, label in ((1, "metric fixed at 0.5"), (2, "free metrics")):
        places = [place + 0.36 * (column - 1.5) for place in range(len(rows))]
        values = [100 * row[column] for row in rows]
        ax.barh(places, values, height=0.34, color=PALETTE[column - 1], label=label)
    ax.set_yticks(range(len(rows)), [row[0] for row in rows])
    ax.set(xlabel="error on fresh features, per cent", ylim=(len(rows) - 0.5, -0.5))
    ax.legend(loc="best")
    return figure
