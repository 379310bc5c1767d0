"""constraints.txt names a hash for every package that `make` installs from it."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "constraints.txt").read_text(encoding="utf-8")
ENTRY = re.compile(
    r"^([a-z0-9-]+)==[^\s;]+(?: ; [^\\\n]+)?(?: \\\n    --hash=sha256:[0-9a-f]{64})+\n",
    re.MULTILINE,
)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def names(*extras: str) -> set[str]:
    wanted = list(PROJECT["dependencies"])
    for extra in extras:
        wanted += PROJECT["optional-dependencies"][extra]
    found = {canonicalize_name(Requirement(text).name) for text in wanted}
    return found - {"argnn", "torch"}


def test_every_package_has_a_version_and_hashes():
    assert re.sub(r"^#.*\n", "", ENTRY.sub("", TEXT), flags=re.MULTILINE) == ""


def test_the_list_has_what_the_project_needs():
    demo, more = TEXT.split("# for make test\n")
    assert names("plot") | {"setuptools"} <= set(ENTRY.findall(demo))
    assert names(*PROJECT["optional-dependencies"]) <= set(ENTRY.findall(demo + more))


def test_make_installs_from_the_list_only_with_hashes():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^HASHED := .*--require-hashes --no-deps -r$", makefile, re.MULTILINE)
    assert makefile.count("$(HASHED) ") == 2
    assert "sed '/^# for make test/q' constraints.txt" in makefile
