"""Check what a file holds against declared types; an error is one line that names the field.

The types are dataclasses, for which an unknown key is an error, or ``TypedDict`` classes, for
which it is not. msgspec compares values with types: neither ``true`` nor ``"3"`` is a number.
"""

import re
from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from argnn.errors import ArgnnError, ConfigError
from argnn.registry import suggestion
from argnn.wording import quoted, shortened

T = TypeVar("T")

#: A text that is not empty or blank.
Text = Annotated[str, Meta(pattern=r"\S")]
#: A whole number from 0.
Count = Annotated[int, Meta(ge=0)]

_MAPPING = "a mapping of names to values"
_WORDS = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "str": "a text",
    "array": "a list",
    "object": _MAPPING,
    "null": "null",
    "Number out of range": "a smaller number",
}
_LIMITS = {">=": "from", ">": "above", "<=": "up to", "<": "below"}
_PLACE = re.compile(r"(.*?)(?: - at (`key` in )?`\$(.*)`)?", re.DOTALL)
_EXPECTED = re.compile(r"Expected `([^`]*)`(?:, got .*| (of length )?([<>]=?) (\S+)| matching .*)?")


def checked(value: Any, kind: type[T] | Callable[..., T]) -> T:
    """Check a value that was read from a file, and build the structure that it describes.

    Args:
        value: Plain values, as JSON and YAML give them.
        kind: A dataclass, a ``TypedDict``, or a type such as ``list[int]``.

    Raises:
        ConfigError: The value does not fit. The message names the field, what was expected and
            what was found; :func:`argnn.errors.error_prefix` adds the file.

    Example:
        >>> checked([1, "2"], list[int])
        Traceback (most recent call last):
        argnn.errors.ConfigError: entry 2: must be a whole number (got '2')
    """
    _check_names(value, kind, "")
    try:
        found: T = msgspec.convert(value, kind)
        return found
    except msgspec.ValidationError as error:
        raise ConfigError(_problem(error, value)) from error
    except UnicodeEncodeError as error:
        raise ConfigError(f"{quoted(error.object)} is no Unicode text") from error


def _check_names(value: Any, kind: Any, path: str) -> None:
    """Raise for a key that a dataclass has no field for, and for a word that is no choice."""
    parts = get_args(kind)
    if isinstance(value, dict) and is_dataclass(kind):
        known = get_type_hints(kind)
        for key, inner in value.items():
            if key not in known:
                name = shortened(key)
                raise ConfigError(_about(path, f"unknown key '{name}'; {suggestion(name, known)}"))
            _check_names(inner, known[key], f"{path}.{key}")
    elif get_origin(kind) is Literal:
        if isinstance(value, str) and value not in parts:
            choices = ", ".join(parts)
            raise ConfigError(f"{_words(path)} must be one of {choices} (got {quoted(value)})")
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for part in parts:
                _check_names(inner, part, f"{path}[{place}]")
    else:
        for part in parts:
            _check_names(value, part, path)


def _problem(error: msgspec.ValidationError, value: Any) -> str:
    """What is wrong, in words."""
    message, of_key, path = _parts(_PLACE, str(error))
    path = path or ""
    if isinstance(error.__cause__, ArgnnError):  # of a check that the structure makes itself
        return _about(path, str(error.__cause__))
    place, found = _words(path), _at(value, path)
    if of_key:
        odd = next(key for key in found if not isinstance(key, str))
        return f"{place} must be {_MAPPING} (key {quoted(odd)} is no text)".strip()
    missing = re.fullmatch(r"Object missing required field `(.*)`", message or "")
    if missing:
        return f"{place} has no '{missing[1]}'".strip()
    return f"{place} must be {_expected(message or '')} (got {quoted(found)})".strip()


def _expected(message: str) -> str:
    kinds, of_length, sign, limit = _parts(_EXPECTED, message)
    names = (kinds or message).split(" | ")
    # What is left out says null, and every number may be a whole one.
    implied = {"null"} | ({"int"} if "float" in names else set())
    names = [name for name in names if name not in implied] or names
    words = " or ".join(_WORDS.get(name, name) for name in names)
    if of_length:
        return f"{words} that is not empty"
    return f"{words} {_LIMITS[sign]} {limit}" if sign else words


def _parts(pattern: re.Pattern[str], text: str) -> tuple[str | None, ...]:
    match = pattern.fullmatch(text)
    return match.groups() if match else (text, *(None,) * (pattern.groups - 1))


def _about(path: str, problem: str) -> str:
    place = _words(path)
    return f"{place} {problem}" if place.endswith(":") else f"{place}: {problem}".lstrip(": ")


def _words(path: str) -> str:
    """``.methods[0].label`` becomes ``methods, entry 1: label``."""
    text = re.sub(r"\[(\d+)\]\.?", lambda step: f", entry {int(step[1]) + 1}: ", path)
    return text.replace("[...]", "").strip(" ,.").replace(": ,", ",")


def _at(value: Any, path: str) -> Any:
    """The value at a path such as ``.methods[0].label``; msgspec writes ``[...]`` for any name."""
    for name, place in re.findall(r"\.(\w+)|\[(\d+)\]", path.split("[...]")[0]):
        value = value[name] if name else value[int(place)]
    return value
