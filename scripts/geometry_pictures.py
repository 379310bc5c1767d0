"""Draw the pictures of docs/geometry.md with the package's own functions.

python scripts/geometry_pictures.py [--out docs/images]
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Ellipse

from argnn import functional as AF
from argnn.analysis.figures.style import FIELD_COLORS, PALETTE
from argnn.data import clique, cycle, grid, tree

BLUE, ORANGE, GREEN = PALETTE[:3]
GREY = "#9a9a9a"
IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"


def distances(figure: Figure) -> None:
    """Where points at distance 1, 2 and 3 from the centre lie under three metrics."""
    side = torch.linspace(-3.2, 3.2, 161)
    plane = torch.stack(torch.meshgrid(side, side, indexing="xy"), dim=-1)
    metrics = {"g = (1, 1)": (1.0, 1.0), "g = (4, 1)": (4.0, 1.0), "g = (0.25, 0.25)": (0.25, 0.25)}
    for ax, (title, diagonal) in zip(figure.subplots(1, 3), metrics.items(), strict=True):
        away = AF.geodesic_distance(torch.zeros(2), plane, torch.tensor(diagonal))
        lines = ax.contour(
            side.numpy(), side.numpy(), away.numpy(), levels=[1, 2, 3], colors=[BLUE, ORANGE, GREEN]
        )
        ax.clabel(lines, fmt="%d")
        ax.plot(0, 0, "k.")
        ax.set(title=title, aspect="equal", xticks=[-2, 0, 2], yticks=[-2, 0, 2])


def field(figure: Figure) -> None:
    """Points that are at distance one from each node: circles, then a field of ellipses."""
    place = torch.cartesian_prod(torch.arange(7.0), torch.arange(5.0))
    flat = torch.ones_like(place)
    curved = torch.stack([0.5 + 0.5 * place[:, 0], 3.5 - 0.6 * place[:, 1]], dim=1)
    titles = ("one metric for all nodes", "a metric at every node")
    for ax, g, title in zip(figure.subplots(1, 2), (flat, curved), titles, strict=True):
        for point, diagonal in zip(place.tolist(), g, strict=True):
            # What has length one reaches so far along each axis; drawn at two fifths of its size.
            reach = [1 / float(AF.norm(axis, diagonal)) for axis in torch.eye(2)]
            size = [2 * 0.4 * length for length in reach]
            ax.add_patch(Ellipse(point, *size, facecolor=BLUE, alpha=0.35, edgecolor=BLUE))
        ax.scatter(*place.T.numpy(), s=4, c="black")
        ax.set(title=title, aspect="equal", xlim=(-0.9, 6.9), ylim=(-0.9, 4.9))
        ax.set_axis_off()


def modulation(figure: Figure) -> None:
    """What a message is multiplied by, per channel, as a function of the metric."""
    g = torch.logspace(-2, 2, 401)
    ax = figure.subplots()
    ax.semilogx(g.numpy(), AF.channel_modulation(g).numpy(), color=BLUE, linewidth=2)
    for value, name in ((0.5, "default start"), (1.0, "Euclidean"), (2.0, "")):
        factor = float(AF.channel_modulation(torch.tensor(value)))
        ax.plot(value, factor, "o", color=ORANGE)
        text = f"g = {value:g}: {factor or 0:.1f}" + (f" ({name})" if name else "")
        ax.annotate(text, (value, factor), (12, 4), textcoords="offset points")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set(xlabel="metric g along a channel", ylabel="factor of the message")
    ax.spines[["top", "right"]].set_visible(False)


def curvature(figure: Figure) -> None:
    """Ollivier-Ricci curvature of the edges of four small graphs."""
    shapes = {
        "tree": (tree(15), _tree_places(15)),
        "cycle": (cycle(10), _circle(10)),
        "grid": (grid(4, 4), [(i % 4, -(i // 4)) for i in range(16)]),
        "clique": (clique(7), _circle(7)),
    }
    axes = figure.subplots(1, 4)
    for ax, (title, (edges, points)) in zip(axes, shapes.items(), strict=True):
        kappa = AF.ollivier_ricci(edges, len(points))
        place = np.array(points, dtype=float)
        drawn = LineCollection(list(place[edges.T.numpy()]), cmap=FIELD_COLORS, linewidths=3)
        drawn.set_array(kappa.numpy())
        drawn.set_clim(-0.5, 0.7)
        ax.add_collection(drawn)
        ax.scatter(*place.T, s=14, c="black", zorder=3)
        ax.set_title(f"{title}\n{float(kappa.min()):.2f} to {float(kappa.max()):.2f}")
        ax.set_axis_off()
    figure.colorbar(drawn, ax=axes, shrink=0.8, label="curvature of the edge")


def flow(figure: Figure) -> None:
    """One coordinate of a metric on a grid, smoothed by the Ricci flow."""
    side = 20
    edges = grid(side, side)
    both = torch.cat([edges, edges.flip(0)], dim=1)
    start = torch.full((side, side), 0.5)
    start[4:9, 4:9], start[11:17, 12:16] = 2.0, 3.0
    steps = (0, 5, 50)
    axes = figure.subplots(1, len(steps))
    for ax, count in zip(axes, steps, strict=True):
        g = start.reshape(-1, 1)
        g = AF.ricci_flow(g, both, steps=count, step_size=0.5) if count else g
        energy = float(AF.smoothness_energy(g, both))
        image = ax.imshow(g.view(side, side).numpy(), cmap=FIELD_COLORS, vmin=0.5, vmax=3)
        ax.set_title(f"{count} steps\nsmoothness energy {energy:.1f}")
        ax.set_axis_off()
    figure.colorbar(image, ax=axes, shrink=0.8, label="metric g")


def _circle(count: int) -> list[tuple[float, float]]:
    angles = np.linspace(0, 2 * np.pi, count, endpoint=False) + np.pi / 2
    return [(float(np.cos(angle)), float(np.sin(angle))) for angle in angles]


def _tree_places(count: int) -> list[tuple[float, float]]:
    places = []
    for node in range(count):
        level = (node + 1).bit_length() - 1
        places.append(((node + 1 - 2**level + 0.5) / 2**level, -0.25 * level))
    return places


PICTURES: dict[str, tuple[Callable[[Figure], None], tuple[float, float]]] = {
    "distances": (distances, (8, 3)),
    "field": (field, (8, 3.2)),
    "modulation": (modulation, (6, 3)),
    "curvature": (curvature, (9, 2.6)),
    "flow": (flow, (8, 3)),
}


def main(arguments: list[str] | None = None) -> None:
    """Write every picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=IMAGES)
    out = parser.parse_args(arguments).out
    out.mkdir(parents=True, exist_ok=True)
    for name, (draw, size) in PICTURES.items():
        figure = Figure(figsize=size, layout="constrained")
        draw(figure)
        path = out / f"{name}.png"
        figure.savefig(path, dpi=110, metadata={"Software": None})
        print(path)


if __name__ == "__main__":
    main()
