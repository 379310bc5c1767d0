"""Write every measured number of README and docs from the files in docs/results.

    python scripts/write_pages.py            # fill in tables and numbers
    python scripts/write_pages.py --check    # only say which pages differ
    python scripts/write_pages.py --store results/learned-metric.jsonl   # of argnn bench
    python scripts/write_pages.py --studies results/ablate-*.jsonl           # of argnn ablate
    argnn theory --full --out docs/results --force                       # the files theory-*.csv

A file of docs/results is the source of one table: a CSV file that begins with lines
``# command:``, ``# machine:``, ``# versions:``, ``# date:`` and perhaps ``# note:``, or a JSON file
of ``argnn perf --json``. Pages refer to tables in two ways:

- ``<!-- table NAME -->`` and ``<!-- /table -->`` enclose a table. Tables of `argnn perf` are named
  by file and kind, such as ``cpu-20k steps``, those of `argnn ablate` by file and study, such as
  ``ablations depth`` and ``ablations-cost depth``.
- ``87.09<!-- results: Cora: test accuracy -->`` is one cell of a table: name, row, column. The
  number keeps its digits after the point; ``85.46 ± 3.08<!-- ... -->`` also shows the interval.
  ``minus`` before the name changes the sign: "behind by 2.7<!-- minus ... -->".

In files with a line for each run, a mean is over splits, the seeds of a split averaged first, and ±
is a 95 % Student-t interval over splits.
"""

import argparse
import csv
import json
import re
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import rich.table

from argnn.bench.ablation import levels, studies
from argnn.bench.leaderboard.compare import critical_difference, holm, signed_rank
from argnn.bench.leaderboard.published import find_published, published_values
from argnn.bench.perf.config import ROWS
from argnn.bench.perf.tables import edge_table, number, row_table, scaling_table
from argnn.bench.theory import CLAIMS
from argnn.bench.theory.finding import VERDICTS
from argnn.runs.summary import by_split, interval_half_width
from argnn.store.results import read_rows
from argnn.tables import markdown_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TABLE = re.compile(r"<!-- table ([\w -]+) -->\n.*?<!-- /table -->", re.DOTALL)
NUMBER = re.compile(r"([+-]?\d[\d,]*(?:\.\d+)?)( ± [\d.]+)?<!-- ([^>]*?) -->")
_IDENTITY = ("graph", "method", "split", "seed")
_NAMED = ("argnn", "torch")
#: What the line below a table says of its file. A line "history" is only in the file.
_HEAD = ("command", "machine", "versions", "date", "note")
_GRAPHS = {
    name.lower(): name
    for name in (
        *("Cora", "CiteSeer", "PubMed", "Actor", "Chameleon", "Chameleon, directed"),
        *("Squirrel", "Squirrel, directed", "Texas", "Cornell", "Wisconsin"),
    )
}
#: The graphs on which the settings of all methods were searched.
_SEARCHED = ("Cora", "CiteSeer", "Texas", "Wisconsin")
#: The graphs of the paper's ablations.
_STUDIED = ("Cora", "Actor", "Wisconsin")
#: A p-value below this is called a difference.
_NOISE = 0.05

#: Scores by method and graph, and by split and seed.
Scores = dict[tuple[str, str], dict[tuple[int, int], float]]


