"""What the estimators of nodes share: targets, and tables of predictions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.estimators.base import Columns, GraphEstimator, frame
from argnn.estimators.known_answers import fitted_masks, part_names, with_answers
from argnn.estimators.labels import as_weights, part_sizes, scored_nodes
from argnn.estimators.reading import (
    chosen_masks,
    given_targets,
    has_targets,
    own_masks,
    read_targets,
)
from argnn.runs.problems import target_score_values
from argnn.store.seen_nodes import SeenNodes
from argnn.train.target_tasks import TARGET_TASKS, TargetRule, TargetTask


class TargetEstimator(GraphEstimator):
    """Base of estimators that may learn targets ``[N, T]``, as :attr:`task` says."""

    val_fraction: float
    target_: TargetRule | None

    def _fit_targets(
        self, graph: Any, y: Any, masks: tuple[Any, Any], sample_weight: Any, seed: int
    ) -> list[str]:
        """Train on targets, and give their names."""
        read = read_targets(graph, y, self._reading(task=self.task))
        seen, targets = read.seen, read.targets
        train, val, rule = chosen_masks(seen, *masks, self.val_fraction, seed)
        # Targets outside the two masks are not read.
        shown = targets.masked_fill(~(train | val).unsqueeze(1), float("nan"))

        def make_task(device: str) -> TargetTask:
            return TARGET_TASKS[self.task](
                shown.to(device),
                train.to(device),
                val.to(device),
                read.names,
                sample_weight=as_weights(sample_weight),
            )

        request, sizes = self._request(graph, seed), {"classes": 0, "targets": targets.size(1)}
        task, outputs = self._fit_nodes(request, seen.graph, sizes, make_task)
        self.target_, self.split_rule_ = task.rule, rule
        self.seen_ = SeenNodes.of(seen.graph, train, val)
        self.counts_ = part_sizes(train, val)
        parts = fitted_masks(train, val, ~targets.isnan().any(1), seen.masks)
        self.graph_ = with_answers(seen.graph, parts, rule, self._target_answers(targets))
        self._keep_calibration(None)
        self.scores_ = {"val": target_score_values(task.rule, outputs[val], targets[val])}
        return read.names

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

    def columns(self, graph: Data) -> Columns:
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

    def _known_columns(self, graph: Data) -> Columns:
        raise NotImplementedError

    def _judging(self, graph: Any, mask: Any) -> tuple[Data, Callable[[Data], float]]:
        told = self.told(graph)
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
        """What a graph says of its labels; without any, that there are none."""
        assert self.target_ is not None
        targets = torch.full((graph.x.size(0), len(self.target_.names)), float("nan"))
        if has_targets(source, graph):
            targets, _ = given_targets(source, None, graph, self.task)
        return self._target_answers(targets)

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
