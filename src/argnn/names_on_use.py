"""Names of a package that are imported when they are first used: torch and PyG take seconds."""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def names_on_use(
    package: str, homes: Mapping[str, Sequence[str]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package that imports its public names on use.

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
