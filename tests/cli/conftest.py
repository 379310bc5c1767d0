"""Commands run in this process, in an empty folder."""

from dataclasses import dataclass

import pytest

from argnn.cli import main


@dataclass(frozen=True)
class Outcome:
    """What a command left on the terminal."""

    code: int
    out: str
    err: str


@pytest.fixture
def argnn(cache, one_thread, tmp_path, monkeypatch, capfd):
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
