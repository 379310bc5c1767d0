"""Write the tables of docs/performance.md from the measurements in docs/perf.

Run it after `argnn perf ... --json docs/perf/NAME.json --force`; `--check` only says whether the
page is up to date.
"""

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
_BLOCK = re.compile(r"<!-- perf ([\w-]+) (\w+) -->\n.*?<!-- /perf -->", re.DOTALL)


def steps(result: dict[str, Any]) -> list[str]:
    """One line per model of one graph."""
    measurement = result["measurements"][0]
    # Older measurements have no GCN with sparse products.
    sparse = any(row.get("step_vs_sparse_gcn") for row in measurement["rows"])
    lines = [
        f"| model | forward ms | step ms | 10 to 90 % | x GCN {'| x sparse GCN ' * sparse}"
        "| x faster than plain | extra peak MiB | x GCN |",
        "|---|---|---|---|---|---|---|---|" + "---|" * sparse,
    ]
    for row in measurement["rows"]:
        if row.get("error"):
            failed = "out of memory" if row.get("out_of_memory") else "failed"
            lines.append(f"| {row['label']} | | {failed} | | | | | |" + " |" * sparse)
            continue
        step, memory = row["step"], row["memory"]
        beside = f"| {_number(row.get('step_vs_sparse_gcn'))} " if sparse else ""
        lines.append(
            f"| {row['label']} | {_number(row['forward']['median_ms'])} "
            f"| {_number(step['median_ms'])} | {_number(step['q10_ms'])} to "
            f"{_number(step['q90_ms'])} | {_number(row['step_vs_gcn'])} "
            f"{beside}| {_number(row['speedup_over_plain'])} "
            f"| {_number(None if memory is None else memory['extra_peak_mib'])} "
            f"| {_number(row['memory_vs_gcn'])} |"
        )
    return lines


def bandwidth(result: dict[str, Any]) -> list[str]:
    """One line per edge sum of one graph."""
    measurement = result["measurements"][0]
    lines = ["| edge part of one layer | ms | MB | GB/s | % of copy |", "|---|---|---|---|---|"]
    copy = measurement["copy"]
    parts = [{"name": "copy", "share_of_copy": 1.0, **copy}, *measurement["edge_part"]["parts"]]
    return lines + [
        f"| {part['name']} | {_number(part['median_ms'])} | {_number(part['bytes'] / 1e6)} "
        f"| {_number(part['gb_per_s'])} | {_number(100 * part['share_of_copy'])} |"
        for part in parts
    ]


def scaling(result: dict[str, Any]) -> list[str]:
    """One line per graph of several."""
    names = [row["label"] for row in result["measurements"][0]["rows"]]
    head = " | ".join(f"{name} ms | ns per edge" for name in names)
    lines = [
        f"| graph | nodes | edges | largest degree | {head} |",
        "|---" * (4 + 2 * len(names)) + "|",
    ]
    for measurement in result["measurements"]:
        graph = measurement["graph"]
        cells = " | ".join(
            f"{_number(row['step']['median_ms'])} | {_number(row['ns_per_edge'])}"
            for row in measurement["rows"]
        )
        lines.append(
            f"| {graph['kind']} | {graph['nodes']:,} | {graph['edges']:,} "
            f"| {graph['max_degree']:,} | {cells} |"
        )
    return lines


TABLES = {"steps": steps, "bandwidth": bandwidth, "scaling": scaling}


def _number(value: float | None) -> str:
    """Three significant digits."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def filled(page: str) -> str:
    """The page with every block between markers written anew."""

    def block(match: re.Match[str]) -> str:
        name, table = match.groups()
        result = json.loads((DOCS / "perf" / f"{name}.json").read_text())
        lines = "\n".join(TABLES[table](result))
        return f"<!-- perf {name} {table} -->\n{lines}\n<!-- /perf -->"

    return _BLOCK.sub(block, page)


def main() -> int:
    """Fill the page, or compare it with what it should be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing")
    arguments = parser.parse_args()
    page = PAGE.read_text()
    new = filled(page)
    if arguments.check:
        return int(page != new)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
