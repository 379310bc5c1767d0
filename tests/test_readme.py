"""What the README shows is run, and what it claims is there."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_python_example_runs_and_prints_what_its_comments_say():
    [example] = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-c", example], capture_output=True, text=True, check=True, timeout=300
    )
    first, second = done.stdout.strip().splitlines()
    epoch, accuracy = first.split()
    assert 1 <= int(epoch) <= 60
    assert float(accuracy) > 0.4  # four classes, and features alone reach a quarter
    assert second == "torch.Size([1648, 64])"


def test_commands_and_files_of_the_readme_exist():
    for target in re.findall(r"\]\(([^)h][^)]*)\)", README):
        assert (ROOT / target).exists(), target
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()


def test_readme_fits_one_screen():
    assert len(README.splitlines()) <= 90
