"""The graph under the layout of its learned embedding, as it is and rewired."""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.figures import style
from argnn.analysis.layers import Layer
from argnn.analysis.projection import Points, project, upright
from argnn.analysis.properties import labels_of
from argnn.analysis.rewiring import rewire
from argnn.functional.neighborhood import neighborhood

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_EDGE_COLOR = "#7f7f7f"


@style.styled
def map_figure(
    graph: Data, layer: Layer, *, trained: Tensor | None = None, seed: int = 0, jobs: int = 1
) -> "Figure":
    """Nodes by class at their t-SNE positions, with the original and with the rewired edges.

    Args:
        graph: The graph.
        layer: Points and metrics, usually of the last layer.
        trained: Mask of the nodes whose labels were trained on, ``[N]``; then the homophily of
            the other nodes is shown, too.
        seed: Fixes layout and rewiring.
        jobs: Number of threads of the layout.
    """
    points = upright(project(layer.h.numpy(), 2, seed, jobs).points)
    y = labels_of(graph)
    before = graph.edge_index.cpu()
    after = rewire(layer.h, layer.g, before, seed=seed).edge_index
    figure, panels = _panels(points)
    for ax, edges, name in zip(panels, (before, after), ("Original edges", "Rewired"), strict=True):
        _draw(points, edges, graph, ax)
        ax.set_title(f"{name}: {homophily_words(edges, y, trained)}")
    style.class_legend(figure, panels[0])
    return figure


def _panels(points: Points) -> "tuple[Figure, list[Axes]]":
    """Two panels side by side, or one above the other where the layout is much wider than high."""
    width, height = np.maximum(np.ptp(points, axis=0), 1e-12)
    if width > 2 * height:
        figure = style.new_figure(7.0, 0.9 + 2 * (0.35 + 6.8 * max(height / width, 0.15)))
        return figure, list(figure.subplots(2, 1))
    figure = style.new_figure(8.4, 4.6)
    return figure, list(figure.subplots(1, 2))


def homophily_words(edges: Tensor, y: Tensor, trained: Tensor | None) -> str:
    """Edge homophily, over all pairs and between nodes that were not trained on."""
    share = AF.edge_homophily(edges, y)
    if np.isnan(share):
        return "homophily not defined"
    if trained is None:
        return f"homophily {share:.2f}"
    held_out = AF.edge_homophily(edges, torch.where(trained.cpu(), -1, y))
    told = "none" if np.isnan(held_out) else f"{held_out:.2f}"
    return f"homophily {share:.2f}, held out {told}"


def _opacity(edges: int) -> float:
    """More edges are drawn with less opacity, so that they do not form one dark area."""
    return float(np.clip((550 / max(edges, 1)) ** 0.8, 0.006, 0.45))


def _draw(points: Points, edges: Tensor, graph: Data, ax: "Axes") -> None:
    from matplotlib.collections import LineCollection

    low, high = neighborhood(edges, graph.num_nodes).pairs.numpy()
    count = len(low)
    lines = LineCollection(
        list(np.stack([points[low], points[high]], axis=1)), colors=_EDGE_COLOR, linewidths=0.35,
        alpha=_opacity(count), rasterized=count > style.MANY_MARKS, zorder=1,
    )  # fmt: skip
    ax.add_collection(lines)
    size = float(np.clip(3000 / graph.num_nodes, 1.5, 22))
    for name, members, look in style.classes_present(graph):
        ax.scatter(
            points[members, 0], points[members, 1], s=size, c=look["color"], marker=look["marker"],
            linewidths=0.25 if size > 6 else 0, edgecolors="white", zorder=2,
            rasterized=graph.num_nodes > style.MANY_MARKS, label=name,
        )  # fmt: skip
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)
