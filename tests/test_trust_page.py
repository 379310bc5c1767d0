"""Every test that docs/trust.md or docs/security.md names exists: no promise loses its test."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "trust.md"
_NAMED = re.compile(r"`(tests/[\w/]+\.py)?(?:::(test_\w+))?`")


def rows_with_tests(page: Path) -> list[str]:
    return [row for row in page.read_text(encoding="utf-8").splitlines() if "`tests/" in row]


ROWS = rows_with_tests(PAGE)


@pytest.mark.parametrize("row", ROWS + rows_with_tests(ROOT / "docs" / "security.md"))
def test_named_tests_exist(row):
    file, found = None, 0
    for path, name in _NAMED.findall(row):
        file = path or file
        assert file is not None
        text = (ROOT / file).read_text(encoding="utf-8")
        assert name == "" or f"def {name}(" in text, f"{file} has no {name}"
        found += 1
    assert found


def test_every_promise_names_a_test():
    rows = [row for row in PAGE.read_text(encoding="utf-8").splitlines() if row.startswith("| ")]
    promises = [row for row in rows if not row.startswith("| promise")]
    assert promises == ROWS
