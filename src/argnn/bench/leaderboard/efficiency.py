"""What the methods cost: time, memory and size."""

from collections.abc import Iterable, Mapping
from typing import Any

from argnn.bench.leaderboard.gather import Column, ResultRow, Results
from argnn.bench.leaderboard.published import PublishedValue, find_published
from argnn.runs.summary import statistic

#: The paper prints these two.
_PUBLISHED = ("seconds_per_epoch", "memory_gb")


def efficiency(results: Results, published: bool) -> dict[str, Any]:
    """Cost of each method on each data set, beside the published one."""
    return {
        "task": results.task,
        "rows": [
            _cost(method, column, list(results.finished(method, column).values()))
            for column in results.columns
            for method in results.models
            if results.finished(method, column)
        ],
        "published": _published(results) if published else [],
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


def _published(results: Results) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for column in results.columns:
        for model in dict.fromkeys(results.models.values()):
            values: Mapping[str, list[PublishedValue]] = {
                score: find_published(results.task, score, model, column.data)
                for score in _PUBLISHED
            }
            if any(values.values()):
                [first, *_] = [entry for entries in values.values() for entry in entries]
                figures = {
                    score: entries[0].value if entries else None
                    for score, entries in values.items()
                }
                found.append(
                    {
                        "model": model,
                        "column": column.name,
                        **figures,
                        "source": first.source,
                        "protocol": first.protocol,
                    }
                )
    return found
