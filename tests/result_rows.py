"""Rows of results files for tests, as ``argnn bench`` writes them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from argnn.files import with_digest
from argnn.store.results import ResultsFile

Row = dict[str, Any]


def append_row(path: Path, row: Mapping[str, Any]) -> None:
    with ResultsFile(path) as file:
        file.append(row)


def identity(
    method: str = "argnn",
    data: str = "cora",
    split: int = 0,
    *,
    task: str = "node",
    seed: int = 0,
    model: str | None = None,
    directed: bool = False,
    ratio: str = "85/5/10",
) -> Row:
    link = {"ratio": ratio, "decoder": "dot"} if task == "link" else None
    where = (task, data, directed, method, split, seed, ratio if link else "")
    return {
        "format": 1,
        "cell": "/".join(str(part) for part in where),
        "experiment": "test",
        "task": task,
        "data": data,
        "directed": directed,
        "method": method,
        "model": model or method.split(" ")[0],
        "preset": "default",
        "split": split,
        "seed": seed,
        "config": {"link": link},
        "settings": f"settings of {method} with seed {seed}",
    }


def node_scores(value: float, absent: Sequence[int] = (), **changes: float | None) -> Row:
    names = ("f1", "f1_macro", "accuracy", "auroc", "auprc")
    return {**dict.fromkeys(names, value), "absent_classes": list(absent), "count": 100, **changes}


def link_scores(value: float) -> Row:
    names = ("auroc", "auprc", "accuracy", "threshold", "hits@10", "hits@50", "mrr")
    return {**dict.fromkeys(names, value), "count": 100}


def finished(value: float | Row, oracle: float | None = None, **who: Any) -> Row:
    """A finished row; ``value`` is every score of it, or the scores themselves."""
    row = identity(**who)
    make = node_scores if row["task"] == "node" else link_scores
    scores = value if isinstance(value, dict) else make(value)
    best = None if oracle is None else {"rule": "best", "epoch": 3, "test": make(oracle)}
    return {
        **row,
        "test": scores,
        "val": scores,
        "oracle": best,
        "chosen_epoch": 5,
        "epochs_run": 20,
        "stopped_by": "epochs",
        "penalty_weights": {},
        "seconds": 2.0,
        "num_parameters": 1234,
        "peak_memory_mib": 500.0,
        "device": "cpu (x86_64)",
        "threads": 1,
        "versions": {"argnn": "0.1.0"},
        "git_commit": "0123456789abcdef",
        "git_changed": False,
        "finished": "2026-11-15T09:00:00+00:00",
    }


def failed(error: str = "DivergenceError: the loss is not finite", **who: Any) -> Row:
    return {**identity(**who), "error": error}


def several(
    table: Mapping[str, Mapping[str, Sequence[float]]], task: str = "node", **who: Any
) -> list[Row]:
    """Rows of ``{data: {method: scores over splits}}``."""
    return [
        finished(value, task=task, data=data, method=method, split=split, **who)
        for data, methods in table.items()
        for method, values in methods.items()
        for split, value in enumerate(values)
    ]


def write_rows(path: Path, rows: Sequence[Row]) -> Path:
    lines = [json.dumps(with_digest(row)) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
