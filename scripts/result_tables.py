"""Keep the scores of a results file, and write the tables of README and docs from what is kept.

    python scripts/result_tables.py --store results/learned-metric.jsonl   # docs/results/NAME.csv
    python scripts/result_tables.py                                        # all tables
    python scripts/result_tables.py --check

A file of docs/results has a line for each run: graph, method, split, seed and scores in per cent.
A table stands between ``<!-- table NAME -->`` and ``<!-- /table -->``. Means are over splits, the
seeds of a split averaged first; ± is a 95 % Student-t interval over splits.
"""

import argparse
import csv
import json
import math
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from scipy.stats import t as student_t

from argnn.tables import markdown_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"<!-- table ([\w-]+) -->\n.*?<!-- /table -->", re.DOTALL)
_IDENTITY = ("graph", "method", "split", "seed")
_GRAPHS = {"cora": "Cora", "citeseer": "CiteSeer", "pubmed": "PubMed"}

#: Scores by method, graph and split, one for each seed.
Scores = dict[tuple[str, str], dict[int, list[float]]]


def stored(path: Path) -> Iterable[dict[str, Any]]:
    """The lines that are kept of a results file of ``argnn bench``."""
    for text in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(text)
        test, val = row["test"], row["val"]
        name = _GRAPHS.get(row["data"], row["data"].capitalize())
        kept = ("f1", "accuracy") if row["task"] == "node" else tuple(test)
        scores = {k: v for k, v in test.items() if k in kept and isinstance(v, float)}
        scores.pop("threshold", None)
        if row["task"] == "node":
            others = row["test_without_twins"] if row["twins"]["with_twin"] else test
            scores["without_twins"] = None if others is None else others["accuracy"]
            scores["twins"] = row["twins"]["with_twin"] / row["twins"]["test"]
        chosen_by = "accuracy" if row["task"] == "node" else "auroc"
        scores["validation"] = val[chosen_by]
        yield {
            "graph": name + (", directed" if row["directed"] else ""),
            "method": row["method"],
            "split": row["split"],
            "seed": row["seed"],
            **{k: "" if v is None else f"{100 * v:.3f}" for k, v in scores.items()},
        }


def store(path: Path) -> Path:
    """Write the file of docs/results for a results file."""
    rows = sorted(stored(path), key=lambda row: tuple(str(row[name]) for name in _IDENTITY))
    out = RESULTS / f"{path.stem}.csv"
    with out.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    return out


