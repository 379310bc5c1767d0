"""Critical-difference diagrams of average ranks (Demsar 2006)."""

import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from argnn.analysis.figures.style import FORMATS, PALETTE, figure_bytes, new_figure
from argnn.bench.leaderboard.compare import alike
from argnn.bench.leaderboard.grids import board_title
from argnn.errors import ConfigError
from argnn.files import write_output

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SUFFIXES = tuple(f".{kind}" for kind in FORMATS)
_REFERENCE, _OTHER, _GROUP = PALETTE[0], "#333333", PALETTE[5]
#: Heights in lines of text: of the first bar, from bar to bar, and of everything above the line.
_FIRST_GROUP, _GROUP_STEP, _TOP = 0.55, 0.4, 3.4
_FONT = 9
#: Sizes in inches: of the line of ranks, of a letter, of a line of text, of a title.
_AXIS, _LETTER, _LINE, _TITLE = 4.2, 0.077, 0.22, 0.45


def check_diagram(path: Path) -> None:
    """Raise unless a diagram can be drawn in the format that the suffix says."""
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"--diagram must end with {', '.join(SUFFIXES)} (got '{path}')")
    if importlib.util.find_spec("matplotlib") is None:
        raise ConfigError("--diagram needs matplotlib: pip install 'argnn[plot]'")


def draw_ranks(
    ranks: Mapping[str, float], difference: float, ax: "Axes", highlight: str | None = None
) -> "Axes":
    """Average ranks on a line; bars join methods that the critical difference does not part.

    Heights are in lines of text: the axis is at zero, names are below it and the scale above.
    """
    names = sorted(ranks, key=lambda name: ranks[name])
    places = [ranks[name] for name in names]
    groups = alike(places, difference)
    span = len(names) - 1
    left_room, right_room = (inches / _AXIS * span for inches in _margins(names))
    ends = (1.0 - left_room, max(len(names) + right_room, 1.0 + difference + 0.05 * span))
    first = -_FIRST_GROUP - _GROUP_STEP * len(groups) - 0.4
    for order, (name, place) in enumerate(zip(names, places, strict=True)):
        left = order < _half(names)
        # From both ends inwards, so that no two lines cross.
        y = first - (order if left else len(names) - 1 - order)
        x = 1.0 - 0.04 * span if left else len(names) + 0.04 * span
        color = _REFERENCE if name == highlight else _OTHER
        ax.plot([place, place, x], [0, y, y], color=color, linewidth=1, solid_joinstyle="miter")
        ax.text(
            x + (-0.01 if left else 0.01) * span,
            y,
            f"{name}  {place:.2f}" if left else f"{place:.2f}  {name}",
            ha="right" if left else "left",
            va="center",
            color=color,
            fontsize=_FONT,
            fontweight="bold" if name == highlight else "normal",
            parse_math=False,
        )
    for number, group in enumerate(groups):
        y = -_FIRST_GROUP - _GROUP_STEP * number
        bar = [places[group[0]] - 0.012 * span, places[group[-1]] + 0.012 * span]
        ax.plot(bar, [y, y], color=_GROUP, linewidth=3.5, solid_capstyle="round", zorder=3)
    _draw_line(ax, len(names))
    _draw_scale(ax, difference)
    ax.set_xlim(*ends)
    ax.set_ylim(first - _half(names) + 0.3, _TOP)
    ax.set_axis_off()
    return ax


def _half(names: Sequence[str]) -> int:
    """How many names stand at the left."""
    return (len(names) + 1) // 2


def _margins(names: Sequence[str]) -> tuple[float, float]:
    """Room for the names at each side of the line of ranks, in inches; the best come first."""
    sides = names[: _half(names)], names[_half(names) :]
    # A rank stands beside each name, and a short line before it.
    left, right = (_LETTER * (max(map(len, side)) + 9) for side in sides)
    return left, right


def _draw_line(ax: "Axes", last: int) -> None:
    ax.plot([1, last], [0, 0], color="black", linewidth=1.2, solid_capstyle="projecting")
    for rank in range(1, last + 1):
        ax.plot([rank, rank], [0, 0.25], color="black", linewidth=1.2)
        ax.text(rank, 0.4, str(rank), ha="center", va="bottom", fontsize=_FONT)


def _draw_scale(ax: "Axes", difference: float) -> None:
    """The critical difference as a length above the line."""
    y, ends = _TOP - 1.2, (1.0, 1.0 + difference)
    ax.plot(ends, [y, y], color="black", linewidth=1.2)
    for end in ends:
        ax.plot([end, end], [y - 0.2, y + 0.2], color="black", linewidth=1.2)
    label = f"critical difference {difference:.2f}"
    ax.text(sum(ends) / 2, y + 0.25, label, ha="center", va="bottom", fontsize=_FONT)


def write_diagram(boards: Sequence[Mapping[str, Any]], path: Path, *, force: bool = False) -> None:
    """One panel for each score that has ranks; the suffix says the format."""
    check_diagram(path)
    ranked = [board for board in boards if board["ranks"]["message"] is None]
    if not ranked:
        reasons = dict.fromkeys(board["ranks"]["message"] for board in boards)
        raise ConfigError(f"--diagram: {'; '.join(reasons)}")
    heights = [_panel_height(board["ranks"]) for board in ranked]
    margins = max(sum(_margins(list(board["ranks"]["ranks"]))) for board in ranked)
    figure = new_figure(_AXIS + margins, sum(heights))
    panels = figure.subplots(len(ranked), height_ratios=heights, squeeze=False)[:, 0]
    for board, ax in zip(ranked, panels, strict=True):
        ranks = board["ranks"]
        draw_ranks(ranks["ranks"], ranks["critical_difference"], ax, board["reference"])
        title = f"{board_title(board)}, average rank over {len(ranks['columns'])} data sets"
        ax.set_title(title, fontsize=10)
    write_output(path, figure_bytes(figure, path.suffix.lower()[1:]), force=force)


def _panel_height(ranks: Mapping[str, Any]) -> float:
    below = _FIRST_GROUP + _GROUP_STEP * len(ranks["alike"]) + 0.1 + _half(list(ranks["ranks"]))
    return _LINE * (_TOP + below) + _TITLE
