"""The list of slow tests, which ``make quick`` leaves out, names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ROWS = [
    line.split(maxsplit=1) for line in (ROOT / "tests" / "slowest.txt").read_text().splitlines()
]


def test_listed_tests_exist():
    assert ROWS, "run make slowest"
    for _, name in ROWS:
        path, *_, function = name.split("::")
        text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        known = f"def {function}(" in text or path.startswith("src/")
        assert known, f"{name} is gone: run make slowest"


def test_slowest_are_on_the_page_for_contributors():
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = re.findall(r"^\| ([\d.]+) \| `([^`]+)` \|$", page, flags=re.MULTILINE)
    assert [list(row) for row in shown] == ROWS[:25]
