"""The leaderboard of a comparison: sorted by validation, which alone chooses the winner."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from argnn.bench.comparison.methods import MethodRun
from argnn.bench.leaderboard.compare import LEVEL, paired_comparison
from argnn.runs.summary import (
    INTERVAL,
    SELECTION,
    has_twins,
    selection_of_row,
    statistic,
    without_twins,
)
from argnn.runs.tables import SCORE_NAMES, unit_of, with_interval
from argnn.settings.run_config import MAIN_SCORES
from argnn.store.results import Row
from argnn.tables import rich_table
from argnn.wording import one_line, printable

#: From so many splits on, Wilcoxon's test can tell two methods apart.
_SPLITS_OF_A_TEST = 6
_LONGEST_CELL = 32
_NONE = {"mean": None, "interval": None}


def score_of_part(row: Row, part: str, name: str) -> float | None:
    """A score of a finished row on a part, ``"val"`` or ``"test"``; None where it has none.

    The average precision of classes is that of the rarer of two, or the mean over all.
    """
    scores: Mapping[str, float | None] = row[part] or {}
    classes = row.get("classes")
    if name != "average_precision" or name in scores or not classes or not classes[part]:
        return scores.get(name)
    values: list[float | None] = classes[part][name]
    mean: float | None = statistic(values)["mean"]
    return values[classes["rare"]] if len(values) == 2 else mean


def selection(run: MethodRun) -> str:
    """The validation score that chose the epochs, and chooses the winner."""
    return run.config.train.select or SELECTION[run.config.task]


def shown_score(run: MethodRun) -> str:
    """The test score that is shown: that of the selection, where it has one."""
    chosen = selection(run)
    return MAIN_SCORES[run.config.task] if chosen == "loss" else chosen


def ranked(runs: Sequence[MethodRun]) -> list[MethodRun]:
    """The methods by mean validation score, best first; those with fewer finished splits last.

    A mean over fewer splits does not compare. Test scores are not looked at.
    """

    def key(run: MethodRun) -> tuple[int, float]:
        name = selection(run)
        mean = statistic([selection_of_row(row)[1] for row in run.finished])["mean"]
        if mean is None:
            return (0, 0.0)
        return (-len(run.finished), mean if name == "loss" else -mean)

    return sorted(runs, key=key)


def board_row(run: MethodRun, *, winner: bool = False) -> dict[str, Any]:
    """A method in the leaderboard, as plain JSON values."""
    trials, finished = run.trials(), run.finished
    errors = [row["error"] for row in run.rows if "error" in row]
    name = shown_score(run)
    return {
        "method": run.model,
        "winner": winner,
        **_scores(finished, selection(run), name),
        "val": statistic([selection_of_row(row)[1] for row in finished]),
        "finished": len(finished),
        "failed": len(errors),
        "error": errors[0] if errors else None,
        "trial_epochs": sum(trial["epochs"] for trial in trials),
        "epochs": sum(row["epochs_run"] for row in finished),
        "trial_seconds": sum(r["seconds"] for trial in trials for r in trial["runs"]),
        "seconds": sum(row["seconds"] for row in finished),
        "recipes": [trial["chosen"] for trial in trials],
        "run": None if run.folder is None else str(run.folder.root),
    }


def _scores(rows: Sequence[Row], select: str, name: str) -> dict[str, Any]:
    """Statistics over splits; with those of test nodes without twins where there are twins."""
    twins = [(without_twins(row) or {}).get(name) for row in rows]
    return {
        "val": statistic([score_of_part(row, "val", select) for row in rows]),
        "test": statistic([score_of_part(row, "test", name) for row in rows]),
        "test_without_twins": statistic(twins) if any(map(has_twins, rows)) else None,
    }


def ensemble_row(members: Sequence[MethodRun], rows: Sequence[Row]) -> dict[str, Any]:
    """The ensemble in the leaderboard; its cost is that of its members."""
    parts = [board_row(run) for run in members]
    costs = ("trial_epochs", "epochs", "trial_seconds", "seconds")
    return {
        **parts[0],
        **_scores(rows, selection(members[0]), shown_score(members[0])),
        **{name: sum(part[name] for part in parts) for name in costs},
        "method": f"ensemble of {', '.join(run.model for run in members)}",
        "recipes": [],
        "run": None,
    }


def with_ensemble(
    rows: Sequence[dict[str, Any]], row: dict[str, Any], select: str
) -> list[dict[str, Any]]:
    """A leaderboard with the row of an ensemble at its place; at the end if it has no score."""
    own = row["val"]["mean"]
    sign = -1 if select == "loss" else 1

    def is_below(other: dict[str, Any]) -> bool:
        return bool(other["failed"]) or sign * (own - other["val"]["mean"]) > 0

    places = [] if own is None else [n for n, other in enumerate(rows) if is_below(other)]
    place = min(places, default=len(rows))
    return [*rows[:place], row, *rows[place:]]


def leaderboard_table(rows: Sequence[Mapping[str, Any]], select: str, test: str) -> Table:
    """The rows as a table; the winner is marked."""
    twins = any(row["test_without_twins"] for row in rows)
    cells = [
        (
            "*" if row["winner"] else "",
            escape(row["method"]),
            with_interval(row["val"], select),
            with_interval(row["test"], test),
            *([with_interval(row["test_without_twins"] or _NONE, test)] if twins else []),
            f"{row['finished']} of {row['finished'] + row['failed']}",
            f"{row['trial_epochs']} + {row['epochs']}",
            f"{row['trial_seconds'] + row['seconds']:.0f}",
            escape(_cut(printable(one_line(row["error"] or recipe_words(row["recipes"]))))),
        )
        for row in rows
    ]
    units = [unit_of(select), unit_of(test)]
    header = (
        "",
        "method",
        f"validation {SCORE_NAMES[select]}{units[0]}",
        f"test {SCORE_NAMES[test]}{units[1]}",
        *(["without twins"] if twins else []),
        "splits",
        "epochs: trial + training",
        "s",
        "recipe",
    )
    return rich_table(header, cells, left=("", "method", "recipe"))


def _cut(text: str) -> str:
    """The beginning of a text; ``--json`` has all of it."""
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 1]}…"


def recipe_words(recipes: Sequence[str]) -> str:
    """The recipe that was chosen most often.

    Example:
        >>> recipe_words(["deep", "wide", "deep"]), recipe_words(["wide", "wide"])
        ('deep (2 of 3 splits)', 'wide')
    """
    counts = Counter(recipes).most_common()
    if len(counts) < 2:
        return counts[0][0] if counts else ""
    name, count = counts[0]
    return f"{name} ({count} of {len(recipes)} splits)"


def winner_sentence(run: MethodRun) -> str:
    """Which method won, and by what."""
    recipe = recipe_words([trial["chosen"] for trial in run.trials()])
    return (
        f"Winner: {run.model}, by mean validation {SCORE_NAMES[selection(run)]}; test scores chose "
        f"nothing. Its recipe: {recipe}."
    )


def difference_sentence(first: MethodRun, second: MethodRun) -> str:
    """Whether the test scores of two methods differ; they chose neither.

    With few splits that is whether zero is in the interval of their mean difference, else what
    Wilcoxon's test says.
    """
    name = shown_score(first)
    scores = []
    for run in (first, second):
        known = {(row["split"], row["seed"]): score_of_part(row, "test", name) for row in run.rows}
        scores.append({pair: value for pair, value in known.items() if value is not None})
    found = paired_comparison(*scores)
    pair = f"{first.model} and {second.model}"
    if found["interval"] is None:
        return f"{pair}: one split cannot tell whether they differ."
    if found["pairs"] < _SPLITS_OF_A_TEST:
        differ = abs(found["difference"]) > found["interval"]
        how = "95 % interval"
    else:
        p = found["wilcoxon"]["p"]
        differ, how = p < LEVEL, f"Wilcoxon's signed-rank test, p = {p:.3f}"
    size = with_interval({"mean": found["difference"], "interval": found["interval"]}, name)
    verb = "differ" if differ else "do not differ clearly"
    return (
        f"{pair} {verb} on the test set: mean difference of {SCORE_NAMES[name]} "
        f"{size}{unit_of(name).strip(',')} over {found['pairs']} splits ({how})."
    )


def budget_sentence(budget: Mapping[str, Any]) -> str:
    """What each method was given."""
    patience = f", patience {budget['patience']}" if budget["patience"] else ""
    recipes = f"{budget['recipes']} recipe{'s' if budget['recipes'] > 1 else ''}"
    return (
        f"Budget of each method on each split: {recipes} in at most "
        f"{budget['trial_epochs']} epochs, then the best of them for at most {budget['epochs']} "
        f"epochs{patience}."
    )


def interval_sentence(splits: int) -> str:
    """How intervals were made."""
    return f"Interval: {INTERVAL}, n = {splits}."
