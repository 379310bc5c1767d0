"""Untuned argnn beside untuned and tuned methods: a line for every training, then two CSV files.

No graph has stored settings here: argnn has its trial, a rival its usual settings. The first
command measures them. The second tunes argnn and the four rivals with the best untuned validation
scores, as ``argnn tune`` does, and tests the best trial of each. The last writes the tables.

    python scripts/untuned_table.py OUT.jsonl --graphs texas FOLDER/fb_hopkins.npz --workers 4
    python scripts/untuned_table.py OUT.jsonl --graphs texas FOLDER/fb_hopkins.npz --trials 30
    python scripts/untuned_table.py OUT.jsonl --store docs/results --machine "2 CPU cores"

The same command goes on where it was stopped. With ``--again``, the last command replaces lines of
the tables by those that were measured again, and says so in the history at the head of the file.
"""

import argparse
import csv
import json
import statistics
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, replace
from datetime import date
from functools import cache
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.bench.tuning.search import plan_search, run_search, write_result
from argnn.data import load
from argnn.errors import FORESEEN, RunError, require
from argnn.nn import MODELS
from argnn.runs.prepare import prepare
from argnn.runs.recipes import RECIPES
from argnn.runs.run import run_cell
from argnn.settings.resolve import IN_MEMORY, Request
from argnn.train import EpochRecord

Row = dict[str, Any]
_RIVALS = 4
#: The length of a training that is tuned: that of argnn's recipes.
_EPOCHS, _PATIENCE = 1000, 100
_KEY = ("graph", "method", "split", "seed")
_SCORES = ("test", "validation")
_BUDGET = ("epochs", "seconds", "search_epochs", "search_seconds")
_WORTH = ("learned", "fixed")
_COLUMNS = (*_KEY, *_SCORES, *_BUDGET, "recipe", "metric", *_WORTH)


@dataclass(frozen=True)
class Job:
    """A method on a graph: untuned on one split with one seed, or tuned, then tested on all."""

    data: str
    model: str
    splits: tuple[int, ...]
    seeds: tuple[int, ...]
    device: str
    trials: int
    search_splits: str
    limit: float

    @property
    def keys(self) -> list[tuple[str, str, int, int]]:
        """What tells its lines from others."""
        method = f"tuned {self.model}" if self.trials else self.model
        both = product(self.splits, self.seeds)
        return [(Path(self.data).stem, method, split, seed) for split, seed in both]

    def run(self) -> list[Row]:
        """The lines; they name the error where the job failed."""
        torch.set_num_threads(1)
        began = time.perf_counter()
        try:
            return self._tuned() if self.trials else self._untuned()
        except (*FORESEEN, torch.OutOfMemoryError) as error:
            facts = {"error": f"{error!s:.200}", "seconds": time.perf_counter() - began}
            return [{**_named(key), **facts} for key in self.keys]
        finally:
            if self.device == "cuda":
                torch.cuda.empty_cache()

    def _untuned(self) -> list[Row]:
        request = self._request(IN_MEMORY)  # for which nothing is stored
        return [self._trained(request, key) for key in self.keys]

    def _tuned(self) -> list[Row]:
        length = (f"train.epochs={_EPOCHS}", f"train.patience={_PATIENCE}")
        request = self._request(self.data, overrides=length)
        began = time.perf_counter()
        search = plan_search(request, self.trials, splits=self.search_splits)
        with tempfile.TemporaryDirectory() as folder:
            records = run_search(search, Path(folder) / "journal")
            chosen = [epoch for record in records for epoch in record.epochs]
            spent = {
                "search_epochs": sum(min(_EPOCHS, epoch + _PATIENCE) for epoch in chosen),
                "search_seconds": time.perf_counter() - began,
            }
            file = Path(folder) / "tuned.yaml"
            tuned = write_result(file, search, records)
            facts = {**spent, "options": tuned.options, "train": tuned.train}
            request = replace(request, settings_file=str(file))
            return [{**self._trained(request, key), **facts} for key in self.keys]

    def _request(self, data: str, **more: Any) -> Request:
        return Request(data, model=self.model, device=self.device, workers=1, **more)

    def _trained(self, request: Request, key: tuple[str, str, int, int]) -> Row:
        """Train once, and score validation and test nodes once."""
        graph, (_, _, split, seed) = loaded(self.data), key
        config = prepare(replace(request, split=str(split), seed=seed), graph=graph).config
        end = time.perf_counter() + self.limit

        def check(record: EpochRecord) -> None:
            if time.perf_counter() > end:
                raise RunError(f"not over after {self.limit:.0f} s, in epoch {record.epoch}")

        row = run_cell(config, graph, split, check)
        trial = config.trial or {}
        return {
            **_named(key),
            "test": row["test"]["accuracy"],
            "validation": row["val"]["accuracy"],
            "epochs": row["epochs_run"],
            "seconds": row["seconds"],
            "search_epochs": trial.get("epochs", 0),
            "search_seconds": sum(run["seconds"] for run in trial.get("runs", [])),
            "trial": trial,
            "metric": config.options.get("metric"),
            **{name: row[name] for name in ("versions", "git_commit", "device")},
        }


