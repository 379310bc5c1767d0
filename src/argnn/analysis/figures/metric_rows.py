"""The metric as a heat map: one row per node, sorted by class, one column per axis."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis.figures import style
from argnn.analysis.layers import Layer
from argnn.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_LAYERS = 4
# Least range of log g on the colour scale: five per cent of g.
_LEAST_SPAN = 0.05


@style.styled
def metric_figure(graph: Data, layers: Sequence[Layer]) -> "Figure":
    """Log g of every node and axis, one panel per layer with colours of its own.

    Rows are sorted by class, and within a class by their mean; columns by their mean. Of more
    than four layers, the last four are shown.

    Args:
        graph: The graph.
        layers: Its learned layers.
    """
    from matplotlib.ticker import MaxNLocator

    if not layers:
        raise DataError("the model has no learned metric to draw")
    shown = list(enumerate(layers, start=1))[-_MAX_LAYERS:]
    labels = style.label_array(graph)
    figure = style.new_figure(1.3 + 2.3 * len(shown), 4.4)
    widths = [0.09, *[1.0] * len(shown)]
    strip, *panels = figure.subplots(1, len(shown) + 1, width_ratios=widths, sharey=True)
    order = np.lexsort((shown[-1][1].g.double().log().mean(-1).numpy(), labels))
    _class_strip(strip, labels[order], style.shown_names(graph))
    for ax, (number, layer) in zip(panels, shown, strict=True):
        image, hardly_varies = _heat(ax, layer.g, order)
        for border in np.flatnonzero(np.diff(labels[order])):
            ax.axhline(border + 0.5, color="white", linewidth=0.9)
        ax.set_title(f"Layer {number}: log g" + (" hardly varies" if hardly_varies else ""))
        ax.set_xlabel("metric axis, sorted by mean")
        ticks = MaxNLocator(4)
        figure.colorbar(image, ax=ax, location="bottom", shrink=0.85, pad=0.02, ticks=ticks)
    return figure


def _heat(ax: "Axes", g: Tensor, order: NDArray[np.int64]) -> tuple[Any, bool]:
    """The image, and whether its values hardly vary."""
    log_g = g.double().log().numpy()
    columns = np.argsort(log_g.mean(0), kind="stable")
    low, high, hardly_varies = style.color_limits(log_g, 1, _LEAST_SPAN)
    look: dict[str, Any] = {"cmap": style.FIELD_COLORS, "interpolation": "nearest"}
    image = ax.imshow(log_g[order][:, columns], aspect="auto", vmin=low, vmax=high, **look)
    ax.set(xticks=[])
    ax.tick_params(left=False, labelleft=False)
    return image, hardly_varies


def _class_strip(ax: "Axes", labels: NDArray[np.int64], names: Sequence[str]) -> None:
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
