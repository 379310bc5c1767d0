"""Check what a file holds against declared types; an error is one line that names the field.

The types are dataclasses, for which an unknown key is an error, or ``TypedDict`` classes, for
which it is not. pydantic compares values with types as its strict JSON mode does: neither
``true`` nor ``"3"`` is a number.
"""

import functools
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from annotated_types import Ge
from pydantic import StringConstraints, TypeAdapter, ValidationError

from argnn.errors import ArgnnError, ConfigError
from argnn.registry import suggestion
from argnn.wording import quoted, shortened

T = TypeVar("T")

#: A text that is not empty or blank.
Text = Annotated[str, StringConstraints(pattern=r"\S")]
#: A whole number from 0.
Count = Annotated[int, Ge(0)]

_Path = tuple[str | int, ...]
_MAPPING = "a mapping of names to values"
_DEEPEST = 100
_LONGEST_BITS = 1024  # of a float
_TENSOR_BITS = 63  # of a whole number in a tensor, without its sign
_WORDS = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    "string_pattern_mismatch": "a text",
    "literal_error": "a text",
    "list_type": "a list",
    "tuple_type": "a list",
    "too_short": "a list that is not empty",
    "too_long": "a list of at most {max_length}",
    "dict_type": _MAPPING,
    "dataclass_type": _MAPPING,
    "none_required": "null",
    "greater_than_equal": "a number from {ge}",
    "greater_than": "a number above {gt}",
    "less_than_equal": "a number up to {le}",
    "less_than": "a number below {lt}",
    "union_tag_invalid": "a mapping with {discriminator} one of {expected_tags}",
    "union_tag_not_found": "a mapping with {discriminator}",
}


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
    _check_names(value, kind, ())
    _check_plain(value)
    try:
        adapter: TypeAdapter[T] = _adapter(kind)  # type: ignore[arg-type]
        return adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        raise ConfigError(_problem(error, value)) from error


def checked_value(name: str, value: Any, kind: Any) -> Any:
    """A single setting, given in Python or by ``--set``, if it has its declared type.

    Example:
        >>> checked_value("lr", 1, float)
        1.0
    """
    try:
        found = _adapter(kind).validate_python(value, strict=True)
    except ValidationError as error:
        words = " or ".join(dict.fromkeys(map(_expected, error.errors())))
        raise ConfigError(f"{name} must be {words} (got {quoted(value)})") from error
    if isinstance(found, int) and found.bit_length() > _TENSOR_BITS:
        raise ConfigError(f"{name} must be a smaller number (got {quoted(value)})")
    return found


def check_fields(record: Any) -> None:
    """Raise unless all fields of a dataclass have their declared types."""
    for name, kind in get_type_hints(type(record)).items():
        checked_value(name, getattr(record, name), kind)


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _check_names(value: Any, kind: Any, path: _Path) -> None:
    """Raise for a key that a dataclass has no field for, and for a word that is no choice."""
    parts = get_args(kind)
    if isinstance(value, dict) and is_dataclass(kind):
        known = get_type_hints(kind)
        for key, inner in value.items():
            if key not in known:
                name = shortened(key)
                raise ConfigError(_about(path, f"unknown key '{name}'; {suggestion(name, known)}"))
            _check_names(inner, known[key], (*path, key))
    elif get_origin(kind) is Literal:
        if isinstance(value, str) and value not in parts:
            choices = ", ".join(parts)
            raise ConfigError(f"{_words(path)} must be one of {choices} (got {quoted(value)})")
    elif isinstance(value, dict) and get_origin(kind) is dict:
        for key, inner in value.items():
            _check_names(inner, parts[1], (*path, key))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            for part in parts:
                _check_names(inner, part, (*path, place))
    else:
        for part in parts:
            _check_names(value, part, path)


def _check_plain(value: Any) -> None:
    """Raise for what no JSON file can hold, deep nesting, and a number that fits no float."""
    waiting: list[tuple[_Path, Any]] = [((), value)]
    while waiting:
        path, found = waiting.pop()
        if len(path) > _DEEPEST:
            raise ConfigError(f"{path[0]}: values are nested too deeply")
        if isinstance(found, int) and found.bit_length() > _LONGEST_BITS:
            raise ConfigError(f"{_words(path)} must be a smaller number (got {quoted(found)})")
        if isinstance(found, (list, tuple)):
            waiting += [((*path, place), inner) for place, inner in enumerate(found)]
        if isinstance(found, dict):
            odd = [key for key in found if not isinstance(key, str)]
            if odd:
                problem = f"must be {_MAPPING} (key {quoted(odd[0])} is no text)"
                raise ConfigError(f"{_words(path)} {problem}".strip())
            waiting += [((*path, key), inner) for key, inner in found.items()]
        texts = [found] if isinstance(found, str) else found if isinstance(found, dict) else []
        for text in texts:
            if not _is_unicode(text):
                raise ConfigError(_about(path, f"{quoted(text)} is no Unicode text"))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _problem(error: ValidationError, value: Any) -> str:
    """What is wrong, in words: the first problem, or the deepest where several types may stand."""
    problems = [(*_located(problem["loc"], value), problem) for problem in error.errors()]
    first = problems[0][0]
    near = [entry for entry in problems if entry[0][: len(first)] == first]
    # A value of the right type says more about what was meant than one of the wrong type.
    path, found, problem = max(
        near, key=lambda entry: (len(entry[2]["loc"]), not entry[2]["type"].endswith("_type"))
    )
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, ArgnnError):  # of a check that the structure makes itself
        return _about(path, str(cause))
    if problem["type"] == "missing":
        lacks = problem["loc"][-1]
        name = f"entry {lacks + 1}" if isinstance(lacks, int) else f"'{lacks}'"
        return f"{_words(path)} has no {name}".strip()
    same = [entry[2] for entry in near if entry[0] == path]
    if not problem["type"].endswith("_type"):
        same = [problem]
    words = " or ".join(dict.fromkeys(map(_expected, same)))
    return f"{_words(path)} must be {words} (got {quoted(found)})".strip()


def _expected(problem: Any) -> str:
    words = _WORDS.get(problem["type"])
    return words.format(**problem.get("ctx", {})) if words else str(problem["msg"])


def _located(place: Sequence[str | int], value: Any) -> tuple[_Path, Any]:
    """Path and value at a place as pydantic writes it, which also names the types of a union."""
    path: _Path = ()
    for step in place:
        is_key = isinstance(value, dict) and step in value
        is_index = isinstance(value, (list, tuple)) and step in range(len(value))
        if is_key or is_index:
            path, value = (*path, step), value[step]
    return path, value


def _about(path: _Path, problem: str) -> str:
    place = _words(path)
    return f"{place} {problem}" if place.endswith(":") else f"{place}: {problem}".lstrip(": ")


def _words(path: _Path) -> str:
    """``("methods", 0, "label")`` becomes ``methods, entry 1: label``."""
    text = "".join(f".{step}" if isinstance(step, str) else f"[{step}]" for step in path)
    text = re.sub(r"\[(\d+)\]\.?", lambda step: f", entry {int(step[1]) + 1}: ", text)
    return text.strip(" ,.").replace(": ,", ",")
