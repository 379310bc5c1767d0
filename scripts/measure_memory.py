"""Processor time of training steps by what becomes of the memory that they free.

Writes ``docs/results/kept-memory.csv``: steps of ``default`` and of our ``gcn`` at 120,000 nodes
and 1.2 million edges, as ``argnn perf`` takes them, with blocks of up to 32 MiB kept, with huge
pages besides, and with all blocks kept.
"""

import csv
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from statistics import median

from argnn.version import __version__

OUT = Path(__file__).resolve().parents[1] / "docs" / "results" / "kept-memory.csv"
ROWS, STEPS = ("default", "gcn-best"), 4
#: Each way: the environment, and whether all blocks are kept.
WAYS: dict[str, tuple[dict[str, str], bool]] = {
    "blocks up to 32 MiB kept": ({}, False),
    "blocks up to 32 MiB kept, huge pages": ({"THP_MEM_ALLOC_ENABLE": "1"}, False),
    "all blocks kept": ({}, True),
}


def main() -> None:
    """Measure each way and row in a process of its own: one row would reuse what another left."""
    if len(sys.argv) == 3:
        print(*times(sys.argv[1], keep_all=sys.argv[2] == "all"))
        return
    found = []
    for way, (changes, keep_all) in WAYS.items():
        found.append([way])
        for row in ROWS:
            words = [sys.executable, __file__, row, "all" if keep_all else "some"]
            done = subprocess.run(
                words, env={**os.environ, **changes}, capture_output=True, text=True, check=True
            )
            found[-1] += done.stdout.split()
    header = [f"{row}, ms{part}" for row in ("default", "gcn") for part in ("", " of the system")]
    with OUT.open("w", newline="", encoding="utf-8") as file:
        file.write("# command: python scripts/measure_memory.py\n")
        file.write(f"# note: milliseconds of the processor, medians of {STEPS} steps\n")
        file.write(f"# machine: {os.cpu_count()} CPU cores\n")
        file.write(f"# versions: argnn {__version__}\n# date: {date.today()}\n")
        csv.writer(file, lineterminator="\n").writerows([["setting", *header], *found])


def times(name: str, *, keep_all: bool) -> list[int]:
    """Milliseconds of a step of a row: all, and those that the system took."""
    from argnn.bench.perf.config import PerfConfig
    from argnn.bench.perf.graphs import workload
    from argnn.bench.perf.rows import PerfRow
    from argnn.runs.machine import core_count, step_memory_kept, using_threads

    options = {"channels": 128, "layers": 3, "input_channels": 128, "graph": "random"}
    counts = {"repeats": STEPS, "budget": 60.0, "threads": core_count(), "seed": 0}
    switches = {"penalties": False, "memory": False, "scaling": False, "dropout": 0.0}
    kind = {"models": ROWS, "device": "cpu", "dtype": "float32"}
    config = PerfConfig(nodes=120_000, edges=1_200_000, **options, **counts, **switches, **kind)
    with using_threads(config.threads), step_memory_kept() as step_done:
        row = PerfRow(name, config, workload(config))
        row.step()
        if keep_all:
            step_done()
        row.step()
        taken = [_milliseconds(row) for _ in range(STEPS)]
    return [round(median(part)) for part in zip(*taken, strict=True)]


def _milliseconds(row: object) -> tuple[float, float]:
    before = getrusage(RUSAGE_SELF)
    row.step()  # type: ignore[attr-defined]
    after = getrusage(RUSAGE_SELF)
    system = after.ru_stime - before.ru_stime
    return 1000 * (after.ru_utime - before.ru_utime + system), 1000 * system


if __name__ == "__main__":
    main()
