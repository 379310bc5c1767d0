"""The validation-only search behind ``src/argnn/settings/files/argnn.yaml``.

Trains every candidate on all splits of a graph and writes its mean validation accuracy; test
masks are never read. Needs a GPU: one training-and-validation step is recorded as a CUDA
graph and replayed, with the labels of one split after another in its buffers.

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

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.data import load
from argnn.nn import ARGNN

Candidate = dict[str, Any]

_TRAIN_KEYS = ("lr", "weight_decay", "epochs", "schedule")


class Replay:
    """One recorded training step of a model, replayed for every epoch and split."""

    def __init__(self, graph: Any, candidate: Candidate) -> None:
        settings = {"lr": 0.005, "weight_decay": 1e-3, "epochs": 200, "schedule": "constant"}
        settings |= {k: v for k, v in candidate.items() if k in _TRAIN_KEYS}
        model = {k: v for k, v in candidate.items() if k not in _TRAIN_KEYS}
        self.epochs = int(settings["epochs"])
        self.cosine = settings["schedule"] == "cosine"
        self.x, self.edge_index = graph.x.cuda(), graph.edge_index.cuda()
        self.base_rate = float(settings["lr"])
        self.model = ARGNN(graph.x.size(1), out_channels=graph.class_count, **model).cuda()
        self.rate = torch.tensor(self.base_rate, device="cuda")
        self.optimizer = torch.optim.Adam(
            self.model.parameters(),
            lr=self.rate,
            weight_decay=float(settings["weight_decay"]),
            capturable=True,
        )
        self.train_y = torch.zeros(graph.num_nodes, dtype=torch.int64, device="cuda")
        self.val_y = torch.zeros_like(self.train_y)
        self.epoch = torch.zeros(1, dtype=torch.int64, device="cuda")
        self.accuracy = torch.zeros(self.epochs + 8, device="cuda")
        self._record()

    def _record(self) -> None:
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self._step()
        torch.cuda.current_stream().wait_stream(stream)
        self.recorded = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.recorded):
            self._step()

    def _step(self) -> None:
        self.model.train()
        self.optimizer.zero_grad(set_to_none=False)
        scores = self.model(self.x, self.edge_index)
        F.cross_entropy(scores, self.train_y, ignore_index=-1).backward()
        self.optimizer.step()
        self.model.eval()
        with torch.no_grad():
            guess = self.model(self.x, self.edge_index).argmax(-1)
            known = self.val_y >= 0
            accuracy = ((guess == self.val_y) & known).sum() / known.sum()
            self.accuracy.scatter_(0, self.epoch, accuracy.view(1))
            self.epoch += 1

    def best_validation(self, train_y: Tensor, val_y: Tensor, seed: int) -> tuple[float, int]:
        """Best validation accuracy over the epochs of a fresh run, and its epoch."""
        torch.manual_seed(seed)
        self.model.reset_parameters()
        for state in self.optimizer.state.values():
            for value in state.values():
                value.zero_()
        self.epoch.zero_()
        self.train_y.copy_(train_y)
        self.val_y.copy_(val_y)
        for epoch in range(self.epochs):
            if self.cosine:
                angle = torch.tensor(torch.pi * epoch / self.epochs)
                self.rate.fill_(self.base_rate * 0.5 * (1 + torch.cos(angle).item()))
            self.recorded.replay()
        history = self.accuracy[: self.epochs]
        return float(history.max()), int(history.argmax()) + 1


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
        runs = validation_runs(graph, candidate, seeds)
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


def validation_runs(graph: Any, candidate: Candidate, seeds: range) -> list[tuple[float, int]]:
    """Best validation accuracy and its epoch for every seed and split."""
    replay = Replay(graph, candidate)
    runs = []
    for seed, split in itertools.product(seeds, range(graph.train_mask.size(1))):
        train_y = torch.where(graph.train_mask[:, split], graph.y, -1)
        val_y = torch.where(graph.val_mask[:, split], graph.y, -1)
        runs.append(replay.best_validation(train_y, val_y, seed))
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
