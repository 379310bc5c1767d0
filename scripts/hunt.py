"""Hunt for tests that pass by luck: other instruction sets, threads, seeds and orders.

Each run is pytest in a process of its own, on one path, with an empty cache, in random order:

    python scripts/hunt.py --jobs 14 --out hunt.jsonl
    python scripts/hunt.py --jobs 14 --out hunt.jsonl --seeds 1-19 --paths draws --threads 1
    python scripts/hunt.py --table hunt.jsonl more.jsonl

The first runs every test once for each instruction set and number of threads. The second draws
other weights and inputs, on the paths that draw any (``draws``): 0 are the seeds of ``make test``,
any other number changes all of them. A finished run is one line of the file; runs that the file
already has are left out, so a hunt that was killed goes on when it is called again.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

Row = dict[str, Any]
REPOSITORY = Path(__file__).resolve().parents[1]

#: Where weights or inputs are drawn with torch.
DRAWS = (
    "tests/train",
    "tests/kernels",
    "tests/nn",
    "tests/functional",
    "tests/estimators",
    "tests/analysis",
    "tests/runs",
    "tests/bench",
    "tests/settings",
    "tests/store",
    "tests/test_models_registry.py",
)
_FOLDERS = sorted({path.parent.name for path in REPOSITORY.glob("tests/*/test_*.py")})
EVERYTHING = (*(f"tests/{name}" for name in _FOLDERS), "tests/test_*.py", "src")

#: What limits torch, MKL, oneDNN and the OpenBLAS of numpy to old processors.
_OLD = {
    "ATEN_CPU_CAPABILITY": "default",
    "MKL_ENABLE_INSTRUCTIONS": "SSE4_2",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem",
}
_AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
_GENERIC = {"NUMBA_CPU_NAME": "generic"}
SETS: dict[str, dict[str, str]] = {
    "default": _OLD,
    "default+generic": _OLD | _GENERIC,
    "avx2": _AVX2,
    "avx2+generic": _AVX2 | _GENERIC,
    "native": {},
    "native+generic": _GENERIC,
}
_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
_COUNT = re.compile(r"(\d+) (passed|failed|errors?|skipped)")


@dataclass(frozen=True)
class Unit:
    """One call of pytest."""

    set: str
    threads: int
    seed: int
    path: str


def run_unit(unit: Unit) -> Row:
    """Call pytest once and read what it says."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="argnn-hunt-") as folder:
        variables = {
            **os.environ,
            **SETS[unit.set],
            **dict.fromkeys(_THREADS, str(unit.threads)),
            "ARGNN_TEST_SEED": str(unit.seed),
            "ARGNN_TEST_ORDER": str(unit.seed),
            "ARGNN_CACHE": f"{folder}/cache",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",  # its code fits one instruction set
            "PYTHONPATH": str(REPOSITORY / "src"),
        }
        paths = sorted(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob(unit.path))
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=1"]
            + [f"--basetemp={folder}/tests", *paths],
            cwd=REPOSITORY,
            env=variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            check=False,
        )
    lines = done.stdout.splitlines()
    failed = [
        line.split(" ", 1)[1].split(" - ")[0]
        for line in lines
        if line.startswith(("FAILED ", "ERROR "))
    ]
    if done.returncode not in (0, 1):
        failed.append(f"{unit.path}: pytest ended with code {done.returncode}")
    counts = {kind.rstrip("s"): int(n) for n, kind in _COUNT.findall(lines[-1] if lines else "")}
    return {
        **asdict(unit),
        "passed": counts.get("passed", 0),
        "skipped": counts.get("skipped", 0),
        "failed": failed,
        "seconds": round(time.perf_counter() - began),
        "output": done.stdout[-20_000:] if failed else "",
    }


def table(rows: Iterable[Row]) -> Iterator[str]:
    """Instruction set x threads x seeds in Markdown, and every failing test with its runs."""
    yield "| instruction set | threads | seeds | passed | skipped | failed |"
    yield "|---|---|---|---|---|---|"
    order = list(SETS)

    def case(row: Row) -> tuple[int, int]:
        return order.index(row["set"]), row["threads"]

    rows = sorted(rows, key=case)
    for (place, threads), group in itertools.groupby(rows, case):
        found = list(group)
        passed, skipped = (sum(row[kind] for row in found) for kind in ("passed", "skipped"))
        failed = sum(len(row["failed"]) for row in found)
        seeds = ranges({row["seed"] for row in found})
        yield f"| {order[place]} | {threads} | {seeds} | {passed:,} | {skipped:,} | {failed} |"
    names = sorted({name for row in rows for name in row["failed"]})
    for name in names:
        runs = [
            f"{row['set']} {row['threads']} {row['seed']}" for row in rows if name in row["failed"]
        ]
        yield f"- `{name}` ({len(runs)}: {', '.join(runs[:6])}{', ...' if len(runs) > 6 else ''})"


def ranges(numbers: Iterable[int]) -> str:
    """0, 2-4 for 0, 2, 3, 4."""
    groups = itertools.groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0])
    spans = [[number for _, number in group] for _, group in groups]
    return ", ".join(str(s[0]) if len(s) == 1 else f"{s[0]}-{s[-1]}" for s in spans)


def seed_list(text: str) -> list[int]:
    """Numbers of ``0-9`` or ``0,3,5-7``."""
    found: list[int] = []
    for part in text.split(","):
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return found


def read_rows(paths: Sequence[Path]) -> list[Row]:
    """Lines of several files; a line that was cut off by a kill is left out."""
    rows = []
    for line in (line for path in paths if path.exists() for line in path.read_text().splitlines()):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def hunt(units: Sequence[Unit], jobs: int, out: Path) -> None:
    """Run all units, several at once, and write a line for each as soon as it is done."""
    with ThreadPoolExecutor(jobs) as pool, out.open("a") as file:
        waiting = [pool.submit(run_unit, unit) for unit in units]
        for number, future in enumerate(as_completed(waiting), 1):
            row = future.result()
            file.write(json.dumps(row) + "\n")
            file.flush()
            said = f"{len(row['failed'])} FAILED" if row["failed"] else "ok"
            print(
                f"{number}/{len(units)} {row['set']}, {row['threads']} threads, "
                f"seed {row['seed']}, {row['path']}: {said}, {row['passed']} passed, "
                f"{row['seconds']} s",
                flush=True,
            )
            for name in row["failed"]:
                print(f"    {name}", flush=True)


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--paths", nargs="+", default=["all"], help="all, draws, or test paths")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--seeds", type=seed_list, default=[0], help="such as 0-9 or 0,3,5-7")
    parser.add_argument("--jobs", type=int, default=1, help="calls of pytest at once")
    parser.add_argument("--out", type=Path, default=Path("hunt.jsonl"))
    parser.add_argument("--table", nargs="+", type=Path, help="only print the table of these files")
    return parser.parse_args()


def main() -> int:
    """Hunt, print the table, and return 1 where a test failed."""
    options = parsed()
    if not options.table:
        named = {"all": EVERYTHING, "draws": DRAWS}
        paths = [path for name in options.paths for path in named.get(name, (name,))]
        done = {
            tuple(row[name] for name in Unit.__annotations__) for row in read_rows([options.out])
        }
        choices = itertools.product(paths, options.seeds, options.sets, options.threads)
        units = [Unit(s, threads, seed, path) for path, seed, s, threads in choices]
        hunt([u for u in units if tuple(asdict(u).values()) not in done], options.jobs, options.out)
    rows = read_rows(options.table or [options.out])
    print("\n".join(table(rows)))
    return int(any(row["failed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
