"""The tables of README and docs are those of the stored runs."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_tables_are_those_of_the_stored_runs():
    command = [sys.executable, "scripts/result_tables.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout == "old: none\n", done.stderr
    assert done.returncode == 0


def test_every_stored_file_is_shown():
    names = {path.stem for path in (ROOT / "docs" / "results").glob("*.csv")}
    script = (ROOT / "scripts" / "result_tables.py").read_text(encoding="utf-8")
    assert names == {name for name in names if f'"{name}"' in script}
    assert names >= {"learned-metric", "rivals"}
