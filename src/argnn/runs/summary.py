"""From the rows of several splits to means and intervals."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.stats import t as student_t

from argnn.train.selection import SELECTIONS

#: The scores of each task, the paper's leading one first.
SCORES: Mapping[str, tuple[str, ...]] = {
    "node": ("f1", "f1_macro", "accuracy", "auroc", "auprc"),
    "link": ("auroc", "auprc", "accuracy", "hits@10", "hits@50", "mrr"),
    "regression": ("r2", "mae", "rmse"),
    "multilabel": ("f1_micro", "f1_macro", "average_precision"),
}
#: Scores of which less is better; no table ranks by them.
ERRORS = ("mae", "rmse")
#: The validation score that chooses the epoch unless the user names another.
SELECTION: Mapping[str, str] = {task: names[0] for task, names in SELECTIONS.items()}
#: Below so many nodes one seed is noise: a table needs at least so many seeds.
SMALL_GRAPH, LEAST_SEEDS = 1000, 5
#: Number of a split, and a seed.
Pair = tuple[int, int]
_OF_A_CLASS = ("precision", "recall", "f1", "average_precision")
INTERVAL = "95 % Student-t interval of the mean over splits"


def interval_half_width(values: Sequence[float]) -> float | None:
    """Half the width of the 95 % Student-t interval of the mean; None for a single value.

    Example:
        >>> round(interval_half_width([1.0, 2.0, 3.0]), 4)
        2.4841
    """
    if len(values) < 2:
        return None
    quantile = float(student_t.ppf(0.975, len(values) - 1))
    return quantile * statistics.stdev(values) / math.sqrt(len(values))


def by_split(runs: Mapping[Pair, float]) -> list[float]:
    """The mean over the seeds of each split; the runs themselves where there is one split only.

    Seeds of one split share its test nodes: as runs of their own they would make intervals too
    narrow and p-values too small.

    Example:
        >>> by_split({(0, 0): 1.0, (0, 1): 3.0, (1, 0): 5.0})
        [2.0, 5.0]
    """
    splits: dict[int, list[float]] = {}
    for (split, _), value in sorted(runs.items()):
        splits.setdefault(split, []).append(value)
    groups = list(splits.values())
    return groups[0] if len(groups) == 1 else [statistics.fmean(group) for group in groups]


def score_of(row: Mapping[str, Any], score: str) -> float | None:
    """A test score of a finished row; None where it is not defined or nothing was scored."""
    return None if row["test"] is None else row["test"].get(score)


def run_scores(rows: Iterable[Mapping[str, Any]], score: str) -> dict[Pair, float]:
    """The test score of each finished run that has one."""
    finished = [row for row in rows if "error" not in row]
    found = {(row["split"], row["seed"]): score_of(row, score) for row in finished}
    return {run: value for run, value in found.items() if value is not None}


def statistic(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, standard deviation, interval and count of the values that exist."""
    known = [value for value in values if value is not None]
    return {
        "mean": statistics.fmean(known) if known else None,
        "sd": statistics.stdev(known) if len(known) > 1 else None,
        "interval": interval_half_width(known),
        "n": len(known),
    }


def selection_of_row(row: Mapping[str, Any]) -> tuple[str, float | None]:
    """The validation score that chose the epoch of a finished row, and its value."""
    if "selection" in row:
        return row["selection"]["score"], row["selection"]["val"]
    name = SELECTION[row["task"]]
    return name, _score(row, "val", name)


