"""The figures of claims: panels side by side, each with a few kinds of points."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from argnn.analysis.figures.style import PALETTE, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_GREY = "#555555"


@dataclass(frozen=True)
class Series:
    """Points of one kind.

    Attributes:
        label: Their name in the legend.
        x: Where they are across.
        y: Where they are upwards, or the names of the lines of the panel on which they are.
        mark: Marker and line in matplotlib's letters, ``":"`` in grey for what is stated; a marker
            of its own if not given.
        color: Place in the palette; that of the series in its panel if not given.
    """

    label: str
    x: Sequence[float]
    y: Sequence[Any]
    mark: str = ""
    color: int | None = None


@dataclass(frozen=True)
class Panel:
    """Axes with points.

    Attributes:
        series: The points.
        xlabel: What is across.
        ylabel: What is upwards; empty where names or the panel to the left say it.
        title: Above the axes.
        log: The axes with a logarithmic scale.
        level: Where a dotted line is drawn: upright beside names, else across.
    """

    series: Sequence[Series]
    xlabel: str
    ylabel: str = ""
    title: str = ""
    log: Literal["", "x", "y", "xy"] = ""
    level: float | None = None


@styled
def drawn(panels: Sequence[Panel]) -> "Figure":
    """The figure of a claim."""
    figure = new_figure(7.2 if len(panels) > 1 else 6.6, 2.9)
    known: list[str] = []
    for ax, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for place, one in enumerate(panel.series):
            color = PALETTE[place if one.color is None else one.color]
            color = _GREY if one.mark == ":" else color
            mark = one.mark or "os^Dvx"[place % 6]
            ax.plot(one.x, one.y, mark, color=color, label=one.label, markersize=5)
        named = isinstance(panel.series[0].y[0], str)
        if named:
            ax.set_ylim(ax.get_ylim()[1] + 0.2, -0.5)
        if panel.level is not None:
            across = ax.axvline if named else ax.axhline
            across(panel.level, color=_GREY, linestyle=":", linewidth=0.9)
        ax.set(xlabel=panel.xlabel, ylabel=panel.ylabel, title=panel.title)
        ax.set(**{f"{axis}scale": "log" for axis in panel.log})
        if "x" in panel.log:
            ax.xaxis.set_minor_formatter("")  # labels between decades would overlap
        elif named:
            ax.set_xlim(left=0)
        labels = [one.label for one in panel.series]
        if labels != known:  # else the legend of the panel to the left says it
            ax.legend(loc="best")
        known = labels
    return figure
