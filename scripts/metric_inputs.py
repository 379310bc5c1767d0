"""Validation scores of metric networks; writes docs/results/EXPERIMENT.csv.

    argnn bench metric-inputs    # what they read; metric-widths: how wide; precision: in which bits
    python scripts/metric_inputs.py results/metric-inputs.jsonl

Differences are paired over splits and seeds, with 1.96 standard errors. Test scores are not read.
"""

import csv
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results"
#: The reference first, then what is compared with it.
METHODS = {
    "metric-inputs": ("both", "message", "message, width 32"),
    "metric-widths": ("width 64", "width 32", "width 16"),
    "precision": ("float32", "tf32", "bfloat16"),
}
GRAPHS = (
    *("cora", "citeseer", "pubmed", "actor", "chameleon", "squirrel"),
    *("texas", "cornell", "wisconsin"),
)
NAMES = {"citeseer": "CiteSeer", "pubmed": "PubMed"}


def main() -> None:
    """Write one line for each graph of which there are runs."""
    files = [Path(name) for name in sys.argv[1:]]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    [name] = {row["experiment"] for row in rows}
    methods = METHODS[name]
    scores: dict[tuple[str, str], dict[Any, float]] = defaultdict(dict)
    for row in rows:
        scores[row["data"], row["method"]][row["split"], row["seed"]] = row["val"]["accuracy"]
    graphs = [graph for graph in GRAPHS if (graph, methods[1]) in scores]
    lines = [line(graph, scores, methods) for graph in graphs]
    with (RESULTS / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        file.write(f"# command: argnn bench {name}; python scripts/metric_inputs.py RESULTS\n")
        file.write("# note: validation accuracy in per cent on the runs that were done of them\n")
        file.write(f"# machine: {rows[0]['device']}, {rows[0]['threads']} threads\n")
        versions = rows[0]["versions"]
        file.write(f"# versions: argnn {versions['argnn']}, torch {versions['torch']}\n")
        file.write(f"# date: {date.today()} (commit {(rows[0]['git_commit'] or 'unknown')[:7]})\n")
        gaps = (f"{method} - {methods[0]}" for method in methods[1:])
        header = ("graph", "runs", *methods[:2], *gaps)
        csv.writer(file, lineterminator="\n").writerows([header, *lines])


def line(
    graph: str, scores: dict[tuple[str, str], dict[Any, float]], methods: Sequence[str]
) -> list[str]:
    """Means of the runs that the first two have, and differences from the first."""
    first, second, third = (scores[graph, method] for method in methods)
    shared = sorted(first.keys() & second.keys())
    means = [f"{100 * mean(own[run] for run in shared):.2f}" for own in (first, second)]
    gaps = [difference(own, first, len(shared)) for own in (second, third)]
    return [NAMES.get(graph, graph.title()), str(len(shared)), *means, *gaps]


def difference(own: dict[Any, float], other: dict[Any, float], least: int) -> str:
    """Mean and interval of paired differences; empty with fewer runs than others have."""
    gaps = [100 * (own[run] - other[run]) for run in own.keys() & other.keys()]
    if len(gaps) < max(least, 2):
        return ""
    return f"{mean(gaps):+.2f} ± {1.96 * stdev(gaps) / len(gaps) ** 0.5:.2f}"


if __name__ == "__main__":
    main()
