"""The validation-only search behind the rivals' settings: the same budget for every method.

Each method sees the same number of candidates on a graph: its stored settings, then random draws
from its search space around them, all with at most 1000 epochs and a patience of 100. When the best
of them has been stored, one more candidate is that with the other choice about scaling the rows of
the features. The record holds the best validation accuracy of every training; test labels are never
read. Trainings that the record has already are not repeated. ``--summary`` then writes the mean of
each candidate's splits, which is what ``docs/rivals_search.jsonl`` holds. A record keeps the
candidates it was made with: after a change of the search spaces, begin another one.

    python scripts/search_baselines.py OUT.jsonl --data cora,texas --workers 2
    python scripts/search_baselines.py OUT.jsonl --data cora,texas --workers 2 --last
    python scripts/search_baselines.py OUT.jsonl --summary docs/rivals_search.jsonl
"""

import argparse
import inspect
import json
import multiprocessing
import random
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import torch
from validation import validated

from argnn.data import load
from argnn.errors import ArgnnError, DivergenceError
from argnn.nn import MODELS
from argnn.settings.resolve import find_settings

Candidate = dict[str, Any]

BUDGET = {"epochs": 1000, "patience": 100}
#: Splits that a candidate is judged by; the small graphs have few validation nodes in each.
SPLITS = {"texas": 5, "cornell": 5, "wisconsin": 5}
USUAL_SPLITS = 3
#: Number of the candidate that differs from the best of those before in its features' rows only.
LAST = 12


class Job(NamedTuple):
    """One training."""

    method: str
    data: str
    number: int
    split: int


#: Of a row of the record: what is no setting of its candidate.
_NO_SETTINGS = (*Job._fields, "val_accuracy", "error", "epochs_run", "seconds")


@cache
def candidate(method: str, data: str, number: int) -> Candidate:
    """Settings that differ from the stored ones; the first candidate is those themselves."""
    if number == 0:
        return {}
    if number == LAST:
        return {"normalize_input": not _scales_rows(method, data)}
    draw = random.Random(f"{method} {data} {number}")
    return {name: draw.choice(values) for name, values in MODELS[method].search_space.items()}


def _scales_rows(method: str, data: str) -> bool:
    usual = inspect.signature(MODELS[method]).parameters["normalize_input"].default
    return bool(_stored(method, data).get("normalize_input", usual))


def _stored(method: str, data: str) -> dict[str, Any]:
    stored = find_settings(data, directed=False, preset="default", method=method)
    return {} if stored is None else stored.model | stored.train


@cache
def _graph(data: str) -> Any:
    return load(data)


def validation_score(job: Job, device: str) -> dict[str, Any]:
    """What one training reached on its validation nodes."""
    own = candidate(job.method, job.data, job.number)
    asked = {"model": job.method, "device": device}
    began = time.perf_counter()
    found: dict[str, Any] = {**job._asdict(), **own}
    try:
        result = validated(job.data, _graph(job.data), job.split, {**BUDGET, **own}, **asked)
    except DivergenceError as error:
        return {**found, "val_accuracy": None, "error": str(error)}
    spent = {"epochs_run": result.epochs_run, "seconds": round(time.perf_counter() - began, 2)}
    return {**found, "val_accuracy": result.val_score, **spent}


def jobs(methods: Iterable[str], graphs: Iterable[str], numbers: Iterable[int]) -> Iterator[Job]:
    """All trainings, those of every method in turn."""
    for data in graphs:
        for number in numbers:
            for split in range(SPLITS.get(data, USUAL_SPLITS)):
                for method in methods:
                    yield Job(method, data, number, split)


def _rows(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _job(row: dict[str, Any]) -> Job:
    return Job(*(row[name] for name in Job._fields))


def _candidate(row: dict[str, Any]) -> Candidate:
    return {name: value for name, value in row.items() if name not in _NO_SETTINGS}


def require_same_space(rows: list[dict[str, Any]], path: Path) -> None:
    """Raise unless the draws in a record are those of the search spaces of today."""
    for row in rows:
        drawn = 0 < row["number"] < LAST
        if drawn and _candidate(row) != candidate(*_job(row)[:3]):
            raise SystemExit(f"{path}: {_job(row)} was drawn from another search space")


def summary(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """One row per candidate: its complete settings and its mean validation accuracy."""
    by_candidate = defaultdict(list)
    for row in rows:
        by_candidate[_job(row)[:3]].append(row)
    for (method, data, number), found in sorted(by_candidate.items()):
        scores = [row["val_accuracy"] for row in found]
        yield {
            "method": method,
            "data": data,
            "number": number,
            "settings": {**_stored(method, data), **BUDGET, **_candidate(found[0])},
            "splits": sorted(row["split"] for row in found),
            "val_accuracy": None if None in scores else round(sum(scores) / len(scores), 6),
        }


def _trained(argument: tuple[Job, str]) -> dict[str, Any]:
    torch.set_num_threads(1)
    job, device = argument
    try:
        return validation_score(job, device)
    except ArgnnError as error:
        raise SystemExit(f"{job}: {error}") from error


def main() -> None:
    """Run the search that the arguments ask for."""
    rivals = [name for name in MODELS if name != "argnn"]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", default="cora,citeseer,texas,wisconsin")
    parser.add_argument("--methods", default=",".join(rivals))
    parser.add_argument("--last", action="store_true", help="train the last candidate only")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--summary", type=Path, help="only summarise OUT, into this file")
    asked = parser.parse_args()
    if asked.summary is not None:
        text = "".join(json.dumps(row) + "\n" for row in summary(_rows(asked.out)))
        asked.summary.write_text(text, encoding="utf-8")
        return
    rows = _rows(asked.out)
    require_same_space(rows, asked.out)
    known = {_job(row) for row in rows}
    numbers = [LAST] if asked.last else range(LAST)
    wanted = jobs(asked.methods.split(","), asked.data.split(","), numbers)
    left = [(job, asked.device) for job in wanted if job not in known]
    context = multiprocessing.get_context("spawn")
    with asked.out.open("a", encoding="utf-8") as file, context.Pool(asked.workers) as pool:
        for done, row in enumerate(pool.imap_unordered(_trained, left), start=1):
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"\r{done} of {len(left)}", end="", flush=True)
    print()


if __name__ == "__main__":
    main()
