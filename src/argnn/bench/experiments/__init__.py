"""``argnn bench``: experiments as YAML files, their cells, where these run, and their results."""

from importlib import resources
from importlib.resources.abc import Traversable


def experiment_files() -> list[Traversable]:
    """The files of the package's own experiments, in the order of their names."""
    found = resources.files("argnn.bench.experiments").iterdir()
    return sorted((f for f in found if f.name.endswith(".yaml")), key=lambda f: f.name)
