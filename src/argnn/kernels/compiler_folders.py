"""Folders from which torch's compiler and Triton take the code that they run."""

import os
from pathlib import Path

from argnn.folders import is_private, private_folders

_INDUCTOR, _TRITON = "TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"


def avoid_foreign_inductor_folder() -> None:
    """Let ``torch.compile`` take no code from a folder of another user.

    By default it uses ``torchinductor_USER`` in the shared temporary folder, whoever made it. Torch
    writes that name into the environment; any other name is the user's own choice and stays.
    """
    chosen = Path(os.environ.get(_INDUCTOR, ""))
    if chosen.name.startswith("torchinductor_") and not is_private(chosen):
        _divert(_INDUCTOR, "inductor")


def find_triton_folder() -> None:
    """Let Triton keep its kernels also where the home folder cannot be written."""
    home = Path(os.environ.get("TRITON_HOME", "~"))
    try:
        folder = home.expanduser() / ".triton" / "cache"
        folder.mkdir(parents=True, exist_ok=True)
        can_write = os.access(folder, os.W_OK)
    except (OSError, RuntimeError):
        can_write = False
    if not can_write and _TRITON not in os.environ:
        _divert(_TRITON, "triton")


def _divert(variable: str, kind: str) -> None:
    folder = next(private_folders(kind, make=True), None)
    if folder is not None:
        os.environ[variable] = str(folder)
