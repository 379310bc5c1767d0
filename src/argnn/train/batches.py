"""Which part of the graph each training step sees."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from argnn.functional.neighborhood import Edges
from argnn.nn import AbstractNodeModel


@dataclass(frozen=True)
class Batch:
    """What one training step sees.

    Attributes:
        x: Features of the nodes of the batch, ``[M, F]``.
        edge_index: Edges between these nodes, numbered from 0 to M - 1, ``[2, E]``, or prepared
            with their weights.
        loss: Training loss from the model and its outputs ``[M, C]``. It knows which nodes or
            pairs of the batch are training targets.
    """

    x: Tensor
    edge_index: Edges
    loss: Callable[[AbstractNodeModel, Tensor], Tensor]


class BatchSource(ABC):
    """Gives the training loop the batches of each epoch.

    Only training steps read batches. Validation always runs on the whole graph.

    Class attributes:
        same_tensors: Whether every step sees the same tensors. Only then can a CUDA graph replay
            the step.

    Attributes:
        num_batches: Number of batches in every epoch.
        generator: Draws the order or the content of the batches, where that is random. Its state is
            stored in checkpoints, so that a continued run gets the same batches.
    """

    same_tensors: ClassVar[bool] = False

    num_batches: int
    generator: torch.Generator | None = None

    @abstractmethod
    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch, as many as ``num_batches``."""


class WholeGraph(BatchSource):
    """One batch in every epoch: the whole graph."""

    same_tensors = True
    num_batches = 1

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def epoch(self) -> Iterator[Batch]:
        """The whole graph, once."""
        yield self.batch
