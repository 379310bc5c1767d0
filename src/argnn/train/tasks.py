"""Tasks: training loss, validation score, and how epochs are compared."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import ClassVar, Protocol, Self

import torch
from sklearn.utils.class_weight import compute_sample_weight
from torch import Tensor
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.functional import edge_homophily
from argnn.functional.graph_part import Place
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import at_wide
from argnn.nn import AbstractNodeModel, LinkModel
from argnn.registry import suggestion
from argnn.train.config import TrainConfig
from argnn.train.negatives import NegativeSampler
from argnn.train.scores import area_under_roc, rare_class
from argnn.train.selection import (
    average_precision,
    class_score,
    require_classes,
    selection_of,
)


@dataclass(frozen=True)
class Validation:
    """The validation result of one epoch; a larger :attr:`key` is a better epoch.

    Attributes:
        score: The score that chooses the epoch; minus the loss where that is the loss.
        loss: The validation loss.
    """

    score: float
    loss: float

    @property
    def key(self) -> tuple[float, float]:
        """Score and negative loss; of equal scores, the smaller loss is better."""
        return (self.score, -self.loss)


class Task(Protocol):
    """What `fit` needs of a task.

    Attributes:
        validation_size: How many nodes or pairs the validation score is made of.
    """

    validation_size: int

    def configured(self, config: TrainConfig) -> "Task":
        """The task with the score and class weights of some settings.

        Not called where the settings leave both to the task.
        """

    def loss(self, model: AbstractNodeModel, outputs: Tensor) -> Tensor:
        """Training loss of a model's outputs, a scalar on the device."""

    def part_loss(self, model: AbstractNodeModel, outputs: Tensor, place: Place) -> Tensor:
        """Share of a part of the graph in the training loss; all shares add up to the loss.

        Args:
            model: The model.
            outputs: Outputs of the nodes of the part, ``[M, C]``.
            place: Which nodes these are.
        """

    def validate(self, model: AbstractNodeModel, outputs: Tensor) -> Validation:
        """Validation result of a model's outputs; waits for the device."""

    def homophily(self, edge_index: Edges) -> float:
        """Homophily of the part of the graph whose training labels are known."""


class NodeTask(ABC):
    """A loss of the training nodes, and a score of the validation nodes.

    Only the labels or targets of these nodes are kept, so that training cannot see others.
    """

    kind: ClassVar[str]
    train_labels: Tensor
    val_labels: Tensor

    def __init__(
        self, y: Tensor, train_mask: Tensor, val_mask: Tensor, sample_weight: Tensor | None
    ) -> None:
        self.train_nodes, self.val_nodes = chosen_nodes(y, train_mask, val_mask)
        self.validation_size = self.val_nodes.numel()
        self.select = selection_of(self.kind, None)
        self.weights = None
        if sample_weight is not None:
            self.weights = node_weights(sample_weight, y)[self.train_nodes]
            if not bool(self.weights.any()):
                raise ConfigError("sample_weight is 0 for all training nodes")

    @abstractmethod
    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Loss of each node, ``[M]``, or of each node and target, ``[M, T]``."""

    def mean_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Their mean without weights."""
        return self.losses(outputs, labels).mean()

    @abstractmethod
    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The chosen score of outputs and labels or targets, a scalar on their device."""

    def configured(self, config: TrainConfig) -> Self:
        """The task with another score."""
        task = copy(self)
        task.select = selection_of(self.kind, config.select)
        task.require_score()
        return task

    @abstractmethod
    def require_score(self) -> None:
        """Raise where the validation nodes do not define the chosen score."""

    def loss(self, model: AbstractNodeModel, outputs: Tensor) -> Tensor:
        """Mean loss of the training nodes; with weights, the weighted mean."""
        found = outputs.index_select(0, self.train_nodes)
        if self.weights is None:
            return self.mean_loss(found, self.train_labels)
        losses = self.losses(found, self.train_labels)
        return (losses * self.weights).sum() / self._total_weight(losses)

    def part_loss(self, model: AbstractNodeModel, outputs: Tensor, place: Place) -> Tensor:
        """Share of the part's own training nodes in the loss."""
        rows, places = rows_of(self.train_nodes, place)
        losses = self.losses(outputs.index_select(0, rows), self.train_labels[places])
        if self.weights is None:
            return losses.sum() / self.train_labels.numel()
        return (losses * self.weights[places]).sum() / self._total_weight(losses)

    def _total_weight(self, losses: Tensor) -> Tensor:
        assert self.weights is not None
        return self.weights.sum() * math.prod(losses.shape[1:])

    def validate(self, model: AbstractNodeModel, outputs: Tensor) -> Validation:
        """The chosen score and the mean loss, without weights, of the validation nodes."""
        found, labels = at_wide(outputs.index_select(0, self.val_nodes)), at_wide(self.val_labels)
        loss = self.mean_loss(found, labels)
        score = -loss if self.select == "loss" else self.score(found, labels)
        return Validation(*torch.stack([score.double(), loss.double()]).tolist())  # one transfer


