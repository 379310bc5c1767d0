"""The figures of the performance page are those of the stored measurements."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "docs" / "perf").glob("*.json"))


def test_tables_are_up_to_date():
    command = [sys.executable, str(ROOT / "scripts" / "perf_tables.py"), "--check"]
    assert subprocess.run(command, check=False).returncode == 0, "run scripts/perf_tables.py"


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_measurements_say_how_they_were_made_and_stand_on_the_page(path):
    result = json.loads(path.read_text())
    for name in ("config", "seed", "versions", "git_commit", "device", "threads", "started"):
        assert name in result
    assert f"<!-- perf {path.stem} " in (ROOT / "docs" / "performance.md").read_text()
