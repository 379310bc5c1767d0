"""The learned metric: as heat maps, one row per node, and in four views for a first look."""

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.figures import style
from argnn.analysis.geometry import metric_statistics
from argnn.analysis.layers import learned_metrics, metric_kind
from argnn.errors import DataError
from argnn.functional.neighborhood import neighborhood
from argnn.nn import AbstractNodeModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]
#: The number of each node's class or group.
Groups = NDArray[np.int64]

_MAX_LAYERS = 4
# Least range of log g on the colour scale: five per cent of g.
_LEAST_SPAN = 0.05


@style.styled
def metric_figure(graph: Data, metrics: Sequence[Tensor]) -> "Figure":
    """Log g of every node and axis, one panel per layer with colours of its own.

    Rows are sorted by class, and within a class by their mean; columns by their mean. Of more
    than four layers, the last four are shown.
    """
    from matplotlib.ticker import MaxNLocator

    if not metrics:
        raise DataError("the model has no metric to draw")
    shown = list(enumerate(metrics, start=1))[-_MAX_LAYERS:]
    labels = style.label_array(graph)
    figure = style.new_figure(1.3 + 2.3 * len(shown), 4.4)
    widths = [0.09, *[1.0] * len(shown)]
    strip, *panels = figure.subplots(1, len(shown) + 1, width_ratios=widths, sharey=True)
    order = np.lexsort((_log_axes(shown[-1][1]).mean(-1), labels))
    _class_strip(strip, labels[order], style.shown_names(graph))
    for ax, (number, g) in zip(panels, shown, strict=True):
        image, hardly_varies = _heat(ax, g, order)
        for border in np.flatnonzero(np.diff(labels[order])):
            ax.axhline(border + 0.5, color="white", linewidth=0.9)
        ax.set_title(f"Layer {number}: log g" + (" hardly varies" if hardly_varies else ""))
        ax.set_xlabel("metric axis, sorted by mean")
        ticks = MaxNLocator(4)
        figure.colorbar(image, ax=ax, location="bottom", shrink=0.85, pad=0.02, ticks=ticks)
    return figure


def _log_axes(g: Tensor) -> Points:
    """Logarithm of the metric on each axis, ``[N, D]``; of its matrix, of the diagonal."""
    shown: Points = AF.metric_diagonal(g.double()).log().numpy()
    return shown


def _heat(ax: "Axes", g: Tensor, order: Groups) -> tuple[Any, bool]:
    """The image, and whether its values hardly vary."""
    log_g = _log_axes(g)
    columns = np.argsort(log_g.mean(0), kind="stable")
    low, high, hardly_varies = style.color_limits(log_g, 1, _LEAST_SPAN)
    look: dict[str, Any] = {"cmap": style.FIELD_COLORS, "interpolation": "nearest"}
    image = ax.imshow(log_g[order][:, columns], aspect="auto", vmin=low, vmax=high, **look)
    ax.set(xticks=[])
    ax.tick_params(left=False, labelleft=False)
    return image, hardly_varies


def _class_strip(ax: "Axes", labels: Groups, names: Sequence[str]) -> None:
    """A bar with the colour of each class, and its name beside it."""
    ticks, words = [], []
    for label in sorted(set(labels.tolist())):
        rows = np.flatnonzero(labels == label)
        ax.axhspan(rows[0] - 0.5, rows[-1] + 0.5, color=style.class_look(label)["color"])
        ticks.append((rows[0] + rows[-1]) / 2)
        words.append("no label" if label < 0 else names[label])
    ax.set(xticks=[], xlim=(0, 1))
    ax.set_yticks(ticks, words)
    ax.tick_params(left=False)
    ax.spines[:].set_visible(False)


def layout(graph: Data, seed: int = 0) -> Points:
    """Positions of the nodes in the plane by a force-directed drawing, ``[N, 2]``."""
    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    pairs = neighborhood(graph.edge_index, graph.num_nodes).pairs.t().tolist()
    drawing = igraph.Graph(n=graph.num_nodes, edges=pairs)
    placed = drawing.layout_fruchterman_reingold(niter=1000, grid="nogrid")
    igraph.set_random_number_generator(None)
    return np.array(placed.coords, dtype=np.float64)


