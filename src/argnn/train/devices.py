"""The device of a training."""

import torch

from argnn.errors import ConfigError

DEVICES = ("auto", "cpu", "cuda")


def resolve_device(name: str, setting: str = "device") -> str:
    """``"cpu"`` or ``"cuda"``; ``"auto"`` is the GPU if there is one.

    Args:
        name: One of ``DEVICES``.
        setting: Name of the setting in error messages.
    """
    if name not in DEVICES:
        raise ConfigError(f"{setting} must be one of {', '.join(DEVICES)} (got '{name}')")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise ConfigError(f"{setting} cuda: no CUDA device is available here")
    return "cuda" if available and name != "cpu" else "cpu"
