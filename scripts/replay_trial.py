"""Leave one graph out: replay argnn's trial with recipes that were chosen without the graph.

Needs no training: it reads the validation curves of ``scripts/try_recipes.py``. For each graph, as
many recipes as argnn has are chosen from all that were measured, by the curves of the other graphs
alone, and the trial is replayed on the curves of the graph that was left out. Nothing is known of
the number of validation nodes, so that a small graph tries all recipes.

    python scripts/replay_trial.py CURVES.jsonl docs/results/left-out.csv
"""

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from argnn.runs.machine import git_state
from argnn.runs.recipes import RECIPES, STANDING, Recipe
from argnn.runs.trial import ROUNDS, going_on
from argnn.settings.options import parse_overrides, resolve_options, resolve_train
from argnn.version import __version__

HEADER = ("graph", "best recipe of all", "trial", "trial without the graph", "chosen")


@dataclass(frozen=True)
class Curve:
    """Validation score and loss of every epoch of one recipe on one graph."""

    name: str
    scores: Sequence[float]
    losses: Sequence[float]

    def key(self, epochs: int) -> tuple[float, float]:
        """What a trial compares after so many epochs."""
        return max(self.scores[:epochs]), -min(self.losses[:epochs])

    @cached_property
    def best(self) -> float:
        """The score of its best epoch."""
        return max(self.scores)


#: The curves of one graph by complete settings.
Curves = dict[str, Curve]


def settings_key(settings: Mapping[str, Any]) -> str:
    """What tells recipes apart, with nothing left to a default."""
    return _complete(tuple(f"{name}={json.dumps(value)}" for name, value in settings.items()))


@cache
def _complete(words: tuple[str, ...]) -> str:
    changes = parse_overrides(words, "argnn")
    options = resolve_options("argnn", "default", changes.options)
    train = resolve_train("argnn", "default", 0, changes.train)
    return json.dumps([options, train.lr, train.weight_decay], sort_keys=True, default=str)


def read_curves(path: Path) -> dict[str, Curves]:
    """The curves of a file by graph, those of the first split of each."""
    found: dict[str, Curves] = defaultdict(dict)
    for row in map(json.loads, path.read_text().splitlines()):
        if "error" not in row:
            curve = Curve(row["recipe"], row["scores"], row["losses"])
            found[row["graph"]].setdefault(settings_key(row["settings"]), curve)
    return found


def varied(key: str) -> list[str]:
    """The recipe with every metric that its trial would try."""
    options, *train = json.loads(key)
    metrics = ("fixed", "structure", "both") if options["self_path"] else ("fixed", "structure")
    return [json.dumps([{**options, "metric": m}, *train], sort_keys=True) for m in metrics]


def is_start(key: str) -> bool:
    """Whether a trial may start with these settings: the metric is that of our recipes."""
    options, *_ = json.loads(key)
    return bool(options["metric"] == ("both" if options["self_path"] else "structure"))


def replayed(curves: Curves, starts: Iterable[str], lead: float = 0.0) -> Curve:
    """What the trial chooses, which it then trains to the end.

    Args:
        curves: The curves of the graph.
        starts: What the trial starts with.
        lead: By how much a score must be better than that of the recipe that stands, and than
            that of the winner with another metric.
    """
    left = [key for key in starts if key in curves]
    stands = next(settings_of(recipe) for recipe in RECIPES if recipe.name == STANDING)
    standing = {stands if stands in left else left[0]}

    def order(key: str, epochs: int) -> tuple[float, float]:
        score, loss = curves[key].key(epochs)
        return score + (lead if key in standing else 0.0), loss

    for epochs, count in ROUNDS:
        ranked = sorted(left, key=lambda key: order(key, epochs), reverse=True)
        left = going_on(ranked, count, lambda key: json.loads(key)[0])
    standing.add(left[0])
    finalists = [key for key in (left[0], *varied(left[0])) if key in curves]
    return curves[max(finalists, key=lambda key: order(key, ROUNDS[-1][0]))]


def chosen_recipes(graphs: Sequence[Curves], count: int) -> list[str]:
    """One after the other, the recipe that brings the set closest to the best of all recipes."""
    every = sorted({key for curves in graphs for key in curves if is_start(key)})
    top = [max(curve.best for curve in curves.values()) for curves in graphs]
    reached = [0.0] * len(graphs)
    chosen: list[str] = []

    def gap(key: str) -> tuple[float, float]:
        scores = [curves[key].best if key in curves else 0.0 for curves in graphs]
        best = [max(pair) for pair in zip(reached, scores, strict=True)]
        return sum(top) - sum(best), -sum(scores)

    while len(chosen) < min(count, len(every)):
        chosen.append(min((key for key in every if key not in chosen), key=gap))
        for place, curves in enumerate(graphs):
            if chosen[-1] in curves:
                reached[place] = max(reached[place], curves[chosen[-1]].best)
    return chosen


def own_starts() -> list[str]:
    """What argnn's trial starts with."""
    return [settings_of(recipe) for recipe in RECIPES]


def settings_of(recipe: Recipe) -> str:
    """The settings of a recipe that tell its curves from others."""
    train = {name: value for name, value in recipe.train.items() if name != "patience"}
    return settings_key({**recipe.model, **train})


def rows(graphs: Mapping[str, Curves]) -> list[list[str]]:
    """A line for each graph and one for the mean, scores in per cent."""
    ours = own_starts()
    found: list[tuple[str, list[float], str]] = []
    for name, curves in graphs.items():
        others = [other for key, other in graphs.items() if key != name]
        usual, left_out = (
            replayed(curves, starts) for starts in (ours, chosen_recipes(others, len(RECIPES)))
        )
        best = max(curve.best for curve in curves.values())
        same = "the same" if usual == left_out else left_out.name
        found.append((name, [100 * score for score in (best, usual.best, left_out.best)], same))
    means = [statistics.mean(column) for column in zip(*(s for _, s, _ in found), strict=True)]
    lines = [*found, ("mean", means, "")]
    return [[name, *(f"{s:.2f}" for s in scores), f'"{words}"'] for name, scores, words in lines]


def main() -> None:
    """Replay, and write the file."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("curves", type=Path)
    parser.add_argument("out", type=Path)
    given = parser.parse_args()
    commit = str(git_state()["git_commit"])[:7]
    head = [
        "# command: python scripts/replay_trial.py CURVES.jsonl docs/results/left-out.csv",
        "# machine: any, nothing is trained; the curves come from one H200",
        f"# versions: argnn {__version__}",
        f"# date: written on {date.today()} (commit {commit})",
        ",".join(HEADER),
    ]
    lines = [*head, *(",".join(row) for row in rows(read_curves(given.curves)))]
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
