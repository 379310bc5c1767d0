"""The whole leaderboard of some rows, as plain JSON values."""

from collections.abc import Sequence
from typing import Any

from argnn.bench.leaderboard.board import board
from argnn.bench.leaderboard.efficiency import efficiency
from argnn.bench.leaderboard.gather import ResultRow, Results, gathered
from argnn.errors import ConfigError
from argnn.registry import suggestion
from argnn.runs.summary import INTERVAL, SCORES

REFERENCE = "argnn"
#: Shown without being asked for: the scores of the paper's tables.
SHOWN = {
    "node": ("f1", "accuracy", "auroc", "auprc"),
    "link": ("auroc", "auprc", "accuracy"),
}


def leaderboard(
    rows: Sequence[ResultRow],
    *,
    task: str | None = None,
    scores: Sequence[str] = (),
    reference: str | None = None,
    published: bool = True,
) -> dict[str, Any]:
    """Tables of every task and score.

    Args:
        rows: Rows of results files, each run once.
        task: Only this task; all if not given.
        scores: Only these scores; the main ones of each task if not given.
        reference: The method that rivals are tested against; argnn if there is one.
        published: Whether to look up published figures.
    """
    check_names(task, scores)
    tasks = _tasks(rows, task, scores)
    _check_reference(reference, tasks)
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
        "made_by": made_by(rows),
        "boards": boards,
        "efficiency": [efficiency(results, published) for results in tasks],
    }


def _shown(task: str, scores: Sequence[str]) -> Sequence[str]:
    return [score for score in scores if score in SCORES[task]] or SHOWN[task]


def check_names(task: str | None, scores: Sequence[str]) -> None:
    """Raise on a task or score that does not exist."""
    if task is not None and task not in SCORES:
        raise ConfigError(f"--task must be one of {', '.join(SCORES)} (got '{task}')")
    choices = {name for key in ([task] if task else SCORES) for name in SCORES[key]}
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


def _check_reference(reference: str | None, tasks: Sequence[Results]) -> None:
    methods = {name for results in tasks for name in results.models}
    if reference is not None and reference not in methods:
        raise ConfigError(
            f"--reference '{reference}' has no rows; {suggestion(reference, methods)}"
        )


def made_by(rows: Sequence[ResultRow]) -> list[dict[str, Any]]:
    """Which code made the rows, on which device, and how many."""
    counts: dict[tuple[Any, ...], int] = {}
    for row in rows:
        if "error" not in row:
            version = (row.get("versions") or {}).get("argnn")
            key = (version, row.get("git_commit"), row.get("git_changed"), row.get("device"))
            counts[key] = counts.get(key, 0) + 1
    names = ("version", "git_commit", "git_changed", "device")
    return [{**dict(zip(names, key, strict=True)), "rows": n} for key, n in counts.items()]