def protocol(task: str, select: str) -> str:
    """How the epoch was chosen and the test set scored, in words."""
    if task == "link":
        return (
            "epoch and threshold chosen on validation pairs; test pairs scored once, after "
            "training; the model sees training edges only"
        )
    return f"epoch chosen by validation {select}; test nodes scored once, after training"


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Statistics over the splits that were finished, and what was missing."""
    finished = [row for row in rows if "error" not in row]
    task = rows[0]["task"] if rows else "node"
    chosen = [selection_of_row(row) for row in finished]
    selection = chosen[0][0] if chosen else SELECTION[task]
    return {
        "task": task,
        "protocol": protocol(task, selection),
        "interval": INTERVAL,
        "splits": len(finished),
        "failed": len(rows) - len(finished),
        "test": {
            name: statistic([_score(row, "test", name) for row in finished])
            for name in SCORES[task]
        },
        **_pooled(finished),
        **_twins(finished, SCORES[task]),
        **_classes(finished),
        "val": {selection: statistic([value for _, value in chosen])},
        "absent_classes": {
            str(row["split"]): row["test"]["absent_classes"]
            for row in finished
            if row["test"] and row["test"].get("absent_classes")
        },
        "seconds": sum(row["seconds"] for row in finished),
    }


def _pooled(finished: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Test scores of all folds together, where each node is tested once; else nothing.

    Scores that rank nodes are left out: each fold has a model of its own, with its own scale.
    """
    columns = [row.get("config", {}).get("columns", {}) for row in finished]
    if len(finished) < 2 or not all("folds" in said for said in columns):
        return {}
    counts = np.array([row["test"]["count"] for row in finished])
    total, tallies = int(counts.sum()), [row.get("tally", {}) for row in finished]
    sums = {name: np.sum([tally[name] for tally in tallies], axis=0) for name in tallies[0]}
    if "squared" in sums:
        means = np.array([tally["true"] for tally in tallies]) / counts[:, None]
        between = counts @ (means - sums["true"] / total) ** 2
        scores = {
            "r2": 1 - sums["squared"] / (sums["spread"] + between),
            "mae": sums["absolute"] / total,
            "rmse": np.sqrt(sums["squared"] / total),
        }
    elif "right" in sums:
        right, marked = sums["right"], sums["said"] + sums["true"]
        scores = {
            "f1_micro": 2 * right.sum() / max(1, marked.sum()),
            "f1_macro": (2 * right / np.maximum(marked, 1))[marked > 0],
        }
    else:
        scores = {"accuracy": counts @ [row["test"]["accuracy"] for row in finished] / total}
        confusions = [row["classes"]["test"]["confusion"] for row in finished]
        if None not in confusions:
            confusion = np.sum(confusions, axis=0)
            true, marked = confusion.sum(1), confusion.sum(0) + confusion.sum(1)
            f1 = 2 * confusion.diagonal() / np.maximum(marked, 1)
            scores |= {"f1": true @ f1 / total, "f1_macro": f1[marked > 0]}
    return {"pooled": {"count": total, **{name: float(np.mean(v)) for name, v in scores.items()}}}


def _twins(finished: Sequence[Mapping[str, Any]], names: Sequence[str]) -> dict[str, Any]:
    """Numbers of test nodes of all splits, and the scores without twins where there are any."""
    counts = [row["twins"] for row in finished if "twins" in row]
    if not counts:
        return {}
    total = {key: sum(count[key] for count in counts) for key in ("test", "with_twin")}
    if not total["with_twin"]:
        return {"twins": total}
    parts = [without_twins(row) or {} for row in finished]
    scores = {name: statistic([part.get(name) for part in parts]) for name in names}
    return {"twins": total, "test_without_twins": scores}


def _classes(finished: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Test scores of each class: means over splits, and sums of counts; nothing without classes.

    ``average_precision_rare`` is that of the rarest training class, not weighted by class size.
    """
    found = [row["classes"] for row in finished if (row.get("classes") or {}).get("test")]
    if not found:
        return {}
    tests = [part["test"] for part in found]
    confusions = [test["confusion"] for test in tests]
    rare = [part["test"]["average_precision"][part["rare"]] for part in found]
    return {
        "classes": {
            "names": found[0]["names"],
            "rare": found[0]["rare"],
            **{name: _column_means([test[name] for test in tests]) for name in _OF_A_CLASS},
            "support": np.sum([test["support"] for test in tests], axis=0).tolist(),
            "confusion": None if None in confusions else np.sum(confusions, axis=0).tolist(),
            "average_precision_rare": statistic(rare),
        }
    }


def _column_means(rows: Sequence[Sequence[float | None]]) -> list[float | None]:
    """Mean of each column over the rows that have a value there."""
    return [statistic([row[label] for row in rows])["mean"] for label in range(len(rows[0]))]


def has_twins(row: Mapping[str, Any]) -> bool:
    """Whether a training node has the same neighbours as some test node of a finished row."""
    return bool(row.get("twins", {}).get("with_twin"))


def without_twins(row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The scores of a row on the test nodes that have no twin in the training set.

    None where there is no such node, and where an older version wrote the row.
    """
    if "twins" not in row:
        return None
    scores: Mapping[str, Any] | None = row["test_without_twins" if has_twins(row) else "test"]
    return scores


def _score(row: Mapping[str, Any], part: str, name: str) -> float | None:
    scores = row[part]
    value: float | None = None if scores is None else scores[name]
    return value
