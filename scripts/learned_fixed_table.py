"""Write the table of docs/what_holds.md from the record of the settings search.

python scripts/learned_fixed_table.py [--check]
"""

import argparse
import json
import re
import sys
from pathlib import Path

from argnn.data import DATASETS

DOCS = Path(__file__).resolve().parents[1] / "docs"
RECORD, PAGE = DOCS / "settings_search.jsonl", DOCS / "what_holds.md"
MARKED = re.compile(r"(<!-- learned-fixed -->\n).*?(<!-- /learned-fixed -->)", re.DOTALL)


def table() -> str:
    """One row per graph: the best candidates of both kinds, among those with the most seeds."""
    tried: dict[tuple[str, str], list[tuple[int, bool, float]]] = {}
    for line in RECORD.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        is_fixed = row["candidate"].get("metric") == "fixed"
        entry = (row["seeds"], is_fixed, 100 * row["val_accuracy"])
        tried.setdefault((row["data"], row["edges"]), []).append(entry)
    rows = ["| graph | seeds | learned | fixed | difference |", "|---|---|---|---|---|"]
    for (data, edges), entries in sorted(tried.items()):
        seeds = max(seeds for seeds, _, _ in entries)
        learned, fixed = (
            max((v for s, kind, v in entries if s == seeds and kind is wanted), default=None)
            for wanted in (False, True)
        )
        if learned is None or fixed is None:
            continue
        name = DATASETS[data].title + (", directed" if edges == "directed" else "")
        rows.append(f"| {name} | {seeds} | {learned:.2f} | {fixed:.2f} | {learned - fixed:+.2f} |")
    return "\n".join(rows) + "\n"


def main() -> None:
    """Write the table, or say whether it is up to date."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail if it is old")
    check = parser.parse_args().check
    page = PAGE.read_text(encoding="utf-8")
    written = MARKED.sub(lambda found: found[1] + table() + found[2], page)
    if check:
        sys.exit(written != page)
    PAGE.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main()
