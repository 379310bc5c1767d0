"""Notes below a table: failed runs, classes without test nodes, mixed settings."""

from collections.abc import Iterable, Mapping
from typing import Any

from argnn.bench.leaderboard.compare import Pair
from argnn.bench.leaderboard.gather import Column, ResultRow, Results
from argnn.runs.summary import LEAST_SEEDS, SMALL_GRAPH
from argnn.wording import one_line


def board_notes(results: Results, score: str, expected: Mapping[Column, set[Pair]]) -> list[str]:
    """All notes below a table."""
    notes: list[str] = []
    for column in results.shown:
        notes += _undefined(column, score, results.tried(column) - expected[column])
        notes += _absent(column, results.on(column))
        if column.without_twins:
            notes += _twins(column, results.on(column))
            continue
        notes += _few_seeds(results, column)
        for method in results.models:
            notes += _failures(method, column, results.runs(method, column))
            notes += _mixed(method, column, results.runs(method, column))
    return notes


def _undefined(column: Column, score: str, pairs: set[Pair]) -> list[str]:
    if not pairs:
        return []
    return [f"{column.name}: {score} is not defined on {_splits(split for split, _ in pairs)}."]


def _absent(column: Column, rows: Iterable[ResultRow]) -> list[str]:
    """Classes without a test node: they are in no mean over classes."""
    holders: dict[int, set[int]] = {}
    for row in rows:
        for label in (row.get("test") or {}).get("absent_classes") or ():
            holders.setdefault(label, set()).add(row["split"])
    return [
        f"{column.name}: no test node of class {label} in {_splits(holders[label])}."
        for label in sorted(holders)
    ]


def _twins(column: Column, rows: Iterable[ResultRow]) -> list[str]:
    """How many test nodes are left out; each split is the same for all methods."""
    counts = {row["split"]: row["twins"] for row in rows if "twins" in row}
    share = sum(c["with_twin"] for c in counts.values()) / sum(c["test"] for c in counts.values())
    return [
        f"{column.name}: {100 * share:.1f} % of the test nodes, those with the same neighbours as "
        "a training node, are left out."
    ]


def _few_seeds(results: Results, column: Column) -> list[str]:
    """A small graph with fewer seeds than a table of it needs."""
    sizes = {row["config"].get("graph", {}).get("nodes", SMALL_GRAPH) for row in results.on(column)}
    seeds = [{seed for _, seed in results.runs(name, column)} for name in results.models]
    fewest = min(len(found) for found in seeds if found)
    if min(sizes) >= SMALL_GRAPH or fewest >= LEAST_SEEDS:
        return []
    return [
        f"{column.name}: {min(sizes)} nodes and {fewest} {'seed' if fewest == 1 else 'seeds'}; "
        f"results on fewer than {SMALL_GRAPH:,} nodes change with the seed and need at least "
        f"{LEAST_SEEDS}."
    ]


def _failures(method: str, column: Column, runs: Mapping[Pair, ResultRow]) -> list[str]:
    by_error: dict[str, list[int]] = {}
    for (split, _), row in sorted(runs.items()):
        if "error" in row:
            by_error.setdefault(one_line(row["error"]), []).append(split)
    return [
        f"{method} on {column.name}: {_splits(splits)} failed ({error})."
        for error, splits in by_error.items()
    ]


def _mixed(method: str, column: Column, runs: Mapping[Pair, ResultRow]) -> list[str]:
    """Settings may depend on the seed alone, which is one of them."""
    by_seed: dict[int, set[Any]] = {}
    for (_, seed), row in runs.items():
        if "error" not in row:
            by_seed.setdefault(seed, set()).add(row.get("settings"))
    if all(len(settings) == 1 for settings in by_seed.values()):
        return []
    return [f"{method} on {column.name}: splits were run with different settings."]


def _splits(splits: Iterable[int]) -> str:
    """Splits in words.

    Example:
        >>> _splits([3]), _splits([2, 0, 2])
        ('split 3', 'splits 0, 2')
    """
    known = sorted(set(splits))
    return ("split " if len(known) == 1 else "splits ") + ", ".join(str(split) for split in known)
