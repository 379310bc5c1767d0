"""Validation curves of many recipes on many graphs: what the short trial's recipes are chosen from.

Trains every recipe on some splits and writes the validation score of every epoch; test labels are
never read. With the curves at hand, any schedule of a trial can be replayed without training
(``replay_trial.py``), and what it chooses on some validation nodes can be judged on the others
(``replay_leads.py``). Made for a GPU, where training steps are recorded and replayed.

    python scripts/try_recipes.py OUT.jsonl --graphs cora texas FOLDER/fb_hopkins.npz --splits 0 1
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
from validation import validated

from argnn.data import load
from argnn.errors import DivergenceError
from argnn.nn import AbstractNodeModel
from argnn.runs.problems import Problem
from argnn.train import NodeClassification

Recipe = dict[str, Any]
#: Into so many parts the validation nodes of a split are divided, always in the same way.
FOLDS = 5


class FoldScores:
    """Right answers and sums of losses in each part of the validation nodes, for every epoch."""

    def __init__(self, problem: Problem) -> None:
        task = problem.task
        assert isinstance(task, NodeClassification)
        self.nodes, self.labels = task.val_nodes, task.val_labels
        self.fold = fold_of(self.nodes.numel()).to(self.nodes.device)
        self.correct: list[list[int]] = []
        self.losses: list[list[float]] = []

    def __call__(self, model: AbstractNodeModel, epoch: int, outputs: Tensor) -> None:
        """Note one epoch."""
        scores = outputs.detach()[self.nodes]
        correct = self._summed((scores.argmax(-1) == self.labels).double())
        losses = self._summed(F.cross_entropy(scores, self.labels, reduction="none").double())
        self.correct.append([int(count) for count in correct])
        self.losses.append([round(loss, 4) for loss in losses])

    def _summed(self, values: Tensor) -> list[float]:
        sums: list[float] = torch.bincount(self.fold, values, minlength=FOLDS).tolist()
        return sums


def fold_of(count: int) -> Tensor:
    """The part of each of so many validation nodes, ``[count]``."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(0)) % FOLDS


def recipes() -> Iterator[tuple[str, Recipe]]:
    """A name and complete settings; those of the same family differ in one thing."""
    for family, base in (*_shallow(), *_as_rivals(), *_without_self(), *_deep()):
        for metric, rows in itertools.product(("fixed", "structure", "both"), (False, True)):
            if metric == "both" and not base.get("self_path", True):
                continue  # it would bring the node's own features back
            if rows and metric != "structure" and base["num_layers"] > 4:
                continue
            name = f"{family}, {metric} metric{', adjacency rows' if rows else ''}"
            yield name, {**base, "metric": metric, "adjacency_rows": rows}


def _shallow() -> Iterator[tuple[str, Recipe]]:
    base = {"hidden_channels": 128, "num_layers": 2, "epochs": 200}
    for normalization in ("sym", "rw", "sum"):
        yield f"self path, {normalization}", {**base, "normalization": normalization}
    light = {"dropout": 0.5, "input_dropout": 0.0, "lr": 0.01, "weight_decay": 5e-4}
    yield "self path, light", {**base, **light}
    yield "one layer", {**base, "num_layers": 1, "dropout": 0.7}
    yield "ten steps", {**base, "num_layers": 1, "hops": 10, "norm": "none"}


def _as_rivals() -> Iterator[tuple[str, Recipe]]:
    """As H2GCN and GPR-GNN: messages from two or eight hops, narrow layers, their training."""
    base = {"hidden_channels": 64, "lr": 0.01, "weight_decay": 5e-4, "epochs": 200}
    for norm, name in (("layer", "layer norm"), ("none", "no norm")):
        far = {"num_layers": 2, "hops": 2, "input_dropout": 0.0}
        yield f"two hops, {name}", {**base, **far, "norm": norm}
        yield f"eight steps, {name}", {**base, "num_layers": 1, "hops": 8, "norm": norm}


def _without_self() -> Iterator[tuple[str, Recipe]]:
    base = {
        "self_path": False,
        "dropout": 0.0,
        "input_dropout": 0.0,
        "lr": 0.01,
        "weight_decay": 0.0,
        "epochs": 200,
    }
    for width, norm, normalization in (
        (64, "layer", "sym"),
        (64, "layer", "rw"),
        (128, "batch", "sym"),
    ):
        shape = {"hidden_channels": width, "num_layers": 4, "norm": norm}
        name = f"no self path, {norm} norm, {normalization}"
        yield name, {**base, **shape, "normalization": normalization}


def _deep() -> Iterator[tuple[str, Recipe]]:
    base = {"jump": "last", "input_dropout": 0.0, "epochs": 500}
    for layers, width, norm, drop, rate, decay in (
        (2, 512, "layer", 0.5, 1e-3, 5e-4),
        (4, 256, "layer", 0.5, 1e-3, 5e-4),
        (4, 128, "batch", 0.2, 5e-3, 0.0),
        (8, 128, "batch", 0.5, 5e-3, 5e-4),
        (12, 64, "batch", 0.2, 1e-2, 0.0),
    ):
        yield (
            f"{layers} deep layers of {width}, {norm} norm",
            {
                **base,
                "num_layers": layers,
                "hidden_channels": width,
                "norm": norm,
                "dropout": drop,
                "lr": rate,
                "weight_decay": decay,
            },
        )


def curve(data: str, graph: Any, split: int, recipe: Recipe, device: str) -> dict[str, Any]:
    """Validation score and loss of every epoch, in all and in each fold."""
    began = time.perf_counter()
    folds: list[FoldScores] = []

    def watch(problem: Problem) -> FoldScores:
        folds.append(FoldScores(problem))
        return folds[-1]

    try:
        result = validated(data, graph, split, recipe, watch=watch, fresh=True, device=device)
    except DivergenceError as error:
        return {"error": str(error)}
    return {
        "fold_sizes": folds[0].fold.bincount(minlength=FOLDS).tolist(),
        "fold_correct": folds[0].correct,
        "fold_losses": folds[0].losses,
        "scores": [round(record.val_score, 5) for record in result.history],
        "losses": [round(record.val_loss, 5) for record in result.history],
        "seconds": round(time.perf_counter() - began, 2),
    }


def main() -> None:
    """Train what the file does not have yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--graphs", nargs="+", required=True)
    parser.add_argument("--splits", nargs="+", type=int, default=[0])
    parser.add_argument("--device", default="auto")
    parser.add_argument("--share", default="0/1", help="2/6: this process takes the third sixth")
    parser.add_argument("--epochs", type=int, help="of every recipe, to try the script")
    given = parser.parse_args()
    share, shares = map(int, given.share.split("/"))
    done = set()
    if given.out.exists():
        rows = map(json.loads, given.out.read_text().splitlines())
        done = {(row["graph"], row["split"], row["recipe"]) for row in rows}
    with given.out.open("a") as file:
        for data in given.graphs:
            graph, name = load(data), Path(data).stem
            jobs = list(itertools.product(recipes(), given.splits))
            for (recipe, settings), split in jobs[share::shares]:
                if (name, split, recipe) in done:
                    continue
                settings = (
                    settings if given.epochs is None else {**settings, "epochs": given.epochs}
                )
                found = curve(data, graph, split, settings, given.device)
                row = {"graph": name, "split": split, "recipe": recipe, "settings": settings}
                file.write(json.dumps({**row, **found}) + "\n")
                file.flush()
                best = max(found.get("scores", [0.0]))
                print(f"{name} {split} {recipe}: {best:.4f}, {found.get('seconds')} s", flush=True)


if __name__ == "__main__":
    main()
