"""Which nodes of which graph a model has learned from, so that others can be told apart later."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import features_and_edges
from argnn.data.graph_store.array_files import row_chunks
from argnn.files import pieces_digest


@dataclass(frozen=True)
class SeenNodes:
    """The nodes of a graph whose labels trained a model or chose its epoch.

    Attributes:
        digest: Of the features, edges and weights of the graph.
        train: The nodes that trained it, ``[N]``.
        val: Those that chose the epoch, ``[N]``.
    """

    digest: str
    train: Tensor
    val: Tensor

    @classmethod
    def of(cls, graph: Data, train: Tensor, val: Tensor) -> "SeenNodes":
        """These nodes of a graph that ``argnn.data.load`` gave."""
        return cls(content_digest_of(graph), train.cpu(), val.cpu())

    def is_of(self, graph: Data) -> bool:
        """Whether the nodes are those of this graph."""
        return len(self.train) == graph.x.size(0) and content_digest_of(graph) == self.digest

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values, with two bits for each node."""
        bits = {"train": _packed(self.train), "val": _packed(self.val)}
        return {"graph": self.digest, "count": len(self.train), **bits}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SeenNodes":
        """Rebuild what :meth:`to_json` gave."""
        train, val = (_unpacked(values[part], values["count"]) for part in ("train", "val"))
        return cls(str(values["graph"]), train, val)


def _packed(mask: Tensor) -> str:
    return base64.b64encode(np.packbits(mask.numpy()).tobytes()).decode()


def _unpacked(bits: str, count: int) -> Tensor:
    packed = np.frombuffer(base64.b64decode(bits, validate=True), dtype=np.uint8)
    if len(packed) != -(-count // 8):
        raise ValueError(f"seen has {len(packed)} bytes for {count} nodes")
    return torch.from_numpy(np.unpackbits(packed, count=count).astype(np.bool_))


def content_digest_of(graph: Data) -> str:
    """One number for the features, edges and weights of a graph; labels do not change it."""
    parts = features_and_edges(graph).to_dict()
    return pieces_digest(
        {name: (part.dtype, part.shape, row_chunks(part.numpy())) for name, part in parts.items()}
    )
