"""The precision a network is evaluated in."""

import torch
from torch import Tensor

from argnn.functional.precision import accumulation_dtype
from argnn.nn import AbstractNodeModel

PRECISIONS = ("float32", "bfloat16")


def scores_and_metrics(
    model: AbstractNodeModel, x: Tensor, edge_index: Tensor, precision: str
) -> tuple[Tensor, list[Tensor]]:
    """What ``model.forward_with_metric`` gives, with the network in a chosen precision.

    With ``"bfloat16"`` the network runs under :class:`torch.autocast`: its weights keep their
    type, and products are taken in bfloat16. What comes out is float32 again, so that losses
    and energies are.

    Args:
        model: The model.
        x: Node features, ``[N, in_channels]``.
        edge_index: Source and target of each edge, ``[2, E]``.
        precision: ``"float32"``, which leaves every type as it is, or ``"bfloat16"``.
    """
    if precision == "float32":
        return model.forward_with_metric(x, edge_index)
    with torch.autocast(x.device.type, torch.bfloat16):
        scores, metrics = model.forward_with_metric(x, edge_index)
    return _accumulable(scores), [_accumulable(g) for g in metrics]


def _accumulable(values: Tensor) -> Tensor:
    return values.to(accumulation_dtype(values.dtype))
