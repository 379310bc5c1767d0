"""Write constraints.txt anew: all packages, and the hashes of all files of their versions.

``make constraints`` keeps the versions, and ``make constraints UPGRADE=--upgrade`` takes the newest
ones that pyproject.toml allows. Hashes of all files are listed, for every system and Python. Torch
is left out: its files differ between machines with and without a GPU.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from pathlib import Path

from packaging.utils import canonicalize_name, parse_sdist_filename, parse_wheel_filename
from packaging.version import Version
from pip._internal.models.index import PyPI

ROOT = Path(__file__).resolve().parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
HEADER = """\
# Versions and files that this project is tested with; written by `make constraints`.
# `make` installs these, and refuses a file with another hash. Torch's version is in the Makefile.
"""
#: Everything above this line is installed by `make demo`.
MORE = "# for make test"
#: There are no files for other systems.
LINUX_ONLY = {"triton"}

Versions = dict[str, Version]


def kept_versions() -> list[str]:
    """The versions that constraints.txt has now."""
    return re.findall(r"^[\w.-]+==[^\s;]+", CONSTRAINTS.read_text(encoding="utf-8"), re.MULTILINE)


def resolved(wanted: list[str], pins: list[str]) -> Versions:
    """What pip would install."""
    with tempfile.TemporaryDirectory() as folder:
        pinned, report = Path(folder) / "pins.txt", Path(folder) / "report.json"
        pinned.write_text("\n".join(pins), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--quiet", "--constraint", str(pinned), "--report", str(report), *wanted]
        subprocess.run(command, cwd=ROOT, check=True)
        found = [entry["metadata"] for entry in json.loads(report.read_text())["install"]]
    versions = {canonicalize_name(entry["name"]): Version(entry["version"]) for entry in found}
    return {name: v for name, v in sorted(versions.items()) if name not in ("argnn", "torch")}


def hashes(name: str, version: Version) -> list[str]:
    """The hashes of all files of a version, from pip's default index."""
    request = urllib.request.Request(f"{PyPI.simple_url}/{name}/", headers={"Accept": "text/html"})
    with urllib.request.urlopen(request, timeout=60) as page:
        files = re.findall(r'/([^/"#]+)#sha256=([0-9a-f]{64})', page.read().decode())
    return sorted({digest for file, digest in files if version_of(file) == version})


def version_of(file: str) -> Version | None:
    """The version in the name of a file; none in the odd names of old days."""
    try:
        return (parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename)(file)[1]
    except ValueError:
        return None


def lines(versions: Versions) -> str:
    """The packages as pip reads them."""
    text = ""
    for name, version in versions.items():
        marker = " ; platform_system == 'Linux'" if name in LINUX_ONLY else ""
        digests = [f"--hash=sha256:{digest}" for digest in hashes(name, version)]
        parts = [f"{name}=={version}{marker}", *digests]
        text += " \\\n    ".join(parts) + "\n"
    return text


def main() -> None:
    """Resolve, look up, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("torch", help="as the Makefile installs it, such as torch==2.13.0")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    chosen = parser.parse_args()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    build = project["build-system"]["requires"]
    pins = [chosen.torch] if chosen.upgrade else [chosen.torch, *kept_versions()]
    everything = resolved([".[dev]", *build], pins)
    found = [f"{name}=={version}" for name, version in everything.items()]
    demo = resolved([".[plot]", *build], [chosen.torch, *found])
    more = {name: version for name, version in everything.items() if name not in demo}
    CONSTRAINTS.write_text(f"{HEADER}{lines(demo)}{MORE}\n{lines(more)}", encoding="utf-8")


if __name__ == "__main__":
    main()
