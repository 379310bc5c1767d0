"""A planted graph with 3 % positives: what each setting finds of the rare class.

    python scripts/rare_classes.py docs/results/rare-class.csv

A node is positive with a probability that is known: it depends on one feature of its own and on the
mean of another over its neighbours. No method can rank better than by this probability. Scores are
those of test nodes, means over graphs with a 95 % Student-t interval. Boosted trees see each node's
features and their means over its neighbours.
"""

import argparse
import platform
import subprocess
from datetime import date
from pathlib import Path

import numpy as np
import torch
from scipy.optimize import brentq
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import average_precision_score, f1_score, roc_auc_score
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import scatter, to_undirected

import argnn
from argnn import ARGNNClassifier
from argnn.data import stratified_splits
from argnn.runs.summary import interval_half_width

SHARE = 0.03
SEEDS = range(4)
EPOCHS = 100
#: Settings of each row; all methods start from their usual ones, without a trial.
BEFORE: dict[str, str] = {}
DECIDED = {"scoring": "average_precision", "threshold": "validation"}
WEIGHTED = {**DECIDED, "class_weight": "balanced"}
SETTINGS = {
    "usual settings": BEFORE,
    "selected, threshold": DECIDED,
    "selected, threshold, class weights": WEIGHTED,
}
ROWS = {
    f"{model}, {words}": (model, settings)
    for model in ("argnn", "gcn", "graphsage")
    for words, settings in SETTINGS.items()
}
COLUMNS = ("average precision", "AUROC", "F1 of the class", "AUPRC weighted by class size")


def neighbor_means(x: Tensor, edges: Tensor) -> Tensor:
    """Mean of each feature over the neighbours; 0 without any."""
    return scatter(x[edges[0]], edges[1], dim_size=x.size(0), reduce="mean")


def rare_graph(num_nodes: int = 6000, seed: int = 0, share: float = SHARE) -> tuple[Data, Tensor]:
    """A graph with masks, and the probability ``[N]`` by which each label was drawn."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(num_nodes, 8, generator=generator)
    pairs = torch.randint(num_nodes, (2, 4 * num_nodes), generator=generator)
    edges = to_undirected(pairs, num_nodes=num_nodes)
    signal = (2 * x[:, 0] + 6 * neighbor_means(x, edges)[:, 1]).double()

    def surplus(shift: float) -> float:
        return float(torch.sigmoid(signal + shift).mean()) - share

    probability = torch.sigmoid(signal + brentq(surplus, -50, 50))
    y = (torch.rand(num_nodes, generator=generator, dtype=torch.float64) < probability).long()
    masks = [mask[:, 0] for mask in stratified_splits(y, (0.3, 0.2, 0.5), 1, seed)]
    names = ("train_mask", "val_mask", "test_mask")
    return Data(x=x, edge_index=edges, y=y, **dict(zip(names, masks, strict=True))), probability


def scores(graph: Data, ranking: np.ndarray, said: np.ndarray) -> list[float]:
    """The scores of the columns on the test nodes."""
    test = graph.test_mask.numpy()
    y, p = graph.y.numpy()[test], ranking[test]
    single = average_precision_score(y, p), average_precision_score(1 - y, -p)
    weighted = float(np.average(single, weights=[y.mean(), 1 - y.mean()]))
    f1 = f1_score(y, said[test], zero_division=0)
    return [float(single[0]), float(roc_auc_score(y, p)), float(f1), weighted]


def trees(graph: Data, seed: int) -> list[float]:
    """Boosted trees, stopped and decided by the validation nodes as the others are."""
    table = torch.cat([graph.x, neighbor_means(graph.x, graph.edge_index)], 1).numpy()
    y, train, val = graph.y.numpy(), graph.train_mask.numpy(), graph.val_mask.numpy()
    model = HistGradientBoostingClassifier(
        early_stopping=True, class_weight="balanced", random_state=seed
    )
    model.fit(table[train], y[train], X_val=table[val], y_val=y[val])
    p = model.predict_proba(table)[:, 1]
    threshold = max(p[val], key=lambda t: f1_score(y[val], p[val] >= t, average="macro"))
    return scores(graph, p, (p >= threshold).astype(int))


def fitted(graph: Data, model: str, settings: dict[str, str], seed: int) -> list[float]:
    """A model of this package with some settings."""
    clf = ARGNNClassifier(
        model, epochs=EPOCHS, trial=False, device="cpu", random_state=seed, **settings
    )
    clf.fit(graph)
    return scores(graph, clf.predict_proba(graph)[:, 1], clf.predict(graph))


def all_scores(num_nodes: int, seeds: range) -> dict[str, list[list[float]]]:
    """For each row, the scores of each graph."""
    found: dict[str, list[list[float]]] = {}
    for seed in seeds:
        graph, truth = rare_graph(num_nodes, seed)
        best = truth.numpy(), (truth > 0.5).long().numpy()
        found.setdefault("the planted probability", []).append(scores(graph, *best))
        found.setdefault("boosted trees", []).append(trees(graph, seed))
        for row, (model, settings) in ROWS.items():
            found.setdefault(row, []).append(fitted(graph, model, settings, seed))
            print(seed, row, [f"{value:.3f}" for value in found[row][-1]], flush=True)
    return found


def main() -> None:
    """Measure, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--nodes", type=int, default=6000)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    found = all_scores(arguments.nodes, SEEDS)
    commit = subprocess.run(
        ["git", "rev-parse", "--short=7", "HEAD"], capture_output=True, text=True, check=True
    ).stdout.strip()
    lines = [
        "# command: python scripts/rare_classes.py docs/results/rare-class.csv",
        f"# machine: one CPU core ({platform.machine()})",
        f"# versions: argnn {argnn.__version__}, torch {torch.__version__}",
        f"# date: {date.today()} (commit {commit})",
        f"# note: {arguments.nodes} nodes, {len(SEEDS)} graphs, {EPOCHS} epochs, in per cent",
        ",".join(("method", *COLUMNS)),
    ]
    for row, values in found.items():
        columns = 100 * np.array(values).T
        cells = [f"{c.mean():.1f} ± {interval_half_width(c.tolist()):.1f}" for c in columns]
        lines.append(",".join((f'"{row}"', *cells)))
    arguments.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
