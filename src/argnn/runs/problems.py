"""What training may see of a graph, and what judges the result."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import LinkSplit, features_and_edges, split_links, split_masks, with_edges
from argnn.functional import twin_counts, twin_groups
from argnn.nn import AbstractNodeModel, LinkModel
from argnn.settings.run_config import LinkConfig
from argnn.train import (
    LinkPrediction,
    NodeClassification,
    Task,
    best_threshold,
    link_scores,
    node_scores,
)
from argnn.train.calibration import two_class_logits
from argnn.train.scores import area_under_roc, weighted_f1

Scores = dict[str, Any]


class Judge(ABC):
    """Holds what must be predicted, test labels included; training never gets to see it.

    A part of it is ``"val"`` or ``"test"``.
    """

    @abstractmethod
    def scores(self, model: AbstractNodeModel, outputs: Tensor, part: str) -> Scores | None:
        """Scores of a model's outputs on a part; None where that is empty."""

    def twin_scores(self, outputs: Tensor) -> Scores:
        """What a row says about twins; nothing where the task has none."""
        return {}

    @abstractmethod
    def main_test_score(self, model: AbstractNodeModel, outputs: Tensor) -> float | None:
        """Only the score that the paper's tables lead with, and therefore quickly."""

    @abstractmethod
    def decisions(
        self, model: AbstractNodeModel, outputs: Tensor, part: str
    ) -> tuple[Tensor, Tensor]:
        """Raw scores ``[M, C]`` and labels ``[M]`` of a part."""


@dataclass(frozen=True)
class Problem:
    """One split of a graph.

    Attributes:
        visible: Features and observed edges: all that a model computes from.
        task: Loss and validation score.
        judge: The rest; not for training.
        schema: How the features that are seen were made; None if that is not known.
    """

    visible: Data
    task: Task
    judge: Judge
    schema: dict[str, Any] | None


def pose_problem(graph: Data, split: int, device: str, link: LinkConfig | None = None) -> Problem:
    """Divide a graph into what is seen and what is asked.

    With ``link`` it asks for links instead of classes, and ``split`` is the seed of the division.
    """
    if link is None:
        return _node_problem(graph, split, device)
    return _link_problem(graph, split, device, link)


def observed_graph(graph: Data, split: int, link: LinkConfig | None) -> Data:
    """A graph as a model of one split sees it: for links, with the training edges only."""
    return (
        graph if link is None else with_edges(graph, divided_links(graph, split, link).edge_index)
    )


def divided_links(graph: Data, split: int, link: LinkConfig) -> LinkSplit:
    """The pairs of one split."""
    nodes, forest = graph.x.size(0), link.spanning_forest
    time = {"edge_time": graph.edge_time} if link.split_by == "time" else {}
    return split_links(graph.edge_index, nodes, link.ratio, split, spanning_forest=forest, **time)


def _node_problem(graph: Data, split: int, device: str) -> Problem:
    train, val, test = split_masks(graph, split)
    return Problem(
        visible=features_and_edges(graph).to(device),
        task=NodeClassification(graph.y.to(device), train.to(device), val.to(device)),
        judge=_NodeJudge(graph.y, val, test, train, graph.edge_index),
        schema=graph.get("schema"),
    )


def _link_problem(graph: Data, split: int, device: str, link: LinkConfig) -> Problem:
    divided = divided_links(graph, split, link)
    seen = with_edges(graph, divided.edge_index)
    return Problem(
        visible=features_and_edges(seen).to(device),
        task=LinkPrediction(
            divided.train.to(device),
            divided.val.to(device),
            divided.val_negatives.to(device),
            num_nodes=graph.x.size(0),
            y=graph.y.to(device) if graph.class_count else None,
        ),
        judge=_LinkJudge(divided),
        schema=seen.get("schema"),
    )


@dataclass(frozen=True)
class _NodeJudge(Judge):
    y: Tensor
    val: Tensor
    test: Tensor
    train: Tensor
    edge_index: Tensor

    def scores(self, model: AbstractNodeModel, outputs: Tensor, part: str) -> Scores | None:
        return self._scores(outputs, getattr(self, part))

    def twin_scores(self, outputs: Tensor) -> Scores:
        """How many test nodes have a training node with the same neighbours, and the rest's scores.

        The class of such a node can be copied, so the others tell more about a method.
        """
        groups = twin_groups(self.edge_index, self.y.numel())
        twin = self.test & (twin_counts(groups, self.train) > 0)
        counts = {"test": int(self.test.sum()), "with_twin": int(twin.sum())}
        if not counts["with_twin"]:
            return {"twins": counts}
        return {"twins": counts, "test_without_twins": self._scores(outputs, self.test & ~twin)}

    def main_test_score(self, model: AbstractNodeModel, outputs: Tensor) -> float | None:
        logits, labels = self.decisions(model, outputs, "test")
        return weighted_f1(logits, labels) if labels.numel() else None

    def decisions(
        self, model: AbstractNodeModel, outputs: Tensor, part: str
    ) -> tuple[Tensor, Tensor]:
        mask = getattr(self, part)
        return outputs.cpu()[mask], self.y[mask]

    def _scores(self, outputs: Tensor, mask: Tensor) -> Scores | None:
        return node_score_values(outputs.cpu()[mask], self.y[mask]) if mask.any() else None


def node_score_values(logits: Tensor, y: Tensor) -> Scores:
    """The scores of :func:`argnn.train.node_scores` as JSON."""
    scores = asdict(node_scores(logits, y))
    return {**scores, "absent_classes": list(scores["absent_classes"])}


@dataclass(frozen=True)
class _LinkJudge(Judge):
    pairs: LinkSplit

    def scores(self, model: AbstractNodeModel, outputs: Tensor, part: str) -> Scores | None:
        threshold = best_threshold(*self._logits(model, outputs, "val"))
        edges, non_edges = self._logits(model, outputs, part)
        found = link_scores(edges, non_edges, threshold)
        return {name.replace("_at_", "@"): value for name, value in asdict(found).items()}

    def main_test_score(self, model: AbstractNodeModel, outputs: Tensor) -> float | None:
        edges, non_edges = self._logits(model, outputs, "test")
        labels = torch.cat([torch.ones_like(edges), torch.zeros_like(non_edges)])
        return area_under_roc(torch.cat([edges, non_edges]), labels)

    def decisions(
        self, model: AbstractNodeModel, outputs: Tensor, part: str
    ) -> tuple[Tensor, Tensor]:
        edges, non_edges = self._pairs(part)
        logits = _logits(model, outputs, torch.cat([edges, non_edges], dim=1)).float().cpu()
        labels = torch.arange(logits.numel()) < edges.size(1)
        return two_class_logits(logits), labels.long()

    def _pairs(self, part: str) -> tuple[Tensor, Tensor]:
        """The edges of a part, and as many non-edges."""
        return getattr(self.pairs, part), getattr(self.pairs, f"{part}_negatives")

    def _logits(self, model: AbstractNodeModel, outputs: Tensor, part: str) -> list[Tensor]:
        return [_logits(model, outputs, pairs) for pairs in self._pairs(part)]


def _logits(model: AbstractNodeModel, outputs: Tensor, pairs: Tensor) -> Tensor:
    assert isinstance(model, LinkModel)
    return model.pair_scores(outputs, pairs.to(outputs.device))
