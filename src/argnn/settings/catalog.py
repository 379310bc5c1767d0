"""What there is to run: data sets and models, as rows for a table."""

import os
from pathlib import Path
from typing import Any

from argnn.data import DATASETS, DatasetSpec, load
from argnn.errors import ArgnnError
from argnn.folders import cache_root
from argnn.functional import edge_homophily
from argnn.nn import MODELS


def dataset_rows(root: str | None = None) -> list[dict[str, Any]]:
    """Facts about every data set, and whether it can be used at once; nothing is downloaded."""
    return [_dataset_row(spec, root) for spec in DATASETS.values()]


def _dataset_row(spec: DatasetSpec, root: str | None) -> dict[str, Any]:
    status, homophily, problem = _status(spec, root), None, None
    if status in ("embedded", "ready"):
        try:
            graph = load(spec.name, root=root)
            homophily = edge_homophily(graph.edge_index, graph.y)
        except ArgnnError as error:
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
    chosen = root or os.environ.get("ARGNN_DATA")
    base = Path(chosen).expanduser() if chosen else cache_root() / "raw"
    found = [(base / spec.folder / name).is_file() for name in spec.raw_files]
    if all(found):
        return "ready"
    if any(found):
        return "incomplete"
    return "to download" if spec.downloadable and not chosen else "missing"


def model_rows() -> list[dict[str, Any]]:
    """Facts about every model."""
    facts = ("space", "citation", "search_space")
    return [
        {"name": name, **{fact: getattr(model, fact) for fact in facts}}
        for name, model in MODELS.items()
    ]
