"""One training of a search script: its best validation score; test labels are never read."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from argnn.runs.prepare import prepare
from argnn.runs.problems import Problem, pose_problem
from argnn.runs.train_one import Observer, train_one
from argnn.settings.resolve import Request
from argnn.train import FitResult


def validated(
    data: str,
    graph: Any,
    split: int,
    settings: Mapping[str, Any],
    *,
    watch: Callable[[Problem], Observer] | None = None,
    **asked: Any,
) -> FitResult:
    """Train on one split as ``argnn train`` does, and stop before the test set.

    Args:
        data: Name of the graph.
        graph: The graph.
        split: Number of the split.
        settings: Single settings of the model and its training.
        watch: Gives what sees the outputs of every epoch.
        **asked: Further fields of the request, such as the model and the device.
    """
    overrides = tuple(f"{name}={json.dumps(value)}" for name, value in settings.items())
    config = prepare(
        Request(data, split=str(split), overrides=overrides, **asked), graph=graph
    ).config
    problem = pose_problem(graph, split, config.device, config.link)
    observe = None if watch is None else watch(problem)
    return train_one(config, problem.visible, problem.task, observe=observe).result