def _named(key: tuple[str, str, int, int]) -> Row:
    return dict(zip(_KEY, key, strict=True))


@cache
def loaded(data: str) -> Data:
    """A graph, once in each process."""
    return load(data)


def read(path: Path) -> list[Row]:
    """The lines of a file, if it is there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def strongest(rows: Iterable[Row], graph: str) -> list[str]:
    """ARGNN and the rivals with the best mean validation score on a graph, untuned."""
    found: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        if row["graph"] == graph and row["method"] in MODELS and "error" not in row:
            found[row["method"]].append(row["validation"])
    rivals = [name for name in MODELS if name in found and name != "argnn"]
    rivals.sort(key=lambda name: -statistics.mean(found[name]))
    return ["argnn", *rivals[:_RIVALS]]


def jobs(given: argparse.Namespace, rows: Sequence[Row]) -> list[Job]:
    """What the file does not have yet."""
    done = {tuple(row[name] for name in _KEY) for row in rows}
    parts = [((split,), (seed,)) for split, seed in product(given.splits, given.seeds)]
    parts = [(tuple(given.splits), tuple(given.seeds))] if given.trials else parts
    rest = (given.device, given.trials, given.search_splits, given.limit)
    wanted = [
        Job(data, model, *part, *rest)
        for data in given.graphs
        for model in (strongest(rows, Path(data).stem) if given.trials else MODELS)
        if model in given.models
        for part in parts
    ]
    return [job for job in wanted if not done.issuperset(job.keys)]


def measure(given: argparse.Namespace) -> None:
    """Run the jobs in several processes, and add their lines to the file."""
    wanted = jobs(given, read(given.out))
    with ProcessPoolExecutor(given.workers, mp_context=get_context("spawn")) as pool:
        running = [pool.submit(job.run) for job in wanted]
        for number, future in enumerate(as_completed(running), start=1):
            lines = future.result()
            with given.out.open("a") as file:
                file.writelines(json.dumps(line) + "\n" for line in lines)
            last = lines[-1]
            words = [last[name] for name in _KEY], last.get("error", last.get("test"))
            print(f"{number} of {len(wanted)}:", *words, f"{last['seconds']:.1f} s", flush=True)


def store(rows: Sequence[Row], folder: Path, machine: str, again: bool = False) -> None:
    """Write untuned.csv, a line for each training, and recipes.csv, a line for each recipe.

    Args:
        rows: What was measured.
        folder: Where the files are written.
        machine: In words.
        again: Replace lines of an existing untuned.csv instead, and add to the counts of an
            existing recipes.csv, which must be of the same recipes.
    """
    sound = [row for row in rows if "error" not in row]
    versions = {f"{name} {row['versions'][name]}" for row in sound for name in ("argnn", "torch")}
    commits = ", ".join(sorted({row["git_commit"][:7] for row in sound if row["git_commit"]}))
    about = {
        "command": f"python scripts/{Path(__file__).name} OUT.jsonl",
        "machine": machine,
        "versions": ", ".join(sorted(versions)),
        "date": f"written on {date.today()} (commit {commits})",
    }
    cells = [_cells(row) for row in sorted(sound, key=_place)]
    trials = [row["trial"] for row in sound if row["method"] == "argnn"]
    known = folder / "untuned.csv"
    counts, recipes = recipe_rows(trials), folder / "recipes.csv"
    if not again:
        _write(recipes, about, counts)
        _write(known, about, cells)
        return
    graphs = ", ".join(sorted({row["graph"] for row in sound}))
    methods = ", ".join(sorted({row["method"] for row in sound}))
    told = f"{methods} on {graphs} was measured again on {machine} at commit {commits}"
    _write(known, *_replaced(known, told, cells))
    head, old = _read(recipes)
    same = [row["recipe"] for row in old] == [row["recipe"] for row in counts]
    require(same, "the recipes of recipes.csv", "those of this trial", "others")
    for row, more in zip(old, counts, strict=True):
        row.update({name: int(row[name]) + more[name] for name in _STAGES})
    _write(recipes, _told(head, f"and {machine} at commit {commits}"), old)


def _place(row: Row) -> tuple[str, str, int, int]:
    return row["graph"], row["method"], int(row["split"]), int(row["seed"])


def _replaced(path: Path, told: str, cells: Sequence[Row]) -> tuple[dict[str, str], list[Row]]:
    """What an existing file says about itself, and its lines with some replaced."""
    about, old = _read(path)
    found = {_place(row): row for row in [*old, *cells]}
    return _told(about, told), [found[place] for place in sorted(found)]


def _told(about: dict[str, str], told: str) -> dict[str, str]:
    told_before = [about["history"]] if "history" in about else []
    return {**about, "history": "; ".join([*told_before, told])}


def _read(path: Path) -> tuple[dict[str, str], list[Row]]:
    """What a file says about itself, and its lines."""
    lines = path.read_text(encoding="utf-8").splitlines()
    head = [line.removeprefix("# ").split(": ", 1) for line in lines if line.startswith("# ")]
    rows: list[Row] = list(csv.DictReader(line for line in lines if not line.startswith("# ")))
    return {name: value for name, value in head}, rows


def _write(path: Path, about: Mapping[str, str], rows: Sequence[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {name}: {value}\n" for name, value in about.items())
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _cells(row: Row) -> Row:
    """A line as the CSV file has it, scores in per cent."""
    trial = row["trial"]
    worth = trial.get("metric") or {}
    scores = {name: row.get(name, worth.get(name)) for name in (*_SCORES, *_WORTH)}
    found = {
        **row,
        **{name: "" if value is None else f"{100 * value:.3f}" for name, value in scores.items()},
        **{name: f"{row[name]:.0f}" for name in _BUDGET},
        "recipe": trial.get("chosen", ""),
    }
    return {name: found[name] for name in _COLUMNS}


_STAGES = ("tried", "second round", "third round", "chosen")


def recipe_rows(trials: Sequence[Mapping[str, Any]]) -> list[Row]:
    """How far each recipe came; a variation of its metric counts as the recipe."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for trial in trials:
        lengths = sorted({run["epochs"] for run in trial["runs"]})
        for run in trial["runs"]:
            rounds = lengths.index(run["epochs"])
            counts[run["name"]].update(_STAGES[: rounds + 1])
        counts[_recipe(trial["chosen"])].update(_STAGES[-1:])
    return [
        {"recipe": recipe.name, **{name: counts[recipe.name][name] for name in _STAGES}}
        for recipe in RECIPES
    ]


def _recipe(chosen: str) -> str:
    """The recipe that a choice is, or is a variation of."""
    names = [recipe.name for recipe in RECIPES if f"{chosen}, ".startswith(f"{recipe.name}, ")]
    return max(names, key=len)


def main() -> None:
    """Measure or store."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", nargs="+", default=[], help="names or files")
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--splits", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--trials", type=int, default=0, help="tune the strongest with so many")
    parser.add_argument("--search-splits", default="0,1,2", help="of a search, with commas")
    parser.add_argument("--limit", type=float, default=float("inf"), help="seconds of a training")
    parser.add_argument("--store", type=Path, help="write the CSV files into this folder")
    parser.add_argument("--machine", default="not recorded")
    parser.add_argument("--again", action="store_true", help="replace lines of these files")
    given = parser.parse_args()
    if given.store is None:
        measure(given)
    else:
        store(read(given.out), given.store, given.machine, given.again)


if __name__ == "__main__":
    main()
