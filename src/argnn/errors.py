"""Errors that a person can act on, and checks that raise them.

The command line prints one line and exits with 2.

Errors of the operating system are treated the same, and keep Python's own classes: a full disk is
an ``OSError``, a folder without access a ``PermissionError``.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argnn.wording import one_line, without_middle

__all__ = ["ArgnnError", "ConfigError", "DataError", "DivergenceError", "RunError"]

_LONGEST = 2000
_MOST_PROBLEMS = 100


class ArgnnError(Exception):
    """Base of every error that the user, not the program, has to mend."""

    def __init__(self, message: str = "") -> None:
        super().__init__(without_middle(message, _LONGEST))

    @property
    def lines(self) -> list[str]:
        """What is told to the user, one line for each problem."""
        return [str(self)]


class ConfigError(ArgnnError, ValueError):
    """An option or a setting has an impossible value."""


class DataError(ArgnnError):
    """A data set is missing, damaged or not what it claims to be."""


class ProblemsError(DataError):
    """Several things are wrong with a data set: one line for each."""

    def __init__(self, message: str = "") -> None:
        lines = message.split("\n")
        Exception.__init__(self, "\n".join(without_middle(line, _LONGEST) for line in lines))

    @property
    def lines(self) -> list[str]:
        """What is told to the user, one line for each problem."""
        return str(self).split("\n")


class RunError(ArgnnError):
    """A run folder cannot be written, read or continued."""


class DivergenceError(ArgnnError):
    """The loss or a gradient stopped being finite."""


#: What the user can mend; anything else is a fault of the program and keeps its traceback.
FORESEEN = (ArgnnError, OSError)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Give errors of the operating system the name of a file where they have none.

    Opening a file fails with its name, but writing to a full disk fails without.
    """
    try:
        yield
    except OSError as error:
        error.filename = str(path) if error.filename is None else error.filename
        raise


class Problems:
    """Collects what is wrong with a data set, so that all of it is told at once."""

    def __init__(self) -> None:
        self._found: list[tuple[DataError, str]] = []

    @contextmanager
    def noted(self, advice: str = "") -> Iterator[None]:
        """Keep an error for later; ``advice`` is added to its message."""
        try:
            yield
        except DataError as error:
            self._found.append((error, advice))

    def tell(self) -> None:
        """Raise what was found, if anything."""
        told = [
            f"{without_middle(one_line(error), _LONGEST)}{advice}" for error, advice in self._found
        ]
        if len(told) == 1:
            raise type(self._found[0][0])(told[0]) from self._found[0][0]
        if len(told) > _MOST_PROBLEMS:
            told[_MOST_PROBLEMS:] = [f"... and {len(told) - _MOST_PROBLEMS} more problems"]
        if told:
            raise ProblemsError("\n".join(told)) from self._found[0][0]


@contextmanager
def error_prefix(where: str, kind: type[ArgnnError] | None = None) -> Iterator[None]:
    """Begin the messages of our errors with the place that they are about.

    Args:
        where: The place with its colon or comma, such as ``"a.yaml, line 3:"``.
        kind: What to raise instead; the same kind of error if not given.
    """
    try:
        yield
    except ArgnnError as error:
        raise (kind or type(error))(f"{where} {error}") from error


@contextmanager
def package_needed(advice: str, kind: type[Exception] = ConfigError) -> Iterator[None]:
    """Raise ``advice``, how to get a package, where it cannot be imported."""
    try:
        yield
    except ImportError as error:
        raise kind(advice) from error


def require(holds: bool, name: str, expected: str, got: object) -> None:
    """Raise unless a setting is as expected."""
    if not holds:
        raise ConfigError(f"{name} must be {expected} (got {got})")
