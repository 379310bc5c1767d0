"""Tasks of nodes whose targets are no classes: numbers, and several labels at once."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import widened
from argnn.train.config import TrainConfig
from argnn.train.selection import f1_mean, f1_micro, ranking_mean
from argnn.train.tasks import NodeTask


@dataclass(frozen=True)
class TargetRule:
    """What the outputs of a model mean.

    Attributes:
        kind: ``"regression"`` or ``"multilabel"``.
        names: Name of each target.
        center: What is added to each output after it was multiplied with ``scale``; zeros for
            labels.
        scale: Standard deviation of each target over the training nodes; ones for labels.
    """

    kind: str
    names: list[str]
    center: list[float]
    scale: list[float]

    def finished(self, outputs: Tensor) -> Tensor:
        """Predicted numbers, or probabilities of labels, from raw outputs ``[M, T]``."""
        if self.kind == "multilabel":
            return torch.sigmoid(outputs)
        return outputs * outputs.new_tensor(self.scale) + outputs.new_tensor(self.center)


class TargetTask(NodeTask):
    """A loss of each training node and target, and a score of the validation nodes.

    Args:
        targets: Targets of each node, ``[N, T]``; NaN where unknown.
        train_mask: Nodes to learn from, ``[N]``.
        val_mask: Nodes that choose the epoch, ``[N]``.
        names: Name of each target.
        sample_weight: Weight of each node in the training loss, ``[N]``; all alike if not given.

    Attributes:
        rule: What the outputs of a model mean.
    """

    def __init__(
        self,
        targets: Tensor,
        train_mask: Tensor,
        val_mask: Tensor,
        names: Sequence[str],
        *,
        sample_weight: Tensor | None = None,
    ) -> None:
        known = torch.where(targets.isnan().any(1), -1, 0)
        super().__init__(known, train_mask, val_mask, sample_weight)
        self.weights = None if self.weights is None else self.weights.unsqueeze(-1)
        self.rule = self.learned_rule(widened(targets[self.train_nodes]), list(names))
        self.train_labels, self.val_labels = (
            self.as_outputs(targets[nodes]) for nodes in (self.train_nodes, self.val_nodes)
        )

    @abstractmethod
    def learned_rule(self, targets: Tensor, names: list[str]) -> TargetRule:
        """What the outputs mean, from the targets ``[M, T]`` of the training nodes."""

    @abstractmethod
    def as_outputs(self, targets: Tensor) -> Tensor:
        """Targets ``[M, T]`` in the units of the outputs."""

    def configured(self, config: TrainConfig) -> Self:
        """The task with another score; targets have no class weights."""
        if config.class_weight is not None:
            raise ConfigError(f"class_weight belongs to classes, not to task {self.kind}")
        return super().configured(config)

    def homophily(self, edge_index: Edges) -> float:
        """Raise: only classes have a homophily."""
        raise ConfigError(f"penalty weights from theory need classes, not task {self.kind}")


class NodeRegression(TargetTask):
    """Squared error of targets that the training nodes standardise.

    The score is R², the mean over targets of the share of variance that is explained.
    """

    kind = "regression"

    def learned_rule(self, targets: Tensor, names: list[str]) -> TargetRule:
        """Mean and standard deviation of the training nodes."""
        scale = targets.std(dim=0, correction=0)
        for name, deviation, value in zip(names, scale.tolist(), targets[0].tolist(), strict=True):
            if not deviation:
                name = name.removeprefix("target ")
                raise ConfigError(
                    f"target {name} is {value:g} for all training nodes: nothing can be learned"
                )
        return TargetRule(self.kind, names, targets.mean(dim=0).tolist(), scale.tolist())

    def as_outputs(self, targets: Tensor) -> Tensor:
        """Standardised targets."""
        rule = torch.tensor([self.rule.center, self.rule.scale], dtype=targets.dtype)
        center, scale = rule.to(targets.device)
        return (targets - center) / scale

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Squared errors."""
        return (outputs - labels).square()

    def require_score(self) -> None:
        """Raise where R² is not defined on the validation nodes."""
        if self.select == "r2" and bool((self.val_labels == self.val_labels[0]).all(0).any()):
            raise ConfigError(
                "a target is the same for all validation nodes, so that it has no R²: "
                "choose by loss (--select loss)"
            )

    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """R², the mean over targets."""
        targets = labels.double()
        rest = (outputs.double() - targets).square().sum(0)
        spread = (targets - targets.mean(0)).square().sum(0)
        return (1 - rest / spread).mean()


class MultiLabel(TargetTask):
    """Binary cross-entropy of each label, average precision on validation nodes."""

    kind = "multilabel"

    def learned_rule(self, targets: Tensor, names: list[str]) -> TargetRule:
        """Labels stay what they are."""
        return TargetRule(self.kind, names, [0.0] * len(names), [1.0] * len(names))

    def as_outputs(self, targets: Tensor) -> Tensor:
        """The labels, 0 or 1."""
        return targets.clone()

    def require_score(self) -> None:
        """Raise where no label has an average precision."""
        if self.select == "average_precision" and not bool(self.val_labels.any()):
            raise ConfigError(
                "no validation node has any of the labels, so that there is no average precision: "
                "choose by loss (--select loss)"
            )

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of each label."""
        return F.binary_cross_entropy_with_logits(outputs, labels, reduction="none")

    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Macro or micro F1 at probability one half, or the mean average precision of labels."""
        true = labels > 0
        if self.select == "average_precision":
            return ranking_mean(self.select, outputs.double(), true)
        return (f1_mean if self.select == "f1_macro" else f1_micro)(outputs >= 0, true)


TARGET_TASKS: dict[str, type[TargetTask]] = {
    "regression": NodeRegression,
    "multilabel": MultiLabel,
}
