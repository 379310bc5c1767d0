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

from argnn.tables import markdown_table

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "performance.md"
_BLOCK = re.compile(r"<!-- perf ([\w-]+) (\w+) -->\n.*?<!-- /perf -->", re.DOTALL)


def steps(result: dict[str, Any]) -> list[str]:
    """One line per model of one graph."""
    measurement = result["measurements"][0]
    # Older measurements have no GCN with sparse products.
    sparse = any(row.get("step_vs_sparse_gcn") for row in measurement["rows"])
    header = ["model", "forward ms", "step ms", "10 to 90 %", "x GCN"]
    header += ["x sparse GCN"] * sparse + ["x faster than plain", "extra peak MiB", "x GCN"]
    rows = []
    for row in measurement["rows"]:
        if row.get("error"):
            failed = "out of memory" if row.get("out_of_memory") else "failed"
            rows.append([row["label"], "", failed, *[""] * (len(header) - 3)])
            continue
        step, memory = row["step"], row["memory"]
        numbers = [row["step_vs_gcn"], *([row.get("step_vs_sparse_gcn")] * sparse)]
        numbers += [row["speedup_over_plain"], memory and memory["extra_peak_mib"]]
        rows.append(
            [
                row["label"],
                _number(row["forward"]["median_ms"]),
                _number(step["median_ms"]),
                f"{_number(step['q10_ms'])} to {_number(step['q90_ms'])}",
                *map(_number, (*numbers, row["memory_vs_gcn"])),
            ]
        )
    return markdown_table(header, rows)


def bandwidth(result: dict[str, Any]) -> list[str]:
    """One line per edge sum of one graph."""
    measurement = result["measurements"][0]
    copy = {"name": "copy", "share_of_copy": 1.0, **measurement["copy"]}
    rows = [
        (
            part["name"],
            _number(part["median_ms"]),
            _number(part["bytes"] / 1e6),
            _number(part["gb_per_s"]),
            _number(100 * part["share_of_copy"]),
        )
        for part in (copy, *measurement["edge_part"]["parts"])
    ]
    return markdown_table(("edge part of one layer", "ms", "MB", "GB/s", "% of copy"), rows)


def scaling(result: dict[str, Any]) -> list[str]:
    """One line per graph of several."""
    header = ["graph", "nodes", "edges", "largest degree"]
    for row in result["measurements"][0]["rows"]:
        header += [f"{row['label']} ms", "ns per edge"]
    rows = []
    for measurement in result["measurements"]:
        graph = measurement["graph"]
        cells = [graph["kind"], *(f"{graph[name]:,}" for name in ("nodes", "edges", "max_degree"))]
        for row in measurement["rows"]:
            cells += [_number(row["step"]["median_ms"]), _number(row["ns_per_edge"])]
        rows.append(cells)
    return markdown_table(header, rows)


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
