"""Scores of variants of a method as bars with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING

from argnn.analysis.figures.style import PALETTE, new_figure, plain, styled
from argnn.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3


@dataclass(frozen=True)
class Bar:
    """One variant on one data set.

    Attributes:
        data: Name of the data set.
        method: Name of the variant.
        mean: Mean score, in [0, 1].
        interval: Half the width of its interval; None for a single run.
        n: Number of runs.
    """

    data: str
    method: str
    mean: float
    interval: float | None
    n: int


@styled
def ablation_figure(bars: Sequence[Bar], score: str, interval: str) -> "Figure":
    """One panel per data set, one bar per variant; a dotted line marks the first variant.

    ``interval`` says in words what the whiskers show.
    """
    if not bars:
        raise DataError("there are no scores to draw")
    data = list(dict.fromkeys(bar.data for bar in bars))
    methods = list(dict.fromkeys(bar.method for bar in bars))
    columns = min(len(data), _COLUMNS)
    rows = -(-len(data) // columns)
    counts = sorted({bar.n for bar in bars})
    runs = f"n = {counts[0]}" if len(counts) == 1 else f"n = {counts[0]} to {counts[-1]}"
    width = 1.4 + 2.6 * columns
    # About 16 letters of this size fit into an inch.
    below = wrap(f"{score}, per cent. Whiskers: {interval}, {runs}.", int(14 * width))
    height = 0.6 + 0.15 * len(below) + rows * (0.65 + 0.26 * len(methods))
    figure = new_figure(width, max(height, 2.0))
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True, sharex=True).flatten()
    for ax, name in zip(panels, data, strict=False):
        _panel([bar for bar in bars if bar.data == name], methods, ax)
        ax.set_title(plain(name))
    for ax in panels[len(data) :]:
        ax.set_visible(False)
    for ax in panels[max(len(data) - columns, 0) : len(data)]:  # the lowest of each column
        ax.tick_params(labelbottom=True)
    figure.supxlabel("\n".join(below), fontsize=8)
    return figure


def _panel(bars: Sequence[Bar], methods: Sequence[str], ax: "Axes") -> None:
    for bar in bars:
        place, mean = methods.index(bar.method), 100 * bar.mean
        width = 0.0 if bar.interval is None else 100 * bar.interval
        ax.barh(place, mean, height=0.66, color=PALETTE[place % len(PALETTE)], zorder=2)
        if width:
            ax.errorbar(mean, place, xerr=width, color="black", capsize=2.5, lw=1, zorder=3)
        box = {"facecolor": "white", "edgecolor": "none", "pad": 0.8}
        where = mean + width + 1.5
        ax.text(where, place, f"{mean:.1f}", va="center", fontsize=8, bbox=box, zorder=2)
        if place == 0:
            ax.axvline(mean, color="#555555", linestyle=":", linewidth=0.9, zorder=1)
    ax.set_yticks(range(len(methods)), [plain(name, 32) for name in methods])
    ax.set(xlim=(0, 112), ylim=(len(methods) - 0.5, -0.5), xticks=range(0, 101, 20))
