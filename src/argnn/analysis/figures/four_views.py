"""Four views of the metric of the last layer, for a first look; needs igraph for its layout."""

import random
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis.figures.style import FIELD_COLORS, PALETTE, new_figure
from argnn.analysis.geometry import metric_statistics
from argnn.analysis.layers import learned_metrics
from argnn.functional.neighborhood import neighborhood
from argnn.nn import AbstractNodeModel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = NDArray[np.float64]

_EDGE_COLOR = "#9a9a9a"


def layout(graph: Data, seed: int = 0) -> Points:
    """Positions of the nodes in the plane by a force-directed drawing, ``[N, 2]``."""
    import igraph

    igraph.set_random_number_generator(random.Random(seed))
    pairs = neighborhood(graph.edge_index, graph.num_nodes).pairs.t().tolist()
    drawing = igraph.Graph(n=graph.num_nodes, edges=pairs)
    placed = drawing.layout_fruchterman_reingold(niter=1000, grid="nogrid")
    igraph.set_random_number_generator(None)
    return np.array(placed.coords, dtype=np.float64)


def draw_graph(points: Points, edge_index: Tensor, ax: "Axes", **color: Any) -> Any:
    """Draw edges as thin lines and nodes as dots; returns the dots, for a colour bar."""
    from matplotlib.collections import LineCollection

    source, target = edge_index.numpy()
    once = source < target
    lines = list(np.stack([points[source[once]], points[target[once]]], axis=1))
    ax.add_collection(LineCollection(lines, colors=_EDGE_COLOR, linewidths=0.25, alpha=0.5))
    dots = ax.scatter(points[:, 0], points[:, 1], s=9, linewidths=0, zorder=2, **color)
    ax.set_axis_off()
    ax.set_aspect("equal")
    return dots


def draw_groups(points: Points, graph: Data, ax: "Axes") -> None:
    """The graph coloured by known geometry where there is one, else by class."""
    groups, names = _groups(graph)
    colors = np.array(PALETTE)[groups % len(PALETTE)]
    draw_graph(points, graph.edge_index, ax, c=colors)
    for index, name in enumerate(names):
        ax.scatter([], [], s=20, c=PALETTE[index % len(PALETTE)], label=name)
    ax.legend(loc="best", frameon=False, fontsize=8, ncols=1 + (len(names) > 5))


def draw_metric_rows(g: Tensor, graph: Data, ax: "Axes") -> Any:
    """The metric as a heat map: one row per node, sorted by group, one column per axis."""
    groups, names = _groups(graph)
    order = np.argsort(groups, kind="stable")
    log_g = g.double().log().numpy()
    columns = np.argsort(log_g.mean(0))
    rows = log_g[order][:, columns]
    image = ax.imshow(rows, aspect="auto", cmap=FIELD_COLORS, interpolation="nearest")
    borders = np.searchsorted(groups[order], np.arange(len(names) + 1))
    for border in borders[1:-1]:
        ax.axhline(border - 0.5, color="white", linewidth=0.8)
    ax.set_yticks((borders[:-1] + borders[1:]) / 2, names, fontsize=8)
    ax.set_xlabel("metric axis, sorted")
    return image


def draw_by_group(values: Tensor, graph: Data, ax: "Axes") -> None:
    """The distribution of a node statistic within each group."""
    groups, names = _groups(graph)
    parts = [values.numpy()[groups == index] for index in range(len(names))]
    boxes = ax.boxplot(parts, patch_artist=True, widths=0.6, showfliers=False)
    for index, (box, median) in enumerate(zip(boxes["boxes"], boxes["medians"], strict=True)):
        box.set(facecolor=PALETTE[index % len(PALETTE)], linewidth=0.8)
        median.set(color="black")
    ax.set_xticks(range(1, len(names) + 1), names, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)


def geometry_figure(graph: Data, model: AbstractNodeModel) -> "Figure":
    """Four panels: the groups, the metric on the graph, as a heat map, and by group.

    Args:
        graph: The graph; grouped by ``geometry`` where it has one, else by class.
        model: A model with a learned metric.
    """
    g = learned_metrics(model, graph)[-1]
    variation = metric_statistics(g, graph.edge_index).main_variation
    points = layout(graph)
    figure = new_figure(11, 8.2)
    (groups, field), (rows, boxes) = figure.subplots(2, 2)

    groups.set_title("Known geometry" if "geometry" in graph else "Classes")
    draw_groups(points, graph, groups)
    field.set_title("Learned metric: log g along its main direction")
    dots = draw_graph(points, graph.edge_index, field, c=variation.numpy(), cmap=FIELD_COLORS)
    figure.colorbar(dots, ax=field, shrink=0.7)
    rows.set_title("Learned metric: log g, one row per node")
    figure.colorbar(draw_metric_rows(g, graph, rows), ax=rows, shrink=0.7)
    boxes.set_title("Main direction by " + ("geometry" if "geometry" in graph else "class"))
    draw_by_group(variation, graph, boxes)
    return figure


def _groups(graph: Data) -> tuple[NDArray[np.int64], list[str]]:
    if "geometry" in graph:
        return graph.geometry.numpy(), list(graph.geometry_names)
    return graph.y.clamp_min(0).numpy(), list(graph.class_names)
