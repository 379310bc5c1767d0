"""What a result owes to the machine it was made on."""

import platform
import subprocess
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from argnn.version import __version__

_PACKAGES = ("torch", "torch_geometric", "numpy", "scikit-learn", "safetensors")


@cache
def versions() -> dict[str, str]:
    """Versions of everything that takes part in the numbers."""
    packages = {name: version(name) for name in _PACKAGES}
    return {"argnn": __version__, "python": platform.python_version(), **packages}


@cache
def git_state() -> dict[str, Any]:
    """Commit of the checkout that argnn runs from, and whether its code was changed since.

    Both are None for an installed package.
    """
    root = Path(__file__).resolve().parents[3]
    if not (root / ".git").exists() or not (root / "src" / "argnn").is_dir():
        return {"git_commit": None, "git_changed": None}
    commit = _git(root, "rev-parse", "HEAD")
    changes = _git(root, "status", "--porcelain", "--", "src")
    return {"git_commit": commit, "git_changed": None if changes is None else bool(changes)}


def code_state() -> dict[str, Any]:
    """Versions of everything that takes part in the numbers, and the commit."""
    return {**versions(), **git_state()}


def _git(root: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def device_name(device: str) -> str:
    """The device in words."""
    if device == "cuda":
        return f"cuda ({torch.cuda.get_device_name()})"
    return f"cpu ({platform.machine()})"
