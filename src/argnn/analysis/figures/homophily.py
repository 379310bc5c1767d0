"""Homophily against mean learned curvature, one mark per data set."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.analysis.figures import style
from argnn.analysis.geometry import field_nrmd, mean_curvature
from argnn.analysis.layers import Layer
from argnn.analysis.properties import labels_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Two points always lie on a line.
_FEWEST_FOR_CORRELATION = 3
# Size of a letter in points, at a font size of eight.
_LETTER_WIDTH, _LETTER_HEIGHT = 4.9, 9.0
# Possible places of a name beside its dot, the best first.
_SIDES = ((0, 1), (0, -1), (1, 0), (-1, 0), (0.8, 0.8), (-0.8, 0.8), (0.8, -0.8), (-0.8, -0.8))


@dataclass(frozen=True)
class DataPoint:
    """The numbers of one trained model.

    Attributes:
        name: Name of the data set or run.
        homophily: Edge homophily of the graph; NaN without labels or edges.
        kappa: Mean over the nodes of the mean learned curvature.
        nrmd: NRMD of the metric field; NaN without edges.
    """

    name: str
    homophily: float
    kappa: float
    nrmd: float

    @staticmethod
    def of(name: str, graph: Data, layer: Layer) -> "DataPoint":
        """The numbers of a layer."""
        edges = graph.edge_index.cpu()
        return DataPoint(
            name=name,
            homophily=AF.edge_homophily(edges, labels_of(graph)),
            kappa=float(mean_curvature(layer.g).mean()),
            nrmd=field_nrmd(layer.g, edges),
        )


@style.styled
def homophily_figure(points: Sequence[DataPoint]) -> "Figure":
    """Homophily against mean kappa, NRMD as size and colour, and their rank correlation.

    Data sets for which a number is not defined are named below the figure.
    """
    known = [p for p in points if np.isfinite([p.homophily, p.kappa, p.nrmd]).all()]
    figure = style.new_figure(5.6, 4.0)
    ax = figure.add_subplot()
    if not known:
        style.empty_panel(ax, "No run has labels, edges and a metric.")
        return figure
    known.sort(key=lambda p: -p.nrmd)  # small dots are drawn above large ones
    x, y, nrmd = np.array([(p.homophily, p.kappa, p.nrmd) for p in known]).T
    dots = ax.scatter(
        x, y, s=_sizes(nrmd), c=nrmd, cmap=style.CURVATURE_COLORS,
        edgecolors="#333333", linewidths=0.6, zorder=2,
    )  # fmt: skip
    ax.set(
        xlabel="edge homophily",
        ylabel="mean curvature κ of the metric, last layer",
        xlim=(-0.1, 1.1),
    )
    ax.set_xticks(np.linspace(0, 1, 6))
    if len(known) >= _FEWEST_FOR_CORRELATION:
        ax.set_title(
            f"Spearman's rank correlation {spearmanr(x, y).statistic:.2f}, n = {len(known)}"
        )
    ax.margins(y=0.25)
    ax.grid(color="#e6e6e6", linewidth=0.6, zorder=0)
    bar = figure.colorbar(dots, ax=ax)
    bar.set_label("NRMD (also the size)")
    figure.draw_without_rendering()  # names are placed where the dots finally are
    _name(known, np.sqrt(_sizes(nrmd) / np.pi), ax)
    left_out = [style.plain(p.name) for p in points if p not in known]
    if left_out:
        figure.supxlabel(f"Not defined: {', '.join(left_out)}", fontsize=7, color="#555555")
    return figure


def _sizes(nrmd: NDArray[np.float64]) -> NDArray[np.float64]:
    """Areas between 50 and 350 square points."""
    span = nrmd.max() - nrmd.min()
    share = (nrmd - nrmd.min()) / span if span > 0 else np.full(len(nrmd), 0.5)
    areas: NDArray[np.float64] = 50 + 300 * share
    return areas


def _name(points: Sequence[DataPoint], radius: NDArray[np.float64], ax: Any) -> None:
    """Write each name beside its dot, where it overlaps least with other names and dots."""
    where = [(p.homophily, p.kappa) for p in points]
    centre = ax.transData.transform(where) * 72 / ax.figure.dpi
    taken = [_box(c, 2 * r, 2 * r) for c, r in zip(centre, radius, strict=True)]
    for point, middle, size in zip(points, centre, radius, strict=True):
        word = style.plain(point.name)
        width = _LETTER_WIDTH * len(word)
        away = np.array([size + 3 + width / 2, size + 3 + _LETTER_HEIGHT / 2])
        shifts = [np.array(side) * away for side in _SIDES]
        boxes = [_box(middle + shift, width, _LETTER_HEIGHT) for shift in shifts]
        best = int(np.argmin([sum(_overlap(box, other) for other in taken) for box in boxes]))
        taken.append(boxes[best])
        ax.annotate(
            word, (point.homophily, point.kappa), xytext=tuple(shifts[best]),
            textcoords="offset points", ha="center", va="center", fontsize=8,
        )  # fmt: skip


def _box(middle: NDArray[np.float64], width: float, height: float) -> Any:
    from matplotlib.transforms import Bbox

    return Bbox.from_bounds(middle[0] - width / 2, middle[1] - height / 2, width, height)


def _overlap(a: Any, b: Any) -> float:
    """Area that two boxes share."""
    shared = a.intersection(a, b)
    return 0.0 if shared is None else float(shared.width * shared.height)
