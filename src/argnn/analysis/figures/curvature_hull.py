r"""The learned embedding in space, inside a hull coloured by curvature.

The paper colours the hull "by the magnitude of discrete mean curvature" and gives no formula. The
curvature of the hull itself would describe t-SNE. So the colour is the mean learned curvature
:math:`\kappa` of the nodes (:func:`~argnn.analysis.geometry.mean_curvature`), averaged over the
nodes nearest to each place of the hull.
"""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull, QhullError, cKDTree
from torch_geometric.data import Data

from argnn.analysis.figures import style
from argnn.analysis.geometry import mean_curvature
from argnn.analysis.layers import Layer
from argnn.analysis.projection import MOST_FOR_SPACE, Points, project, upright

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Values = NDArray[np.float64]

_NEAREST = 20
_HALVINGS = 4
_LEAST_SPAN = 0.05


@style.styled
def hull_figure(graph: Data, layer: Layer, *, seed: int = 0, jobs: int = 1) -> "Figure":
    """Nodes by class at their t-SNE positions in space, in a translucent hull coloured by kappa.

    Of a large graph a sample is drawn: t-SNE in three dimensions has no fast form.

    Args:
        graph: The graph.
        layer: Points and metrics, usually of the last layer.
        seed: Fixes layout and sample.
        jobs: Number of threads of the layout.
    """
    from matplotlib.cm import ScalarMappable

    kept = _sample(graph.num_nodes, seed)
    placed = project(layer.h[kept].numpy(), 3, seed, jobs)
    points = upright(placed.points)
    kappa = mean_curvature(layer.g)[kept].numpy()
    figure = style.new_figure(6.0, 4.9)
    ax = figure.add_subplot(projection="3d", computed_zorder=False)
    colors = ScalarMappable(cmap=style.CURVATURE_COLORS)
    least = _LEAST_SPAN * max(float(np.abs(kappa).max()), 1.0)
    low, high, hardly_varies = style.color_limits(kappa, 2, least)
    colors.set_clim(low, high)
    drawn = _draw_hull(points, kappa, ax, colors)
    for name, members, look in style.classes_present(graph):
        shown = members[kept]
        if shown.any():
            size = float(np.clip(2500 / len(kept), 3, 14))
            ax.scatter(
                *points[shown].T, s=size, c=look["color"], marker=look["marker"], label=name,
                linewidths=0, alpha=0.9, rasterized=len(kept) > style.MANY_MARKS // 2, zorder=2,
            )  # fmt: skip
    ax.set_title(_title(placed.method, len(kept), graph.num_nodes, drawn, hardly_varies))
    ax.set_axis_off()
    extent = np.ptp(points, axis=0)
    sides = np.maximum(extent, 0.1 * extent.max() + 1e-9)
    # As large as the panel allows: a long cloud of points needs a smaller zoom than a round one.
    ax.set_box_aspect(sides, zoom=0.88 * float(np.linalg.norm(sides) / sides.max()))
    ax.view_init(elev=20, azim=-60)
    bar = figure.colorbar(colors, ax=ax, shrink=0.62, pad=0.02)
    bar.set_label("mean learned curvature κ (violet flat, yellow curved)")
    style.class_legend(figure, ax)
    return figure


def _sample(count: int, seed: int) -> NDArray[np.int64]:
    drawn = np.random.default_rng(seed).choice(count, min(count, MOST_FOR_SPACE), replace=False)
    return np.sort(drawn)


def _title(method: str, shown: int, count: int, has_hull: bool, constant: bool) -> str:
    words = f"Learned points in space, {method}"
    if shown < count:
        words += f", {shown} of {count} nodes"
    words += "; κ hardly varies" if constant else ""
    return words if has_hull else f"{words}; too few for a hull"


def _draw_hull(points: Points, kappa: Values, ax: Any, colors: Any) -> bool:
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
