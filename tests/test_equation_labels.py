"""Every equation label that a docstring cites exists in the docs, and the other way round."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def cited() -> set[str]:
    sources = (ROOT / "src").rglob("*.py")
    return {label for path in sources for label in re.findall(r":eq:`(\w+)`", path.read_text())}


def labels() -> set[str]:
    return set(re.findall(r":label: (\w+)", (ROOT / "docs" / "equations.rst").read_text()))


def listed() -> set[str]:
    return set(re.findall(r"\* - ``(\w+)``\n     -", (ROOT / "docs" / "equations.rst").read_text()))


def test_every_cited_label_has_an_equation():
    assert cited() <= labels()


def test_every_equation_stands_in_the_table_and_is_cited():
    assert labels() == listed() == cited()
