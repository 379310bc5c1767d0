"""What training may see of a graph, and what judges the result."""

from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import (
    LinkSplit,
    adjacency_of,
    features_and_edges,
    split_links,
    split_masks,
    with_edges,
)
from argnn.data.targets import label_values
from argnn.functional import twin_counts
from argnn.nn import AbstractNodeModel, LinkModel
from argnn.runs.batch_sources import sees_parts
from argnn.settings.run_config import MAIN_SCORES, LinkConfig, RunConfig
from argnn.train import (
    LinkPrediction,
    NodeClassification,
    Task,
    TrainConfig,
    best_threshold,
    class_scores,
    link_scores,
    node_scores,
)
from argnn.train.calibration import best_temperature, two_class_logits
from argnn.train.scores import (
    area_under_roc,
    class_threshold,
    label_scores,
    margin_of,
    multilabel_scores,
    rare_class,
    regression_scores,
    weighted_f1,
)
from argnn.train.target_tasks import TARGET_TASKS, TargetRule

Scores = dict[str, Any]


class Judge(ABC):
    """Knows the right answers, test labels included, and scores a model; training never sees it.

    ``part`` is ``"val"`` or ``"test"``.
    """

    def threshold(self, outputs: Tensor, train: TrainConfig) -> float:
        """The threshold between two classes, chosen on validation; 0 if the settings ask for none.

        See :func:`argnn.train.decided`.
        """
        return 0.0

    @abstractmethod
    def scores(
        self, model: AbstractNodeModel, outputs: Tensor, part: str, threshold: float = 0.0
    ) -> Scores | None:
        """Scores of a model's outputs on a part; None where that is empty."""

    def twin_scores(self, outputs: Tensor, threshold: float = 0.0) -> Scores:
        """What a row says about twins; nothing where the task has none."""
        return {}

    def class_scores(self, outputs: Tensor, threshold: float = 0.0) -> Scores:
        """What a row says about single classes; nothing where the task has none."""
        return {}

    def tally(self, outputs: Tensor) -> Scores:
        """Sums over test nodes, from which scores of all folds together are computed."""
        return {}

    @abstractmethod
    def main_test_score(self, model: AbstractNodeModel, outputs: Tensor) -> float | None:
        """The score that is first in the paper's tables, without the time that the others take."""

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
        target: What the outputs mean, where the targets are no classes.
    """

    visible: Data
    task: Task
    judge: Judge
    schema: dict[str, Any] | None
    target: TargetRule | None = None


def pose_problem(
    graph: Data, split: int, device: str, link: LinkConfig | None = None, *, in_parts: bool = False
) -> Problem:
    """Divide a graph into what is seen and what is asked.

    Args:
        graph: The graph.
        split: Number of the split, or the seed of a division of links.
        device: Where the model is trained.
        link: How links are divided; None where nodes are predicted.
        in_parts: Whether the model gets the graph in parts: then the whole is not moved.
    """
    if link is not None:
        problem = _link_problem(graph, split, device, link)
    elif graph.get("targets") is not None:
        problem = _target_problem(graph, split, device)
    else:
        problem = _node_problem(graph, split, device)
    return problem if in_parts else replace(problem, visible=problem.visible.to(device))


def problem_of(config: RunConfig, graph: Data, split: int) -> Problem:
    """What one split of a run trains on, as its configuration says."""
    in_parts = sees_parts(config.train)
    return pose_problem(graph, split, config.device, config.link, in_parts=in_parts)


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
        visible=features_and_edges(graph),
        task=NodeClassification(
            graph.y.to(device), train.to(device), val.to(device), classes=class_names(graph)
        ),
        judge=_NodeJudge(graph.y, val, test, train, graph, class_names(graph)),
        schema=graph.get("schema"),
    )


def _target_problem(graph: Data, split: int, device: str) -> Problem:
    train, val, test = split_masks(graph, split)
    targets, names = graph.targets, graph.target_names
    kind = TARGET_TASKS[graph.target_kind]
    task = kind(targets.to(device), train.to(device), val.to(device), names)
    return Problem(
        visible=features_and_edges(graph),
        task=task,
        judge=_TargetJudge(targets, val, test, train, task.rule),
        schema=graph.get("schema"),
        target=task.rule,
    )


def class_names(graph: Data) -> list[str]:
    """Names of the classes, or their numbers where they have no names of their own."""
    return [str(label) for label in class_labels(graph)]


def class_labels(graph: Data) -> list[Any]:
    """As :func:`class_names`, with numbers as numbers."""
    names = graph.get("class_names")
    return list(range(graph.class_count)) if names is None else label_values(names)


def _link_problem(graph: Data, split: int, device: str, link: LinkConfig) -> Problem:
    divided = divided_links(graph, split, link)
    seen = with_edges(graph, divided.edge_index)
    return Problem(
        visible=features_and_edges(seen),
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
    graph: Data
    classes: list[str]

    @property
    def rare(self) -> int:
        """The rarest class of the training nodes."""
        return rare_class(self.y[self.train], len(self.classes))

    def threshold(self, outputs: Tensor, train: TrainConfig) -> float:
        logits, labels = outputs.float().cpu()[self.val], self.y[self.val]
        return node_threshold(train, logits, labels, self.rare)

    def scores(
        self, model: AbstractNodeModel, outputs: Tensor, part: str, threshold: float = 0.0
    ) -> Scores | None:
        return self._scores(outputs, getattr(self, part), threshold)

    def class_scores(self, outputs: Tensor, threshold: float = 0.0) -> Scores:
        """The scores of each class on both parts, and which class is the rarest in training."""
        logits, parts = outputs.float().cpu(), {"test": self.test, "val": self.val}
        found = {
            part: asdict(class_scores(logits[mask], self.y[mask], threshold))
            if mask.any()
            else None
            for part, mask in parts.items()
        }
        return {"classes": {"names": self.classes, "rare": self.rare, **found}}

    def twin_scores(self, outputs: Tensor, threshold: float = 0.0) -> Scores:
        """How many test nodes have a training node with the same neighbours, and the rest's scores.

        The class of such a node can be copied, so the others tell more about a method.
        """
        groups = adjacency_of(self.graph).twin_groups()
        twin = self.test & (twin_counts(groups, self.train) > 0)
        counts = {"test": int(self.test.sum()), "with_twin": int(twin.sum())}
        if not counts["with_twin"]:
            return {"twins": counts}
        others = self._scores(outputs, self.test & ~twin, threshold)
        return {"twins": counts, "test_without_twins": others}

    def main_test_score(self, model: AbstractNodeModel, outputs: Tensor) -> float | None:
        logits, labels = self.decisions(model, outputs, "test")
        return weighted_f1(logits, labels) if labels.numel() else None

    def decisions(
        self, model: AbstractNodeModel, outputs: Tensor, part: str
    ) -> tuple[Tensor, Tensor]:
        mask = getattr(self, part)
        return outputs.cpu()[mask], self.y[mask]

    def _scores(self, outputs: Tensor, mask: Tensor, threshold: float) -> Scores | None:
        if not mask.any():
            return None
        return node_score_values(outputs.cpu()[mask], self.y[mask], threshold)


@dataclass(frozen=True)
class _TargetJudge(Judge):
    targets: Tensor
    val: Tensor
    test: Tensor
    train: Tensor
    rule: TargetRule

    def scores(
        self, model: AbstractNodeModel, outputs: Tensor, part: str, threshold: float = 0.0
    ) -> Scores | None:
        mask = getattr(self, part)
        if not mask.any():
            return None
        return target_score_values(self.rule, outputs.float().cpu()[mask], self.targets[mask])

    def class_scores(self, outputs: Tensor, threshold: float = 0.0) -> Scores:
        """The scores of each label, or of each number where there are several."""
        logits, parts = outputs.float().cpu(), {"test": self.test, "val": self.val}
        names = self.rule.names
        if self.rule.kind == "multilabel":
            rare = int(self.targets[self.train].sum(0).argmin())
            labels = {
                part: asdict(label_scores(logits[mask], self.targets[mask])) if mask.any() else None
                for part, mask in parts.items()
            }
            return {"classes": {"names": names, "rare": rare, **labels}}
        if len(names) == 1:
            return {}
        columns = self.rule.finished(logits).split(1, dim=1), self.targets.split(1, dim=1)
        single = {
            part: {
                name: asdict(regression_scores(predicted[mask], true[mask]))
                for name, predicted, true in zip(names, *columns, strict=True)
            }
            for part, mask in parts.items()
            if mask.any()
        }
        return {"targets": single}

    def tally(self, outputs: Tensor) -> Scores:
        logits, true = outputs.float().cpu()[self.test], self.targets[self.test].double()
        if self.rule.kind == "multilabel":
            said, labels = logits >= 0, true > 0
            parts = {"true": true, "said": said, "right": said & labels}
        else:
            error, mean = self.rule.finished(logits).double() - true, true.mean(0)
            parts = {"true": true, "absolute": error.abs(), "squared": error**2}
            parts["spread"] = (true - mean) ** 2
        return {"tally": {name: part.sum(0).tolist() for name, part in parts.items()}}

    def main_test_score(self, model: AbstractNodeModel, outputs: Tensor) -> float | None:
        found = self.scores(model, outputs, "test")
        return None if found is None else found[MAIN_SCORES[self.rule.kind]]

    def decisions(
        self, model: AbstractNodeModel, outputs: Tensor, part: str
    ) -> tuple[Tensor, Tensor]:
        raise NotImplementedError("only classes and links are calibrated")


def target_score_values(rule: TargetRule, outputs: Tensor, targets: Tensor) -> Scores:
    """The scores of raw outputs ``[M, T]`` as JSON."""
    if rule.kind == "multilabel":
        return asdict(multilabel_scores(outputs, targets))
    return asdict(regression_scores(rule.finished(outputs), targets))


def node_threshold(train: TrainConfig, logits: Tensor, y: Tensor, rare: int) -> float:
    """The threshold between two classes that the settings ask for, from validation nodes.

    Args:
        train: Its ``threshold``, where it is a number, is a probability of the rarer class.
        logits: Raw outputs, ``[M, 2]``.
        y: Labels, ``[M]``.
        rare: The rarer class of the training nodes.
    """
    asked = train.threshold
    if asked is None:
        return 0.0
    if isinstance(asked, float):
        return margin_of(asked, rare, best_temperature(logits, y))
    counted = train.select in (None, "accuracy")
    return class_threshold(logits, y, "accuracy" if counted else "f1_macro")


def node_score_values(logits: Tensor, y: Tensor, threshold: float = 0.0) -> Scores:
    """The scores of :func:`argnn.train.node_scores` as JSON."""
    scores = asdict(node_scores(logits, y, threshold))
    return {**scores, "absent_classes": list(scores["absent_classes"])}


@dataclass(frozen=True)
class _LinkJudge(Judge):
    pairs: LinkSplit

    def scores(
        self, model: AbstractNodeModel, outputs: Tensor, part: str, threshold: float = 0.0
    ) -> Scores | None:
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
