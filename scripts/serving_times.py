"""Time what a service does: predictions for new nodes, and exported programs.

    python scripts/serving_times.py new-nodes cora graphs/facebook_pages.npz
    python scripts/serving_times.py programs cora random

Writes docs/results/new-nodes.csv or docs/results/programs.csv. Times are medians of processor time
of one thread, which other work on the machine hardly changes. Weights do not matter for time, so
that models are trained for one epoch.
"""

import argparse
import csv
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

import argnn
from argnn import ARGNNClassifier
from argnn.outputs.export import exported
from argnn.outputs.onnx_program import onnx_bytes
from argnn.runs.machine import versions

RESULTS = Path(__file__).parent.parent / "docs" / "results"
REQUESTS, EDGES, REPEATS = 100, 5, 7


def milliseconds(work: Callable[[], object], repeats: int = REPEATS) -> list[float]:
    """Processor time of each call, after one that is not measured."""
    work()
    found = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        found.append(1e3 * (time.process_time() - start))
    return found


def median(work: Callable[[], object]) -> float:
    """The median of some calls, in milliseconds."""
    return statistics.median(milliseconds(work))


def graph_of(name: str) -> Data:
    """A graph by name or path, or a random one of 20,000 nodes and 200,000 listed edges."""
    if name != "random":
        return argnn.data.load(name)
    draw = torch.Generator().manual_seed(0)
    edges = torch.randint(20_000, (2, 100_000), generator=draw)
    x = torch.randn(20_000, 128, generator=draw)
    return argnn.data.load(Data(x=x, edge_index=edges, y=torch.arange(20_000) % 5))


def fitted(graph: Data, **options: Any) -> ARGNNClassifier:
    """A model of the usual size."""
    return ARGNNClassifier(epochs=1, trial=False, device="cpu", **options).fit(graph)


def new_nodes(name: str) -> list[dict[str, object]]:
    """One new node at a time, with edges to random nodes, in the default form of argnn."""
    graph, draw = graph_of(name), np.random.default_rng(0)
    nodes = graph.num_nodes
    clf = fitted(graph)
    start = time.process_time()
    context = clf.context(graph)
    prepared = 1e3 * (time.process_time() - start)
    times, sizes = [], []
    for _ in range(REQUESTS):
        x = graph.x[[draw.integers(nodes)]].numpy()
        ends = np.stack([np.full(EDGES, nodes), draw.integers(0, nodes, EDGES)])
        times += milliseconds(lambda x=x, e=ends: clf.predict_proba(x, e, context=context), 1)
        sizes.append(clf.read_new(x, ends, context).num_nodes)
    return [
        {
            "graph": Path(name).stem,
            "nodes": nodes,
            "whole graph, ms": f"{median(lambda: clf.predict_proba(graph)):.0f}",
            "context, ms": f"{prepared:.0f}",
            "request, ms": f"{statistics.median(times):.1f}",
            "90 % of requests, ms": f"{np.quantile(times, 0.9):.1f}",
            "nodes in a request's part": f"{statistics.median(sizes):.0f}",
        }
    ]


def programs(name: str) -> list[dict[str, object]]:
    """A model, the same with edges it has not seen, its program, and its ONNX model."""
    from onnxruntime import InferenceSession, SessionOptions

    graph, rows = graph_of(name), []
    options = SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 4, 1
    for preset in ("default", "reference", "paper"):
        clf = fitted(graph, preset=preset)
        model, program = clf.model_.eval(), exported(clf)
        module, session = program.module(), None
        session = InferenceSession(onnx_bytes(program, preset, {}), options)
        x, edges = graph.x, graph.edge_index
        arrays = {"x": x.numpy(), "edge_index": edges.numpy()}
        with torch.no_grad():
            fresh = median(lambda: model(x, edges.clone()))  # noqa: B023 (called at once)
            exported_ms = median(lambda: module(x, edges))  # noqa: B023
            rows.append(
                {
                    "model": f"{name}, {preset}",
                    "model again, ms": f"{median(lambda: model(x, edges)):.0f}",  # noqa: B023
                    "model, new edges, ms": f"{fresh:.0f}",
                    "program, ms": f"{exported_ms:.0f}",
                    "program / model, new edges": f"{exported_ms / fresh:.2f}",
                    "ONNX, ms": f"{median(lambda: session.run(None, arrays)):.0f}",  # noqa: B023
                }
            )
    return rows


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = {"new-nodes": new_nodes, "programs": programs}
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("graphs", nargs="+", help="names or paths; 'random' for a random graph")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows = [row for name in chosen.graphs for row in kinds[chosen.kind](name)]
    found = versions()
    names = " ".join(Path(name).name for name in chosen.graphs)
    head = {
        "command": f"python scripts/serving_times.py {chosen.kind} {names}",
        "machine": "one thread of a CPU",
        "versions": f"argnn {found['argnn']}, torch {found['torch']}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "note": "medians of processor time",
    }
    with (RESULTS / f"{chosen.kind}.csv").open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {key}: {value}\n" for key, value in head.items())
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
