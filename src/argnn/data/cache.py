"""A store of processed graphs in safetensors files.

They hold numbers only: unlike PyG's ``.pt`` files, they cannot run code when they are opened.
"""

import logging
import os
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch_geometric.data import Data

from argnn.data.splits import MASK_NAMES
from argnn.errors import DataError, RunError
from argnn.files import tensors_digest, write_bytes

logger = logging.getLogger(__name__)

# Part of each file. Change it with the content, so that older files are written again.
_FORMAT = "1"


def writable_folder(path: Path) -> Path:
    """Create a folder if it does not exist; an error says in one line why that fails."""
    advice = "set ARGNN_CACHE to a folder that can be written"
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot create the folder {path} ({error.strerror}); {advice}") from error
    if not os.access(path, os.W_OK):
        raise DataError(f"cannot write to the folder {path}; {advice}")
    return path


def store_graph(path: Path, graph: Data) -> None:
    """Write ``x``, ``edge_index``, ``y`` and the masks of a graph; all or nothing.

    Most features of the benchmark graphs are zero, so that only the others are stored.
    """
    flat = graph.x.flatten()
    index = flat.nonzero().squeeze(1)
    tensors = {
        "x_shape": torch.tensor(graph.x.shape),
        "x_index": index,
        "x_value": flat[index],
        "edge_index": graph.edge_index.contiguous(),
        "y": graph.y.contiguous(),
        **{name: graph[name].contiguous() for name in MASK_NAMES},
    }
    writable_folder(path.parent)
    metadata = {"format": _FORMAT, "digest": tensors_digest(tensors)}
    try:
        write_bytes(path, save(tensors, metadata))
    except RunError as error:
        raise DataError(str(error)) from error
    logger.debug("the graph is kept in %s", path)


def stored_graph(path: Path) -> Data | None:
    """Read what :func:`store_graph` wrote; None if it is missing, outdated or damaged."""
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no dict)
    except (SafetensorError, OSError) as error:
        logger.warning("%s is damaged and is made anew (%s)", path, error)
        return None
    if metadata.get("format") != _FORMAT or metadata.get("digest") != tensors_digest(tensors):
        logger.warning("%s is damaged or outdated and is made anew", path)
        return None
    logger.debug("the graph is read from %s", path)
    x = torch.zeros(tensors.pop("x_shape").tolist())
    x.view(-1)[tensors.pop("x_index")] = tensors.pop("x_value")
    return Data(x=x, **tensors)
