"""What a command imports: those that only list something answer without torch."""

import subprocess
import sys

import pytest

HEAVY = ["matplotlib", "numba", "optuna", "pandas", "scipy", "sklearn", "torch", "torch_geometric"]
CODE = f"""
import sys
from argnn.cli import main
try:
    main(sys.argv[1:])
except SystemExit as stopped:
    assert stopped.code in (0, None), stopped.code
print("imported:", *[name for name in {HEAVY} if name in sys.modules])
"""


@pytest.mark.parametrize(
    "words",
    [
        *("", "--help", "--version", "train --help", "models", "datasets"),
        *("complete train x --model ", "complete train x --set tr", "complete bench "),
    ],
)
def test_listing_imports_no_heavy_package(words, monkeypatch):
    if words.startswith("complete"):
        line = words.replace("complete", "argnn")
        monkeypatch.setenv("_ARGNN_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        words = ""
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words.split()], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "imported:"
