"""What the estimators of nodes share: labels and targets, scores, and tables of predictions."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.splits import MASK_NAMES
from argnn.errors import ConfigError
from argnn.estimators.base import PART_NAMES, GraphEstimator, NamedColumns, drawn_seed, frame
from argnn.estimators.node_selection import selected_score
from argnn.estimators.reading import (
    LabelledGraph,
    as_weights,
    by_id,
    chosen_masks,
    given_targets,
    has_targets,
    mask_by_id,
    own_masks,
    read_labelled,
    scored_nodes,
)
from argnn.nn import AbstractNodeModel
from argnn.runs.problems import target_score_values
from argnn.settings.resolve import Request
from argnn.store.model_folder import Checkpoint
from argnn.store.seen_nodes import SeenNodes
from argnn.train.target_tasks import TARGET_TASKS, TargetRule, TargetTask


class NodeEstimator(GraphEstimator):
    """Base of the estimators of nodes, which learn classes, or targets ``[N, T]``.

    :attr:`task` says what they learn.
    """

    val_fraction: float
    target_: TargetRule | None

    def _fit_labelled(
        self, graph: Any, y: Any, train_mask: Any, val_mask: Any, sample_weight: Any
    ) -> LabelledGraph:
        """Train, and give what was read. Labels outside the two masks are not learned from."""
        seed = drawn_seed(self.random_state)
        read = read_labelled(graph, y, self._reading(task=self.task))
        masks = {"train_mask": train_mask, "val_mask": val_mask}
        masks = {name: mask_by_id(mask, read.graph, graph, name) for name, mask in masks.items()}
        train, val, rule = chosen_masks(read, **masks, val_fraction=self.val_fraction, seed=seed)
        self.split_rule_ = rule
        weights = as_weights(by_id(sample_weight, read.graph, graph, "sample_weight"))
        self._learn(read, train, val, self._request(graph, seed), weights)
        self.seen_ = SeenNodes.of(read.graph, train, val)
        sizes = int(train.sum()), int(val.sum())
        self.counts_ = dict(zip(("training nodes", "validation nodes"), sizes, strict=True))
        parts = fitted_masks(train, val, read.known, read.masks)
        self.graph_ = with_answers(read.graph, parts, rule, self._answers_of(read))
        return read

    def _learn(
        self, read: LabelledGraph, train: Tensor, val: Tensor, request: Request, weights: Any
    ) -> None:
        """Train on targets, and judge the model by the validation nodes."""
        # Targets outside the two masks are not read.
        shown = read.targets.masked_fill(~(train | val).unsqueeze(1), float("nan"))

        def make_task(device: str) -> TargetTask:
            parts = shown.to(device), train.to(device), val.to(device)
            return TARGET_TASKS[self.task](*parts, read.names, sample_weight=weights)

        sizes = {"classes": 0, "targets": read.targets.size(1)}
        task, outputs = self._fit_nodes(request, read.graph, sizes, make_task)
        self.target_ = task.rule
        self._keep_calibration(None)
        self.scores_ = {"val": target_score_values(task.rule, outputs[val], read.targets[val])}

    def told(self, graph: Any = None) -> Data:
        """A graph with all that is known of it: labels, and the part of each node in training.

        Args:
            graph: Whatever ``fit`` takes; the graph of ``fit`` where not given.
        """
        read = super().told(graph)
        if graph is None:
            return read
        told = with_answers(read, {}, "not known", self._answers(graph, read))
        seen = self.seen_
        if seen is None or not seen.is_of(read):
            return told
        known = torch.from_numpy(self._known_nodes(told))
        masks = fitted_masks(seen.train, seen.val, known, own_masks(graph, read))
        return with_answers(told, masks, self.split_rule_, {})

    def columns(self, graph: Data) -> NamedColumns:
        """What is predicted of each node, by column, for a graph that :meth:`read` gave."""
        raise NotImplementedError

    def predict_frame(self, graph: Any = None) -> Any:
        """All predictions as a pandas table: the columns of ``argnn predict``, and what is known.

        ``known`` is the label that the graph has, and ``split`` the part of the node in training:
        ``train``, ``val``, ``test``, or ``none``.

        Args:
            graph: Whatever ``fit`` takes; the graph of ``fit`` where not given.
        """
        read = self.told(graph)
        known = [*self._known_columns(read), ("split", part_names(read))]
        return frame([*self.columns(read), *known])

    def _known_columns(self, graph: Data) -> NamedColumns:
        raise NotImplementedError

    def _held_out_score(self, graph: Any, y: Any, mask: Any) -> float:
        """What ``score`` gives: :meth:`_score_of` the nodes that :meth:`_scored` chooses."""
        graph, y, mask = selected_score(graph, y, mask)
        read = self.read(graph)
        y, mask = by_id(y, read, graph), mask_by_id(mask, read, graph, "mask")
        told = with_answers(read, {}, "not known", self._given_answers(graph, read, y))
        return self._score_of(told, self._scored(told, mask))

    def _scored(self, told: Data, mask: Any) -> NDArray[np.bool_]:
        """The labelled nodes of a mask; without one, those that were not used in training."""
        known = self._known_nodes(told)
        if mask is not None or not known.any():
            return scored_nodes(known, mask)
        sizes = told.x.size(0), told.edge_index.size(1)
        if self.seen_ is not None:
            held_out: NDArray[np.bool_] = known & ~self.seen_.in_graph(told)
        elif sizes != (self.graph_facts_["nodes"], self.graph_facts_["edges"]):
            held_out = known
        else:
            raise ConfigError(
                "an older version saved this model, without the nodes that it learned from: name "
                "the nodes to score with mask="
            )
        if not held_out.any():
            raise ConfigError(
                "all labelled nodes were trained or validated on: name the nodes to score with "
                "mask="
            )
        return held_out

    def _judging(self, graph: Any, mask: Any) -> tuple[Data, Callable[[Data], float]]:
        told = self.told(graph)
        mask = mask_by_id(mask, told, graph, "mask")
        known, val = self._known_nodes(told), told.val_mask[:, 0]
        nodes = scored_nodes(known, val if mask is None and val.any() else mask)
        return told, lambda shown: self._score_of(shown, nodes)

    def _known_nodes(self, graph: Data) -> NDArray[np.bool_]:
        """The nodes of a graph of :meth:`told` that can be judged."""
        known: NDArray[np.bool_] = ~graph.targets.isnan().any(1).numpy()
        return known

    def _score_of(self, graph: Data, nodes: NDArray[np.bool_]) -> float:
        """What :meth:`score` says of some nodes, for a graph of :meth:`told`."""
        raise NotImplementedError

    def _answers(self, source: Any, graph: Data) -> dict[str, Any]:
        """The labels of a graph as its attributes; where it has none, missing ones."""
        assert self.target_ is not None
        if has_targets(source, graph):
            return self._given_answers(source, graph, None)
        nowhere = torch.full((graph.x.size(0), len(self.target_.names)), float("nan"))
        return self._target_answers(nowhere)

    def _given_answers(self, source: Any, graph: Data, y: Any) -> dict[str, Any]:
        """Labels ``y``, or those of the graph, which must have some."""
        return self._target_answers(given_targets(source, y, graph, self.task)[0])

    def _answers_of(self, read: LabelledGraph) -> dict[str, Any]:
        """What is known of the graph of ``fit``."""
        return self._target_answers(read.targets)

    def _target_answers(self, targets: Tensor) -> dict[str, Any]:
        assert self.target_ is not None
        return {
            "targets": targets,
            "target_names": self.target_.names,
            "target_kind": self.task,
            "y": torch.full((len(targets),), -1),
            "class_count": 0,
            "class_names": [],
        }

    def _restore(self, checkpoint: Checkpoint, model: AbstractNodeModel) -> None:
        super()._restore(checkpoint, model)
        self.target_ = checkpoint.target


def with_answers(
    graph: Data, masks: Mapping[str, Tensor], rule: str, answers: Mapping[str, Any]
) -> Data:
    """A graph with labels or targets, and with one split.

    Args:
        graph: Features and edges.
        masks: Nodes of each part, by the names of a graph; one that is missing is empty.
        rule: Where the split comes from, in words.
        answers: Attributes of the labels or targets.
    """
    told = copy.copy(graph)
    nobody = torch.zeros(graph.x.size(0), dtype=torch.bool)
    for name in MASK_NAMES:
        told[name] = masks.get(name, nobody).unsqueeze(1)
    told.split_rule = rule
    for name, value in answers.items():
        told[name] = value
    return told


def fitted_masks(
    train: Tensor, val: Tensor, known: Tensor, own: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The parts of a fit; test nodes are labelled, and not read by it.

    Where the graph has test nodes of its own, ``own``, these are the only test nodes.
    """
    test = known & ~train & ~val & own.get("test_mask", known)
    return dict(zip(MASK_NAMES, (train, val, test), strict=True))


def part_names(graph: Data) -> list[str]:
    """The part of each node in training, ``"none"`` where it has none."""
    names = ["none"] * graph.x.size(0)
    for part, mask in zip(PART_NAMES, MASK_NAMES, strict=True):
        for node in graph[mask][:, 0].nonzero().flatten().tolist():
            names[node] = part
    return names
