"""What a model is trained for: loss, validation score, and how epochs are compared."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from argnn.errors import ConfigError
from argnn.functional import edge_homophily
from argnn.functional.neighborhood import Edges


@dataclass(frozen=True)
class Validation:
    """The validation result of one epoch; a larger :attr:`key` is a better epoch."""

    score: float
    loss: float

    @property
    def key(self) -> tuple[float, float]:
        """Score first; ties go to the smaller loss."""
        return (self.score, -self.loss)


class Task(Protocol):
    """What `fit` asks of a task."""

    def loss(self, scores: Tensor) -> Tensor:
        """Training loss of raw scores, a scalar that stays on the device."""

    def validate(self, scores: Tensor) -> Validation:
        """Validation result of raw scores; waits for the device."""

    def homophily(self, edge_index: Edges) -> float:
        """Homophily of the part of the graph whose training labels are known."""


class NodeClassification:
    """Cross-entropy on training nodes, accuracy on validation nodes.

    The labels of all other nodes are erased here, so that nothing downstream can see them.

    Args:
        y: Label of each node, ``[N]``; negative where unknown.
        train_mask: Nodes to learn from, ``[N]``.
        val_mask: Nodes to choose the epoch by, ``[N]``.
    """

    def __init__(self, y: Tensor, train_mask: Tensor, val_mask: Tensor) -> None:
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
        self.train_nodes = train_mask.nonzero().squeeze(-1)
        self.val_nodes = val_mask.nonzero().squeeze(-1)
        self.train_labels = y[self.train_nodes]
        self.val_labels = y[self.val_nodes]
        self.num_nodes = y.numel()

    def loss(self, scores: Tensor) -> Tensor:
        """Cross-entropy on the training nodes."""
        return F.cross_entropy(scores.index_select(0, self.train_nodes), self.train_labels)

    def validate(self, scores: Tensor) -> Validation:
        """Accuracy and cross-entropy on the validation nodes."""
        scores = scores.index_select(0, self.val_nodes)
        accuracy = (scores.argmax(-1) == self.val_labels).double().mean()
        loss = F.cross_entropy(scores, self.val_labels)
        return Validation(*torch.stack([accuracy, loss.double()]).tolist())  # one transfer

    def homophily(self, edge_index: Edges) -> float:
        """Edge homophily between training nodes; 0 where no edge joins two of them."""
        known = torch.full((self.num_nodes,), -1, dtype=torch.int64)
        known[self.train_nodes.cpu()] = self.train_labels.cpu()
        share = edge_homophily(edge_index, known.to(self.train_labels.device))
        return 0.0 if share != share else share
