"""The features and the metrics in each layer of a trained model."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.hooks import RemovableHandle
from torch_geometric.data import Data

from argnn.functional.neighborhood import edges_of
from argnn.interrupts import interrupts_put_off
from argnn.nn import ARGNN, MESSAGE_FORMS, AbstractNodeModel


@torch.no_grad()
def learned_metrics(model: AbstractNodeModel, graph: Data) -> list[Tensor]:
    """Metrics of every layer, ``[N, D]`` or factored; empty for a model without a metric."""
    training = model.training
    metrics = model.eval().forward_with_metric(graph.x, edges_of(graph))[1]
    model.train(training)
    return metrics


def metric_kind(model: AbstractNodeModel) -> str:
    """``"learned"``, ``"fixed"`` for a metric that training does not change, or ``"none"``."""
    if not isinstance(model, ARGNN):
        return "none"
    return "fixed" if model.formulation.metric == "fixed" else "learned"


@dataclass(frozen=True)
class Layer:
    """Points, and the metrics that measure the distances between them.

    Attributes:
        h: Features of the nodes on the channels that the metric lives on, ``[N, D]``.
        g: Metrics, diagonal, ``[N, D]``, or factored, ``[N, 1 + R, D]``.
    """

    h: Tensor
    g: Tensor

    def __post_init__(self) -> None:
        if self.h.shape != (self.g.size(0), self.g.size(-1)):
            raise ValueError(
                "features and metric of a layer need the same nodes and channels "
                f"(got {list(self.h.shape)} and {list(self.g.shape)})"
            )


@torch.no_grad()
def learned_layers(model: AbstractNodeModel, graph: Data) -> list[Layer]:
    """Points and metrics of every layer, on the CPU; empty for a model without a metric.

    In the scalar form a metric measures the features that enter the layer, in the operator form
    those that leave it (see :class:`~argnn.nn.ARConv`). The graph is on the device of the model,
    which is left as it was.
    """
    if not isinstance(model, ARGNN):
        return []
    entered, states, metrics = observed(model, graph)
    # The encoded input may stand before the states of the layers.
    left = states[-len(metrics) :]
    points = entered if MESSAGE_FORMS[model.formulation.modulation].on_inputs else left
    return [Layer(h.cpu(), g.cpu()) for h, g in zip(points, metrics, strict=True)]


@torch.no_grad()
def observed(model: ARGNN, graph: Data) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """The inputs of each layer, the states for the read-out, and the metrics, without dropout."""
    entered: list[Tensor] = []
    hooks: list[RemovableHandle] = []
    training = model.training
    try:
        for conv in model.convs:
            with interrupts_put_off():
                hooks += [conv.register_forward_pre_hook(lambda _, x: entered.append(x[0]))]
        states, metrics = model.eval().hidden_states(graph.x, edges_of(graph))
    finally:
        model.train(training)
        for hook in hooks:
            hook.remove()
    return entered, states, metrics
