r"""Training curves: losses, energies, the change of the metric, and the Lyapunov value.

A run always stores losses, scores and gradient norms. The energies, the change of the metric and
the Lyapunov value

.. math::
    \mathcal{V}_t = \mathcal{L}_t - \mathcal{L}^* + \gamma \sum_i \|\mathbf{g}_i^{(t)} -
    \mathbf{g}_i^*\|^2

need the metrics of every epoch, which ``argnn train --dashboard`` records. The optimum (the star)
is not known. In its place the smallest loss and the last metric of the run are used, so that the
value always ends near zero; the figure shows whether it falls on the way.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from argnn.analysis.figures.style import PALETTE, empty_panel, new_figure, styled
from argnn.errors import DataError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_Records = Sequence[Mapping[str, Any]]

#: The values of every run's history that are drawn.
CURVES = ("loss", "task_loss", "penalty", "gradient_norm", "val_score", "val_loss")
_ABSENT = "Not stored in this run:\ntrain with --dashboard to record it."


@styled
def training_figure(
    history: _Records, geometry: _Records = (), *, best_epoch: int | None = None
) -> "Figure":
    """Six panels over the epochs; a panel without stored values says so.

    Args:
        history: Per epoch ``epoch``, ``loss``, ``task_loss``, ``penalty``, ``gradient_norm``,
            ``val_score`` and ``val_loss``, the last two perhaps None.
        geometry: Per observed epoch ``epoch``, ``ricci_energy``, ``smoothness_energy``,
            ``metric_change`` and ``lyapunov``.
        best_epoch: The epoch that validation chose, marked by a line.
    """
    if not history:
        raise DataError("the run has no epochs to draw")
    figure = new_figure(9.0, 4.8)
    panels = figure.subplots(2, 3, sharex=True)
    penalized = any((record.get("penalty") or 0) > 0 for record in history)
    task = {"task_loss": "task"} if penalized else {}
    losses = {"loss": "total" if penalized else "training", **task, "val_loss": "validation"}
    norms = {"gradient_norm": "gradient norm"}
    norms |= {"penalty": "weighted penalties"} if penalized else {}
    energies = {"ricci_energy": "Ricci", "smoothness_energy": "smoothness"}
    drawn = {
        "Loss": losses,
        "Validation score": {"val_score": "validation"},
        "Gradient norm and penalty" if penalized else "Gradient norm": norms,
        "Metric energies, all layers": energies,
        "Change of the metric per epoch": {"metric_change": "root mean square per entry"},
        "Lyapunov value": {"lyapunov": "loss gap + metric gap"},
    }
    for number, (ax, title) in enumerate(zip(panels.flatten(), drawn, strict=True)):
        _lines(ax, title, history if number < 3 else geometry, drawn[title], log=number > 1)
    for ax in panels.flatten():
        if ax.axison and best_epoch is not None:
            ax.axvline(best_epoch, color="#555555", linestyle=":", linewidth=0.9)
    for ax in panels[-1]:
        ax.set_xlabel("epoch")
    for upper, lower in zip(*panels, strict=True):
        if not lower.axison:
            upper.set_xlabel("epoch")
            upper.tick_params(labelbottom=True)
    if best_epoch is not None:
        figure.supxlabel(f"Dotted: epoch {best_epoch}, chosen by validation", fontsize=8)
    return figure


def _lines(
    ax: "Axes", title: str, records: _Records, names: Mapping[str, str], log: bool = False
) -> None:
    """Draw the columns that have values; a logarithmic axis leaves out zeros."""
    columns = {
        label: [(r["epoch"], r[name]) for r in records if r.get(name) is not None]
        for name, label in names.items()
    }
    present = {label: column for label, column in columns.items() if column}
    ax.set_title(title)
    if not present:
        empty_panel(ax, _ABSENT)
        return
    for index, (label, column) in enumerate(present.items()):
        epochs, values = zip(*column, strict=True)
        marker = "o" if len(epochs) == 1 else None
        style = ("-", "--", "-.")[index % 3]
        ax.plot(epochs, values, style, color=PALETTE[index], label=label, marker=marker, ms=3)
    if log:
        _logarithmic(ax, [value for column in present.values() for _, value in column])
    ax.legend(loc="best")


def _logarithmic(ax: "Axes", values: Sequence[float]) -> None:
    """A logarithmic axis over at most eight powers of ten; smaller values are rounding errors."""
    positive = [value for value in values if value > 0]
    if positive:
        ax.set_yscale("log", nonpositive="mask")
        if min(positive) < 1e-8 * max(positive):
            ax.set_ylim(bottom=1e-8 * max(positive))
