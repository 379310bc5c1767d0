r"""The learned embedding in the plane, with edges, and in space, inside a hull.

The paper colours the hull "by the magnitude of discrete mean curvature" and gives no formula. The
curvature of the hull itself would describe t-SNE. So the colour is the mean learned curvature
:math:`\kappa` of the nodes (:func:`~argnn.analysis.geometry.mean_curvature`), averaged over the
nodes nearest to each place of the hull.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError, cKDTree
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.figures import style
from argnn.analysis.geometry import mean_curvature
from argnn.analysis.layers import Layer
from argnn.analysis.projection import MOST_FOR_SPACE, Points, project, upright
from argnn.analysis.properties import labels_of
from argnn.analysis.rewiring import rewire
from argnn.functional.neighborhood import neighborhood

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Numbers = NDArray[np.float64]

_EDGE_COLOR = "#7f7f7f"
_NEAREST = 20
_HALVINGS = 4
_LEAST_SPAN = 0.05


@style.styled
def map_figure(
    graph: Data, layer: Layer, *, trained: Tensor | None = None, seed: int = 0, jobs: int = 1
) -> "Figure":
    """Nodes by class at their t-SNE positions, with the original and with the rewired edges.

    Where there is a mask ``trained`` of the nodes whose labels were trained on, ``[N]``, the
    homophily of the other nodes is shown, too. The seed fixes layout and rewiring; ``jobs`` is the
    number of threads of the layout.
    """
    points = upright(project(layer.h.numpy(), 2, seed, jobs)[0])
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


def _draw(points: Points, edges: Tensor, graph: Data, ax: "Axes") -> None:
    pairs, count = neighborhood(edges, graph.num_nodes).pairs, graph.num_nodes
    # More edges are drawn with less opacity, so that they do not form one dark area.
    opacity = float(np.clip((550 / max(pairs.size(1), 1)) ** 0.8, 0.006, 0.45))
    look: dict[str, Any] = {"rasterized": pairs.size(1) > style.MANY_MARKS, "zorder": 1}
    style.draw_edges(ax, points, pairs, colors=_EDGE_COLOR, linewidths=0.35, alpha=opacity, **look)
    size = float(np.clip(3000 / count, 1.5, 22))
    look = {"linewidths": 0.25 if size > 6 else 0, "edgecolors": "white"}
    many = count > style.MANY_MARKS
    style.draw_classes(ax, points, graph, np.arange(count), s=size, rasterized=many, **look)
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)


@style.styled
def hull_figure(graph: Data, layer: Layer, *, seed: int = 0, jobs: int = 1) -> "Figure":
    """Nodes by class at their t-SNE positions in space, in a translucent hull coloured by kappa.

    Of a large graph a sample is drawn: t-SNE in three dimensions has no fast form. The seed fixes
    layout and sample; ``jobs`` is the number of threads of the layout.
    """
    from matplotlib.cm import ScalarMappable

    count = graph.num_nodes
    drawn = np.random.default_rng(seed).choice(count, min(count, MOST_FOR_SPACE), replace=False)
    kept = np.sort(drawn)
    placed, method = project(layer.h[kept].numpy(), 3, seed, jobs)
    points = upright(placed)
    kappa = mean_curvature(layer.g)[kept].numpy()
    figure = style.new_figure(6.0, 4.9)
    ax = figure.add_subplot(projection="3d", computed_zorder=False)
    colors = ScalarMappable(cmap=style.CURVATURE_COLORS)
    least = _LEAST_SPAN * max(float(np.abs(kappa).max()), 1.0)
    low, high, hardly_varies = style.color_limits(kappa, 2, least)
    colors.set_clim(low, high)
    has_hull = _draw_hull(points, kappa, ax, colors)
    size, many = float(np.clip(2500 / len(kept), 3, 14)), len(kept) > style.MANY_MARKS // 2
    style.draw_classes(ax, points, graph, kept, s=size, alpha=0.9, rasterized=many)
    ax.set_title(_title(method, len(kept), count, has_hull, hardly_varies))
    ax.set_axis_off()
    extent = np.ptp(points, axis=0)
    sides = np.maximum(extent, 0.1 * extent.max() + 1e-9)
    # As large as the panel allows: a long cloud of points needs a smaller zoom than a round one.
    ax.set_box_aspect(sides, zoom=0.88 * float(np.linalg.norm(sides) / sides.max()))
    ax.view_init(elev=20, azim=-60)
    bar = figure.colorbar(colors, ax=ax, shrink=0.62, pad=0.02)
    bar.set_label("mean curvature κ of the metric (violet flat, yellow curved)")
    style.class_legend(figure, ax)
    return figure


def _title(method: str, shown: int, count: int, has_hull: bool, constant: bool) -> str:
    words = f"Learned points in space, {method}"
    if shown < count:
        words += f", {shown} of {count} nodes"
    words += "; κ hardly varies" if constant else ""
    return words if has_hull else f"{words}; too few for a hull"


def _draw_hull(points: Points, kappa: _Numbers, ax: Any, colors: Any) -> bool:
    """Add the hull to a panel if there is one; returns whether there is."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    triangles = hull_triangles(points)
    if triangles is None:
        return False
    tree = cKDTree(points)
    distance, near = tree.query(triangles.mean(1), k=min(_NEAREST, len(points)))
    weight = 1 / (distance + distance.mean() + 1e-12)
    value = (weight * kappa[near]).sum(1) / weight.sum(1)
    shades = colors.to_rgba(value, alpha=0.2)
    # As an image inside a vector file, since seams between thousands of triangles would show.
    look = {"linewidths": 0, "antialiaseds": True, "rasterized": True, "zorder": 1}
    ax.add_collection3d(Poly3DCollection(triangles, facecolors=shades, **look))
    return True


def hull_triangles(points: Points, halvings: int = _HALVINGS) -> Points | None:
    """Triangles of the convex hull, each cut in four several times, ``[T, 3, 3]``.

    None where the points do not span a space.
    """
    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return None
    triangles: Points = points[hull.simplices]
    for _ in range(halvings):
        a, b, c = triangles.transpose(1, 0, 2)
        ab, bc, ca = (a + b) / 2, (b + c) / 2, (c + a) / 2
        parts = [(a, ab, ca), (ab, b, bc), (ca, bc, c), (ab, bc, ca)]
        triangles = np.concatenate([np.stack(part, axis=1) for part in parts])
    return triangles
