"""What a measured claim of the paper gives: statements with verdicts, tables and a figure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

T = TypeVar("T")
Verdict = Literal["verified", "holds with changes", "not reproduced", "refuted"]
VERDICTS: tuple[Verdict, ...] = ("verified", "holds with changes", "not reproduced", "refuted")
Value = str | int | float | None


@dataclass(frozen=True)
class Effort:
    """How much to compute, and from which seed.

    Attributes:
        size: ``"tiny"`` for tests, ``"small"`` for a look, ``"full"`` for the figures of the pages.
        seed: Seed of graphs, features and weights.
        data_root: Folder of the raw benchmark files; ``$ARGNN_DATA`` if not given.
    """

    size: Literal["tiny", "small", "full"] = "small"
    seed: int = 0
    data_root: str | None = None

    def of(self, tiny: T, small: T, full: T) -> T:
        """What belongs to the size."""
        return {"tiny": tiny, "small": small, "full": full}[self.size]


@dataclass(frozen=True)
class Statement:
    """One sentence of the paper and what was found about it.

    Attributes:
        name: What it is about, in a few words.
        says: What the paper says.
        place: Label of the theorem or equation in the source of the paper.
        measured: What was measured, with its figures.
        rule: How the verdict follows from the figures.
        verdict: One of ``VERDICTS``.
    """

    name: str
    says: str
    place: str
    measured: str
    rule: str
    verdict: Verdict


@dataclass(frozen=True)
class FoundTable:
    """Rows of plain values; the first cell, or the first two, name a row."""

    name: str
    header: Sequence[str]
    rows: Sequence[Sequence[Value]]

    def records(self) -> list[dict[str, Any]]:
        """Each row with its cells by the names of their columns."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]


@dataclass(frozen=True)
class Finding:
    """The outcome of one claim.

    Attributes:
        statements: Sentences with their verdicts.
        tables: What the verdicts follow from.
        conditions: Under which conditions it was measured, and what was not.
        draw: Draws the figure of the claim.
    """

    statements: Sequence[Statement]
    tables: Sequence[FoundTable]
    conditions: str
    draw: "Callable[[], Figure]" = field(compare=False)


def graded(verified: bool, changed: bool = False, otherwise: Verdict = "refuted") -> Verdict:
    """Verified, else with changes, else what the claim calls a failure."""
    return "verified" if verified else ("holds with changes" if changed else otherwise)


def slope(x: ArrayLike, y: ArrayLike) -> tuple[float, float]:
    """Slope of a straight line through points, and half the width of its 95 % interval.

    Example:
        >>> [round(value, 3) for value in slope([0, 1, 2], [1, 3, 5])]
        [2.0, 0.0]
    """
    fit = stats.linregress(x, y)
    return float(fit.slope), float(stats.t.ppf(0.975, np.size(x) - 2) * fit.stderr)


def shown(value: Value) -> str:
    """A value as a cell of a table: four digits that matter.

    Example:
        >>> shown(0.123456), shown(2708), shown(0.0), shown(None), shown(1e-17)
        ('0.1235', '2708', '0', '-', '1e-17')
    """
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
