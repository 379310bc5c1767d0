"""Do statistics of the learned geometry tell trees from cliques on `mixed`, where both are known?

For every statistic the AUROC of clique-like against tree-like nodes, over the test regions of each
split: 1 where it is larger in every clique, 0 where it is larger in every tree, 0.5 where it says
nothing. Means over the splits [smallest largest], and the share of nodes at which the statistic is
defined. A metric network of inputs `structure` is told the degree and clustering of a node, one of
inputs `features` has to find out. What the graph says without any model stands first.

    python scripts/geometry_on_mixed.py --splits 3 --epochs 100
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from pandas import DataFrame
from sklearn.metrics import roc_auc_score
from torch_geometric.data import Data

from argnn import ARGNNClassifier
from argnn.analysis import Layer, learned_layers
from argnn.analysis.tables import GRAPH_COLUMNS, METRIC_COLUMNS, node_table
from argnn.data import load
from argnn.data.synthetic import GEOMETRIES

TREE, CLIQUE = GEOMETRIES.index("tree"), GEOMETRIES.index("clique")
METRIC_INPUTS = ("structure", "features")
#: What the short trial chose for this graph on validation, with other metric networks beside.
MODEL = {
    "hidden_channels": 64,
    "num_layers": 4,
    "self_path": False,
    "normalization": "rw",
    "dropout": 0.0,
    "input_dropout": 0.0,
}
TRAIN = {"lr": 0.01, "weight_decay": 0.0}


def trained(graph: Data, split: int, inputs: str, epochs: int) -> ARGNNClassifier:
    """A classifier of one split."""
    model = ARGNNClassifier(
        model_options={**MODEL, "metric": inputs},
        train_options=TRAIN,
        epochs=epochs,
        trial=False,
        device="cpu",
        random_state=split,
    )
    masks = graph.train_mask[:, split], graph.val_mask[:, split]
    return model.fit(graph, train_mask=masks[0], val_mask=masks[1])


def auroc(nodes: DataFrame, name: str, graph: Data, split: int) -> tuple[float, float]:
    """AUROC over the test nodes at which a statistic is defined, and their share of the test nodes.

    NaN where the nodes are of one geometry.
    """
    values, geometry = nodes[name].to_numpy(), graph.geometry.numpy()
    asked = graph.test_mask[:, split].numpy() & np.isin(geometry, (TREE, CLIQUE))
    used = asked & ~np.isnan(values)
    is_clique = geometry[used] == CLIQUE
    if is_clique.all() or not is_clique.any():
        return float("nan"), used.sum() / asked.sum()
    # Statistics that differ in their last bits only are equal.
    return float(roc_auc_score(is_clique, values[used].round(9))), used.sum() / asked.sum()


def print_table(names: Sequence[str], columns: Mapping[str, list[DataFrame]], graph: Data) -> None:
    """One line per statistic; a column holds the tables of all splits."""
    print(f"{'':<16}{'defined':>8}", *(f"{title:>20}" for title in columns))
    for name in names:
        cells, share = [], 0.0
        for tables in columns.values():
            if any(name not in nodes for nodes in tables):
                cells.append("")
                continue
            pairs = [auroc(nodes, name, graph, split) for split, nodes in enumerate(tables)]
            found, shares = zip(*pairs, strict=True)
            share = float(np.mean(shares))
            cells.append(f"{np.mean(found):.3f} [{min(found):.3f} {max(found):.3f}]")
        if any(cells):
            print(f"{name:<16}{share:>8.2f}", *(f"{cell:>20}" for cell in cells))


def show_graph(graph: Data, splits: int) -> None:
    """Print what needs no model."""
    flat = torch.ones(graph.num_nodes, 1)
    nodes = node_table(graph, [Layer(flat, flat)], graph_ollivier=True)
    print("\nthe graph alone")
    print_table(GRAPH_COLUMNS, {"": [nodes] * splits}, graph)


def show_model(graph: Data, inputs: str, splits: int, epochs: int, learned_ollivier: bool) -> None:
    """Train one model per split, and print a column for every layer."""
    models = [trained(graph, split, inputs, epochs) for split in range(splits)]
    scores = [m.score(graph, mask=graph.test_mask[:, split]) for split, m in enumerate(models)]
    layers = [learned_layers(model.model_, graph) for model in models]
    columns = {}
    for depth in range(len(layers[0])):
        slow = learned_ollivier and depth == len(layers[0]) - 1
        tables = [node_table(graph, [own[depth]], learned_ollivier=slow) for own in layers]
        columns[f"layer {depth + 1}"] = tables
    print(f"\nmetric from {inputs}; test accuracy", *(f"{score:.3f}" for score in scores))
    print_table(METRIC_COLUMNS, columns, graph)


def main() -> None:
    """Print a table for the graph, and one for each kind of metric network."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--learned-ollivier", action="store_true", help="slow; in the last layer")
    options = parser.parse_args()
    graph = load("mixed")
    show_graph(graph, options.splits)
    for inputs in METRIC_INPUTS:
        show_model(graph, inputs, options.splits, options.epochs, options.learned_ollivier)


if __name__ == "__main__":
    main()
