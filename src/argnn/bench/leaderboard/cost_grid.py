"""The table of costs."""

from collections.abc import Mapping
from typing import Any

from argnn.bench.leaderboard.grid import TASK_NAMES, Entry, Grid, GridRow, letters, texts
from argnn.bench.perf.tables import number


def cost_grid(cost: Mapping[str, Any]) -> Grid:
    """Time, memory and size of every method on every data set."""
    costs = ("seconds\nper run", "seconds\nper epoch", "epochs", "parameters", "peak memory,\nMiB")
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
        header=texts("data", "method", "n", *costs, "device"),
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
    return texts(
        row["column"],
        row["method"],
        str(row["n"]),
        *(number(row[name]) for name in ("seconds", "seconds_per_epoch", "epochs")),
        "-" if parameters is None else f"{parameters:,.0f}",
        number(row["peak_memory_mib"]),
        ", ".join(row["devices"]),
    )


def _quoted_cost(entry: Mapping[str, Any], letter: str) -> tuple[Entry, ...]:
    memory = "-" if entry["memory_gb"] is None else f"{entry['memory_gb']} GB"
    name, seconds = f"{entry['model']}, published [{letter}]", number(entry["seconds_per_epoch"])
    return texts(entry["column"], name, "-", "-", seconds, "-", "-", memory, "-")
