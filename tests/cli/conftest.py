"""Commands run in this process, in an empty folder, or in one whose means are limited."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from argnn.cli import main
from forked import code, run_forked


@dataclass(frozen=True)
class Outcome:
    """What a command left on the terminal."""

    code: int
    out: str
    err: str


@pytest.fixture
def argnn(cache, one_thread, packaged_once, tmp_path, monkeypatch, capfd):
    """Run a command in an empty folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)

    def call(*arguments: object) -> Outcome:
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        return Outcome(stopped.value.code, *capfd.readouterr())

    return call


@pytest.fixture
def listing(tmp_path):
    """Every file below the test's folder with its content, the cache left out."""

    def read() -> dict[str, bytes | None]:
        paths = [path for path in tmp_path.rglob("*") if (tmp_path / "cache") not in path.parents]
        names = {str(path.relative_to(tmp_path)): path for path in paths if path.name != "cache"}
        return {name: path.read_bytes() if path.is_file() else None for name, path in names.items()}

    return read


@pytest.fixture
def refused(argnn, listing):
    """Check that a command is refused with one line, and that nothing is created or changed."""

    def check(*arguments: object, message: str) -> None:
        before = listing()
        done = argnn(*arguments)
        assert (done.code, done.out) == (2, ""), done
        assert len(done.err.splitlines()) == 1, done.err
        assert done.err.startswith("argnn: error: ")
        assert message in done.err
        assert listing() == before

    return check


LIMITED = """
import json, resource, sys
from pathlib import Path
from argnn.cli import main

def code(arguments):
    try:
        main(arguments)
    except SystemExit as stopped:
        return stopped.code

commands = json.loads(sys.argv[1])
code(commands[0])  # imports what it needs
held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, 2 * [held + 2**31])
for command in commands:
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + 11
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
    print("code", code(command), flush=True)
"""


@pytest.fixture
def limited(cache, one_thread, monkeypatch):
    """Exit codes of commands in one process, whose means the operating system limits.

    It ends the process when a command has used 10 seconds of a processor, and refuses memory
    beyond 2 GiB more than the imports took.
    """
    if not sys.platform.startswith("linux"):
        pytest.skip("needs the limits of Linux")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")  # CUDA reserves all addresses that it may use

    def call(commands: Sequence[Sequence[object]]) -> list[int]:
        words = json.dumps([[str(argument) for argument in command] for command in commands])
        done, out, errors = run_forked(code, LIMITED, words, cwd=Path.cwd())
        lines = [line.split() for line in out.splitlines()]
        codes = [int(line[1]) for line in lines if line and line[0] == "code"]
        assert done == 0, (done, commands[len(codes)], errors[-2000:])
        assert "Traceback" not in errors
        return codes

    return call