@dataclass(frozen=True)
class Table:
    """Cells as they are printed; the first one names its row."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def markdown(self) -> list[str]:
        """One line for each row."""
        return markdown_table(self.header, self.rows)

    def cell(self, row: str, column: str) -> str:
        """What stands in a row and a column, without what is in brackets behind it.

        A row is named by its first cell, or by its first two with a comma between.
        """
        names = [[", ".join(cells[:n]).replace("`", "") for n in (1, 2)] for cells in self.rows]
        [found] = [n for n, both in enumerate(names) if row in both]
        return self.rows[found][list(self.header).index(column)].split(" (")[0]


# Files.


def graph_name(data: str, *, directed: bool) -> str:
    """How tables call a graph."""
    return _GRAPHS.get(data, data) + (", directed" if directed else "")


def kept_rows(rows: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """The lines that are kept of a results file of ``argnn bench``, scores in per cent."""
    for row in rows:
        node = row["task"] == "node"
        found = {k: v for k, v in row["test"].items() if isinstance(v, float) and k != "threshold"}
        if node:
            others = row["test_without_twins"] if row["twins"]["with_twin"] else row["test"]
            found = {
                **{name: found[name] for name in ("f1", "accuracy")},
                "without_twins": None if others is None else others["accuracy"],
                "twins": row["twins"]["with_twin"] / row["twins"]["test"],
            }
        found["validation"] = row["val"]["accuracy" if node else "auroc"]
        yield {
            "graph": graph_name(row["data"], directed=row["directed"]),
            **{name: row[name] for name in ("method", "split", "seed")},
            **{k: "" if v is None else f"{100 * v:.3f}" for k, v in found.items()},
        }


def store(path: Path, folder: Path = RESULTS) -> Path:
    """Write the file of docs/results for a results file of ``argnn bench``."""
    rows = read_rows(path)
    kept = sorted(kept_rows(rows), key=lambda row: tuple(str(row[name]) for name in _IDENTITY))
    command = f"argnn bench {of_all(row['experiment'] for row in rows)}"
    return write_csv(folder / f"{path.stem}.csv", rows, command, kept)


def store_studies(paths: Sequence[Path], folder: Path = RESULTS) -> Path:
    """Write the file of docs/results for results files of ``argnn ablate``.

    It has a line for each level of each study on each graph, as ``argnn ablate`` prints them. Of a
    study that was stopped, the runs are kept that all levels have. A study on a graph that the
    results have no run of keeps the lines that it has in the file.
    """
    rows = [row for path in paths for row in read_rows(path)]
    out = folder / "ablations.csv"
    known: dict[tuple[str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for line in lines_of(out) if out.exists() else ():
        known[line["study"], line["graph"]].append(line)
    used: list[dict[str, Any]] = []
    for name, study in studies().items():
        for data in dict.fromkeys(row["data"] for row in rows):
            own = in_all_levels(
                [row for row in rows if (row["experiment"], row["data"]) == (study.name, data)]
            )
            if own:
                used += own
                found = [level_row(name, level, own) for level in levels(study, own)]
                known[name, found[0]["graph"]] = found
    order = {name: number for number, name in enumerate(studies())}
    kept = [line for key in sorted(known, key=lambda key: order[key[0]]) for line in known[key]]
    command = "argnn ablate GRAPH --study STUDY --seeds SEEDS"
    return write_csv(out, used, command, kept)


def in_all_levels(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The runs whose split and seed all levels of a study have."""
    runs: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for row in rows:
        runs[row["method"]].add((row["split"], row["seed"]))
    common = set.intersection(*runs.values()) if runs else set()
    return [row for row in rows if (row["split"], row["seed"]) in common]


