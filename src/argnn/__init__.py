"""Adaptive Riemannian Graph Neural Networks: every node learns its own metric tensor."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from argnn.version import __version__

if TYPE_CHECKING:
    from argnn import data, estimators, functional, kernels, nn, train
    from argnn.bench.comparison.compare import compare
    from argnn.estimators import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor, load
    from argnn.nn import ARGNN, ARConv

__all__ = [
    "ARGNN",
    "ARConv",
    "ARGNNClassifier",
    "ARGNNLinkPredictor",
    "ARGNNRegressor",
    "__version__",
    "compare",
    "data",
    "estimators",
    "functional",
    "kernels",
    "load",
    "nn",
    "train",
]

_MODULES = {"data", "estimators", "functional", "kernels", "nn", "train"}
_NAMES = {
    "ARGNN": "argnn.nn",
    "ARConv": "argnn.nn",
    "ARGNNClassifier": "argnn.estimators",
    "ARGNNLinkPredictor": "argnn.estimators",
    "ARGNNRegressor": "argnn.estimators",
    "compare": "argnn.bench.comparison.compare",
    "load": "argnn.estimators",
}


def __getattr__(name: str) -> Any:
    """Import public names on first use: torch takes seconds, which `argnn --help` must not."""
    if name in _MODULES:
        return import_module(f"argnn.{name}")
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'argnn' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted(__all__)
