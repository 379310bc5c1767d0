"""Where to compute, and how precisely."""

import torch
from torch import Tensor

from argnn.errors import ConfigError
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import accumulation_dtype
from argnn.nn import AbstractNodeModel

DEVICES = ("auto", "cpu", "cuda")


def resolve_device(name: str, setting: str = "device") -> str:
    """``"cpu"`` or ``"cuda"``; ``"auto"`` is the GPU if there is one.

    ``setting`` is the name of the setting in error messages.
    """
    if name not in DEVICES:
        raise ConfigError(f"{setting} must be one of {', '.join(DEVICES)} (got '{name}')")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError(f"{setting} cuda: no CUDA device is available here")
    return "cuda" if available and name != "cpu" else "cpu"


PRECISIONS = ("float32", "bfloat16")


def scores_and_metrics(
    model: AbstractNodeModel, x: Tensor, edge_index: Edges, precision: str
) -> tuple[Tensor, list[Tensor]]:
    """The result of ``model.forward_with_metric`` in a chosen precision.

    With ``"bfloat16"`` the network runs under :class:`torch.autocast`: weights keep their type, and
    products are computed in bfloat16. Results are float32 again, and so are losses and energies.

    Args:
        model: The model.
        x: Node features, ``[N, in_channels]``.
        edge_index: Source and target of each edge, ``[2, E]``, or prepared with their weights.
        precision: ``"float32"``, which changes no type, or ``"bfloat16"``.
    """
    if precision == "float32":
        return model.forward_with_metric(x, edge_index)
    with torch.autocast(x.device.type, torch.bfloat16):
        scores, metrics = model.forward_with_metric(x, edge_index)
    scores, *metrics = (part.to(accumulation_dtype(part.dtype)) for part in (scores, *metrics))
    return scores, metrics
