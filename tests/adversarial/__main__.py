"""Try all attacks and print a table: ``python -m tests.adversarial``.

``ARGNN_TEST_SEED`` chooses the random numbers; the same seed and count try the same cases, but a
kill hits a command where the machine has brought it by then.
"""

import argparse
import json
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

SEED = int(os.environ.get("ARGNN_TEST_SEED", "0"))
GOOD = ("refused", "same")
BEGIN, END = "<!-- table of python -m tests.adversarial -->", "<!-- end of the table -->"


def attack(name: str, world: object, count: int | None, out: Path) -> None:
    """Try the cases of one attack, and write how they ended, a line for each."""
    from .attacks import ATTACKS

    function, usual = ATTACKS[name]
    rng = random.Random(f"{SEED} {name}")
    with out.open("w", buffering=1) as file:
        case = None
        for case, end in function(world, rng, min(usual, count or usual)):
            file.write(json.dumps([name, case, end]) + "\n")
            if end not in GOOD:
                print(f"FAILED {name}: {case[:300]}: {end[:500]}", flush=True)  # noqa: T201
    if case is None:
        print(f"{name}: nothing was tried, as only root can", flush=True)  # noqa: T201


def attack_all(names: Iterable[str], count: int | None, jobs: int, root: Path) -> list[list[str]]:
    """All attacks, some at the same time; returns how each case ended."""
    from .imports import import_all
    from .process import adopt_orphans
    from .world import QUICK, World

    import_all()
    adopt_orphans()
    world, waiting, running, failed = World(root, count or len(QUICK)), list(names), set(), False
    outs = {name: root / f"{name}.jsonl" for name in waiting}
    while waiting or running:
        if waiting and len(running) < jobs:
            name = waiting.pop(0)
            sys.stdout.flush()
            pid = os.fork()
            if not pid:
                code = 1
                try:
                    adopt_orphans()
                    attack(name, world, count, outs[name])
                    code = 0
                except BaseException:
                    traceback.print_exc()
                finally:
                    sys.stdout.flush()
                    sys.stderr.flush()
                    os._exit(code)
            running.add(pid)
        else:
            pid, status = os.wait()
            running.discard(pid)
            failed |= bool(status)
    if failed:
        raise SystemExit("an attack broke off; see above")
    return [json.loads(line) for out in outs.values() for line in out.read_text().splitlines()]


def table(rows: Iterable[list[str]]) -> str:
    """How many cases of each attack were tried, and how they ended."""
    counts: dict[str, Counter[str]] = {}
    for name, _, end in rows:
        found = counts.setdefault(name, Counter())
        found.update(["tried", end if end in GOOD else "FAILED"])
    columns = ("tried", "refused", "same", "FAILED")
    lines = [f"| attack | {' | '.join(columns)} |", f"|---{'|---:' * len(columns)}|"]
    for name, found in counts.items():
        lines.append(f"| {name} | {' | '.join(f'{found[column]:,}' for column in columns)} |")
    return "\n".join(lines)


def main() -> int:
    """Returns 1 where a case failed."""
    from .attacks import ATTACKS
    from .process import ONE_THREAD

    parser = argparse.ArgumentParser(prog="python -m tests.adversarial", description=__doc__)
    parser.add_argument("attacks", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    parser.add_argument("--count", type=int, help="most cases of each attack; all if not given")
    parser.add_argument("--jobs", type=int, default=2, help="attacks at the same time")
    parser.add_argument("--write", type=Path, help="page whose table is replaced")
    options = parser.parse_args()
    if unknown := set(options.attacks) - set(ATTACKS):
        parser.error(f"no attack {sorted(unknown)[0]!r}; choose from: {', '.join(ATTACKS)}")
    os.environ.update(ONE_THREAD)
    # A TemporaryDirectory would be removed by every forked process that ends.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="argnn-torture-"))
    try:
        chosen = options.attacks or list(ATTACKS)
        rows = attack_all(chosen, options.count, options.jobs, folder)
    finally:
        shutil.rmtree(folder)
    text = table(rows)
    print(text)  # noqa: T201
    if options.write is not None:
        page = options.write.read_text(encoding="utf-8")
        much = "all cases" if options.count is None else f"at most {options.count} cases of each"
        block = re.compile(f"{BEGIN}.*{END}", re.DOTALL)
        new = f"{BEGIN}\n{text}\n\nSeed {SEED}, {much}.\n{END}"
        options.write.write_text(block.sub(lambda _: new, page), encoding="utf-8")
    return int(any(end not in GOOD for *_, end in rows))


if __name__ == "__main__":
    sys.exit(main())