def _draw_graph(points: Points, edge_index: Tensor, ax: "Axes", **color: Any) -> Any:
    """Draw edges as thin lines and nodes as dots; returns the dots, for a colour bar."""
    once = edge_index[:, edge_index[0] < edge_index[1]]
    style.draw_edges(ax, points, once, colors="#9a9a9a", linewidths=0.25, alpha=0.5)
    dots = ax.scatter(points[:, 0], points[:, 1], s=9, linewidths=0, zorder=2, **color)
    ax.set_axis_off()
    ax.set_aspect("equal")
    return dots


def _draw_rows(g: Tensor, groups: Groups, names: Sequence[str], ax: "Axes") -> Any:
    """The metric as a heat map: one row per node, sorted by group, one column per axis."""
    order = np.argsort(groups, kind="stable")
    log_g = _log_axes(g)
    rows = log_g[order][:, np.argsort(log_g.mean(0))]
    image = ax.imshow(rows, aspect="auto", cmap=style.FIELD_COLORS, interpolation="nearest")
    borders = np.searchsorted(groups[order], np.arange(len(names) + 1))
    for border in borders[1:-1]:
        ax.axhline(border - 0.5, color="white", linewidth=0.8)
    ax.set_yticks((borders[:-1] + borders[1:]) / 2, names, fontsize=8)
    ax.set_xlabel("metric axis, sorted")
    return image


def _draw_boxes(values: Tensor, groups: Groups, names: Sequence[str], ax: "Axes") -> None:
    """The distribution of a node statistic within each group."""
    parts = [values.numpy()[groups == index] for index in range(len(names))]
    boxes = ax.boxplot(parts, patch_artist=True, widths=0.6, showfliers=False)
    for index, (box, median) in enumerate(zip(boxes["boxes"], boxes["medians"], strict=True)):
        box.set(facecolor=_color(index), linewidth=0.8)
        median.set(color="black")
    ax.set_xticks(range(1, len(names) + 1), names, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def _color(group: int) -> str:
    return style.PALETTE[group % len(style.PALETTE)]


def geometry_figure(graph: Data, model: AbstractNodeModel) -> "Figure":
    """Four panels: the groups, the metric of the last layer on the graph, as a heat map, by group.

    Groups are those of ``geometry`` where the graph has one, else the classes.
    """
    g, kind = learned_metrics(model, graph)[-1], metric_kind(model).capitalize()
    variation = metric_statistics(g, graph.edge_index).main_variation
    points, known = layout(graph), "geometry" in graph
    if known:
        group, names = graph.geometry.numpy(), list(graph.geometry_names)
    else:
        group, names = graph.y.clamp_min(0).numpy(), list(graph.class_names)
    figure = style.new_figure(11, 8.2)
    (groups, field), (rows, boxes) = figure.subplots(2, 2)
    groups.set_title("Known geometry" if known else "Classes")
    _draw_graph(points, graph.edge_index, groups, c=np.array([_color(k) for k in group]))
    for index, name in enumerate(names):
        groups.scatter([], [], s=20, c=_color(index), label=name)
    groups.legend(loc="best", frameon=False, fontsize=8, ncols=1 + (len(names) > 5))
    field.set_title(f"{kind} metric: log g along its main direction")
    color = {"c": variation.numpy(), "cmap": style.FIELD_COLORS}
    dots = _draw_graph(points, graph.edge_index, field, **color)
    figure.colorbar(dots, ax=field, shrink=0.7)
    rows.set_title(f"{kind} metric: log g, one row per node")
    figure.colorbar(_draw_rows(g, group, names, rows), ax=rows, shrink=0.7)
    boxes.set_title("Main direction by " + ("geometry" if known else "class"))
    _draw_boxes(variation, group, names, boxes)
    return figure
