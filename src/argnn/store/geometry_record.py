"""How the metric of a split moved while it was trained: a JSON file beside its result."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NotRequired

from typing_extensions import TypedDict

from argnn.checked import checked
from argnn.errors import RunError, error_prefix
from argnn.files import read_checked, write_checked
from argnn.store.run_folder import RunFolder


class EpochValues(TypedDict):
    """Numbers of one epoch, of the training or of the metric."""

    epoch: int
    loss: NotRequired[float | None]
    task_loss: NotRequired[float | None]
    penalty: NotRequired[float | None]
    gradient_norm: NotRequired[float | None]
    val_score: NotRequired[float | None]
    val_loss: NotRequired[float | None]
    ricci_energy: NotRequired[float | None]
    smoothness_energy: NotRequired[float | None]
    metric_change: NotRequired[float | None]
    lyapunov: NotRequired[float | None]


class _GeometryFile(TypedDict):
    epochs: list[EpochValues]


def geometry_path(folder: RunFolder, split: int) -> Path:
    """Where the record of a split is."""
    return folder.result(split).with_name("geometry.json")


def write_geometry(folder: RunFolder, split: int, records: Sequence[dict[str, Any]]) -> None:
    """Write the record of a split."""
    write_checked(geometry_path(folder, split), {"epochs": list(records)})


def read_geometry(folder: RunFolder, split: int) -> list[dict[str, Any]]:
    """The record of a split; empty where none was kept."""
    path = geometry_path(folder, split)
    if not path.exists():
        return []
    document = read_checked(path)
    with error_prefix(f"{path}: damaged,", RunError):
        checked(document, _GeometryFile)
    records: list[dict[str, Any]] = document["epochs"]
    return records
