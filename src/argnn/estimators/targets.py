"""What the estimators of numbers and of several labels share."""

from typing import Any

from argnn.estimators.base import GraphEstimator
from argnn.estimators.labels import as_weights, part_sizes
from argnn.estimators.reading import chosen_masks, read_targets
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
        self.seen_ = SeenNodes.of(seen.graph, train | val)
        self.counts_ = part_sizes(train, val)
        self._keep_calibration(None)
        self.scores_ = {"val": target_score_values(task.rule, outputs[val], targets[val])}
        return read.names
