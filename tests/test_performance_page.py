"""The figures of the performance page are those of the stored measurements."""

import json
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "docs" / "perf").glob("*.json"))


def test_tables_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "perf_tables.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "run scripts/perf_tables.py"


def test_sparse_gcn_has_a_column_where_it_was_measured():
    spec = spec_from_file_location("perf_tables", ROOT / "scripts" / "perf_tables.py")
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    result = json.loads((ROOT / "docs" / "perf" / "cpu-cora.json").read_text())
    without = script.steps(result)
    for row in result["measurements"][0]["rows"]:
        row["step_vs_sparse_gcn"] = 7.5
    result["measurements"][0]["rows"][0] = {"label": "one", "error": "failed"}
    with_it = script.steps(result)
    assert "x sparse GCN" in with_it[0]
    assert "x sparse GCN" not in without[0]
    assert {line.count("|") for line in with_it} == {without[0].count("|") + 1}
    assert all("| 7.5 |" in line for line in with_it[3:])


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_measurements_say_how_they_were_made_and_stand_on_the_page(path):
    result = json.loads(path.read_text())
    for name in ("config", "seed", "versions", "git_commit", "device", "threads", "started"):
        assert name in result
    assert f"<!-- perf {path.stem} " in (ROOT / "docs" / "performance.md").read_text()
