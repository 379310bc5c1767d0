"""Which software made a model."""

import platform
from functools import cache
from importlib.metadata import version

from argnn.version import __version__

_PACKAGES = ("torch", "torch_geometric", "numpy", "scikit-learn", "safetensors")


@cache
def versions() -> dict[str, str]:
    """Versions of everything that takes part in the numbers."""
    packages = {name: version(name) for name in _PACKAGES}
    return {"argnn": __version__, "python": platform.python_version(), **packages}
