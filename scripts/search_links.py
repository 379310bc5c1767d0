"""The validation-only search behind argnn's usual settings for links.

Trains random candidates on some link splits of each graph and writes their mean validation
AUROC; test pairs are drawn by the split but never scored. All graphs see the same candidates
in the same order. Made for a GPU, where training steps are recorded and replayed. The record
``docs/link_search.jsonl`` was made before the script called ``train_one``.

    python scripts/search_links.py OUT.jsonl --budget cora=150 --budget texas=30 --splits 0,1
"""

import argparse
import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from validation import validated

from argnn.data import load
from argnn.errors import DivergenceError

Candidate = dict[str, Any]

#: What the candidates of each round are drawn from; the second looks around the first's best.
ROUNDS: dict[int, dict[str, list[Any]]] = {
    1: {
        "decoder": ["dot", "metric", "mlp", "cosine"],
        "metric": ["both", "structure", "fixed"],
        "normalization": ["sym", "rw"],
        "self_path": [True, False],
        "num_layers": [1, 2, 3],
        "hidden_channels": [64, 128, 256],
        "dropout": [0.0, 0.3, 0.5],
        "input_dropout": [0.0, 0.3, 0.5],
        "lr": [0.002, 0.005, 0.01],
        "weight_decay": [0.0, 1e-4, 1e-3],
    },
    2: {
        "decoder": ["dot", "metric", "mlp"],
        "metric": ["both", "structure", "fixed"],
        "normalization": ["sym", "rw"],
        "self_path": [True],
        "num_layers": [1, 2],
        "hidden_channels": [64, 128, 256],
        "dropout": [0.3, 0.5],
        "input_dropout": [0.0, 0.3],
        "lr": [0.002, 0.005],
        "weight_decay": [1e-4, 1e-3],
    },
}
BUDGET = {"epochs": 300, "evaluate_every": 5}


def candidates(choices: dict[str, list[Any]], seed: int) -> Iterator[Candidate]:
    """Random settings without end."""
    draw = random.Random(seed)
    while True:
        yield {name: draw.choice(values) for name, values in choices.items()}


def validation_score(graph: Any, candidate: Candidate, split: int, device: str) -> float | None:
    """Best validation AUROC of one run; None where it diverged."""
    settings = {k: v for k, v in candidate.items() if k != "decoder"} | BUDGET
    asked = {"task": "link", "decoder": candidate["decoder"], "device": device, "fresh": True}
    try:
        return validated(graph.name, graph, split, settings, **asked).val_score
    except DivergenceError:
        return None


def search(
    name: str, seconds: float, number_of_round: int, splits: list[int], device: str
) -> Iterator[dict[str, Any]]:
    """Rows of as many candidates as fit into the time."""
    graph = load(name)
    began = time.perf_counter()
    for number, candidate in enumerate(candidates(ROUNDS[number_of_round], seed=0)):
        scores = [validation_score(graph, candidate, split, device) for split in splits]
        known = [score for score in scores if score is not None]
        mean = sum(known) / len(known) if len(known) == len(scores) else None
        identity = {"data": name, "round": number_of_round, "number": number}
        yield {**identity, **candidate, "splits": splits, "val_auroc": mean}
        if time.perf_counter() - began > seconds:
            return


def main() -> None:
    """Run the search that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--budget", action="append", required=True, metavar="GRAPH=SECONDS")
    parser.add_argument("--round", type=int, default=1, choices=ROUNDS)
    parser.add_argument("--splits", default="0,1")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    splits = [int(text) for text in arguments.splits.split(",")]
    with arguments.out.open("a", encoding="utf-8") as file:
        for budget in arguments.budget:
            name, _, seconds = budget.partition("=")
            for row in search(name, float(seconds), arguments.round, splits, arguments.device):
                file.write(json.dumps(row) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