class NodeClassification(NodeTask):
    """Cross-entropy on training nodes, accuracy or another score on validation nodes.

    Args:
        y: Label of each node, ``[N]``; negative where unknown.
        train_mask: Nodes to learn from, ``[N]``.
        val_mask: Nodes that choose the epoch, ``[N]``.
        classes: Names of the classes, which class weights refer to; else their numbers.
        sample_weight: Weight of each node in the training loss, ``[N]``; all alike if not given.
    """

    kind = "node"

    def __init__(
        self,
        y: Tensor,
        train_mask: Tensor,
        val_mask: Tensor,
        *,
        classes: Sequence[str] | None = None,
        sample_weight: Tensor | None = None,
    ) -> None:
        super().__init__(y, train_mask, val_mask, sample_weight)
        self.sample_weights = self.weights
        self.train_labels, self.val_labels = y[self.train_nodes], y[self.val_nodes]
        self.num_nodes = y.numel()
        numbers = range(int(torch.cat([self.train_labels, self.val_labels]).max()) + 1)
        self.classes = [str(name) for name in (numbers if classes is None else classes)]
        self.rare = rare_class(self.train_labels, len(self.classes))

    def configured(self, config: TrainConfig) -> Self:
        """The task with another score, and with classes weighted in the training loss."""
        task = super().configured(config)
        if config.class_weight is not None:
            check_class_weight(config.class_weight, self.classes)
            found = _label_weights(config.class_weight, self.train_labels, self.classes)
            single = self.sample_weights
            task.weights = found if single is None else found * single
        return task

    def require_score(self) -> None:
        """Raise where a ranking needs another class."""
        require_classes(self.select, self.val_labels)

    def losses(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of each node."""
        return F.cross_entropy(outputs, labels, reduction="none")

    def mean_loss(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy, as torch adds it up."""
        return F.cross_entropy(outputs, labels)

    def score(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The chosen score of classes."""
        return class_score(self.select, outputs, labels, self.rare)

    def homophily(self, edge_index: Edges) -> float:
        """Edge homophily between training nodes; 0 if no edge joins two of them."""
        known = torch.full((self.num_nodes,), -1, dtype=torch.int64)
        known[self.train_nodes.cpu()] = self.train_labels.cpu()
        return _homophily_or_zero(edge_index, known.to(self.train_labels.device))


def chosen_nodes(y: Tensor, train_mask: Tensor, val_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Training and validation nodes, which must have labels ``y`` ``[N]`` that are not negative."""
    if y.dim() != 1:
        raise ConfigError(f"y must have shape [N] (got {list(y.shape)})")
    for name, mask in (("train_mask", train_mask), ("val_mask", val_mask)):
        if mask.shape != y.shape or mask.dtype != torch.bool:
            raise ConfigError(
                f"{name} must be a boolean mask of shape {list(y.shape)} "
                f"(got {mask.dtype}, {list(mask.shape)})"
            )
        if not mask.any():
            raise ConfigError(f"{name} selects no node")
        if (y[mask] < 0).any():
            node = int((mask & (y < 0)).nonzero()[0])
            raise ConfigError(f"{name} selects node {node}, which has no label")
    if (train_mask & val_mask).any():
        node = int((train_mask & val_mask).nonzero()[0])
        raise ConfigError(f"node {node} is in both train_mask and val_mask")
    return train_mask.nonzero().squeeze(-1), val_mask.nonzero().squeeze(-1)


def rows_of(nodes: Tensor, place: Place) -> tuple[Tensor, Tensor]:
    """Where some sorted nodes are: their rows in a part, own nodes only, and their places."""
    own = place.nodes[: place.num_own]
    places = torch.searchsorted(nodes, own).clamp_max(nodes.numel() - 1)
    rows = (nodes[places] == own).nonzero().squeeze(-1)
    return rows, places[rows]


def check_class_weight(
    class_weight: str | Mapping[str, float] | None, classes: Sequence[str]
) -> None:
    """Raise where a weight is given to a class that there is not."""
    for name in class_weight if isinstance(class_weight, Mapping) else ():
        if name not in classes:
            hint = suggestion(name, classes)
            raise ConfigError(f"class_weight: there is no class '{name}'; {hint}")


def _label_weights(
    class_weight: str | Mapping[str, float], labels: Tensor, classes: Sequence[str]
) -> Tensor:
    """Weight of each label ``[M]``, as scikit-learn has it."""
    by_label: str | dict[int, float] = "balanced"
    if isinstance(class_weight, Mapping):
        number = {name: label for label, name in enumerate(classes)}
        by_label = {number[name]: value for name, value in class_weight.items()}
    found = compute_sample_weight(by_label, labels.cpu().numpy())
    return torch.as_tensor(found, dtype=torch.float32, device=labels.device)


def node_weights(weight: Tensor, y: Tensor) -> Tensor:
    """Weights of nodes ``[N]``, which must be usable."""
    if weight.shape != y.shape:
        raise ConfigError(
            f"sample_weight must have shape {list(y.shape)} (got {list(weight.shape)})"
        )
    single = weight.float()  # in which a huge number is infinite
    wrong = (~single.isfinite() | (single < 0)).nonzero()
    if len(wrong):
        node = int(wrong[0])
        value = weight[node].item()
        raise ConfigError(f"sample_weight must be finite and not negative (got {value} at {node})")
    return single.to(y.device)


class LinkPrediction:
    """Cross-entropy on training pairs and random non-edges, AUROC on validation pairs.

    Args:
        train_pairs: Edges to learn from, each pair once, ``[2, P]``.
        val_pairs: Edges that choose the epoch, ``[2, V]``.
        val_negatives: Non-edges that choose the epoch, ``[2, V]``.
        num_nodes: Number of nodes.
        y: Labels for :meth:`homophily`, ``[N]``, negative where unknown; they are not predicted.
    """

    def __init__(
        self,
        train_pairs: Tensor,
        val_pairs: Tensor,
        val_negatives: Tensor,
        num_nodes: int,
        y: Tensor | None = None,
    ) -> None:
        given = {"train_pairs": train_pairs, "val_pairs": val_pairs, "val_negatives": val_negatives}
        for name, pairs in given.items():
            if pairs.dim() != 2 or pairs.size(0) != 2 or pairs.size(1) == 0:
                raise ConfigError(f"{name} must have shape [2, P], P > 0 (got {list(pairs.shape)})")
        self.train_pairs = train_pairs
        self.val_pairs = torch.cat([val_pairs, val_negatives], dim=1)
        self.val_labels = torch.zeros(self.val_pairs.size(1), device=val_pairs.device)
        self.val_labels[: val_pairs.size(1)] = 1
        self.validation_size = self.val_labels.numel()
        self.sampler = NegativeSampler(train_pairs, num_nodes)
        self.y = y
        self.select = selection_of("link", None)

    def configured(self, config: TrainConfig) -> Self:
        """The task with another score; pairs have no class weights."""
        if config.class_weight is not None:
            raise ConfigError("class_weight belongs to classes of nodes, not to links")
        task = copy(self)
        task.select = selection_of("link", config.select)
        return task

    def loss(self, model: AbstractNodeModel, outputs: Tensor) -> Tensor:
        """Mean cross-entropy of the training pairs plus that of as many non-edges.

        Every call draws new non-edges. They avoid training pairs only: avoiding validation and test
        pairs would tell the model about them.
        """
        count = self.train_pairs.size(1)
        drawn, is_non_edge = self.sampler.draw(count)
        logits = _pair_scores(model, outputs, torch.cat([self.train_pairs, drawn], dim=1))
        positive = F.softplus(-logits[:count]).mean()
        negative = F.softplus(logits[count:]) * is_non_edge
        return positive + negative.sum() / is_non_edge.sum().clamp_min(1)

    def part_loss(self, model: AbstractNodeModel, outputs: Tensor, place: Place) -> Tensor:
        """Share of the part in the loss of the training pairs, with non-edges of its own nodes.

        A pair belongs to its two nodes, half to each. Non-edges join two own nodes, so nodes of one
        part meet more often than in :meth:`loss`.
        """
        first, second = self._numbered(self.train_pairs, place)
        own = [(end >= 0) & (end < place.num_own) for end in (first, second)]
        inside = (first >= 0) & (second >= 0) & (own[0] | own[1])
        share = (own[0][inside].to(outputs) + own[1][inside].to(outputs)) / 2
        pairs = torch.stack([first[inside], second[inside]])
        a, b = torch.randint(place.num_own, (2, pairs.size(1)), device=pairs.device)
        drawn = place.nodes[torch.stack([a, b])]
        is_non_edge = (a != b) & ~self.sampler.is_edge(drawn)
        logits = _pair_scores(model, outputs, torch.cat([pairs, torch.stack([a, b])], dim=1))
        count = pairs.size(1)
        positive = (F.softplus(-logits[:count]) * share).sum() / self.train_pairs.size(1)
        negative = (F.softplus(logits[count:]) * is_non_edge).sum()
        mean = negative / is_non_edge.sum().clamp_min(1)
        return positive + mean * (place.num_own / place.whole_nodes)

    def share_of_pairs(
        self, model: AbstractNodeModel, outputs: Tensor, first: int, step: int
    ) -> Tensor:
        """Share of every ``step``-th pair, from ``first`` on, in :meth:`loss`.

        All shares draw the same non-edges as one call of :meth:`loss`, from the same random state.
        """
        count, mine = self.train_pairs.size(1), slice(first, None, step)
        drawn, is_non_edge = self.sampler.draw(count)
        pairs = self.train_pairs[:, mine]
        logits = _pair_scores(model, outputs, torch.cat([pairs, drawn[:, mine]], dim=1))
        positive = F.softplus(-logits[: pairs.size(1)]).sum() / count
        negative = F.softplus(logits[pairs.size(1) :]) * is_non_edge[mine]
        return positive + negative.sum() / is_non_edge.sum().clamp_min(1)

    def _numbered(self, pairs: Tensor, place: Place) -> Tensor:
        """Pairs by rows of a part, ``[2, P]``; -1 for nodes that are not in it."""
        number = torch.full((place.whole_nodes,), -1, device=pairs.device)
        number[place.nodes] = torch.arange(place.nodes.numel(), device=pairs.device)
        return number[pairs]

    def validate(self, model: AbstractNodeModel, outputs: Tensor) -> Validation:
        """The chosen score and cross-entropy of the validation pairs and their fixed non-edges."""
        logits = at_wide(_pair_scores(model, outputs, self.val_pairs))
        labels = at_wide(self.val_labels)
        if not logits.isfinite().all():
            return Validation(math.nan, math.nan)  # there is no AUROC; `fit` raises an error
        loss = F.binary_cross_entropy_with_logits(logits.double(), labels.double())
        if self.select == "auroc":
            return Validation(area_under_roc(logits, labels), loss.item())
        score = -loss if self.select == "loss" else average_precision(logits, labels > 0)
        return Validation(*torch.stack([score, loss]).tolist())

    def homophily(self, edge_index: Edges) -> float:
        """Edge homophily of the training graph; 0 if no edge joins two labelled nodes."""
        if self.y is None:
            raise ConfigError("penalty weights from theory need labels, and the graph has none")
        return _homophily_or_zero(edge_index, self.y)


def _homophily_or_zero(edge_index: Edges, y: Tensor) -> float:
    share = edge_homophily(edge_index, y)
    return 0.0 if math.isnan(share) else share


def _pair_scores(model: AbstractNodeModel, outputs: Tensor, pairs: Tensor) -> Tensor:
    if not isinstance(model, LinkModel):
        raise ConfigError(f"link prediction needs a LinkModel (got {type(model).__name__})")
    return model.pair_scores(outputs, pairs)
