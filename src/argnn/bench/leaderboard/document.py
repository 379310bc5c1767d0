"""The whole leaderboard of some rows, as plain JSON values."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from argnn.bench.leaderboard.board import board
from argnn.bench.leaderboard.gather import Column, ResultRow, Results, gathered
from argnn.bench.leaderboard.published import find_published
from argnn.errors import ConfigError
from argnn.registry import suggestion
from argnn.runs.summary import ERRORS, INTERVAL, SCORES, statistic

REFERENCE = "argnn"
#: Shown without being asked for: the scores of the paper's tables.
SHOWN = {
    "node": ("f1", "accuracy", "auroc", "auprc"),
    "link": ("auroc", "auprc", "accuracy"),
    "regression": ("r2",),
    "multilabel": ("f1_micro", "f1_macro", "average_precision"),
}
#: Costs that the paper prints.
_PUBLISHED_COSTS = ("seconds_per_epoch", "memory_gb")


def leaderboard(
    rows: Sequence[ResultRow],
    *,
    task: str | None = None,
    scores: Sequence[str] = (),
    reference: str | None = None,
    published: bool = True,
) -> dict[str, Any]:
    """Tables of every task and score.

    Without names all tasks are shown, with their main scores, and rivals are tested against argnn
    if it is there.
    """
    check_names(task, scores)
    tasks = _tasks(rows, task, scores)
    methods = {name for results in tasks for name in results.models}
    if reference is not None and reference not in methods:
        hint = suggestion(reference, methods)
        raise ConfigError(f"--reference '{reference}' has no rows; {hint}")
    wanted = reference or REFERENCE
    boards = [
        board(results, score, wanted if wanted in results.models else None, published)
        for results in tasks
        for score in _shown(results.task, scores)
    ]
    return {
        "interval": INTERVAL,
        "rows": len(rows),
        "failed": sum("error" in row for row in rows),
        "made_by": _made_by(rows),
        "boards": boards,
        "efficiency": [_efficiency(results, published) for results in tasks],
    }


def _shown(task: str, scores: Sequence[str]) -> Sequence[str]:
    return [score for score in scores if score in SCORES[task]] or SHOWN[task]


def check_names(task: str | None, scores: Sequence[str]) -> None:
    """Raise on a task or score that does not exist."""
    if task is not None and task not in SCORES:
        raise ConfigError(f"--task must be one of {', '.join(SCORES)} (got '{task}')")
    choices = {name for key in ([task] if task else SCORES) for name in SCORES[key]} - {*ERRORS}
    for score in scores:
        if score not in choices:
            raise ConfigError(f"unknown --score '{score}'; {suggestion(score, choices)}")


def _tasks(rows: Sequence[ResultRow], task: str | None, scores: Sequence[str]) -> list[Results]:
    """The tasks that there are rows of, and that have one of the scores."""
    there = {row["task"] for row in rows}
    wanted = [name for name in SCORES if name in there and task in (None, name)]
    if not wanted:
        raise ConfigError(f"no rows of the task {task}" if task else "no rows")
    fitting = [name for name in wanted if not scores or set(scores) & set(SCORES[name])]
    if not fitting:
        raise ConfigError(f"no rows of a task with the score {', '.join(scores)}")
    return [gathered(rows, name) for name in fitting]


def _made_by(rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Which code made the rows, on which device, and how many."""
    names = ("version", "git_commit", "git_changed", "device")
    counts = Counter(
        ((row.get("versions") or {}).get("argnn"), *(row.get(name) for name in names[1:]))
        for row in rows
        if "error" not in row
    )
    return [{**dict(zip(names, key, strict=True)), "rows": n} for key, n in counts.items()]


def _efficiency(results: Results, published: bool) -> dict[str, Any]:
    """Time, memory and size of each method on each data set, beside the published ones."""
    return {
        "task": results.task,
        "rows": [
            _cost(method, column, list(runs.values()))
            for column in results.columns
            for method in results.models
            if (runs := results.finished(method, column))
        ],
        "published": _published_costs(results) if published else [],
    }


def _cost(method: str, column: Column, rows: list[ResultRow]) -> dict[str, Any]:
    memory, of = _memory(rows)
    return {
        "method": method,
        "column": column.name,
        "n": len(rows),
        "seconds": _mean(row.get("seconds") for row in rows),
        "seconds_per_epoch": _mean(_per_epoch(row) for row in rows),
        "epochs": _mean(row.get("epochs_run") for row in rows),
        "parameters": _mean(row.get("num_parameters") for row in rows),
        "peak_memory_mib": memory,
        "memory_of": of,
        "devices": sorted({str(row.get("device")) for row in rows}),
    }


def _mean(values: Iterable[float | None]) -> float | None:
    mean: float | None = statistic(list(values))["mean"]
    return mean


def _per_epoch(row: ResultRow) -> float | None:
    """Of the whole run: what comes before the first epoch and after the last is shared out."""
    epochs, seconds = row.get("epochs_run"), row.get("seconds")
    return seconds / epochs if epochs and seconds is not None else None


def _memory(rows: list[ResultRow]) -> tuple[float | None, str]:
    """Most memory of any run: of the device where that was measured, else of the process."""
    for key, of in (("peak_device_memory_mib", "device"), ("peak_memory_mib", "process")):
        known = [row[key] for row in rows if row.get(key) is not None]
        if known:
            return max(known), of
    return None, "process"


def _published_costs(results: Results) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for column in results.columns:
        for model in dict.fromkeys(results.models.values()):
            printed = {
                score: values[0]
                for score in _PUBLISHED_COSTS
                if (values := find_published(results.task, score, model, column.data))
            }
            for first in list(printed.values())[:1]:
                costs = {s: printed[s].value if s in printed else None for s in _PUBLISHED_COSTS}
                origin = {"source": first.source, "protocol": first.protocol}
                found.append({"model": model, "column": column.name, **costs, **origin})
    return found
