"""The validation-only search behind ``src/argnn/settings/files/argnn.yaml``.

Trains every candidate on all splits of a graph and writes its mean validation accuracy; test
labels are never read. Made for a GPU, where training steps are recorded and replayed. The record
``docs/settings_search.jsonl`` comes from an earlier form with a training step of its own, so that
new scores may differ a little from it.

    python scripts/search_settings.py FIRST.jsonl --budget cora=240 --budget squirrel:directed=60
    python scripts/search_settings.py SECOND.jsonl --budget texas=100 --again FIRST.jsonl --seeds 5
"""

import argparse
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from validation import validated

from argnn.data import load

Candidate = dict[str, Any]


def candidates(name: str) -> Iterator[Candidate]:
    """Settings to try on a graph, the most promising first."""
    if name.startswith(("chameleon", "squirrel")):
        yield from _without_self_path(directed=name.endswith(":directed"))
    elif name in ("cora", "citeseer", "pubmed"):
        yield from _citation(name)
    else:
        yield from _small()


def _without_self_path(directed: bool) -> Iterator[Candidate]:
    base = {
        "self_path": False,
        "hidden_channels": 64,
        "dropout": 0.0,
        "input_dropout": 0.0,
        "lr": 0.01,
        "weight_decay": 0.0,
        "epochs": 100,
        "direction": "out" if directed else "undirected",
    }
    for layers, normalization, metric, spread in itertools.product(
        (4, 5), ("sym", "rw"), ("structure", "fixed"), (0.0, 1.0)
    ):
        if metric == "fixed" and spread:
            continue
        yield base | {
            "num_layers": layers,
            "normalization": normalization,
            "metric": metric,
            "metric_spread": spread,
            "metric_hidden": 32,
        }


def _citation(name: str) -> Iterator[Candidate]:
    base = {"hidden_channels": 128, "num_layers": 2, "dropout": 0.7, "epochs": 200}
    if name == "pubmed":
        for metric, extra in itertools.product(
            ("both", "structure", "features", "fixed"),
            ({"epochs": 250}, {"epochs": 120, "lr": 0.01, "schedule": "cosine"}),
        ):
            yield base | {"metric": metric} | extra
        return
    for (drop, decay), hops, normalization, metric in itertools.product(
        ((0.7, 1e-3), (0.5, 3e-3)),
        (2, 1),
        ("sym", "sum", "rw"),
        ("both", "structure", "features", "fixed"),
    ):
        yield base | {
            "dropout": drop,
            "weight_decay": decay,
            "hops": hops,
            "normalization": normalization,
            "metric": metric,
        }


def _small() -> Iterator[Candidate]:
    base = {"hidden_channels": 128, "epochs": 200}
    scalar = {"modulation": "scalar", "attention": True, "eps0": 0.5, "lr": 0.01}
    for layers, form, metric, normalization, (drop, decay) in itertools.product(
        (2, 3, 1),
        (scalar, {}),
        ("features", "structure", "fixed"),
        ("sum", "rw"),
        ((0.7, 1e-3), (0.5, 3e-3)),
    ):
        yield (
            base
            | form
            | {
                "metric": metric,
                "normalization": normalization,
                "num_layers": layers,
                "dropout": drop,
                "weight_decay": decay,
            }
        )


def leaders(name: str, results: Path, count: int) -> Iterator[Candidate]:
    """The candidates with the best validation accuracy in an earlier search of a graph."""
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    rows = [row for row in rows if row["data"] == name]
    rows.sort(key=lambda row: -float(row["val_accuracy"]))
    yield from (row["candidate"] for row in rows[:count])


def search(name: str, tried: Iterator[Candidate], seconds: float, out: Path, seeds: range) -> None:
    """Try candidates on one graph until its time is up."""
    data, _, edges = name.partition(":")
    graph = load(data, directed=edges == "directed")
    began, count = time.perf_counter(), 0
    for candidate in tried:
        if time.perf_counter() - began > seconds:
            break
        runs = validation_runs(name, graph, candidate, seeds)
        accuracies = [accuracy for accuracy, _ in runs]
        row = {
            "data": name,
            "seeds": len(seeds),
            "candidate": candidate,
            "val_accuracy": sum(accuracies) / len(accuracies),
            "epochs": sum(epoch for _, epoch in runs) / len(runs),
        }
        with out.open("a") as stream:
            stream.write(json.dumps(row) + "\n")
        count += 1
    print(f"{name}: {count} candidates in {time.perf_counter() - began:.0f} s", flush=True)


def validation_runs(
    name: str, graph: Any, candidate: Candidate, seeds: range
) -> list[tuple[float, int]]:
    """Best validation accuracy and its epoch for every seed and split."""
    settings = {"lr": 0.005, "weight_decay": 1e-3, "epochs": 200, **candidate}
    asked = {"directed": name.endswith(":directed"), "fresh": True}
    runs = []
    for seed, split in itertools.product(seeds, range(graph.train_mask.size(1))):
        found = validated(graph.name, graph, split, settings, seed=seed, **asked)
        runs.append((found.val_score, found.best_epoch))
    return runs


def main() -> None:
    """Search every graph named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", action="append", required=True, metavar="DATA=SECONDS")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--again", type=Path, help="repeat only the leaders of these results")
    parser.add_argument("--leaders", type=int, default=10)
    arguments = parser.parse_args()
    for budget in arguments.budget:
        name, seconds = budget.split("=")
        again = arguments.again
        tried = leaders(name, again, arguments.leaders) if again else candidates(name)
        search(name, tried, float(seconds), arguments.out, range(arguments.seeds))


if __name__ == "__main__":
    main()
