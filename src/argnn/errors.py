"""Errors a person can act on: the command line prints them as one line and exits with 2."""


class ArgnnError(Exception):
    """Base of every error that the user, not the program, has to mend."""


class ConfigError(ArgnnError, ValueError):
    """An option or a setting has an impossible value."""


class DataError(ArgnnError):
    """A data set is missing, damaged or not what it claims to be."""


class RunError(ArgnnError):
    """A run folder cannot be written, read or continued."""


class DivergenceError(ArgnnError):
    """The loss or a gradient stopped being finite."""
