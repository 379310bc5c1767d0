"""The measurements behind the performance page say how they were made, and are shown."""

import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MEASUREMENTS = sorted((ROOT / "docs" / "results").glob("*.json"))


def test_table_has_the_columns_that_were_measured():
    table = runpy.run_path(str(ROOT / "scripts" / "write_pages.py"))["table"]
    older, newer = table("h200-1m steps"), table("h200-1m-sparse steps")
    assert set(newer.header) - set(older.header) == {"step x best GCN"}
    assert {len(row) for row in newer.rows} == {len(newer.header)}
    assert newer.cell("argnn paper, plain", "step ms [10 %, 90 %]") == "out of memory"
    assert newer.cell("argnn gcn, sparse", "step x best GCN") == "1.00"


@pytest.mark.parametrize("path", MEASUREMENTS, ids=lambda path: path.stem)
def test_measurements_say_how_they_were_made_and_stand_on_the_page(path):
    result = json.loads(path.read_text())
    for name in ("config", "seed", "versions", "git_commit", "device", "threads", "started"):
        assert name in result
    assert f"<!-- table {path.stem} " in (ROOT / "docs" / "performance.md").read_text()
