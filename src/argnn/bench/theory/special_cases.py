"""Constant metrics, and whether networks of fixed curvature are special cases."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from argnn import functional as AF
from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.graphs import random_graph
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, column
from argnn.bench.theory.training import adam_fit
from argnn.functional.neighborhood import neighborhood
from argnn.functional.stereographic import expmap0, squared_distance
from argnn.nn import ARConv
from argnn.nn.conv.hgcn_conv import HGCNConv
from argnn.nn.conv.pyg import GATConv, GCNConv
from argnn.settings.options import seeded

CONSTANTS = {"hyperbolic": 0.5, "Euclidean": 1.0, "spherical": 2.0}
#: Relative error up to which a layer counts as approximated, and with changes.
CLOSE, ROUGH = 0.01, 0.1
_NODES, _CHANNELS = 40, 8
_SPACES = {"hyperbolic": -1.0, "spherical": 1.0, "Euclidean": 0.0}
LayerFunction = Callable[[Tensor, Any], Tensor]


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
    series = [
        Series(name, [100 * row[f"error, {name}"] for row in layers], column(layers, "layer"))
        for name in ("metric fixed at 0.5", "free metrics")
    ]
    flat = constant[1]
    return Finding.of(
        "special-cases",
        [
            constant_modulation(column(constant, "off tanh(-log c)"), float(bounds.abs().max())),
            euclidean_messages(flat["size of messages"], flat["size with eps0 = 0.1"]),
            proportional_distances(spread),
            approximated_layers(layers),
        ],
        {"special-cases": constant, "special-distances": spread, "special-layers": layers},
        [Panel(series, "error on fresh features, per cent")],
        nodes=_NODES,
        channels=_CHANNELS,
    )


def _constant_row(name: str, c: float, h: Tensor, edges: Tensor) -> dict[str, Any]:
    g = torch.full_like(h, c)
    tau = AF.edge_modulation(h, g, edges, eps=0)
    return {
        "space": name,
        "c": c,
        "smallest tau": float(tau.min()),
        "largest tau": float(tau.max()),
        "off tanh(-log c)": float((tau - math.tanh(-math.log(c))).abs().max()),
        "size of messages": float(AF.propagate(h, g, h, edges, 0.0).abs().max()),
        "size with eps0 = 0.1": float(AF.propagate(h, g, h, edges, 0.1).abs().max()),
    }


def _distance_row(name: str, curvature: float, generator: torch.Generator) -> dict[str, Any]:
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
    return {
        "space": name,
        "curvature": curvature,
        "smallest ratio": low,
        "largest ratio": high,
        "largest over smallest": high / low,
    }


def _hyperbolic(curvature: float) -> LayerFunction:
    conv, k = HGCNConv(_CHANNELS, _CHANNELS), torch.tensor(curvature)
    return lambda x, edges: conv(x, edges, k)


_LAYERS: dict[str, Callable[[], LayerFunction]] = {
    "GCN": lambda: GCNConv(_CHANNELS, _CHANNELS),
    "GAT": lambda: GATConv(_CHANNELS, _CHANNELS),
    "hyperbolic, curvature -1": lambda: _hyperbolic(-1.0),
    "spherical, curvature 1": lambda: _hyperbolic(1.0),
}


def _layer_row(name: str, edges: Tensor, effort: Effort) -> dict[str, Any]:
    with seeded(effort.seed):
        target, many = _LAYERS[name](), effort.of(2, 8, 16)
        copies = torch.cat([edges + _NODES * n for n in range(2 * many)], dim=1)
        hood = neighborhood(copies, 2 * many * _NODES)
        x = torch.randn(2 * many * _NODES, _CHANNELS)
        with torch.no_grad():
            wanted = target(x, hood)
        known = many * _NODES
        return {
            "layer": name,
            "error, metric fixed at 0.5": _fit_error(x, wanted, hood, known, False, effort),
            "error, free metrics": _fit_error(x, wanted, hood, known, True, effort),
        }


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
    verdict = graded(max(off) <= 1e-12 and largest <= 1)
    return stated("modulation of a constant metric", verdict, off=max(off), largest=largest)


def euclidean_messages(size: float, with_baseline: float) -> Statement:
    """Verdict on Euclidean networks as the case g = 1."""
    verdict = graded(size > 0, with_baseline > 0)
    name = "Euclidean networks are the case g = 1"
    return stated(name, verdict, size=size, with_baseline=with_baseline)


def proportional_distances(rows: MeasuredRows) -> Statement:
    """Verdict on the lemma, from how much the ratio of distances varies."""
    varied = {row["space"]: row["largest over smallest"] for row in rows}
    found = ", ".join(f"{name} {ratio:.3g}" for name, ratio in varied.items())
    return stated("distances of curved spaces", graded(max(varied.values()) <= 1.01), found=found)


def approximated_layers(rows: MeasuredRows) -> Statement:
    """Verdict on the layers, from their test errors."""
    errors = {row["layer"]: row["error, free metrics"] for row in rows}
    worst = max(errors.values())
    found = ", ".join(f"{name} {100 * error:.0f} %" for name, error in errors.items())
    verdict = graded(worst <= CLOSE, worst <= ROUGH, "not reproduced")
    return stated("layers of other networks", verdict, found=found, close=CLOSE, rough=ROUGH)
