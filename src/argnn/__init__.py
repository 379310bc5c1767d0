"""Adaptive Riemannian Graph Neural Networks: every node learns its own metric tensor."""

from typing import TYPE_CHECKING

from argnn.registry import names_on_use
from argnn.version import __version__
from argnn.waiting import let_waiting_threads_sleep

let_waiting_threads_sleep()

if TYPE_CHECKING:
    from argnn import data, estimators, functional, kernels, nn, train
    from argnn.bench.comparison.compare import compare
    from argnn.estimators import ARGNNClassifier, ARGNNLinkPredictor, ARGNNRegressor, load, nodes
    from argnn.nn import ARGNN, ARConv
    from argnn.outputs.report import report

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
    "nodes",
    "report",
    "train",
]

__getattr__, __dir__ = names_on_use(
    __name__,
    {
        "argnn.bench.comparison.compare": ["compare"],
        "argnn.data": ["data"],
        "argnn.estimators": [
            *("ARGNNClassifier", "ARGNNLinkPredictor", "ARGNNRegressor", "estimators", "load"),
            "nodes",
        ],
        "argnn.functional": ["functional"],
        "argnn.kernels": ["kernels"],
        "argnn.nn": ["ARGNN", "ARConv", "nn"],
        "argnn.outputs.report": ["report"],
        "argnn.train": ["train"],
    },
)
