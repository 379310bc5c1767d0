"""Tables of names: look one up and help where it is missing; import public names on first use."""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, TypeVar

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


def names_on_use(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that imports its public names on use.

    Torch and PyG take seconds to import.

    Args:
        package: Name of the package.
        homes: The public names by the module that has them. A name that is that of the module
            stands for the module itself.
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def on_use(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        module = import_module(home_of[name])
        return module if home_of[name] == f"{package}.{name}" else getattr(module, name)

    return on_use, lambda: sorted(home_of)
