"""Look a name up in a plain table, and help when it is not there."""

import difflib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from argnn.errors import ConfigError

T = TypeVar("T")


def _fold(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")


def suggestion(name: str, choices: Iterable[str]) -> str:
    """The tail of an error message: closest match, then every choice.

    Example:
        >>> suggestion("coar", ["cora", "texas"])
        "did you mean 'cora'? choices: cora, texas"
    """
    names = sorted(choices)
    by_fold = {_fold(choice): choice for choice in names}
    close = difflib.get_close_matches(_fold(name), by_fold, n=2)
    hint = " or ".join(f"'{by_fold[match]}'" for match in close)
    listing = "choices: " + ", ".join(names)
    return f"did you mean {hint}? {listing}" if hint else listing


def canonical_name(name: str, mapping: Mapping[str, object], kind: str) -> str:
    """The key of ``mapping`` that ``name`` means, whatever its case and dashes."""
    if name in mapping:
        return name
    by_fold = {_fold(key): key for key in mapping}
    key = by_fold.get(_fold(name))
    if key is None:
        raise ConfigError(f"unknown {kind} '{name}'; {suggestion(name, mapping)}")
    return key


def resolve(name: str, mapping: Mapping[str, T], kind: str) -> T:
    """Return ``mapping[name]``, with case, ``-`` and ``_`` folded.

    Args:
        name: What the user typed.
        mapping: The table to look in.
        kind: What the table holds, for the error message.

    Example:
        >>> resolve("Chame-leon", {"chameleon": 1}, "data set")
        1
    """
    return mapping[canonical_name(name, mapping, kind)]
