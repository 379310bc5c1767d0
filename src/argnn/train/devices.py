"""Where to compute, and how precisely."""

import logging
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor

from argnn.errors import ConfigError
from argnn.functional.neighborhood import Edges
from argnn.functional.precision import accumulation_dtype
from argnn.nn import AbstractNodeModel

DEVICES = ("auto", "cpu", "cuda", "cuda:N", "mps")
_NAME = re.compile(r"auto|cpu|cuda(:\d{1,3})?|mps")
logger = logging.getLogger(__name__)


def resolve_device(name: str, setting: str = "device") -> str:
    """``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``, which must be there.

    ``"auto"`` is the GPU of CUDA if there is one, else the CPU; never ``"mps"``, a GPU of Apple,
    on which nobody has run argnn yet. ``setting`` is the name of the setting in error messages.
    """
    if not _NAME.fullmatch(name):
        raise ConfigError(f"{setting} must be one of {', '.join(DEVICES)} (got '{name}')")
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
        logger.debug("%s auto takes %s", setting, name)
    if name.startswith("cuda"):
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if count == 0:
            raise ConfigError(f"{setting} {name}: no CUDA device is available here")
        if int(name[5:] or 0) >= count:
            has = "1 GPU, cuda:0" if count == 1 else f"{count} GPUs, cuda:0 to cuda:{count - 1}"
            raise ConfigError(f"{setting} {name}: this machine has {has}")
    if name == "mps" and not torch.backends.mps.is_available():
        raise ConfigError(f"{setting} mps: no GPU of Apple is available here")
    return name


def on_cuda(device: str) -> bool:
    """Whether the name of a device is that of a GPU of CUDA."""
    return torch.device(device).type == "cuda"


def current_device(device: str) -> AbstractContextManager[object]:
    """Make a GPU that has a number the current one: CUDA graphs and sums of memory belong to it."""
    numbered = on_cuda(device) and torch.device(device).index is not None
    return torch.cuda.device(device) if numbered else nullcontext()


PRECISIONS = ("float32", "tf32", "bfloat16")


@contextmanager
def products_in(precision: str) -> Iterator[None]:
    """Let the dense products of a block be computed in TF32, if that is the precision.

    TF32 has the range of float32 and ten bits behind the point; sums stay float32. It is a matter
    of GPUs of CUDA: on a CPU ``"tf32"`` changes nothing. Afterwards products are what they were.

    Args:
        precision: One of :data:`PRECISIONS`; the others change nothing here.

    Example:
        >>> with products_in("tf32"):
        ...     torch.backends.cuda.matmul.allow_tf32
        True
        >>> torch.backends.cuda.matmul.allow_tf32
        False
    """
    matmul = torch.backends.cuda.matmul
    before = matmul.fp32_precision
    if precision != "tf32" or before == "tf32":
        yield
        return
    # The older of torch's two switches sets both, so that whoever reads the other finds the same.
    try:
        matmul.allow_tf32 = True
        yield
    finally:
        matmul.allow_tf32 = False
        matmul.fp32_precision = before


def scores_and_metrics(
    model: AbstractNodeModel, x: Tensor, edge_index: Edges, precision: str
) -> tuple[Tensor, list[Tensor]]:
    """The result of ``model.forward_with_metric`` in a chosen precision.

    With ``"bfloat16"`` the network runs under :class:`torch.autocast`: weights keep their type, and
    products are computed in bfloat16. Results are float32 again, and so are losses and energies.
    With ``"tf32"`` a GPU computes dense products in TF32; those of the gradient are up to the
    caller.

    Args:
        model: The model.
        x: Node features, ``[N, in_channels]``.
        edge_index: Source and target of each edge, ``[2, E]``, or prepared with their weights.
        precision: ``"float32"`` and ``"tf32"``, which change no type, or ``"bfloat16"``.
    """
    if precision != "bfloat16":
        with products_in(precision):
            return model.forward_with_metric(x, edge_index)
    with torch.autocast(x.device.type, torch.bfloat16):
        scores, metrics = model.forward_with_metric(x, edge_index)
    scores, *metrics = (part.to(accumulation_dtype(part.dtype)) for part in (scores, *metrics))
    return scores, metrics
