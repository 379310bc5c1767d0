"""The whole leaderboard of some rows, as plain JSON values.

Of each score of a task: means, marks, paired tests, ranks, and what was published.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from argnn.bench.experiments.files import packaged_experiments
from argnn.bench.leaderboard.compare import (
    LEVEL,
    alike,
    average_ranks,
    critical_difference,
    friedman,
    paired_comparison,
    with_holm,
)
from argnn.bench.leaderboard.gather import Column, ResultRow, Results, gathered
from argnn.bench.leaderboard.published import find_published
from argnn.errors import ConfigError
from argnn.registry import suggestion
from argnn.runs.summary import (
    ERRORS,
    INTERVAL,
    LEAST_SEEDS,
    SCORES,
    SELECTION,
    SMALL_GRAPH,
    Pair,
    by_split,
    protocol,
    run_scores,
    score_of,
    statistic,
)
from argnn.wording import one_line

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

_ScoresByCell = Mapping[tuple[str, Column], Mapping[Pair, float]]

#: Two means that are printed alike are equal: digits of the share behind two of the per cent.
PRINTED_DIGITS = 4


def leaderboard(
    rows: Sequence[ResultRow],
    *,
    task: str | None = None,
    scores: Sequence[str] = (),
    reference: str | None = None,
    published: bool = True,
) -> dict[str, Any]:
    """Tables of every task and score.

    Without names all tasks are shown, with their main scores, and rivals are tested against the
    reference of the experiment, or against argnn, if it is there.
    """
    check_names(task, scores)
    tasks = _tasks(rows, task, scores)
    methods = {name for results in tasks for name in results.models}
    if reference is not None and reference not in methods:
        hint = suggestion(reference, methods)
        raise ConfigError(f"--reference '{reference}' has no rows; {hint}")
    wanted = reference or _usual_reference(rows)
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


def _usual_reference(rows: Sequence[ResultRow]) -> str:
    """What the experiment of the package that all rows are of compares with; else argnn."""
    names, known = {row["experiment"] for row in rows}, packaged_experiments()
    found = known.get(names.pop()) if len(names) == 1 else None
    return (found and found.reference) or REFERENCE


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


def board(results: Results, score: str, reference: str | None, published: bool) -> dict[str, Any]:
    """Everything about one score, as plain JSON values; scores are shares."""
    values = _values(results, score)
    expected = {column: expected_runs(results, column, score) for column in results.shown}
    cells = [_cell(results, values[key], expected[key[1]], *key) for key in _keys(results)]
    _mark(cells)
    graphs = {column.name for column in results.columns}
    return {
        "task": results.task,
        "score": score,
        "protocol": _protocol(results),
        "columns": [
            {"name": column.name, **asdict(column), "expected": len(expected[column])}
            for column in results.shown
        ],
        "methods": [{"name": name, "model": model} for name, model in results.models.items()],
        "cells": cells,
        "published": _published(results, score) if published else [],
        "reference": reference,
        "paired": [] if reference is None else _paired(results, values, reference),
        "ranks": rank_summary([cell for cell in cells if cell["column"] in graphs]),
        "comparability": _comparability(results, score, published),
        "notes": _notes(results, score, expected),
    }


def _protocol(results: Results) -> str:
    """How epochs were chosen, in words; by several scores where rows differ in that."""
    rows = [row for runs in results.rows.values() for row in runs.values() if "error" not in row]
    named = {(row.get("selection") or {}).get("score", SELECTION[results.task]) for row in rows}
    return protocol(results.task, " or ".join(sorted(named)) or SELECTION[results.task])


def _keys(results: Results) -> list[tuple[str, Column]]:
    return [(method, column) for column in results.shown for method in results.models]


def _values(results: Results, score: str) -> _ScoresByCell:
    return {key: run_scores(results.runs(*key).values(), score) for key in _keys(results)}


def expected_runs(results: Results, column: Column, score: str) -> set[Pair]:
    """The runs a complete mean covers: all that any method was given.

    Without those on which the score is defined for no method, as the AUROC of a test split with
    one class.
    """
    scored: dict[Pair, bool] = {}
    for method in results.models:
        for pair, row in results.finished(method, column).items():
            scored[pair] = scored.get(pair, False) or score_of(row, score) is not None
    return {pair for pair in results.tried(column) if scored.get(pair, True)}


def _cell(
    results: Results, known: Mapping[Pair, float], wanted: set[Pair], method: str, column: Column
) -> dict[str, Any]:
    runs = results.runs(method, column)
    return {
        "method": method,
        "model": results.models[method],
        "column": column.name,
        **statistic(by_split(known)),
        "mean": statistic(list(known.values()))["mean"],
        "n": len(known),
        "expected": len(wanted),
        "runs": len(runs),
        "failed": sum("error" in row for row in runs.values()),
        "complete": bool(known) and known.keys() == wanted,
        "mark": None,
    }


def _mark(cells: Sequence[dict[str, Any]]) -> None:
    """Mark best and second best of each data set among the complete means; ties share a mark."""
    columns: dict[str, list[dict[str, Any]]] = {}
    for cell in cells:
        if cell["complete"]:
            columns.setdefault(cell["column"], []).append(cell)
    for complete in columns.values():
        printed = [round(cell["mean"], PRINTED_DIGITS) for cell in complete]
        marks = dict(zip(sorted(set(printed))[::-1], ("best", "second"), strict=False))
        if len(complete) > 1:
            for cell, value in zip(complete, printed, strict=True):
                cell["mark"] = marks.get(value)


def _paired(results: Results, values: _ScoresByCell, reference: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for column in results.shown:
        ours = values[reference, column]
        rivals = [name for name in results.models if name != reference and values[name, column]]
        if not ours:
            continue
        compared = with_holm([paired_comparison(ours, values[name, column]) for name in rivals])
        found += [
            {"column": column.name, "rival": name, **comparison}
            for name, comparison in zip(rivals, compared, strict=True)
        ]
    return found


def rank_summary(cells: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Average ranks over the data sets on which every method is complete.

    Returns:
        ``message`` says why there are no ranks, and is None where there are.
    """
    methods = list(dict.fromkeys(cell["method"] for cell in cells))
    columns = list(dict.fromkeys(cell["column"] for cell in cells))
    gaps = {cell["column"] for cell in cells if not cell["complete"]}
    used = [column for column in columns if column not in gaps]
    found: dict[str, Any] = {
        "columns": used,
        "left_out": [column for column in columns if column in gaps],
        "message": None,
    }
    if len(methods) < 3 or len(used) < 2:
        found["message"] = (
            "average ranks need 3 methods and 2 data sets on which all of them are complete "
            f"(got {_count(methods, 'method')}, {_count(used, 'data set')})"
        )
        return found
    means = {(cell["column"], cell["method"]): cell["mean"] for cell in cells}
    table = [[means[column, method] for method in methods] for column in used]
    ranks = average_ranks(table)
    difference = critical_difference(len(methods), len(used))
    value, p = friedman(table)
    return {
        **found,
        "ranks": dict(sorted(zip(methods, ranks, strict=True), key=lambda item: item[1])),
        "friedman": {"statistic": value, "p": p},
        "critical_difference": difference,
        "level": LEVEL,
        "alike": [[methods[place] for place in group] for group in alike(ranks, difference)],
    }


