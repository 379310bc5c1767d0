"""The table of costs."""

from collections.abc import Mapping
from typing import Any

from argnn.bench.leaderboard.grid import TASK_NAMES, Entry, Grid, GridRow, letters, text
from argnn.bench.perf.tables import number


def cost_grid(cost: Mapping[str, Any]) -> Grid:
    """Time, memory and size of every method on every data set."""
    header = (
        ("data",),
        ("method",),
        ("n",),
        ("seconds", "per run"),
        ("seconds", "per epoch"),
        ("epochs",),
        ("parameters",),
        ("peak memory,", "MiB"),
        ("device",),
    )
    marks = letters(cost["published"])
    rows: list[GridRow] = []
    for column in dict.fromkeys(row["column"] for row in cost["rows"]):
        rows += [GridRow(_cost(row)) for row in cost["rows"] if row["column"] == column]
        for entry in cost["published"]:
            if entry["column"] == column:
                letter = marks[entry["source"], entry["protocol"]]
                rows.append(GridRow(_quoted_cost(entry, letter), quoted=True))
    return Grid(
        title=f"{TASK_NAMES[cost['task']]}, efficiency",
        header=tuple(Entry(lines) for lines in header),
        rows=tuple(rows),
        notes=(
            "Means over finished runs, memory the largest. Wall clock as it was, other runs on the "
            "same machine included; seconds per epoch are seconds of a run over its epochs. Memory "
            "is that of the process on a CPU, and of the device on a GPU.",
            *(f"[{letter}] {source}: {protocol}." for (source, protocol), letter in marks.items()),
        ),
        names=2,
    )


def _cost(row: Mapping[str, Any]) -> tuple[Entry, ...]:
    parameters = row["parameters"]
    return (
        text(row["column"]),
        text(row["method"]),
        text(str(row["n"])),
        text(number(row["seconds"])),
        text(number(row["seconds_per_epoch"])),
        text(number(row["epochs"])),
        text("-" if parameters is None else f"{parameters:,.0f}"),
        text(number(row["peak_memory_mib"])),
        text(", ".join(row["devices"])),
    )


def _quoted_cost(entry: Mapping[str, Any], letter: str) -> tuple[Entry, ...]:
    memory = entry["memory_gb"]
    return (
        text(entry["column"]),
        text(f"{entry['model']}, published [{letter}]"),
        text("-"),
        text("-"),
        text(number(entry["seconds_per_epoch"])),
        text("-"),
        text("-"),
        text("-" if memory is None else f"{memory} GB"),
        text("-"),
    )
