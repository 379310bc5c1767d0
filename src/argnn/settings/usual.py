"""The settings of a method on a graph that nobody has tuned it for.

They are the data files that ``argnn train`` reads: an estimator starts from where the command does.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from argnn.nn import MODELS
from argnn.yaml_files import parsed_yaml

_FOLDER = "files"
_KEY = {"data": "any", "preset": "default"}
#: Said of settings that are used with directed edges although they were found without.
FOR_UNDIRECTED = "; for undirected edges, as none are stored for directed ones"
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


def usual_settings(model: str, task: str, preset: str, *, directed: bool = False) -> Usual:
    """The usual settings of a method, by its own name.

    Args:
        model: A name in ``argnn.nn.MODELS``.
        task: ``"node"`` or ``"link"``.
        preset: A name in ``argnn.nn.PRESETS``.
        directed: Whether directions of edges are kept.
    """
    entry = _entry(model, task, directed) if preset == "default" else None
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


def edge_kinds(model: str, directed: bool) -> tuple[str, ...]:
    """The edges whose stored settings a method may use, the best first.

    With directed edges a rival takes settings found on undirected ones where it has no others.
    argnn does not: its switches decide what directions are good for, so a trial chooses them.
    """
    if not directed:
        return ("undirected",)
    return ("directed",) if model == "argnn" else ("directed", "undirected")


def _entry(model: str, task: str, directed: bool) -> dict[str, Any] | None:
    kinds = edge_kinds(model, directed)
    kind = next((kind for kind in kinds if (model, task, kind) in _stored()), None)
    if kind is None:
        return None
    entry = _stored()[model, task, kind]
    return entry if kind == kinds[0] else {**entry, "source": entry["source"] + FOR_UNDIRECTED}


@cache
def _stored() -> dict[tuple[str, str, str], dict[str, Any]]:
    """The entries for any graph, by method, task and edges."""
    found = {}
    for file in files("argnn.settings").joinpath(_FOLDER).iterdir():
        for entry in parsed_yaml(file.read_text(encoding="utf-8"), file.name):
            if all(entry[name] == value for name, value in _KEY.items()):
                key = (entry.get("method", "argnn"), entry.get("task", "node"), entry["edges"])
                found[key] = entry
    return found
