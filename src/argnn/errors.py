"""Errors a person can act on: the command line prints them as one line and exits with 2.

Errors of the operating system are treated the same, and keep Python's own classes: a full disk is
an ``OSError``, a folder without access a ``PermissionError``, here as anywhere.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["ArgnnError", "ConfigError", "DataError", "DivergenceError", "RunError"]

_LONGEST = 2000


def shortened(text: str, most: int = _LONGEST) -> str:
    """A text that quotes a file, without its middle where that is long.

    Example:
        >>> shortened("0123456789", most=6)
        '0123 ... 89'
    """
    return text if len(text) <= most else f"{text[: most - most // 3]} ... {text[-(most // 3) :]}"


class ArgnnError(Exception):
    """Base of every error that the user, not the program, has to mend."""

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(message))


class ConfigError(ArgnnError, ValueError):
    """An option or a setting has an impossible value."""


class DataError(ArgnnError):
    """A data set is missing, damaged or not what it claims to be."""


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
