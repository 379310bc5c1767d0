"""Checks of every rival that are too long for the tests: numerical safety, capacity and cost.

``safety`` trains 300 epochs in float32 on each graph and looks at every output, gradient and
parameter; ``capacity`` looks how far the training loss falls on Texas without dropout; ``cost``
measures seconds per epoch and, in a process of its own, the peak memory that training adds;
``curvature`` times the curvature of all edges, computed and then read from disk.

    python scripts/check_rivals.py safety OUT.jsonl --device cuda
    python scripts/check_rivals.py capacity OUT.jsonl
    python scripts/check_rivals.py cost OUT.jsonl --data cora,squirrel --epochs 10
    python scripts/check_rivals.py curvature OUT.jsonl --methods curvdrop
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.data import DATASETS, split_masks
from argnn.nn import MODELS, AbstractNodeModel
from argnn.runs.prepare import Plan, prepare
from argnn.runs.train_one import load_curvature
from argnn.settings.resolve import Request

Row = dict[str, Any]
RIVALS = [name for name in MODELS if name != "argnn"]
NINE = [name for name, spec in DATASETS.items() if not spec.embedded]
CAPACITY_LOSS = 0.1


def plan_of(method: str, data: str, device: str, *overrides: str) -> Plan:
    """What the stored settings of a method ask for."""
    return prepare(Request(data, model=method, device=device, overrides=overrides))


def train(
    plan: Plan,
    epochs: int,
    after_step: Callable[[int, AbstractNodeModel, Tensor, Tensor], None],
) -> None:
    """Train on split 0; ``after_step`` sees number, model, scores and loss of each step."""
    config, device = plan.config, plan.config.device
    torch.manual_seed(config.seed)
    graph = plan.graph.clone().to(device)
    load_curvature(config, graph)
    mask = split_masks(plan.graph, 0)[0].to(device)
    model = config.spec.build().to(device).train()
    model(graph.x, graph.edge_index)  # gives weights that belong to nodes their size
    optimizer = torch.optim.Adam(
        model.parameters(), lr=config.train.lr, weight_decay=config.train.weight_decay
    )
    for epoch in range(epochs):
        optimizer.zero_grad()
        scores = model(graph.x, graph.edge_index)
        loss = F.cross_entropy(scores[mask], graph.y[mask])
        loss.backward()
        optimizer.step()
        after_step(epoch, model, scores.detach(), loss.detach())


def safety(method: str, data: str, device: str, epochs: int) -> Row:
    """The first epoch with a number that is not finite, if there is one."""
    # No look at a value before the end: each would make a GPU wait.
    bad = torch.zeros(epochs, dtype=torch.bool, device=device)
    last: dict[str, Tensor] = {}

    def look(epoch: int, model: AbstractNodeModel, scores: Tensor, loss: Tensor) -> None:
        seen = [scores, loss]
        for parameter in model.parameters():
            seen += [parameter.detach()] if parameter.grad is None else [parameter, parameter.grad]
        total = torch.stack([tensor.detach().isfinite().all() for tensor in seen]).all()
        bad[epoch] = ~total
        last["loss"] = loss

    train(plan_of(method, data, device), epochs, look)
    first = bad.nonzero().flatten().tolist()
    found = {"finite": not first, "first_bad_epoch": first[0] if first else None}
    return {**found, "epochs": epochs, "last_loss": float(last["loss"])}


def capacity(method: str, data: str, device: str, epochs: int) -> Row:
    """The lowest training loss without dropout, within some epochs."""
    names = [name for name in ("dropout", "input_dropout", "propagation_dropout", "edge_dropout")]
    options = MODELS[method].__init__.__kwdefaults__ or {}
    changes = [f"{name}=0.0" for name in names if name in options] + ["weight_decay=0.0"]
    losses: list[float] = []
    plan = plan_of(method, data, device, *changes)
    train(plan, epochs, lambda _, __, ___, loss: losses.append(float(loss)))
    reached = next((n for n, loss in enumerate(losses) if loss < CAPACITY_LOSS), None)
    return {"lowest_loss": min(losses), "epoch_below": reached, "limit": CAPACITY_LOSS}


def cost(method: str, data: str, device: str, epochs: int) -> Row:
    """Seconds per epoch after the first two, and memory beyond that of the loaded graph."""
    plan = plan_of(method, data, device)
    load_curvature(plan.config, plan.graph)
    before, began = _peak_mib(), [0.0]

    def look(epoch: int, *_: Any) -> None:
        if epoch == 1:
            began[0] = time.perf_counter()

    train(plan, epochs + 2, look)
    spent = time.perf_counter() - began[0]
    return {
        "seconds_per_epoch": spent / epochs,
        "added_mib": _peak_mib() - before,
        "peak_mib": _peak_mib(),
        "threads": torch.get_num_threads(),
    }


def curvature(method: str, data: str, device: str, epochs: int) -> Row:
    """Seconds to compute the curvature that a method needs, and to find it again."""
    plan = plan_of(method, data, device)
    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARGNN_CACHE"] = folder
        for _ in range(2):
            graph = plan.graph.clone()  # edges that nothing is known about yet
            began = time.perf_counter()
            facts = load_curvature(plan.config, graph)
            seconds.append(time.perf_counter() - began)
    assert facts is not None, f"{method} uses no curvature"
    counts = {name: facts[name] for name in ("exact", "estimated")}
    return {"computed_seconds": seconds[0], "read_seconds": seconds[1], **counts}


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


#: Each check and its usual number of epochs.
CHECKS = {
    "safety": (safety, 300),
    "capacity": (capacity, 300),
    "cost": (cost, 10),
    "curvature": (curvature, 0),
}
GRAPHS = {
    "safety": NINE,
    "capacity": ["texas"],
    "cost": ["cora", "squirrel"],
    "curvature": ["cora", "chameleon"],
}
#: Checks that need a process of their own: its memory, or its cache folder.
ALONE = ("cost", "curvature")


def rows(asked: argparse.Namespace) -> Iterator[Row]:
    """One row per method and graph."""
    check, usual_epochs = CHECKS[asked.check]
    graphs = asked.data.split(",") if asked.data else GRAPHS[asked.check]
    context = multiprocessing.get_context("spawn")
    for data in graphs:
        for method in asked.methods.split(","):
            arguments = (method, data, asked.device, asked.epochs or usual_epochs)
            if asked.check in ALONE:
                with context.Pool(1) as pool:
                    found = pool.apply(check, arguments)
            else:
                found = check(*arguments)
            yield {"check": asked.check, "method": method, "data": data, **found}


def main() -> None:
    """Run the check that the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=CHECKS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--data")
    parser.add_argument("--methods", default=",".join(RIVALS))
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--device", default="cpu")
    asked = parser.parse_args()
    with asked.out.open("a", encoding="utf-8") as file:
        for row in rows(asked):
            file.write(json.dumps(row) + "\n")
            file.flush()
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
