"""What the README shows is run, and what it claims is there."""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_example_runs_and_prints_what_its_comments_say(tmp_path):
    [example] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore:`torch.jit.script`", "-c", example],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        # Threads that wait for a busy core make small graphs many times slower.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    scores = [float(line) for line in done.stdout.splitlines()]
    # Seventeen nodes of two classes; features made from the edges tell most of them.
    assert len(scores) == 2
    assert min(scores) > 0.8


def test_commands_and_files_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / target).exists(), target
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()


def test_readme_fits_one_screen():
    assert len(README.splitlines()) <= 90
