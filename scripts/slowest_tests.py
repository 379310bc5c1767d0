"""List the slowest tests, from the times that `make test` leaves in build/tests.xml.

`make slowest` writes all test functions of 0.3 seconds or more to tests/slowest.txt, which
`make quick` leaves out, and the slowest of them to the table of CONTRIBUTING.md.
"""

import argparse
import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIST, PAGE = ROOT / "tests" / "slowest.txt", ROOT / "CONTRIBUTING.md"
BEGIN, END = "<!-- table of scripts/slowest_tests.py -->", "<!-- /table -->"
LEAST_SECONDS, SHOWN = 0.3, 25


def main() -> int:
    """Returns 1 where the file does not hold a whole run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("junit", type=Path, nargs="?", default=ROOT / "build" / "tests.xml")
    rows = slowest(parser.parse_args().junit)
    if not rows:
        print("no test of 0.3 seconds or more: not the times of a whole `make test`")
        return 1
    lines = [f"{seconds:.1f} {name}\n" for name, seconds in rows]
    LIST.write_text("".join(lines), encoding="utf-8")
    table = "\n".join(f"| {seconds:.1f} | `{name}` |" for name, seconds in rows[:SHOWN])
    new = f"{BEGIN}\n| seconds | test |\n|---:|---|\n{table}\n{END}"
    page = PAGE.read_text(encoding="utf-8")
    block = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    PAGE.write_text(block.sub(lambda _: new, page), encoding="utf-8")
    print(f"{len(rows)} test functions of {LEAST_SECONDS} seconds or more")
    return 0


def slowest(junit: Path) -> list[tuple[str, float]]:
    """Test functions and the seconds of their slowest case, slowest first."""
    found: dict[str, float] = {}
    for case in ElementTree.parse(junit).iter("testcase"):
        name = test_name(case.get("classname", ""), case.get("name", ""))
        seconds = float(case.get("time", "0"))
        if name is not None and seconds >= LEAST_SECONDS:
            found[name] = max(seconds, found.get(name, 0.0))
    return sorted(found.items(), key=lambda row: (-row[1], row[0]))


def test_name(classname: str, name: str) -> str | None:
    """``tests/cli/test_bench.py::TestA::test_b`` of ``tests.cli.test_bench.TestA`` and its name."""
    parts, function = classname.split("."), name.split("[")[0]
    for length in range(len(parts), 0, -1):
        path = Path(*parts[:length]).with_suffix(".py")
        if (ROOT / path).is_file():
            return "::".join([path.as_posix(), *parts[length:], function])
    return None  # of a test that is gone


if __name__ == "__main__":
    sys.exit(main())
