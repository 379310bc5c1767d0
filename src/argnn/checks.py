"""Checks of settings, with messages that say what was expected and what came."""

from argnn.errors import ConfigError

_KINDS: dict[str, tuple[type, ...]] = {
    "<class 'bool'>": (bool,),
    "<class 'int'>": (int,),
    "<class 'float'>": (int, float),
    "<class 'str'>": (str,),
    "float | None": (int, float, type(None)),
}
_WORDS = {
    "<class 'bool'>": "true or false",
    "<class 'int'>": "a whole number",
    "<class 'float'>": "a number",
    "<class 'str'>": "a word",
    "float | None": "a number or none",
}


def check_type(name: str, value: object, annotation: str) -> None:
    """Raise unless a setting has the type that its dataclass field declares.

    Args:
        name: The setting.
        value: What it was given.
        annotation: ``str(field.type)`` of the field.
    """
    wrong_bool = isinstance(value, bool) and annotation != "<class 'bool'>"
    if wrong_bool or not isinstance(value, _KINDS[annotation]):
        raise ConfigError(f"{name} must be {_WORDS[annotation]} (got {value!r})")


def require(holds: bool, name: str, expected: str, got: object) -> None:
    """Raise unless a setting is as expected."""
    if not holds:
        raise ConfigError(f"{name} must be {expected} (got {got})")
