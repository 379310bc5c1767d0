"""The measurements behind the performance page say how they were made, and are shown."""

import copy
import json
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MEASUREMENTS = sorted((ROOT / "docs" / "results").glob("*.json"))


def test_sparse_gcn_has_a_column_where_it_was_measured():
    steps = runpy.run_path(str(ROOT / "scripts" / "write_pages.py"))["steps"]
    result = json.loads((ROOT / "docs" / "results" / "cpu-cora.json").read_text())
    without = steps(result)
    changed = copy.deepcopy(result)
    for row in changed["measurements"][0]["rows"]:
        row["step_vs_sparse_gcn"] = 7.5
    changed["measurements"][0]["rows"][0] = {"label": "one", "error": "failed"}
    with_it = steps(changed)
    assert set(with_it.header) - set(without.header) == {"x sparse GCN"}
    assert {len(row) for row in with_it.rows} == {len(without.header) + 1}
    assert with_it.cell("one", "step ms") == "failed"
    assert with_it.cell("PyG GCN", "x sparse GCN") == "7.5"


@pytest.mark.parametrize("path", MEASUREMENTS, ids=lambda path: path.stem)
def test_measurements_say_how_they_were_made_and_stand_on_the_page(path):
    result = json.loads(path.read_text())
    for name in ("config", "seed", "versions", "git_commit", "device", "threads", "started"):
        assert name in result
    assert f"<!-- table {path.stem} " in (ROOT / "docs" / "performance.md").read_text()
