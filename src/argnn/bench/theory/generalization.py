"""The gap between training and test beside the stated bound, over training sizes."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from argnn import functional as AF
from argnn.bench.theory.finding import Effort, Finding, Statement, graded, stated
from argnn.bench.theory.panels import Panel, Series
from argnn.bench.theory.rows import MeasuredRows, column, grouped, power
from argnn.data import load, split_masks
from argnn.data.synthetic import mixed
from argnn.errors import ArgnnError
from argnn.nn import ARGNN
from argnn.settings.options import seeded
from argnn.train import NodeClassification, fit, train_config

DELTA = 0.05


def measured_generalization(effort: Effort) -> Finding:
    """Train the paper's form on parts of the training nodes of ``mixed``, and of Cora if there."""
    graphs = {"mixed": mixed(0, regions_per_kind=effort.of(12, 12, 20), num_splits=1)}
    absent = ""
    if effort.size == "full":
        try:
            graphs["cora"] = load("cora", root=effort.data_root)
        except ArgnnError as error:
            if effort.data_root is not None:
                raise
            absent = f" Cora was left out: {error}."
    channels, epochs = effort.of(8, 16, 64), effort.of(2, 60, 100)
    rows = []
    for name, graph in graphs.items():
        train = split_masks(graph, 0)[0]
        for share in effort.of((0.5, 1.0), (0.1, 0.3, 1.0), (0.1, 0.3, 1.0)):
            for seed in (effort.seed, effort.seed + 1):
                chosen = _part(train, share, seed)
                row = {"graph": name, "training nodes": int(chosen.sum()), "seed": seed}
                row |= _gaps(graph, chosen, channels, epochs, seed)
                rows.append(row | {"bound": _bound(graph, chosen, channels)})
    known = grouped(rows, "graph")
    series = [
        Series(f"{name}, {what}", column(own, "training nodes"), column(own, what), mark, place)
        for place, (name, own) in enumerate(known.items())
        for what, mark in (("accuracy gap", "o"), ("bound", "_"))
    ]
    return Finding.of(
        "generalization",
        [bound_says_something(rows), *(falls_with_size(*item) for item in known.items())],
        {"generalization": rows},
        [Panel(series, "training nodes", "gap, or bound on it", log="x", level=1)],
        channels=channels,
        epochs=epochs,
        delta=DELTA,
        absent=absent,
    )


def _part(train: Tensor, share: float, seed: int) -> Tensor:
    nodes = train.nonzero().squeeze(1)
    order = torch.randperm(len(nodes), generator=torch.Generator().manual_seed(seed))
    chosen = torch.zeros_like(train)
    chosen[nodes[order[: max(round(share * len(nodes)), 1)]]] = True
    return chosen


def _gaps(graph: Data, chosen: Tensor, channels: int, epochs: int, seed: int) -> dict[str, float]:
    """Test loss less training loss, and training accuracy less test accuracy."""
    _, val, test = split_masks(graph, 0)
    with seeded(seed):
        model = ARGNN(graph.x.size(1), channels, int(graph.y.max()) + 1, 2, preset="paper")
    config = train_config("paper", {"epochs": epochs, "patience": 0, "seed": seed})
    fit(model, graph, NodeClassification(graph.y, chosen, val), config)
    with torch.no_grad():
        scores = model.eval()(graph.x, graph.edge_index)
    losses = [float(F.cross_entropy(scores[m], graph.y[m])) for m in (chosen, test)]
    right = [float((scores[m].argmax(1) == graph.y[m]).double().mean()) for m in (chosen, test)]
    return {"loss gap": losses[1] - losses[0], "accuracy gap": right[0] - right[1]}


def _bound(graph: Data, chosen: Tensor, channels: int) -> float:
    pairs = graph.edge_index.size(1) // 2
    homophily = float(AF.edge_homophily(graph.edge_index, torch.where(chosen, graph.y, -1)))
    weights = AF.theory_weights(homophily, graph.num_nodes, pairs, 2, channels)
    return stated_bound(graph.num_nodes, pairs, int(chosen.sum()), channels, *weights)


def stated_bound(
    nodes: int, edges: int, trained: int, channels: int, alpha: float, beta: float
) -> float:
    """The bound with the constant 1.

    Example:
        >>> round(stated_bound(2708, 5278, 1208, 64, 0.0, 0.0), 3)
        0.76
    """
    complexity = math.sqrt(channels * math.log(nodes / DELTA) / trained)
    return complexity + alpha * math.sqrt(nodes) + beta * math.sqrt(edges)


def bound_says_something(rows: MeasuredRows) -> Statement:
    """Verdict on the bound for the share of wrong answers, which is never above 1."""
    bounds, gaps = column(rows, "bound"), column(rows, "accuracy gap")
    useful = sum(bound < 1 for bound in bounds)
    broken = any(row["accuracy gap"] > row["bound"] for row in rows)
    verdict = graded(useful == len(rows), useful > 0, "not reproduced")
    return stated(
        "generalisation bound",
        "refuted" if broken else verdict,
        gaps=(min(gaps), max(gaps)),
        bounds=(min(bounds), max(bounds)),
        useful=useful,
        above=sum(row["loss gap"] > row["bound"] for row in rows),
        count=len(rows),
    )


def falls_with_size(graph: str, rows: MeasuredRows) -> Statement:
    """Verdict on how the accuracy gap of one graph depends on the training size."""
    gaps = [{**row, "accuracy gap": max(row["accuracy gap"], 1e-3)} for row in rows]
    exponent, width = power(gaps, "training nodes", "accuracy gap")
    falls = exponent + width < 0
    verdict = graded(exponent - width <= -0.5 and falls, falls, "not reproduced")
    name = "gap against training size, {graph}"
    return stated(name, verdict, graph=graph, exponent=exponent, width=width)
