"""YAML as this package reads it: plain values of one document, in little memory and time.

Anchors and aliases are refused, with which a few hundred bytes become billions of values. Dates
stay texts, long numbers are refused, and no mapping may have a key twice.
"""

import re
import stat
from pathlib import Path
from typing import Any

import yaml

from argnn.errors import ConfigError

_LARGEST = 1 << 20
_DEEPEST = 50
_LONGEST_NUMBER = 100
_DATE = "tag:yaml.org,2002:timestamp"
_NUMBERS = ("tag:yaml.org,2002:int", "tag:yaml.org,2002:float")


class _Loader(yaml.SafeLoader):
    """YAML 1.1 without dates, and with the numbers of YAML 1.2 such as ``1e-3``."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _DATE]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.peek_event()
        self.depth += 1
        if getattr(event, "anchor", None) is not None:
            _refuse("anchors (&) and aliases (*) are not read", event)
        if self.depth > _DEEPEST:
            _refuse("values are nested too deeply", event)
        node = super().compose_node(parent, index)
        self.depth -= 1
        if isinstance(node, yaml.MappingNode):
            _check_keys(node)
        elif node is not None and node.tag in _NUMBERS and len(node.value) > _LONGEST_NUMBER:
            _refuse("the number is too long", node)
        return node


_Loader.add_implicit_resolver(
    _NUMBERS[1], re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"), list("-+.0123456789")
)


def _check_keys(node: yaml.MappingNode) -> None:
    """Raise where a mapping has a key twice: YAML's own reader would take the last one."""
    seen = set()
    for key, _ in node.value:
        if str(key.value) in seen:
            _refuse(f"key '{key.value}' is there twice", key)
        seen.add(str(key.value))


def _refuse(problem: str, place: Any) -> None:
    raise yaml.MarkedYAMLError(problem=problem, problem_mark=place.start_mark)


def parsed_yaml(text: str | bytes, origin: str) -> Any:
    """The value of a YAML text.

    Args:
        text: One document.
        origin: The file, for error messages.

    Raises:
        ConfigError: It is no YAML, or of a kind that is not read here.

    Example:
        >>> parsed_yaml("lr: 0.1", "file")
        {'lr': 0.1}
    """
    if len(text) > _LARGEST:
        raise ConfigError(f"{origin}: larger than {_LARGEST >> 20} MiB")
    try:
        return yaml.load(text, _Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f" (line {mark.line + 1}, column {mark.column + 1})"
        raise ConfigError(f"{origin}: not YAML: {error.problem}{place}") from error
    except (yaml.YAMLError, AttributeError, ValueError, TypeError, RecursionError) as error:
        raise ConfigError(f"{origin}: not YAML: {' '.join(str(error).split())}") from error


def yaml_content(path: Path) -> bytes:
    """The bytes of a file that is small enough to be YAML of ours."""
    if not stat.S_ISREG(path.stat().st_mode):  # a pipe would never end
        raise ConfigError(f"{path}: not a file")
    with path.open("rb") as file:
        return file.read(_LARGEST + 1)
