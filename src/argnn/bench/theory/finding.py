"""What a measured claim of the paper gives: statements with verdicts, tables and a figure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Literal, Self, TypeVar

import yaml

from argnn.bench.theory.panels import Panel
from argnn.bench.theory.rows import MeasuredRows

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
    records: MeasuredRows

    @property
    def header(self) -> list[str]:
        """Names of the columns."""
        return list(self.records[0])

    @property
    def rows(self) -> list[list[Value]]:
        """The cells alone."""
        return [list(row.values()) for row in self.records]


@dataclass(frozen=True)
class Finding:
    """The outcome of one claim.

    Attributes:
        statements: Sentences with their verdicts.
        tables: What the verdicts follow from.
        conditions: Under which conditions it was measured, and what was not.
        panels: The figure of the claim, side by side.
    """

    statements: Sequence[Statement]
    tables: Sequence[FoundTable]
    conditions: str
    panels: Sequence[Panel] = field(compare=False)

    @classmethod
    def of(
        cls,
        claim: str,
        statements: Sequence[Statement],
        tables: Mapping[str, MeasuredRows],
        panels: Sequence[Panel],
        **figures: Any,
    ) -> Self:
        """With the conditions of the claim in ``statements.yaml``, filled with figures."""
        conditions = packaged("statements.yaml")[claim]["conditions"].format(**figures)
        return cls(statements, [FoundTable(*table) for table in tables.items()], conditions, panels)


@cache
def packaged(name: str) -> Mapping[str, Any]:
    """What a YAML file beside this one holds."""
    text = files("argnn.bench.theory").joinpath(name).read_text(encoding="utf-8")
    found: Mapping[str, Any] = yaml.safe_load(text)
    return found


def stated(name: str, verdict: Verdict, **figures: Any) -> Statement:
    """The statement of that name in ``statements.yaml`` with its figures and verdict."""
    claims = packaged("statements.yaml").values()
    [words] = [claim["statements"][name] for claim in claims if name in claim["statements"]]
    filled = {part: text.format(**figures) for part, text in {"name": name, **words}.items()}
    return Statement(**filled, verdict=verdict)


def graded(verified: bool, changed: bool = False, otherwise: Verdict = "refuted") -> Verdict:
    """Verified, else with changes, else what the claim calls a failure."""
    return "verified" if verified else ("holds with changes" if changed else otherwise)


def shown(value: Value) -> str:
    """A value as a cell of a table: four digits that matter.

    Example:
        >>> shown(0.123456), shown(2708), shown(0.0), shown(None), shown(1e-17)
        ('0.1235', '2708', '0', '-', '1e-17')
    """
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
