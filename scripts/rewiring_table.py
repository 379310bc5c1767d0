"""Rewire graphs along the learned distances of a shortly trained model; one Markdown line each.

Homophily is that of all edges, and of those between nodes that the model was not trained on: the
points of the others know their labels. The model has the usual settings of the classifier, on
the first split.

    python scripts/rewiring_table.py texas cora squirrel --epochs 40
"""

import argparse
import time

import torch
from torch import Tensor

from argnn import ARGNNClassifier
from argnn import functional as AF
from argnn.analysis import learned_layers, rewire
from argnn.analysis.properties import degree
from argnn.data import load
from argnn.tables import markdown_table

HEADER = ("data", "pairs", "accuracy", "homophily", "after", "held out", "after", "length")
HEADER += ("accepted", "tried", "seconds")


def row(name: str, epochs: int, rounds: int) -> tuple[object, ...]:
    """Train, rewire, check the degrees, and describe."""
    graph = load(name)
    train, val = graph.train_mask[:, 0], graph.val_mask[:, 0]
    model = ARGNNClassifier(trial=False, epochs=epochs, device="cpu")
    model.fit(graph, train_mask=train, val_mask=val)
    layer = learned_layers(model.model_, graph)[-1]
    begin = time.perf_counter()
    found = rewire(layer.h, layer.g, graph.edge_index, y=graph.y, max_rounds=rounds)
    seconds = time.perf_counter() - begin
    edges, nodes = graph.edge_index, graph.num_nodes
    if not torch.equal(degree(edges, nodes), degree(found.edge_index, nodes)):
        raise AssertionError(f"{name}: degrees changed")
    hidden = graph.y.masked_fill(train, -1)
    score = model.score(graph, mask=graph.test_mask[:, 0])
    return (
        name,
        found.edge_index.size(1) // 2,
        f"{score:.3f}",
        f"{found.homophily_before:.3f}",
        f"{found.homophily_after:.3f}",
        *(_homophily(e, hidden) for e in (edges, found.edge_index)),
        f"{100 * (found.length_after / found.length_before - 1):+.0f} %",
        found.accepted,
        found.tried,
        f"{seconds:.1f}",
    )


def _homophily(edge_index: Tensor, y: Tensor) -> str:
    return f"{AF.edge_homophily(edge_index, y):.3f}"


def main() -> None:
    """Print the table for the graphs named on the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=100)
    options = parser.parse_args()
    rows = [row(name, options.epochs, options.rounds) for name in options.data]
    print("\n".join(markdown_table(HEADER, rows)))


if __name__ == "__main__":
    main()
