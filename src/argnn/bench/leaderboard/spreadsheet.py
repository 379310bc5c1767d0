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
#: Units of the costs, measured and published ones.
_COSTS = {
    "seconds": "s",
    "seconds_per_epoch": "s",
    "epochs": "1",
    "parameters": "1",
    "peak_memory_mib": "MiB",
}
_PUBLISHED_COSTS = {"seconds_per_epoch": "s", "memory_gb": "GB"}
_DIGITS = 6


def to_csv(document: Mapping[str, Any]) -> str:
    """All figures; scores and differences in per cent, p-values as they are."""
    text = io.StringIO()
    writer = csv.DictWriter(text, _COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    for row in chain(*map(_scores, document["boards"]), *map(_costs, document["efficiency"])):
        writer.writerow({name: safe_cell(value) for name, value in row.items()})
    return text.getvalue()


def _scores(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tests = {(entry["rival"], entry["column"]): entry for entry in board["paired"]}
    oracles = {(entry["method"], entry["column"]): entry for entry in board["comparability"]}
    about = {"task": board["task"], "score": board["score"], "unit": "%"}
    for cell in board["cells"]:
        key = (cell["method"], cell["column"])
        yield {
            **about,
            **cell,
            **_spread(cell, "mean"),
            "kind": "measured",
            "data": cell["column"],
            **(_test_fields(board["reference"], tests[key]) if key in tests else {}),
            "average_rank": board["ranks"].get("ranks", {}).get(cell["method"]),
            **(_oracle_fields(oracles[key]) if key in oracles else {}),
            "protocol": board["protocol"],
        }
    for entry in board["published"]:
        for column, value in entry["values"].items():
            yield {**_published(entry, column), **about, **_spread(value, "value")}


def _test_fields(reference: str | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    p_values = {
        f"{test}_{name}": (entry[test] or {}).get(key)
        for test in ("wilcoxon", "t")
        for name, key in (("p", "p"), ("p_holm", "holm"))
    }
    return {
        "reference": reference,
        "pairs": entry["pairs"],
        "difference": _per_cent(entry["difference"]),
        "difference_interval": _per_cent(entry["interval"]),
        **p_values,
    }


def _oracle_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "oracle (test-selected)": _per_cent(entry["oracle (test-selected)"]),
        "oracle_n": entry["n"],
        "validation_selected_same_runs": _per_cent(entry["validation_selected"]),
    }


def _costs(cost: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in cost["rows"]:
        for name, unit in _COSTS.items():
            about = {"task": cost["task"], "score": name, "unit": unit, "mean": row[name]}
            yield {**row, **about, "kind": "measured", "data": row["column"]}
    for entry in cost["published"]:
        for name, unit in _PUBLISHED_COSTS.items():
            about = {"task": cost["task"], "score": name, "unit": unit, "mean": entry[name]}
            yield {**_published(entry, entry["column"]), **about}


def _published(entry: Mapping[str, Any], column: str) -> dict[str, Any]:
    return {**entry, "kind": "published", "data": column, "method": entry["model"]}


def _spread(known: Mapping[str, Any], mean: str) -> dict[str, Any]:
    names = {"mean": mean, "interval": "interval", "sd": "sd"}
    return {name: _per_cent(known[key]) for name, key in names.items()}


def _per_cent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, _DIGITS)
