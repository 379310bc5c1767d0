"""One training of a search script: its best validation score; test labels are never read."""

import json
from collections.abc import Mapping
from typing import Any

from argnn.runs.prepare import prepare
from argnn.runs.problems import pose_problem
from argnn.runs.train_one import train_one
from argnn.settings.resolve import Request
from argnn.train import FitResult


def validated(
    data: str, graph: Any, split: int, settings: Mapping[str, Any], **asked: Any
) -> FitResult:
    """Train on one split as ``argnn train`` does, and stop before the test set.

    Args:
        data: Name of the graph.
        graph: The graph.
        split: Number of the split.
        settings: Single settings of the model and its training.
        **asked: Further fields of the request, such as the model and the device.
    """
    overrides = tuple(f"{name}={json.dumps(value)}" for name, value in settings.items())
    config = prepare(
        Request(data, split=str(split), overrides=overrides, **asked), graph=graph
    ).config
    problem = pose_problem(graph, split, config.device, config.link)
    return train_one(config, problem.visible, problem.task).result