def scores(name: str, score: str) -> Scores:
    """One score of every run in a file of docs/results."""
    found: Scores = defaultdict(lambda: defaultdict(list))
    with (RESULTS / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row[score]:
                found[row["method"], row["graph"]][int(row["split"])].append(float(row[score]))
    return found


def by_split(runs: dict[int, list[float]]) -> list[float]:
    """The mean over seeds of each split."""
    return [statistics.mean(runs[split]) for split in sorted(runs)]


def with_interval(values: Sequence[float], sign: str = "") -> str:
    """Mean and 95 % interval."""
    n, mean = len(values), statistics.mean(values)
    half = float(student_t.ppf(0.975, n - 1)) * statistics.stdev(values) / math.sqrt(n)
    return f"{mean:{sign}.2f} ± {half:.2f}"


def graphs_of(found: Scores) -> list[str]:
    """The graphs of a file, in the usual order."""
    order = ["Cora", "CiteSeer", "PubMed", "Actor", "Chameleon", "Chameleon, directed"]
    order += ["Squirrel", "Squirrel, directed", "Texas", "Cornell", "Wisconsin"]
    return sorted({graph for _, graph in found}, key=order.index)


def results() -> list[str]:
    """Accuracy of argnn with its stored settings."""
    every, others, val, twins = (
        scores("learned-metric", name)
        for name in ("accuracy", "without_twins", "validation", "twins")
    )
    return markdown_table(
        ("graph", "test nodes with a twin, %", "test accuracy", "without twins", "validation"),
        (
            (
                graph,
                f"{statistics.mean(by_split(twins['learned', graph])):.0f}",
                with_interval(by_split(every["learned", graph])),
                with_interval(by_split(others["learned", graph])),
                f"{statistics.mean(by_split(val['learned', graph])):.2f}",
            )
            for graph in graphs_of(every)
        ),
    )


def short_results() -> list[str]:
    """The same with two graphs in a row, for the README."""
    every, others = (scores("learned-metric", name) for name in ("accuracy", "without_twins"))
    cells = [
        [graph, *(with_interval(by_split(part["learned", graph])) for part in (every, others))]
        for graph in graphs_of(every)
    ]
    half = (len(cells) + 1) // 2
    right = [*cells[half:], ["", "", ""]]
    rows = [[*a, *b] for a, b in zip(cells[:half], right, strict=False)]
    return markdown_table(("graph", "test accuracy", "without twins") * 2, rows)


def learned(score: str) -> list[str]:
    """A learned metric beside a fixed one and the control, paired over splits."""
    found = scores("learned-metric", score)

    def row(graph: str) -> list[str]:
        ours, fixed, control = (
            by_split(found[method, graph]) for method in ("learned", "fixed", "control")
        )
        gaps = [[a - b for a, b in zip(ours, other, strict=True)] for other in (fixed, control)]
        means = [f"{statistics.mean(values):.2f}" for values in (ours, fixed, control)]
        return [graph, *means, *(with_interval(gap, "+") for gap in gaps)]

    header = ("graph", "learned", "fixed", "control", "learned - fixed", "learned - control")
    return markdown_table(header, map(row, graphs_of(found)))


def web_rivals() -> list[str]:
    """All methods on the two web graphs."""
    parts = {word: scores("rivals", word) for word in ("accuracy", "without_twins")}
    graphs = ("Texas", "Wisconsin")
    methods = list(dict.fromkeys(method for method, _ in parts["accuracy"]))
    methods.sort(key=lambda method: (method != "argnn", method))
    header = ["method", *(f"{g}{w}" for g in graphs for w in ("", ", without twins"))]
    return markdown_table(
        header,
        (
            [f"`{m}`", *(with_interval(by_split(parts[w][m, g])) for g in graphs for w in parts)]
            for m in methods
        ),
    )


def literal() -> list[str]:
    """The equations as printed."""
    found = scores("literal", "accuracy")
    return markdown_table(
        ("graph", "theory weights", "no penalties"),
        (
            [g, *(with_interval(by_split(found[m, g])) for m in ("theory", "none"))]
            for g in graphs_of(found)
        ),
    )


def links() -> list[str]:
    """Links of Cora."""
    names = ("auroc", "auprc", "accuracy", "hits@10", "hits@50", "mrr", "validation")
    parts = [scores("links-cora", name) for name in names]
    header = (
        "method",
        "AUROC",
        "AUPRC",
        "accuracy",
        "hits@10",
        "hits@50",
        "MRR",
        "validation AUROC",
    )
    return markdown_table(
        header,
        (
            [f"`{m}`", *(with_interval(by_split(part[m, "Cora"])) for part in parts)]
            for m in ("argnn", "gcn")
        ),
    )


TABLES = {
    "results": results,
    "short-results": short_results,
    "learned-all": lambda: learned("accuracy"),
    "learned-without-twins": lambda: learned("without_twins"),
    "web-rivals": web_rivals,
    "literal": literal,
    "links": links,
}


def written(text: str) -> str:
    """A page with its tables made anew."""

    def block(match: re.Match[str]) -> str:
        name = match[1]
        return "\n".join([f"<!-- table {name} -->", *TABLES[name](), "<!-- /table -->"])

    return _BLOCK.sub(block, text)


def main() -> int:
    """Store, write or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", nargs="+", type=Path, default=[], help="results files to keep")
    parser.add_argument("--check", action="store_true", help="only say whether pages are true")
    asked = parser.parse_args()
    for path in asked.store:
        print(store(path))
    old = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if written(text) != text:
            old.append(page.name)
            if not asked.check:
                page.write_text(written(text), encoding="utf-8")
    print(f"{'old' if asked.check else 'written'}: {', '.join(old) or 'none'}")
    return int(asked.check and bool(old))


if __name__ == "__main__":
    sys.exit(main())