def level_row(
    study: str, level: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """The line that is kept of a level: scores in per cent, differences in points."""

    def shown(value: float | None, form: str) -> str:
        return "" if value is None else format(value, form)

    def of_100(value: float | None) -> str:
        return shown(None if value is None else 100 * value, ".3f")

    tested = level["difference"] or {"difference": None, "interval": None, "wilcoxon": None}
    p = tested["wilcoxon"] and tested["wilcoxon"]["holm"]
    return {
        "study": study,
        "graph": _GRAPHS.get(level["graph"], level["graph"]),
        "level": level["level"],
        "reference": "yes" if level["reference"] else "",
        "splits": len({row["split"] for row in rows}),
        "seeds": len({row["seed"] for row in rows}),
        "validation": of_100(level["val"]["mean"]),
        "test": of_100(level["test"]["mean"]),
        "interval": of_100(level["test"]["interval"]),
        "difference": of_100(tested["difference"]),
        "difference_interval": of_100(tested["interval"]),
        "p": shown(p, ".4f"),
        "published": "; ".join(of_100(value["value"])[:-2] for value in level["published"]),
        "converged_at": shown(level["converged_at"], "g"),
        "seconds_per_epoch": shown(level["seconds_per_epoch"], ".4f"),
        "parameters": shown(level["parameters"], ".0f"),
        "peak_memory_mib": shown(level["peak_memory_mib"], ".0f"),
        "unstable": level["unstable"],
        "runs": level["runs"],
        "device": of_all(row["device"] for row in rows),
    }


def of_all(values: Iterable[str]) -> str:
    """Every value once."""
    return ", ".join(sorted(set(values)))


def write_csv(
    out: Path, rows: Sequence[Mapping[str, Any]], command: str, kept: Sequence[Mapping[str, Any]]
) -> Path:
    """Write lines that stand on rows of a results file, and how those came about."""
    about = {
        "command": command,
        "machine": of_all(row["device"] for row in rows),
        "versions": of_all(
            f"{n} {v}" for r in rows for n, v in r["versions"].items() if n in _NAMED
        ),
        "date": f"{max(row['finished'] for row in rows)[:10]} "
        f"(commit {of_all((row['git_commit'] or 'unknown')[:7] for row in rows)})",
    }
    with out.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {name}: {value}\n" for name, value in about.items())
        writer = csv.DictWriter(file, list(kept[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(kept)
    return out


@cache
def csv_rows(name: str) -> list[list[str]]:
    """The cells of a CSV file, its header first."""
    header, *_ = lines = lines_of(RESULTS / f"{name}.csv")
    return [list(header), *(list(line.values()) for line in lines)]


def lines_of(path: Path) -> list[dict[str, str]]:
    """The lines of a CSV file by the names of their columns."""
    text = path.read_text(encoding="utf-8").splitlines()
    return list(csv.DictReader(line for line in text if not line.startswith("#")))


def head(name: str) -> dict[str, str]:
    """How the numbers of a file came about."""
    path = RESULTS / f"{name}.csv"
    if path.exists():
        lines = path.read_text(encoding="utf-8").splitlines()
        found = dict(line[2:].split(": ", 1) for line in lines if line.startswith("# "))
        return {key: found[key] for key in _HEAD if key in found}
    result = perf(name)
    config = result["config"]
    words = ["argnn perf", f"--nodes {config['nodes']}", f"--edges {config['edges']}"]
    if config["scaling"]:
        words.append("--scaling")
    elif len(config["models"]) < (len(ROWS) if "gcn-best" in config["models"] else 6):
        words.append(f"--models {','.join(config['models'])}")
    sizes = {"channels": 128, "layers": 3}
    usual = {**sizes, "dtype": "float32", "repeats": 20, "budget": 20}
    words += [
        f"--{key} {config[key]:{'' if key == 'dtype' else 'g'}}"
        for key in usual
        if config[key] != usual[key]
    ]
    words += ["--record"] if config.get("record") else []
    on_cpu = f"{result['threads']} threads of {result['cpu']}"
    changed = " with changes" if result["git_changed"] else ""
    return {
        "command": " ".join(words),
        "machine": "one NVIDIA H200" if "H200" in result["device"] else on_cpu,
        "versions": f"argnn {result['versions']['argnn']}, torch {result['versions']['torch']}",
        "date": f"{result['started'][:10]} (commit {result['git_commit'][:7]}{changed})",
    }


def source(name: str) -> str:
    """The line below a table: where its numbers come from."""
    path = next(RESULTS.glob(f"{name}.*"))
    parts = head(name)
    for key in ("command", "machine"):
        if parts[key] == "not recorded":
            parts[key] = f"{key} not recorded"
        elif key == "command":
            parts[key] = f"`{parts[key]}`"
    return f"From `docs/results/{path.name}`: {'; '.join(parts.values()).rstrip('.')}."


def scores(name: str, score: str) -> Scores:
    """One score of every run in a file."""
    header, *rows = csv_rows(name)
    found: Scores = defaultdict(dict)
    for cells in rows:
        row = dict(zip(header, cells, strict=True))
        if row[score]:
            run = int(row["split"]), int(row["seed"])
            found[row["method"], row["graph"]][run] = float(row[score])
    return found


def with_interval(values: Sequence[float], sign: str = "") -> str:
    """Mean and 95 % interval."""
    return f"{statistics.mean(values):{sign}.2f} ± {interval_half_width(values):.2f}"


def graphs_of(found: Scores) -> list[str]:
    """The graphs of a file, in the usual order."""
    return sorted({graph for _, graph in found}, key=list(_GRAPHS.values()).index)


def gaps(found: Scores, ours: str, other: str, graph: str) -> list[float]:
    """Our score less another's, split by split."""
    pairs = zip(by_split(found[ours, graph]), by_split(found[other, graph]), strict=True)
    return [a - b for a, b in pairs]


# Tables of runs.


def results() -> Table:
    """Accuracy of argnn with its stored settings."""
    every, others, val, twins = (
        scores("learned-metric", name)
        for name in ("accuracy", "without_twins", "validation", "twins")
    )
    return Table(
        ("graph", "test nodes with a twin, %", "test accuracy", "without twins", "validation"),
        [
            (
                graph,
                f"{statistics.mean(by_split(twins['learned', graph])):.0f}",
                with_interval(by_split(every["learned", graph])),
                with_interval(by_split(others["learned", graph])),
                f"{statistics.mean(by_split(val['learned', graph])):.2f}",
            )
            for graph in graphs_of(every)
        ],
    )


def short_results() -> Table:
    """The same with two graphs in a row, for the README."""
    cells = [[row[0], row[2], row[3]] for row in results().rows]
    half = (len(cells) + 1) // 2
    right = [*cells[half:], ["", "", ""]]
    rows = [[*a, *b] for a, b in zip(cells[:half], right, strict=False)]
    return Table(("graph", "test accuracy", "without twins") * 2, rows)


def on_twins() -> Table:
    """Accuracy of argnn on test nodes that have a twin."""
    every, others, twins = (
        scores("learned-metric", name) for name in ("accuracy", "without_twins", "twins")
    )

    def accuracy(graph: str) -> float:
        parts = (by_split(part["learned", graph]) for part in (every, others, twins))
        a, w, share = (statistics.mean(part) for part in parts)
        return (a - (1 - share / 100) * w) / (share / 100)

    rows = [(graph, f"{accuracy(graph):.1f}") for graph in graphs_of(every)]
    return Table(("graph", "accuracy with a twin"), rows)


def learned(score: str) -> Table:
    """A learned metric beside a fixed one and the control, paired over splits."""
    found = scores("learned-metric", score)

    def row(graph: str) -> list[str]:
        methods = ("learned", "fixed", "control")
        means = [f"{statistics.mean(by_split(found[m, graph])):.2f}" for m in methods]
        both = [gaps(found, "learned", other, graph) for other in methods[1:]]
        return [graph, *means, *(with_interval(gap, "+") for gap in both)]

    header = ("graph", "learned", "fixed", "control", "learned - fixed", "learned - control")
    return Table(header, [row(graph) for graph in graphs_of(found)])


def learned_tests() -> Table:
    """Wilcoxon's p of these differences, Holm-corrected over all graphs and both comparisons."""
    others = ("fixed", "control")
    graphs = graphs_of(scores("learned-metric", "accuracy"))
    pairs = [(graph, other) for graph in graphs for other in others]
    columns = []
    for score in ("accuracy", "without_twins"):
        found = scores("learned-metric", score)
        p = holm([signed_rank(gaps(found, "learned", m, graph))[1] for graph, m in pairs])
        columns += [[f"{value:.3f}" for value in p[n :: len(others)]] for n in range(len(others))]
    header = [f"{m}{w}" for w in ("", ", without twins") for m in others]
    return Table(("graph", *header), list(zip(graphs, *columns, strict=True)))


def literal() -> Table:
    """The equations as printed."""
    found = scores("literal", "accuracy")
    return Table(
        ("graph", "theory weights", "no penalties"),
        [
            [g, *(with_interval(by_split(found[m, g])) for m in ("theory", "none"))]
            for g in graphs_of(found)
        ],
    )


def links() -> Table:
    """Links of Cora."""
    names = ("auroc", "auprc", "accuracy", "hits@10", "hits@50", "mrr", "validation")
    header = ("AUROC", "AUPRC", "accuracy", "hits@10", "hits@50", "MRR", "validation AUROC")
    parts = [scores("links-cora", name) for name in names]
    rows = [
        [f"`{m}`", *(with_interval(by_split(part[m, "Cora"])) for part in parts)]
        for m in ("argnn", "gcn")
    ]
    return Table(("method", *header), rows)


def links_tests() -> Table:
    """What GCN has more than argnn on links of Cora."""
    both = {n: gaps(scores("links-cora", n), "gcn", "argnn", "Cora") for n in ("auroc", "auprc")}
    rows = [
        (name.upper(), f"{statistics.mean(gap):.2f}", f"{signed_rank(gap)[1]:.3f}")
        for name, gap in both.items()
    ]
    return Table(("score", "gcn - argnn", "p"), rows)


def web_rivals() -> Table:
    """All methods on the two web graphs, with the best published figures."""
    parts = {word: scores("rivals", word) for word in ("accuracy", "without_twins")}
    graphs = ("Texas", "Wisconsin")
    methods = sorted({m for m, _ in parts["accuracy"]}, key=lambda m: (m != "argnn", m))

    def row(method: str) -> list[str]:
        cells = [f"`{method}`"]
        for graph in graphs:
            all_nodes, others = (with_interval(by_split(p[method, graph])) for p in parts.values())
            cells += [all_nodes + best_published(method, graph), others]
        return cells

    header = ["method", *(f"{g}{w}" for g in graphs for w in ("", ", without twins"))]
    return Table(header, [row(method) for method in methods])


def citation_rivals() -> Table:
    """All methods on two citation graphs, with the best published figures."""
    header, *rows = csv_rows("citation-rivals")
    return Table(
        header,
        [
            [f"`{m}`", *(c + best_published(m, g) for c, g in zip(cells, header[1:], strict=True))]
            for m, *cells in rows
        ],
    )


@cache
def published() -> Table:
    """The best figure on the same splits that a paper other than the method's own printed."""
    best: dict[tuple[str, str], float] = {}
    for value in published_values():
        same = "Geom-GCN splits" in value.protocol and not value.source.startswith("ARGNN paper")
        if same and (value.task, value.score) == ("node", "accuracy"):
            key = value.method, _GRAPHS.get(value.data, value.data)
            best[key] = max(value.value, best.get(key, 0.0))
    methods = sorted({method for method, _ in best})
    rows = [[m, *(f"{best[m, g]:g}" if (m, g) in best else "" for g in _SEARCHED)] for m in methods]
    return Table(("method", *_SEARCHED), rows)


def best_published(method: str, graph: str) -> str:
    """The best published figure in brackets."""
    found = {row[0]: row for row in published().rows}
    value = found[method][1 + _SEARCHED.index(graph)] if method in found else ""
    return f" ({value})" if value else ""


def paper_gaps() -> Table:
    """What the method's own paper prints for each method, less what the method reaches here."""
    rows = []
    for method, *_ in csv_rows("citation-rivals")[1:]:
        cells = [method]
        for graph in _SEARCHED:
            ours = table("citation-rivals" if graph in _SEARCHED[:2] else "web-rivals")
            found = find_published("node", "accuracy", method, graph.lower())
            paper = [value for value in found if value.source.startswith("ARGNN paper")]
            gap = paper[0].value - float(ours.cell(method, graph).split(" ")[0]) if paper else None
            cells.append("" if gap is None else f"{gap:+.1f}")
        rows.append(cells)
    return Table(("method", *_SEARCHED), rows)


# Tables of graphs that nobody tuned.


@cache
def untuned_scores(score: str) -> dict[str, dict[str, list[float]]]:
    """By graph and method, the mean of each split; without methods that lack a run."""
    found = scores("untuned", score)
    complete: dict[str, dict[str, list[float]]] = defaultdict(dict)
    for (method, graph), runs in found.items():
        if runs.keys() == found["argnn", graph].keys():
            complete[graph_name(graph, directed=False)][method] = by_split(runs)
    order = [*_GRAPHS.values(), *sorted(complete.keys() - set(_GRAPHS.values()))]
    return {graph: complete[graph] for graph in order if graph in complete}


def untuned() -> Table:
    """Untuned argnn beside the best untuned rival and the best tuned method, by test score."""
    rows = []
    for graph, found in untuned_scores("test").items():
        ours, cells = found["argnn"], [graph, f"{statistics.mean(found['argnn']):.2f}"]
        for tuned in (False, True):
            others = [m for m in found if m.startswith("tuned ") == tuned and m != "argnn"]
            best = max(others, key=lambda method: statistics.mean(found[method]))
            gap = [a - b for a, b in zip(ours, found[best], strict=True)]
            name = best.removeprefix("tuned ")
            cells += [f"`{name}` {statistics.mean(found[best]):.2f}", with_interval(gap, "+")]
        rows.append(cells)
    return Table(("graph", "argnn", "best rival", "ahead", "best tuned", "ahead of tuned"), rows)


def untuned_again() -> Table:
    """The trial before and the present one, where argnn was measured again."""
    before, now, rows = scores("untuned-before", "test"), untuned_scores("test"), []
    for method, graph in before:
        name = graph_name(graph, directed=False)
        old, new = by_split(before[method, graph]), now[name][method]
        gap = [a - b for a, b in zip(new, old, strict=True)]
        means = [f"{statistics.mean(values):.2f}" for values in (old, new)]
        rows.append([name, *means, with_interval(gap, "+")])
    return Table(("graph", "trial before", "present trial", "gain"), rows)


def untuned_methods() -> Table:
    """Every untuned method on every graph."""
    found = untuned_scores("test")
    methods = sorted({m for row in found.values() for m in row if not m.startswith("tuned ")})
    methods.sort(key=lambda method: method != "argnn")

    def cell(graph: str, method: str) -> str:
        values = found[graph].get(method)
        return "" if values is None else f"{statistics.mean(values):.2f}"

    rows = [[f"`{method}`", *(cell(graph, method) for graph in found)] for method in methods]
    return Table(("method", *found), rows)


def untuned_tuned() -> Table:
    """The tuned methods of every graph, test score and in brackets the score of validation."""
    test, val = untuned_scores("test"), untuned_scores("validation")
    rows = []
    for graph, found in test.items():
        means = {m: statistics.mean(v) for m, v in found.items() if m.startswith("tuned ")}
        words = [
            f"`{m.removeprefix('tuned ')}` {means[m]:.2f} ({statistics.mean(val[graph][m]):.2f})"
            for m in sorted(means, key=lambda m: -means[m])
        ]
        rows.append([graph, *words, *[""] * (5 - len(words))])
    return Table(("graph", "best", "second", "third", "fourth", "fifth"), rows)


def untuned_costs() -> Table:
    """What trial and tuning took, and what the metric was worth on validation in the trials."""
    header, *lines = csv_rows("untuned")
    every = [dict(zip(header, cells, strict=True)) for cells in lines]

    def mean(runs: Sequence[Mapping[str, str]], name: str) -> str:
        return f"{statistics.mean(float(row[name]) for row in runs):,.0f}"

    def row(name: str, found: Sequence[Mapping[str, str]]) -> list[str]:
        ours = [row for row in found if row["method"] == "argnn"]
        tuned = [row for row in found if row["method"].startswith("tuned ")]
        learned = sum(row["metric"] != "fixed" for row in ours)
        gain = statistics.mean(float(row["learned"]) - float(row["fixed"]) for row in ours)
        costs = [mean(ours, name) for name in ("search_epochs", "search_seconds", "epochs")]
        costs += [mean(tuned, name) for name in ("search_epochs", "search_seconds")]
        return [name, f"{learned} of {len(ours)}", f"{gain:+.2f}", *costs]

    words = ("metric learned", "learned - fixed", "trial, epochs", "trial, s")
    words += ("training, epochs", "search, epochs", "search, s")
    graphs = untuned_scores("test")
    parts = {g: [r for r in every if graph_name(r["graph"], directed=False) == g] for g in graphs}
    return Table(("graph", *words), [row(*part) for part in [*parts.items(), ("all", every)]])


# Tables of searches.


def search_lines(name: str) -> list[dict[str, Any]]:
    """The candidates of a search."""
    lines = (ROOT / "docs" / f"{name}_search.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def search_budget() -> Table:
    """How many trainings the settings of a method stand on, on the four searched graphs."""
    counts: Counter[str] = Counter()
    for row in search_lines("settings"):
        counts["argnn"] += 10 * row["seeds"] * (_GRAPHS[row["data"]] in _SEARCHED)
    for row in search_lines("rivals"):
        counts[row["method"]] += len(row["splits"])
    return Table(("method", "trainings"), [(m, f"{n:,}") for m, n in counts.items()])


def best_validation(task: str) -> Table:
    """The best learned and the best fixed metric of a search, in per cent of validation score."""
    best: dict[str, dict[bool, float]] = defaultdict(dict)
    rows = search_lines("settings" if task == "node" else "link")
    graphs = defaultdict(list)
    for row in rows:
        graphs[graph_name(row["data"], directed=row.get("edges") == "directed")].append(row)
    for graph, candidates in graphs.items():
        # Only those that were tried most often are compared.
        tried = [row["seeds"] if task == "node" else len(row["splits"]) for row in candidates]
        for row, times in zip(candidates, tried, strict=True):
            if times == max(tried):
                fixed = row.get("candidate", row)["metric"] == "fixed"
                score = 100 * row["val_accuracy" if task == "node" else "val_auroc"]
                best[graph][fixed] = max(score, best[graph].get(fixed, 0.0))
    return Table(
        ("graph", "learned", "fixed", "learned - fixed"),
        [
            (g, f"{found[False]:.2f}", f"{found[True]:.2f}", f"{found[False] - found[True]:+.2f}")
            for g, found in best.items()
            if True in found
        ],
    )


def ranks() -> Table:
    """Nemenyi's critical difference of the methods on the four graphs."""
    difference = critical_difference(len(citation_rivals().rows), len(_SEARCHED))
    return Table(("what", "ranks"), [("critical difference", f"{difference:.1f}")])


# Tables of argnn perf.


@cache
def perf(name: str) -> dict[str, Any]:
    """A file of ``argnn perf --json``."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    for row in (row for measured in found["measurements"] for row in measured["rows"]):
        # In older files the best GCN is called the sparse one, or there is none.
        row.setdefault("step_vs_best_gcn", row.get("step_vs_sparse_gcn"))
    return found


def cells_of(printed: rich.table.Table) -> Table:
    """A table that ``argnn perf`` prints, without columns in which nothing was measured."""
    columns = [(str(column.header).replace("\n", " "), *column.cells) for column in printed.columns]
    header, *rows = zip(*(c for c in columns if set(c[1:]) != {"-"}), strict=True)
    return Table(header, rows)


def first_steps(measured: Mapping[str, Any]) -> Table:
    """The first step of each model, with compilation where the cache was empty."""
    rows = [(row["label"], number(row["first_step_seconds"])) for row in measured["rows"]]
    return Table(("model", "s"), rows)


#: What the scale page shows of ``argnn perf``.
_SIZES = {"cpu-20k": "2 CPU cores", "h200-100k-bf16": "H200", "h200-1m-bf16": "H200"}


def scale() -> Table:
    """The sizes that were measured, one line each."""
    rows = []
    for name, machine in _SIZES.items():
        steps, config = table(f"{name} steps"), perf(name)["config"]
        paper, default, gcn = "argnn paper, fused", "argnn default, fused", "PyG GCN"
        times = [
            steps.cell(model, "step ms [10 %, 90 %]").split(" [")[0]
            for model in (paper, default, gcn)
        ]
        memory = steps.cell(default, "extra peak MiB")
        rows.append(
            [f"`{name}`", machine, f"{config['nodes']:,}", f"{config['edges']:,}", *times, memory]
        )
    header = ["measurement", "machine", "nodes", "edges", "`paper`, ms", "`default`, ms"]
    return Table([*header, "PyG's GCN, ms", "extra memory of `default`, MiB"], rows)


def gpu_ratios() -> Table:
    """Recorded steps on a GPU as multiples of the best GCN's."""
    models = ("paper", "default", "metric=message", "metric=structure")
    rows = []
    for name in ("h200-cora", "h200-100k-bf16", "h200-1m-bf16"):
        config, steps = perf(name)["config"], table(f"{name} steps")
        best = steps.cell("argnn gcn, fused", "recorded step ms [10 %, 90 %]").split(" [")[0]
        ratios = [steps.cell(f"argnn {m}, fused", "recorded x best GCN") for m in models]
        graph = f"{config['nodes']:,} nodes, {config['edges']:,} edges"
        rows.append([graph, config["dtype"], best, *ratios])
    return Table(("graph", "type", "best GCN, ms", *(f"`{name}`" for name in models)), rows)


def theory() -> Table:
    """The verdicts of all claims of ``argnn theory``, each with its command."""
    columns, rows = ("statement", "verdict", "measured", "in the paper"), []
    for claim in CLAIMS:
        header, *cells = csv_rows(f"theory-verdicts-{claim}")
        command = f"`{head(f'theory-verdicts-{claim}')['command']}`"
        rows += [[*(row[header.index(name)] for name in columns), command] for row in cells]
    return Table((*columns, "command"), rows)


def theory_count() -> Table:
    """How many statements have each verdict."""
    counts = Counter(cells[1] for cells in theory().rows)
    rows = [(verdict, str(counts[verdict])) for verdict in VERDICTS]
    return Table(("verdict", "statements"), [*rows, ("all", str(counts.total()))])


# Tables of argnn ablate.


def study_lines(study: str) -> dict[str, dict[str, dict[str, str]]]:
    """The lines of a study by level and graph."""
    found: dict[str, dict[str, dict[str, str]]] = defaultdict(dict)
    for row in lines_of(RESULTS / "ablations.csv"):
        if row["study"] == study:
            found[row["level"]][row["graph"]] = row
    return found


def ablation(study: str) -> Table:
    """The levels of a study: test score, and in brackets what it has more than the reference."""

    def cell(row: Mapping[str, str] | None) -> str:
        if row is None or not row["test"]:
            return ""
        score = f"{float(row['test']):.2f} ± {float(row['interval']):.2f}"
        if row["reference"]:
            return score
        gap = f"{float(row['difference']):+.2f} ± {float(row['difference_interval']):.2f}"
        p = f", p {float(row['p']):.3f}" if can_differ(row) else ""
        return f"{score} ({gap}{p})"

    found = study_lines(study)
    graphs = sorted({graph for level in found.values() for graph in level}, key=_study_order)
    printed = [g for g in graphs if any(g in v and v[g]["published"] for v in found.values())]
    rows = [
        [
            f"{level}, reference" if any(row["reference"] for row in own.values()) else level,
            *(cell(own.get(graph)) for graph in graphs),
            *(own[graph]["published"] if graph in own else "" for graph in printed),
        ]
        for level, own in found.items()
    ]
    return Table(("level", *graphs, *(f"{graph}, published" for graph in printed)), rows)


def can_differ(row: Mapping[str, str]) -> bool:
    """Whether Wilcoxon's p can be below 0.05: with five splits it is at least 2 / 2^5."""
    return float(2 / 2 ** int(row["splits"])) < _NOISE


def _study_order(graph: str) -> int:
    return _STUDIED.index(graph) if graph in _STUDIED else len(_STUDIED)


def ablation_cost(study: str) -> Table:
    """What the levels of a study cost: convergence, parameters, memory, and unstable runs."""
    rows = [
        [
            level,
            graph,
            row["converged_at"],
            f"{1000 * float(row['seconds_per_epoch']):.0f}",
            f"{float(row['parameters']):,.0f}",
            f"{float(row['peak_memory_mib']):,.0f}",
            row["device"].split(" ")[0],
            f"{row['unstable']} of {row['runs']}",
        ]
        for level, own in study_lines(study).items()
        for graph, row in own.items()
    ]
    measured = ("ms/epoch", "parameters", "peak MiB", "device", "unstable runs")
    words = ("converged at epoch", *measured)
    return Table(("level", "graph", *words), rows)


def ablation_counts() -> Table:
    """Of each study, how many levels are better and worse than the reference, and what was run."""
    rows, sums = [], {graph: Counter[str]() for graph in _STUDIED}
    for study, experiment in studies().items():
        own = [row for level in study_lines(study).values() for row in level.values()]
        cells = [f"`{study}`", experiment.title]
        for graph in _STUDIED:
            tested = [row for row in own if row["graph"] == graph and not row["reference"]]
            count = Counter(verdict(row) for row in tested)
            sums[graph] += count
            runs = f"{tested[0]['splits']} x {tested[0]['seeds']}"
            cells += [count_cell(count), runs]
        rows.append(cells)
    rows.append(["all", "", *(w for graph in _STUDIED for w in (count_cell(sums[graph]), ""))])
    header = [word for graph in _STUDIED for word in (graph, f"{graph}, splits x seeds")]
    return Table(("study", "what is changed", *header), rows)


def study_gaps(study: str) -> Table:
    """The score of the reference of a study, what other levels have more, and its p-value."""
    found = study_lines(study)
    graphs = sorted({graph for level in found.values() for graph in level}, key=_study_order)

    def cells(row: Mapping[str, str] | None) -> list[str]:
        if row is None:
            return ["", ""]
        if row["reference"]:
            return [f"{float(row['test']):.2f}", ""]
        return [f"{float(row['difference']):+.2f}", f"{float(row['p']):.3f}"]

    rows = [
        [level, *(c for graph in graphs for c in cells(own.get(graph)))]
        for level, own in found.items()
    ]
    return Table(("level", *(word for g in graphs for word in (g, f"{g}, p"))), rows)


def verdict(row: Mapping[str, str]) -> str:
    """Whether a level differs from the reference by Wilcoxon's test."""
    if not can_differ(row):
        return "not tested"
    if not row["p"] or float(row["p"]) >= _NOISE:
        return "the same"
    return "better" if float(row["difference"]) > 0 else "worse"


def count_cell(count: Counter[str]) -> str:
    """Numbers of levels in words."""
    words = [f"{count[word]} {word}" for word in ("better", "worse") if count[word]]
    if count["not tested"]:
        words.append(f"{count['not tested']} not tested")
    return f"{', '.join(words) or 'none'} of {count.total()}"


#: Tables of a file of ``argnn ablate``, by the first word of their names.
ABLATIONS: dict[str, Callable[[str], Table]] = {
    "ablations": ablation,
    "ablations-cost": ablation_cost,
}
#: Tables that are computed, each with the file that it comes from, if it is one file.
COMPUTED: dict[str, tuple[Callable[[], Table], str | None]] = {
    "results": (results, "learned-metric"),
    "short-results": (short_results, None),
    "on-twins": (on_twins, "learned-metric"),
    "learned-all": (lambda: learned("accuracy"), "learned-metric"),
    "learned-without-twins": (lambda: learned("without_twins"), "learned-metric"),
    "learned-tests": (learned_tests, "learned-metric"),
    "literal": (literal, "literal"),
    "links": (links, "links-cora"),
    "links-tests": (links_tests, "links-cora"),
    "web-rivals": (web_rivals, "rivals"),
    "citation-rivals": (citation_rivals, "citation-rivals"),
    "published": (published, None),
    "paper-gaps": (paper_gaps, None),
    "untuned": (untuned, "untuned"),
    "untuned-again": (untuned_again, "untuned-before"),
    "untuned-methods": (untuned_methods, "untuned"),
    "untuned-tuned": (untuned_tuned, "untuned"),
    "untuned-costs": (untuned_costs, "untuned"),
    "search-budget": (search_budget, None),
    "node-search": (lambda: best_validation("node"), None),
    "link-search": (lambda: best_validation("link"), None),
    "ranks": (ranks, None),
    "scale": (scale, None),
    "gpu-ratios": (gpu_ratios, None),
    "theory": (theory, None),
    "geometry-gaps": (lambda: study_gaps("geometry"), "ablations"),
    "penalty-gaps": (lambda: study_gaps("regularizers"), "ablations"),
    "family-gaps": (lambda: study_gaps("families"), "ablations"),
    "rate-gaps": (lambda: study_gaps("lr"), "ablations"),
    "weight-gaps": (lambda: study_gaps("theory"), "ablations"),
    "ablation-counts": (ablation_counts, "ablations"),
    "theory-count": (theory_count, None),
}
#: Tables of a file of ``argnn perf``.
PERF: dict[str, Callable[[list[Mapping[str, Any]]], Table]] = {
    "steps": lambda found: cells_of(row_table(found[0])),
    "first": lambda found: first_steps(found[0]),
    "bandwidth": lambda found: cells_of(edge_table(found[0])),
    "scaling": lambda found: cells_of(scaling_table(found)),
}


@cache
def table(name: str) -> Table:
    """A table by the name that pages give it."""
    if name in COMPUTED:
        return COMPUTED[name][0]()
    file, _, kind = name.partition(" ")
    if file in ABLATIONS:
        return ABLATIONS[file](kind)
    if kind:
        return PERF[kind](perf(file)["measurements"])
    header, *rows = csv_rows(name)
    return Table(header, rows)


def file_of(name: str) -> str | None:
    """The file that a table comes from."""
    if name in COMPUTED:
        return COMPUTED[name][1]
    file = name.split(" ")[0]
    return None if file in ABLATIONS else file


def filled_table(name: str, told: set[str]) -> str:
    """A table between its markers, and the line that says where it comes from.

    Of the files in ``told`` the page has said so above; this one is added.
    """
    file, below = file_of(name), []
    if file is not None:
        whole = source(file)
        below = ["", f"{whole.partition(':')[0]}, as above." if file in told else whole]
        told.add(file)
    lines = [f"<!-- table {name} -->", *table(name).markdown(), *below, "<!-- /table -->"]
    return "\n".join(lines)


def filled_number(found: re.Match[str]) -> str:
    """A number in a sentence, as its table has it."""
    text, interval, key = found.groups()
    name, row, column = key.removeprefix("minus ").split(": ")
    cell = table(name).cell(row, column)
    if interval:
        return f"{cell}<!-- {key} -->"
    value = Decimal(cell.split(" ")[0].rstrip("%").replace(",", ""))
    value = -value if key.startswith("minus ") else value
    if value < 0 and text[0] not in "+-":
        raise ValueError(f"{key} is {value}, but the sentence has {text}")
    unit = Decimal(1).scaleb(-len(text.partition(".")[2]))
    rounded = value.quantize(unit)
    if abs(value - rounded) * 2 == unit:
        raise ValueError(f"{key} is {value}: {text} has too few digits to round it once only")
    new = f"{rounded:{'+' if text[0] == '+' else ''},}"
    return f"{new}<!-- {key} -->"


def written(page: str) -> str:
    """A page with its tables and numbers made anew."""
    told: set[str] = set()
    return NUMBER.sub(filled_number, TABLE.sub(lambda found: filled_table(found[1], told), page))


def main() -> int:
    """Store, write or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", nargs="+", type=Path, default=[], help="results files to keep")
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--studies", nargs="+", type=Path, default=[], help="of argnn ablate")
    asked = parser.parse_args()
    for path in asked.store:
        print(store(path))
    if asked.studies:
        print(store_studies(asked.studies))
    differing = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if written(text) != text:
            differing.append(page.name)
            if not asked.check:
                page.write_text(written(text), encoding="utf-8")
    print(f"{'differing' if asked.check else 'written'}: {', '.join(differing) or 'none'}")
    return int(asked.check and bool(differing))


if __name__ == "__main__":
    sys.exit(main())
