"""Errors a person can act on: the command line prints them as one line and exits with 2."""

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
