"""Which part of the graph each training step sees."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from argnn.functional.neighborhood import Edges
from argnn.nn import AbstractNodeModel

#: Gives the outputs and metrics of the model in the precision of the run.
Forward = Callable[[Tensor, Edges], tuple[Tensor, list[Tensor]]]


@dataclass(frozen=True)
class Batch:
    """What one training step sees.

    Attributes:
        x: Features of the nodes of the batch, ``[M, F]``.
        edge_index: Edges between these nodes, numbered from 0 to M - 1, ``[2, E]``, or prepared
            with their weights.
        loss: Training loss from the model and its outputs ``[M, C]``. It knows which nodes or
            pairs of the batch are training targets.
        penalty_factor: Factor on the penalties of the batch, so that their mean over batches is
            that of the whole graph.
    """

    x: Tensor
    edge_index: Edges
    loss: Callable[[AbstractNodeModel, Tensor], Tensor]
    penalty_factor: float = 1.0


class BatchSource(ABC):
    """Gives the training loop the batches of each epoch.

    Only training steps read batches. Validation always runs on the whole graph; by
    :meth:`outputs`, a source may compute that in another way.

    Class attributes:
        same_tensors: Whether every step sees the same tensors. Only then can a CUDA graph replay
            the step.
        reads_whole: Whether a step or the validation reads the whole graph at once. Then a change
            of its tensors is noticed, and they must fit into memory.

    Attributes:
        num_batches: Number of batches in every epoch.
        generator: Draws the order or the content of the batches, where that is random. Its state is
            stored in checkpoints, so that a continued run gets the same batches.
    """

    same_tensors: ClassVar[bool] = False
    reads_whole: ClassVar[bool] = True

    num_batches: int
    generator: torch.Generator | None = None

    @abstractmethod
    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch, as many as ``num_batches``."""

    def fit_model(self, model: AbstractNodeModel, x: Tensor, edge_index: Edges) -> None:
        """Let the model store what it needs to know about the whole graph."""
        model.fit_to_graph(edge_index, x.size(0))

    def sample(self, x: Tensor, edge_index: Edges) -> tuple[Tensor, Edges]:
        """A part of the graph on which the shapes of the metrics can be seen."""
        return x, edge_index

    def outputs(
        self, model: AbstractNodeModel, forward: Forward, x: Tensor, edge_index: Edges
    ) -> Tensor:
        """Outputs of the model on the whole graph, ``[N, C]``; it is in evaluation mode."""
        return forward(x, edge_index)[0]

    def total(self, value: Tensor) -> Tensor:
        """Sum of losses or gradients over all processes that train together."""
        return value


class WholeGraph(BatchSource):
    """One batch in every epoch: the whole graph."""

    same_tensors = True
    num_batches = 1

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def epoch(self) -> Iterator[Batch]:
        """The whole graph, once."""
        yield self.batch
