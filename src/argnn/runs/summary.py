"""From the rows of several splits to means and intervals."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.stats import t as student_t

#: The scores of each task, the paper's leading one first.
SCORES: Mapping[str, tuple[str, ...]] = {
    "node": ("f1", "f1_macro", "accuracy", "auroc", "auprc"),
    "link": ("auroc", "auprc", "accuracy", "hits@10", "hits@50", "mrr"),
}
#: The validation score that chooses the epoch.
SELECTION: Mapping[str, str] = {"node": "accuracy", "link": "auroc"}
#: Below so many nodes one seed is noise: a table needs at least so many seeds.
SMALL_GRAPH, LEAST_SEEDS = 1000, 5
INTERVAL = "95 % Student-t interval of the mean over splits"
PROTOCOLS: Mapping[str, str] = {
    "node": "epoch chosen by validation accuracy; test nodes scored once, after training",
    "link": "epoch and threshold chosen on validation pairs; test pairs scored once, after "
    "training; the model sees training edges only",
}


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


def statistic(values: Sequence[float | None]) -> dict[str, Any]:
    """Mean, standard deviation, interval and count of the values that exist."""
    known = [value for value in values if value is not None]
    return {
        "mean": statistics.fmean(known) if known else None,
        "sd": statistics.stdev(known) if len(known) > 1 else None,
        "interval": interval_half_width(known),
        "n": len(known),
    }


def summary(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Statistics over the splits that were finished, and what was missing."""
    finished = [row for row in rows if "error" not in row]
    task = rows[0]["task"] if rows else "node"
    selection = SELECTION[task]
    return {
        "task": task,
        "protocol": PROTOCOLS[task],
        "interval": INTERVAL,
        "splits": len(finished),
        "failed": len(rows) - len(finished),
        "test": {
            name: statistic([_score(row, "test", name) for row in finished])
            for name in SCORES[task]
        },
        **_twins(finished, SCORES[task]),
        "val": {selection: statistic([_score(row, "val", selection) for row in finished])},
        "absent_classes": {
            str(row["split"]): row["test"]["absent_classes"]
            for row in finished
            if row["test"] and row["test"].get("absent_classes")
        },
        "seconds": sum(row["seconds"] for row in finished),
    }


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
