"""Validation scores of what metric networks read; writes docs/results/metric-inputs.csv.

    argnn bench metric-inputs
    python scripts/metric_inputs.py results/metric-inputs.jsonl

Differences are paired over splits and seeds, with 1.96 standard errors. Test scores are not read.
"""

import csv
import json
import sys
from collections import defaultdict
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

OUT = Path(__file__).resolve().parents[1] / "docs" / "results" / "metric-inputs.csv"
METHODS = ("both", "message", "message, width 32")
GRAPHS = ("cora", "citeseer", "pubmed", "actor", "chameleon", "squirrel", "texas", "cornell")
NAMES = {"citeseer": "CiteSeer", "pubmed": "PubMed"}


def main() -> None:
    """Write one line for each graph."""
    files = [Path(name) for name in sys.argv[1:]]
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    scores: dict[tuple[str, str], dict[Any, float]] = defaultdict(dict)
    for row in rows:
        scores[row["data"], row["method"]][row["split"], row["seed"]] = row["val"]["accuracy"]
    lines = [line(graph, scores) for graph in (*GRAPHS, "wisconsin")]
    with OUT.open("w", newline="", encoding="utf-8") as file:
        file.write(
            "# command: argnn bench metric-inputs; python scripts/metric_inputs.py RESULTS\n"
        )
        file.write("# note: validation accuracy in per cent on the runs that were done of them\n")
        file.write(f"# machine: {rows[0]['device']}, {rows[0]['threads']} threads\n")
        versions = rows[0]["versions"]
        file.write(f"# versions: argnn {versions['argnn']}, torch {versions['torch']}\n")
        file.write(f"# date: {date.today()} (commit {rows[0]['git_commit'][:7]})\n")
        header = ("graph", "runs", *METHODS[:2], *(f"{name} - both" for name in METHODS[1:]))
        csv.writer(file, lineterminator="\n").writerows([header, *lines])


def line(graph: str, scores: dict[tuple[str, str], dict[Any, float]]) -> list[str]:
    """Means of the runs that both have, and the differences."""
    both, message, narrow = (scores[graph, method] for method in METHODS)
    shared = sorted(both.keys() & message.keys())
    means = [f"{100 * mean(own[run] for run in shared):.2f}" for own in (both, message)]
    gaps = [difference(own, both, len(shared)) for own in (message, narrow)]
    return [NAMES.get(graph, graph.title()), str(len(shared)), *means, *gaps]


def difference(own: dict[Any, float], other: dict[Any, float], least: int) -> str:
    """Mean and interval of paired differences; empty with fewer runs than others have."""
    gaps = [100 * (own[run] - other[run]) for run in own.keys() & other.keys()]
    if len(gaps) < least:
        return ""
    return f"{mean(gaps):+.2f} ± {1.96 * stdev(gaps) / len(gaps) ** 0.5:.2f}"


if __name__ == "__main__":
    main()
