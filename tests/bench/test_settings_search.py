"""The stored settings are what the recorded search chose, by validation alone."""

import json
from pathlib import Path

import pytest

from argnn.bench.settings import stored_settings

RECORD = Path(__file__).resolve().parents[2] / "docs" / "settings_search.jsonl"
ROWS = [json.loads(line) for line in RECORD.read_text().splitlines()]
GRAPHS = sorted({(row["data"], row["edges"]) for row in ROWS})


@pytest.mark.parametrize(("data", "edges"), GRAPHS)
def test_entry_is_the_learned_metric_with_the_best_validation_accuracy(data, edges):
    rows = [row for row in ROWS if (row["data"], row["edges"]) == (data, edges)]
    most = max(row["seeds"] for row in rows)
    learned = [r for r in rows if r["seeds"] == most and r["candidate"]["metric"] != "fixed"]
    best = max(learned, key=lambda row: row["val_accuracy"])
    [entry] = [
        entry
        for entry in stored_settings()
        if (entry.data, entry.edges, entry.preset) == (data, edges, "default")
    ]
    stored = {**entry.model, **entry.train}
    stored.pop("evaluate_every", None)
    assert stored == best["candidate"]
    assert f"validation {100 * best['val_accuracy']:.2f}" in entry.source
