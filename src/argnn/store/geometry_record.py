"""How the metric of a split moved while it was trained: a JSON file beside its result."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from argnn.errors import RunError
from argnn.files import read_checked, write_checked
from argnn.store.run_folder import RunFolder

#: What is known of every observed epoch.
COLUMNS = ("epoch", "ricci_energy", "smoothness_energy", "metric_change", "lyapunov")


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
    records = read_checked(path, ("epochs",))["epochs"]
    return checked_records(records, COLUMNS, f"{path}: damaged, 'epochs'")


def checked_records(records: Any, names: Sequence[str], what: str) -> list[dict[str, Any]]:
    """Records of epochs as they were read from a file.

    Args:
        records: What the file holds.
        names: Values that are numbers or missing.
        what: Begins the error: the file and its field.

    Raises:
        RunError: They are no list of numbers by name.
    """
    if not isinstance(records, list) or not all(_is_record(record, names) for record in records):
        raise RunError(f"{what} must hold a list of numbers by name")
    return records


def _is_record(record: object, names: Sequence[str]) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("epoch"), int)
        and all(isinstance(record.get(name), int | float | None) for name in names)
    )