def _count(things: Sequence[str], word: str) -> str:
    return f"{len(things)} {word}" + ("" if len(things) == 1 else "s")


def _published(results: Results, score: str) -> list[dict[str, Any]]:
    """Published figures of the models at hand: an entry per model, source and protocol."""
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    # A level of an ablation is printed under its label, everything else under its model.
    for model in dict.fromkeys([*results.models, *results.models.values()]):
        for column in results.columns:
            for value in find_published(results.task, score, model, column.data):
                key = {"model": model, "source": value.source, "protocol": value.protocol}
                new: dict[str, Any] = {**key, "note": value.note, "values": {}}
                entry = found.setdefault(tuple(key.values()), new)
                shares = {n: _as_share(getattr(value, n)) for n in ("value", "interval", "sd")}
                entry["values"][column.name] = {**shares, "remark": value.remark}
    return list(found.values())


def _as_share(per_cent: float | None) -> float | None:
    """Two decimals of the per cent are printed: more digits would be noise of the division."""
    return None if per_cent is None else round(per_cent / 100, 6)


def _comparability(results: Results, score: str, published: bool) -> list[dict[str, Any]]:
    """Beside each mean, what choosing the epoch by test score would have printed.

    Both means are over the same runs: those whose row has an oracle.
    """
    found = []
    for method, column in _keys(results):
        if column.without_twins:  # the best epoch was looked for on all test nodes
            continue
        both = [
            (score_of(row, score), score_of(row["oracle"], score))
            for row in results.finished(method, column).values()
            if row.get("oracle") is not None
        ]
        known = [(ours, best) for ours, best in both if ours is not None and best is not None]
        if not known:
            continue
        model = results.models[method]
        values = find_published(results.task, score, model, column.data) if published else []
        printed = values[0] if values else None
        found.append(
            {
                "method": method,
                "column": column.name,
                "n": len(known),
                "validation_selected": fmean(ours for ours, _ in known),
                "oracle (test-selected)": fmean(best for _, best in known),
                "selection": fmean(best - ours for ours, best in known),
                "published": printed and _as_share(printed.value),
                "source": printed and printed.source,
                "protocol": printed and printed.protocol,
            }
        )
    return found


def _notes(results: Results, score: str, expected: Mapping[Column, set[Pair]]) -> list[str]:
    """All notes below a table."""
    notes: list[str] = []
    for column in results.shown:
        if undefined := {split for split, _ in results.tried(column) - expected[column]}:
            notes.append(f"{column.name}: {score} is not defined on {_splits(undefined)}.")
        notes += _absent(column, results.on(column))
        if column.without_twins:
            notes += _twins(column, results.on(column))
            continue
        notes += _few_seeds(results, column)
        for method in results.models:
            notes += _failures(method, column, results.runs(method, column))
            notes += _mixed(method, column, results.runs(method, column))
    return notes


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
