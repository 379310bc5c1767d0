"""The leaderboard as one long CSV table: a line per figure, ours and published ones."""

import csv
import io
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from argnn.csv_cells import safe_cell

_COLUMNS = (
    *("kind", "task", "score", "unit", "data", "method", "mean", "interval", "sd", "n"),
    *("expected", "failed", "mark", "reference", "pairs", "difference", "difference_interval"),
    *("wilcoxon_p", "wilcoxon_p_holm", "t_p", "t_p_holm", "average_rank"),
    *("oracle (test-selected)", "oracle_n", "validation_selected_same_runs"),
    *("source", "protocol"),
)
#: Of the costs: where each stands in a row of the efficiency table, and its unit.
_COSTS = {
    "seconds": "s",
    "seconds_per_epoch": "s",
    "epochs": "1",
    "parameters": "1",
    "peak_memory_mib": "MiB",
}
_DIGITS = 6


def to_csv(document: Mapping[str, Any]) -> str:
    """All figures; scores and differences in per cent, p-values as they are."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, restval="", lineterminator="\n")
    writer.writeheader()
    boards, costs = document["boards"], document["efficiency"]
    tables = [table for board in boards for table in (_measured(board), _quoted(board))]
    for row in chain(*tables, *map(_costs, costs)):
        writer.writerow({name: safe_cell(value) for name, value in row.items()})
    return text.getvalue()


def _measured(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tests = {(entry["rival"], entry["column"]): entry for entry in board["paired"]}
    oracles = {(entry["method"], entry["column"]): entry for entry in board["comparability"]}
    for cell in board["cells"]:
        key = (cell["method"], cell["column"])
        yield {
            "kind": "measured",
            "task": board["task"],
            "score": board["score"],
            "unit": "%",
            "data": cell["column"],
            "method": cell["method"],
            **{name: _per_cent(cell[name]) for name in ("mean", "interval", "sd")},
            **{name: cell[name] for name in ("n", "expected", "failed")},
            "mark": cell["mark"] or "",
            **_test_fields(board["reference"], tests.get(key)),
            "average_rank": board["ranks"].get("ranks", {}).get(cell["method"], ""),
            **_oracle_fields(oracles.get(key)),
            "protocol": board["protocol"],
        }


def _test_fields(reference: str | None, entry: Mapping[str, Any] | None) -> dict[str, Any]:
    if entry is None:
        return {}
    fields: dict[str, Any] = {
        "reference": reference,
        "pairs": entry["pairs"],
        "difference": _per_cent(entry["difference"]),
        "difference_interval": _per_cent(entry["interval"]),
    }
    for test in ("wilcoxon", "t"):
        if entry[test] is not None:
            fields[f"{test}_p"] = entry[test]["p"]
            fields[f"{test}_p_holm"] = entry[test]["holm"]
    return fields


def _oracle_fields(entry: Mapping[str, Any] | None) -> dict[str, Any]:
    if entry is None:
        return {}
    return {
        "oracle (test-selected)": _per_cent(entry["oracle (test-selected)"]),
        "oracle_n": entry["n"],
        "validation_selected_same_runs": _per_cent(entry["validation_selected"]),
    }


def _quoted(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for entry in board["published"]:
        for column, value in entry["values"].items():
            yield {
                **_published(board["task"], board["score"], "%", column, entry),
                "mean": _per_cent(value["value"]),
                "interval": _per_cent(value["interval"]),
                "sd": _per_cent(value["sd"]),
            }


def _published(
    task: str, score: str, unit: str, column: str, entry: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "kind": "published",
        "task": task,
        "score": score,
        "unit": unit,
        "data": column,
        "method": entry["model"],
        "source": entry["source"],
        "protocol": entry["protocol"],
    }


def _costs(cost: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in cost["rows"]:
        for name, unit in _COSTS.items():
            yield {
                "kind": "measured",
                "task": cost["task"],
                "score": name,
                "unit": unit,
                "data": row["column"],
                "method": row["method"],
                "mean": row[name],
                "n": row["n"],
            }
    for entry in cost["published"]:
        for name, unit in (("seconds_per_epoch", "s"), ("memory_gb", "GB")):
            fields = _published(cost["task"], name, unit, entry["column"], entry)
            yield {**fields, "mean": entry[name]}


def _per_cent(share: float | None) -> float | str:
    return "" if share is None else round(100 * share, _DIGITS)
