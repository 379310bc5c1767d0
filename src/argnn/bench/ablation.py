"""Ablations: one part of argnn is changed, level by level, and everything else stays.

A study is an experiment of the package whose name begins with ``ablate-``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from argnn.analysis.figures import Bar
from argnn.bench.experiments.files import DataChoice, Experiment, packaged_experiments
from argnn.bench.leaderboard.compare import paired_comparison, with_holm
from argnn.bench.leaderboard.gather import column_of
from argnn.bench.leaderboard.published import find_published
from argnn.registry import canonical_name
from argnn.runs.summary import (
    SCORES,
    Pair,
    by_split,
    run_scores,
    selection_of_row,
    statistic,
)
from argnn.settings.options import parse_overrides
from argnn.store.results import Row

PREFIX = "ablate-"


def studies() -> dict[str, Experiment]:
    """All studies by their names without the prefix."""
    return {
        name.removeprefix(PREFIX): experiment
        for name, experiment in packaged_experiments().items()
        if name.startswith(PREFIX)
    }


def find_study(
    name: str,
    data: DataChoice | None = None,
    *,
    splits: tuple[int, ...] | None = None,
    seeds: tuple[int, ...] | None = None,
    settings: Sequence[str] = (),
    task: str = "node",
) -> Experiment:
    """A study, on the graphs of the paper or on another one.

    Without ``data`` on the graphs of the paper. ``settings`` are texts such as ``train.epochs=50``
    that hold for all levels; what a level itself sets stays.
    """
    known = studies()
    study = known[canonical_name(name, known, "study")]
    parse_overrides(settings, "argnn")
    methods = tuple(
        replace(method, overrides=(*settings, *method.overrides)) for method in study.methods
    )
    graphs = study.data if data is None else (data,)
    study = study if task == study.task else replace(study, task=task, score=SCORES[task][0])
    return replace(study, data=graphs, methods=methods, splits=splits, seeds=seeds)


def levels(study: Experiment, rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Every level of a study on every graph, in the order of the study, as plain JSON values.

    Differences are paired over splits: the level minus the reference, with p-values of
    Wilcoxon's test that Holm's rule corrects over the levels of a graph.
    """
    found = []
    for column in dict.fromkeys(column_of(row) for row in rows):
        by_label = {
            method.label: [
                row for row in rows if column_of(row) == column and row["method"] == method.label
            ]
            for method in study.methods
        }
        own = [
            _level(study, column.data, label, members)
            for label, members in by_label.items()
            if members
        ]
        scores = {label: run_scores(members, study.score) for label, members in by_label.items()}
        tests = _differences(study, scores)
        known = [level["val"]["mean"] for level in own if level["val"]["mean"] is not None]
        for level in own:
            level |= {
                "graph": column.name,
                "difference": tests.get(level["level"]),
                "best_by_validation": bool(known) and level["val"]["mean"] == max(known),
            }
        found += own
    return found


def bars(study: Experiment, found: Sequence[Mapping[str, Any]]) -> list[Bar]:
    """The test scores of :func:`levels` for a figure, the reference first."""
    known = [level for level in found if level["test"]["mean"] is not None]
    ordered = sorted(known, key=lambda level: level["level"] != study.reference)
    return [
        Bar(
            level["graph"],
            level["level"],
            level["test"]["mean"],
            level["test"]["interval"],
            level["test"]["n"],
        )
        for level in ordered
    ]


def is_unstable(row: Row) -> bool:
    """Whether a run failed, or ended with a larger training loss than it began with."""
    if "error" in row:
        return True
    course = row.get("course")
    return course is not None and not course["last_loss"] <= course["first_loss"]


def _level(study: Experiment, data: str, label: str, rows: Sequence[Row]) -> dict[str, Any]:
    finished = [row for row in rows if "error" not in row]
    chosen = {(row["split"], row["seed"]): selection_of_row(row)[1] for row in finished}
    validation = {run: value for run, value in chosen.items() if value is not None}
    courses = [row["course"] for row in finished if "course" in row]
    epochs = [c["converged_at"] for c in courses if c["converged_at"] is not None]
    paces = [row["seconds"] / row["epochs_run"] for row in finished]
    printed = find_published(study.task, study.score, label, data)
    return {
        "level": label,
        "reference": label == study.reference,
        "val": statistic(by_split(validation)),
        "test": statistic(by_split(run_scores(rows, study.score))),
        "runs": len(rows),
        "unstable": sum(is_unstable(row) for row in rows),
        "converged_at": median(epochs) if epochs else None,
        "seconds_per_epoch": statistic(paces)["mean"],
        "parameters": statistic([row["num_parameters"] for row in finished])["mean"],
        "peak_memory_mib": max(map(_memory, finished), default=None),
        "published": [
            {"value": value.value / 100, "source": value.source, "protocol": value.protocol}
            for value in printed
        ],
    }


def _differences(study: Experiment, scores: Mapping[str, Mapping[Pair, float]]) -> dict[str, Any]:
    """Level minus reference, for every level but the reference."""
    base = scores.get(study.reference or "")
    if not base:
        return {}
    others = [label for label, runs in scores.items() if label != study.reference and runs]
    tests = with_holm([paired_comparison(scores[label], base) for label in others])
    return dict(zip(others, tests, strict=True))


def _memory(row: Row) -> float:
    return float(row.get("peak_device_memory_mib") or row["peak_memory_mib"])
