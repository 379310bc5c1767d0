"""Training steps on a CPU in several ways that take turns: what pays, and by how much.

    python scripts/step_ratios.py precision 2708x10858 20000x400000 120000x1200000
    python scripts/step_ratios.py widths 2708x10858 20000x400000
    argnn generate communities --nodes 120000 --edges 600000 --classes 100 --features 128
    python scripts/step_ratios.py order pubmed graphs/facebook_pages.npz communities 120000x1200000

Writes docs/results/steps-KIND.csv: processor time of one thread, medians, and ratios to the first
way. A graph is a name, a path, or the numbers of nodes and listed edges of a random one.

- ``precision``: float32, and autocast to bfloat16.
- ``widths``: of the metric network of argnn's default form.
- ``order`` of the nodes: as they are, random, the reverse order of Cuthill and McKee, and the parts
  of METIS one after the other. Where neighbours have near numbers, gathered rows are more often in
  a cache.
"""

import argparse
import csv
import re
import statistics
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

import argnn
from argnn.bench.perf.run import cpu_model
from argnn.data import load
from argnn.nn import model_class
from argnn.runs.machine import step_memory_kept, versions
from argnn.train.devices import scores_and_metrics

RESULTS = Path(__file__).parent.parent / "docs" / "results"
LAYERS, CHANNELS, CLASSES = 3, 128, 10
#: Nodes of a part of METIS: their rows of 128 numbers take 256 KiB, a quarter of the second cache.
PART = 512
#: A step, by the way it is made and the name of the model.
Steps = dict[tuple[str, str], Callable[[], None]]
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "paper": ("argnn", {"preset": "paper"}),
    "default": ("argnn", {}),
    "metric=message": ("argnn", {"metric": "message"}),
    "gcn": ("gcn", {}),
}


def edges_of(name: str) -> tuple[int, Tensor]:
    """Number of nodes, and listed edges, both directions of each."""
    if not (sizes := re.fullmatch(r"(\d+)x(\d+)", name)):
        graph = load(name)
        return graph.num_nodes, graph.edge_index
    nodes, edges = map(int, sizes.groups())
    draw = torch.Generator().manual_seed(0)
    half = torch.randint(nodes, (2, edges // 2), generator=draw)
    return nodes, torch.cat([half, half.flip(0)], 1)


def step_of(
    model: str, nodes: int, edge_index: Tensor, precision: str = "float32", **options: Any
) -> Callable[[], None]:
    """A training step of a model on random features."""
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(nodes, CHANNELS, generator=draw)
    y = torch.randint(CLASSES, (nodes,), generator=draw)
    name, usual = MODELS[model]
    sizes = (CHANNELS, CHANNELS, CLASSES, LAYERS)
    net = model_class(name)(*sizes, **(usual | options))
    optimizer = torch.optim.Adam(net.parameters())

    def step() -> None:
        optimizer.zero_grad()
        with argnn.kernels.unchanged(x, edge_index):
            scores, _ = scores_and_metrics(net, x, edge_index, precision)
            F.cross_entropy(scores, y).backward()
        optimizer.step()

    return step


def precisions(nodes: int, edge_index: Tensor) -> Steps:
    """Each model in each type."""
    return {
        (kind, model): step_of(model, nodes, edge_index, kind)
        for kind in ("float32", "bfloat16")
        for model in MODELS
    }


def widths(nodes: int, edge_index: Tensor) -> Steps:
    """The default form with narrower metric networks, and gcn for comparison."""
    found = {
        (f"metric_hidden={width}", "default"): step_of(
            "default", nodes, edge_index, metric_hidden=width
        )
        for width in (64, 32, 16)
    }
    return found | {("gcn", "default"): step_of("gcn", nodes, edge_index)}


def orders(nodes: int, edge_index: Tensor) -> Steps:
    """The default form and gcn with nodes in each order."""
    import pymetis
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    source, target = edge_index.numpy()
    matrix = csr_array((np.ones(source.size), (source, target)), (nodes, nodes))
    csr = pymetis.CSRAdjacency(matrix.indptr, matrix.indices)
    _, part = pymetis.part_graph(max(2, nodes // PART), csr)
    ranked = {
        "as it is": np.arange(nodes),
        "random": np.random.default_rng(0).permutation(nodes),
        "Cuthill-McKee": reverse_cuthill_mckee(matrix, symmetric_mode=True),
        "METIS": np.argsort(part, kind="stable"),
    }
    found = {}
    for order, rank in ranked.items():
        place = np.empty(nodes, np.int64)
        place[rank] = np.arange(nodes)
        renamed = torch.from_numpy(place)[edge_index].contiguous()
        for model in ("default", "gcn"):
            found[order, model] = step_of(model, nodes, renamed)
    return found


KINDS: dict[str, Callable[[int, Tensor], Steps]] = {
    "precision": precisions,
    "widths": widths,
    "order": orders,
}


def measure(name: str, kind: str, repeats: int) -> Iterable[dict[str, str]]:
    """One line for each model on a graph."""
    steps = KINDS[kind](*edges_of(name))
    spans: dict[tuple[str, str], list[float]] = {key: [] for key in steps}
    with step_memory_kept() as step_done:
        for repeat in range(repeats + 2):
            for key, step in steps.items():
                began = time.process_time()
                step()
                if repeat > 1:  # the first ones prepare the graph and take memory
                    spans[key].append(1e3 * (time.process_time() - began))
                step_done()
    ms = {key: statistics.median(found) for key, found in spans.items()}
    (first, *others) = dict.fromkeys(way for way, _ in steps)
    for model in dict.fromkeys(model for _, model in steps):
        base = ms[first, model]
        line = {"graph": Path(name).stem, "model": model, f"{first}, ms": f"{base:.1f}"}
        yield line | {f"{way}, ratio": f"{ms[way, model] / base:.2f}" for way in others}


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--repeats", type=int, default=9)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name in asked.graphs:
        for line in measure(name, asked.kind, asked.repeats):
            lines.append(line)
            print(*line.values(), sep=", ", flush=True)
    known = versions()
    names = " ".join(Path(name).name for name in asked.graphs)
    about = {
        "command": f"python scripts/step_ratios.py {asked.kind} {names} --repeats {asked.repeats}",
        "machine": f"one thread of {cpu_model()}",
        "versions": f"argnn {known['argnn']}, torch {known['torch']}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "note": f"processor time; medians of {asked.repeats} steps that take turns",
    }
    path = RESULTS / f"steps-{asked.kind}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {name}: {value}\n" for name, value in about.items())
        writer = csv.DictWriter(file, list(lines[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
