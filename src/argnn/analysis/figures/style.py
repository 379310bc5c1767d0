"""Fonts, colours, legends and files of all figures."""

import io
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.analysis.properties import class_names, labels_of
from argnn.errors import ConfigError
from argnn.files import write_output
from argnn.wording import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

P = ParamSpec("P")
T = TypeVar("T")

FORMATS = ("pdf", "svg", "png")
#: Okabe and Ito's palette, which people with any kind of colour vision can tell apart.
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
#: Colours of a quantity where no end of the scale means flat.
FIELD_COLORS = "cividis"
DOTS_PER_INCH = 200
#: From flat, violet, to strongly curved, yellow.
CURVATURE_COLORS = "viridis"
# Beyond the palette's colours, classes differ by shape.
_MARKERS = ("o", "^", "s", "D", "v", "P", "X", "*")
_UNLABELLED = "#bdbdbd"
#: More lines or dots than this are drawn as an image inside a vector file.
MANY_MARKS = 4000
_MAX_NAME = 24
_STYLE = {
    "axes.grid": False,
    "axes.labelsize": 9,
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "pdf.fonttype": 42,  # other programs can edit the text
    "svg.hashsalt": "argnn",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
#: Without a time stamp, equal figures are equal files.
_METADATA: dict[str, dict[str, Any]] = {"pdf": {"CreationDate": None}, "svg": {"Date": None}}


def styled(draw: Callable[P, T]) -> Callable[P, T]:
    """Let a function draw in the style of all figures; the user's own style is not changed."""

    @wraps(draw)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        import matplotlib

        with matplotlib.rc_context(_STYLE):
            return draw(*args, **kwargs)

    return wrapped


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of a size in inches, without a window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


@styled
def figure_bytes(figure: "Figure", kind: str, dpi: int = DOTS_PER_INCH) -> bytes:
    """A figure as the bytes of a file; the same figure gives the same bytes.

    ``kind`` is one of ``FORMATS``; ``dpi`` also holds for images inside a vector file.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=dpi, metadata=_METADATA.get(kind))
    return buffer.getvalue()


def save_figure(
    figure: "Figure", folder: Path, name: str, formats: Iterable[str] = FORMATS
) -> list[Path]:
    """Write a figure as ``name`` with the suffix of each format; returns the files.

    The folder is made where it does not exist; files of the same names are replaced.
    """
    kinds = check_formats(formats)
    paths = [folder / f"{name}.{kind}" for kind in kinds]
    for path, kind in zip(paths, kinds, strict=True):
        write_output(path, figure_bytes(figure, kind), force=True)
    return paths


def check_formats(formats: Iterable[str]) -> list[str]:
    """The formats as a list; an unknown one is an error."""
    kinds = list(formats)
    for kind in kinds:
        if kind not in FORMATS:
            raise ConfigError(f"figures are written as {', '.join(FORMATS)} (got '{kind}')")
    return kinds


def plain(text: object, limit: int = _MAX_NAME) -> str:
    """A name that matplotlib shows literally: no formula, no end of line, not too long."""
    line = printable(str(text))
    shown = line if len(line) <= limit else line[: limit - 1] + "…"
    return shown.replace("$", r"\$")


def color_limits(
    values: NDArray[np.float64], share: float, least: float
) -> tuple[float, float, bool]:
    """Ends of a colour scale, and whether values hardly vary.

    ``share`` per cent of the values may lie beyond each end, so that outliers do not hide the rest;
    the scale has at least the width ``least``, so that tiny differences do not look large.
    """
    low, high = np.percentile(values, [share, 100 - share])
    room = max(least - (high - low), 0.0) / 2
    return float(low - room), float(high + room), bool(room > 0)


def empty_panel(ax: "Axes", sentence: str) -> None:
    """Say in a panel why there is nothing in it."""
    ax.set_axis_off()
    style: dict[str, Any] = {"ha": "center", "va": "center", "wrap": True, "color": "#555555"}
    ax.text(0.5, 0.5, sentence, transform=ax.transAxes, **style)


def class_legend(figure: "Figure", ax: "Axes") -> None:
    """Names of the classes below a figure, with marks of one size."""
    handles, names = ax.get_legend_handles_labels()
    rows = -(-len(names) // 6)
    columns = -(-len(names) // max(rows, 1))
    legend = figure.legend(handles, names, loc="outside lower center", ncols=max(columns, 1))
    for handle in legend.legend_handles:
        handle.set_sizes([26])  # type: ignore[union-attr]


def label_array(graph: Data) -> NDArray[np.int64]:
    """Label of each node, -1 where there is none."""
    labels: NDArray[np.int64] = labels_of(graph).numpy().clip(-1)
    return labels


def shown_names(graph: Data) -> list[str]:
    """Names of the classes as they can be drawn."""
    return [plain(name) for name in class_names(graph)]


def class_look(label: int) -> dict[str, str]:
    """Colour and marker of a class."""
    if label < 0:
        return {"color": _UNLABELLED, "marker": "o"}
    shape = _MARKERS[label // len(PALETTE) % len(_MARKERS)]
    return {"color": PALETTE[label % len(PALETTE)], "marker": shape}


def draw_classes(
    ax: "Axes", points: NDArray[np.float64], graph: Data, nodes: NDArray[np.int64], **look: Any
) -> None:
    """Draw nodes at their points, class by class; those without a label come first."""
    labels, names = label_array(graph)[nodes], shown_names(graph)
    for label in sorted(set(labels.tolist())):
        name = "no label" if label < 0 else names[label]
        own: dict[str, Any] = {"linewidths": 0, **class_look(label), **look}
        ax.scatter(*points[labels == label].T, label=name, zorder=2, **own)


def draw_edges(ax: "Axes", points: NDArray[np.float64], pairs: Tensor, **look: Any) -> None:
    """Draw pairs of nodes ``[2, P]`` as thin lines."""
    from matplotlib.collections import LineCollection

    low, high = pairs.numpy()
    lines = list(np.stack([points[low], points[high]], axis=1))
    ax.add_collection(LineCollection(lines, **look))
