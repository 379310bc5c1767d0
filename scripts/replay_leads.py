"""By how many validation nodes must a recipe lead? Judged on nodes that had no say.

Needs no training: it reads the curves of ``scripts/try_recipes.py``, which has the scores of five
parts of the validation nodes. argnn's trial is replayed on four parts, its choice of recipe and
epoch is judged on the fifth, and each part is left out once. No test label is read.

    python scripts/replay_leads.py CURVES.jsonl docs/results/leads.csv --graphs cornell texas

With ``--alone`` it compares single recipes in the same way.
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from replay_trial import Curve, Curves, own_starts, replayed, settings_key, settings_of

from argnn.runs.machine import git_state
from argnn.runs.recipes import RECIPES, STANDING
from argnn.runs.trial import NODES_PER_RECIPE, ROUNDS
from argnn.version import __version__

LEADS = (0, 1, 2, 3, 4)
HEADER = (
    "graph",
    "splits",
    "best recipe alone",
    *(f"lead {lead}" for lead in LEADS),
    f"{STANDING} alone",
)


@dataclass(frozen=True)
class HeldOutCurve(Curve):
    """A curve of four parts of the validation nodes, and the right answers in the fifth."""

    held_out: tuple[int, ...]

    def judged(self) -> int:
        """Right answers in the fifth part, in the epoch that the others choose."""
        every = range(min(len(self.scores), ROUNDS[-1][0]))
        return self.held_out[max(every, key=lambda e: (self.scores[e], -self.losses[e]))]


def parts(row: Mapping[str, Any]) -> Iterator[HeldOutCurve]:
    """The curve of one training with each part of the validation nodes left out."""
    sizes = row["fold_sizes"]
    total = sum(sizes)
    for fold, size in enumerate(sizes):
        scores = [(sum(c) - c[fold]) / (total - size) for c in row["fold_correct"]]
        losses = [(sum(v) - v[fold]) / (total - size) for v in row["fold_losses"]]
        held = tuple(c[fold] for c in row["fold_correct"])
        yield HeldOutCurve(row["recipe"], scores, losses, held)


@dataclass
class Split:
    """What was measured on one split: curves by settings for each part that is left out."""

    nodes: int
    folds: list[Curves]

    def judged(self, starts: list[str], lead: float) -> float:
        """Share of right answers of what the trial chooses, each node judged once."""
        known = [key for key in starts if key in self.folds[0]]
        known = known[: max(self.nodes // NODES_PER_RECIPE, 1)]
        right = 0
        for curves in self.folds:
            right += _judged(replayed(curves, known, lead / self.nodes))
        return right / self.nodes

    def alone(self, key: str) -> float:
        """The same for one recipe, as it is."""
        return sum(_judged(curves[key]) for curves in self.folds) / self.nodes


def _judged(curve: Curve) -> int:
    assert isinstance(curve, HeldOutCurve)
    return curve.judged()


def read(path: Path) -> dict[str, dict[int, Split]]:
    """The splits of every graph."""
    found: dict[str, dict[int, Split]] = defaultdict(dict)
    for row in map(json.loads, path.read_text().splitlines()):
        if "fold_sizes" in row:
            sizes = row["fold_sizes"]
            empty = Split(sum(sizes), [{} for _ in sizes])
            split = found[row["graph"]].setdefault(row["split"], empty)
            for curves, curve in zip(split.folds, parts(row), strict=True):
                curves[settings_key(row["settings"])] = curve
    return found


def rows(found: Mapping[str, Mapping[int, Split]]) -> list[list[str]]:
    """A line for each graph and one for the mean, in per cent."""
    starts = own_starts()
    stands = next(settings_of(recipe) for recipe in RECIPES if recipe.name == STANDING)
    lines: list[tuple[str, int, list[float]]] = []
    for graph, splits in found.items():
        counts = {n: sum(key in split.folds[0] for key in starts) for n, split in splits.items()}
        most = max(counts.values())
        used = [split for n, split in splits.items() if counts[n] == most]

        def mean(lead: float, used: list[Split] = used) -> float:
            return 100 * statistics.mean(split.judged(starts, lead) for split in used)

        def alone(key: str, used: list[Split] = used) -> float:
            return 100 * statistics.mean(split.alone(key) for split in used)

        common = [key for key in starts if all(key in split.folds[0] for split in used)]
        scores = [max(map(alone, common)), *map(mean, LEADS), alone(stands)]
        lines.append((graph, len(used), scores))
    means = [statistics.mean(column) for column in zip(*(s for *_, s in lines), strict=True)]
    lines.append(("mean", sum(count for _, count, _ in lines), means))
    return [[name, str(count), *(f"{s:.2f}" for s in scores)] for name, count, scores in lines]


def recipes_alone(
    found: Mapping[str, Mapping[int, Split]], wanted: Sequence[int] = (0, 1, 2)
) -> list[list[str]]:
    """A line for each recipe: its score without any choice but that of the epoch, in per cent.

    Args:
        found: The splits of every graph.
        wanted: Recipes are compared where all of these splits were measured.
    """
    names: dict[str, str] = {}
    for splits in found.values():
        for split in splits.values():
            names.update({key: curve.name for key, curve in split.folds[0].items()})

    def cell(key: str, splits: Mapping[int, Split]) -> str:
        common = [splits[n] for n in wanted if n in splits and key in splits[n].folds[0]]
        if len(common) < len(wanted):
            return ""
        return f"{100 * statistics.mean(split.alone(key) for split in common):.2f}"

    rows = [[f'"{names[key]}"', *(cell(key, s) for s in found.values())] for key in names]
    rows = [row for row in rows if any(row[1:])]
    return sorted(rows, key=lambda row: (row[1:].count(""), [-float(c or 0) for c in row[1:]]))


def main() -> None:
    """Replay, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("curves", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", nargs="+", help="all of the file, unless named")
    parser.add_argument("--alone", action="store_true", help="each recipe alone, no leads")
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2], help="with --alone")
    parser.add_argument("--machine", default="not recorded")
    given = parser.parse_args()
    found = read(given.curves)
    chosen = {graph: found[graph] for graph in given.graphs or found}
    table = (
        [["recipe", *chosen], *recipes_alone(chosen, given.splits)]
        if given.alone
        else [list(HEADER), *rows(chosen)]
    )
    splits = " ".join(map(str, given.splits))
    options = f" --alone --splits {splits}" if given.alone else ""
    head = [
        f"# command: python scripts/{Path(__file__).name} CURVES.jsonl {given.out}{options}",
        f"# machine: {given.machine}",
        f"# versions: argnn {__version__}",
        f"# date: written on {date.today()} (commit {str(git_state()['git_commit'])[:7]})",
    ]
    lines = [*head, *(",".join(row) for row in table)]
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
