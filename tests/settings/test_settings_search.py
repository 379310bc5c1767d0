"""The stored settings are what the recorded search chose, by validation alone."""

import json
from pathlib import Path

import pytest

from argnn.nn import MODELS
from argnn.settings.resolve import stored_settings

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
        if entry.key == ("argnn", "node", data, edges, "default")
    ]
    stored = {**entry.model, **entry.train}
    stored.pop("evaluate_every", None)
    assert stored == best["candidate"]
    assert f"validation {100 * best['val_accuracy']:.2f}" in entry.source


LINK_RECORD = RECORD.with_name("link_search.jsonl")
LINK_ROWS = [json.loads(line) for line in LINK_RECORD.read_text().splitlines()]
LINK_GRAPHS = sorted({row["data"] for row in LINK_ROWS})
_NO_SETTINGS = ("data", "round", "number", "splits", "val_auroc")


def link_entry(data):
    [entry] = [e for e in stored_settings() if e.key[:3] == ("argnn", "link", data)]
    found = {**entry.model, **entry.train, "decoder": entry.decoder}
    # The whole search had these; they are no settings of a candidate.
    assert (found.pop("epochs"), found.pop("evaluate_every")) == (300, 5)
    return entry, found


def settings_of(row):
    return {name: value for name, value in row.items() if name not in _NO_SETTINGS}


@pytest.mark.parametrize("data", LINK_GRAPHS)
def test_link_entry_is_the_learned_metric_with_the_best_validation_auroc(data):
    rows = [row for row in LINK_ROWS if row["data"] == data]
    most = max(len(row["splits"]) for row in rows)
    learned = [r for r in rows if len(r["splits"]) == most and r["metric"] != "fixed"]
    best = max(learned, key=lambda row: row["val_auroc"])
    entry, stored = link_entry(data)
    assert stored == settings_of(best)
    assert f"validation AUROC {100 * best['val_auroc']:.2f}" in entry.source


def test_usual_link_settings_lie_least_behind_the_best_on_average():
    second = {d: [r for r in LINK_ROWS if (r["data"], r["round"]) == (d, 2)] for d in LINK_GRAPHS}
    common = min(len(rows) for rows in second.values())
    best = {d: max(row["val_auroc"] for row in rows[:common]) for d, rows in second.items()}

    def behind(number):
        return sum(best[d] - rows[number]["val_auroc"] for d, rows in second.items()) / len(best)

    candidates = second["cora"][:common]
    learned = [n for n, row in enumerate(candidates) if row["metric"] != "fixed"]
    entry, stored = link_entry("any")
    assert stored == settings_of(candidates[min(learned, key=behind)])
    assert f"{100 * min(map(behind, learned)):.2f} points" in entry.source


RIVAL_RECORD = RECORD.with_name("rivals_search.jsonl")
RIVAL_ROWS = [json.loads(line) for line in RIVAL_RECORD.read_text().splitlines()]
RIVAL_GRAPHS = sorted({(row["method"], row["data"]) for row in RIVAL_ROWS})


@pytest.mark.parametrize(("method", "data"), RIVAL_GRAPHS)
def test_entry_of_a_rival_has_the_best_validation_accuracy(method, data):
    rows = [row for row in RIVAL_ROWS if (row["method"], row["data"]) == (method, data)]
    best = max(rows, key=lambda row: row["val_accuracy"] or 0)
    [entry] = [
        e for e in stored_settings() if e.key == (method, "node", data, "undirected", "default")
    ]
    assert {**entry.model, **entry.train} == best["settings"]
    assert f"{100 * best['val_accuracy']:.2f}" in entry.source


def test_every_rival_had_the_same_budget():
    methods = {method for method, _ in RIVAL_GRAPHS}
    assert methods == MODELS.keys() - {"argnn"}
    seen = {}
    for row in RIVAL_ROWS:
        assert (row["settings"]["epochs"], row["settings"]["patience"]) == (1000, 100)
        seen.setdefault((row["method"], row["data"]), []).append(tuple(row["splits"]))
    for data in {data for _, data in seen}:
        budgets = [sorted(splits) for (_, name), splits in seen.items() if name == data]
        assert len(budgets) == len(methods)
        assert all(budget == budgets[0] for budget in budgets)
