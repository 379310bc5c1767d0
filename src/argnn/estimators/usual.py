"""The settings of a method on a graph that nobody has tuned it for.

They are the data files that ``argnn train`` reads: an estimator starts from where the command does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from argnn.nn import MODELS

_FOLDER = "bench/settings"
_KEY = {"data": "any", "edges": "undirected", "preset": "default"}
#: Where nothing is stored: the sizes of argnn's presets, and those of a usual network.
_ARGNN_SIZES: Mapping[str, dict[str, int]] = {
    "paper": {"hidden_channels": 128, "num_layers": 3},
    "reference": {"hidden_channels": 128, "num_layers": 3},
    "default": {"hidden_channels": 128, "num_layers": 2},
}
_OTHER_SIZES = {"hidden_channels": 64, "num_layers": 2}
_OTHER_TRAIN = {"lr": 0.01, "weight_decay": 5e-4, "epochs": 200}


@dataclass(frozen=True)
class Usual:
    """Settings and where they come from.

    Attributes:
        options: Options of the model.
        train: Training settings that differ from the preset's.
        source: Where they come from, in words.
        decoder: For links, what scores the pairs; None leaves it to the model.
    """

    options: dict[str, Any]
    train: dict[str, Any]
    source: str
    decoder: str | None = field(default=None)


def usual_settings(model: str, task: str, preset: str) -> Usual:
    """The usual settings of a method, by its own name.

    Args:
        model: A name in ``argnn.nn.MODELS``.
        task: ``"node"`` or ``"link"``.
        preset: A name in ``argnn.nn.PRESETS``.
    """
    entry = _stored().get((model, task)) if preset == "default" else None
    options: dict[str, Any] = dict(_ARGNN_SIZES[preset] if model == "argnn" else _OTHER_SIZES)
    options.update(MODELS[model].link_options if task == "link" else {})
    train: dict[str, Any] = {} if model == "argnn" else dict(_OTHER_TRAIN)
    if entry is None:
        source = f"preset {preset}" if model == "argnn" else "usual settings of a baseline"
        return Usual(options, train, source)
    return Usual(
        {**options, **entry.get("model", {})},
        {**train, **entry.get("train", {})},
        str(entry["source"]),
        entry.get("decoder"),
    )


@cache
def _stored() -> dict[tuple[str, str], dict[str, Any]]:
    """The entries for any graph, by method and task."""
    found = {}
    for file in files("argnn").joinpath(_FOLDER).iterdir():
        for entry in yaml.safe_load(file.read_text(encoding="utf-8")):
            if all(entry.get(name, "undirected") == value for name, value in _KEY.items()):
                found[entry.get("method", "argnn"), entry.get("task", "node")] = entry
    return found
