"""What there is to run: data sets and models, as rows and as tables. Does not import torch."""

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from rich.table import Table

from argnn.data.raw_files import chosen_root, raw_folder, read_raw_files
from argnn.data.specs import DATASETS, DatasetSpec
from argnn.errors import DataError
from argnn.tables import rich_table


def dataset_rows(root: str | None = None) -> list[dict[str, Any]]:
    """Facts about every data set, and whether it can be used at once; nothing is downloaded."""
    return [_dataset_row(spec, root) for spec in DATASETS.values()]


def _dataset_row(spec: DatasetSpec, root: str | None) -> dict[str, Any]:
    status, homophily, problem = _status(spec, root), None, None
    if status in ("embedded", "ready"):
        try:
            read_raw_files(spec, raw_folder(spec, root))
            homophily = spec.homophily
        except DataError as error:
            status, problem = "damaged", str(error)
    sizes = ("name", "nodes", "edges", "features", "classes", "splits", "directed")
    return {
        **{name: getattr(spec, name) for name in sizes},
        "homophily": homophily,
        "status": status,
        "problem": problem,
        "source": spec.source,
        "citation": spec.citation,
    }


def _status(spec: DatasetSpec, root: str | None) -> str:
    if spec.embedded:
        return "embedded"
    folder = raw_folder(spec, root)
    found = [(folder / name).is_file() for name in spec.raw_files]
    if all(found):
        return "ready"
    if any(found):
        return "incomplete"
    return "to download" if spec.downloadable and not chosen_root(root) else "missing"


def model_rows() -> list[dict[str, Any]]:
    """Facts about every model: what ``scripts/write_catalog.py`` has read from the classes."""
    rows: list[dict[str, Any]] = _stored("models.json")
    return rows


def name_choices() -> dict[str, Any]:
    """Names of tasks, presets, decoders, settings and others; from the classes, too."""
    tables: dict[str, Any] = _stored("choices.json")
    return tables


def _stored(name: str) -> Any:
    return json.loads(files("argnn.settings").joinpath(name).read_text("utf-8"))


def dataset_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All data sets."""
    words, sizes = ("name", "status", "citation"), ("nodes", "edges", "features", "classes")
    header = ("name", *sizes, "splits", "homophily", "status", "citation")
    shown = [
        {**row, "homophily": "-" if row["homophily"] is None else f"{row['homophily']:.2f}"}
        for row in rows
    ]
    table = rich_table(header, [[str(row[name]) for name in header] for row in shown], left=words)
    for column in table.columns[:-1]:
        column.no_wrap = True
    return table


def model_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """All models."""
    header, cells = ("name", "space", "citation", "search space"), []
    for row in rows:
        choices = [
            f"{name}: {', '.join(str(value) for value in values)}"
            for name, values in row["search_space"].items()
        ]
        cells.append((row["name"], row["space"], row["citation"], "\n".join(choices)))
    table = rich_table(header, cells, left=header)
    table.show_lines = True
    return table
