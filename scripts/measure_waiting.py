"""How long a fit takes while other programs keep all cores busy, by how its threads wait.

Writes ``docs/results/busy-threads.csv``: OpenMP's own policy, torch imported before argnn, and
argnn imported first.
"""

import csv
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

from argnn.version import __version__

OUT = Path(__file__).resolve().parents[1] / "docs" / "results" / "busy-threads.csv"
EPOCHS = 60
FIT = f"""
import time, argnn
graph = argnn.data.mixed()
began = time.perf_counter()
argnn.ARGNNClassifier("argnn", epochs={EPOCHS}, trial=False).fit(graph)
print(time.perf_counter() - began)
"""
WAYS = {
    "spinning": "import torch, argnn.waiting as w; w._TORCH_WAS_FIRST = False" + FIT,
    "torch first": "import torch" + FIT,
    "argnn first": FIT,
}


def main() -> None:
    """Measure each way beside as many busy programs as there are cores."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OMP_")}
    cores = os.cpu_count() or 1
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(cores)]
    try:
        rows = [[way, f"{seconds(code, clean):.0f}"] for way, code in WAYS.items()]
    finally:
        for program in busy:
            program.kill()
    with OUT.open("w", newline="", encoding="utf-8") as file:
        file.write("# command: python scripts/measure_waiting.py\n")
        file.write(
            f"# note: {EPOCHS} epochs of ARGNNClassifier on mixed beside {cores} busy programs\n"
        )
        file.write(f"# machine: {cores} CPU cores, which other work used, too\n")
        file.write(f"# versions: argnn {__version__}\n# date: {date.today()}\n")
        table = csv.writer(file, lineterminator="\n")
        table.writerows([["waiting", "seconds"], *rows])


def seconds(code: str, environment: dict[str, str]) -> float:
    """Run a fit in a new process."""
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


if __name__ == "__main__":
    main()
