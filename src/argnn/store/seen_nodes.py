"""Which nodes of which graph were used to train a model: later scores leave them out."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import xxhash
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import features_and_edges
from argnn.data.graph_store.array_files import row_chunks
from argnn.files import pieces_digest

#: Ids of more nodes are not kept: four bytes of each would be in the model folder.
_MOST_IDS = 1_000_000


@dataclass(frozen=True)
class SeenNodes:
    """The nodes of a graph whose labels trained a model or chose its epoch.

    Attributes:
        digest: Of the features, edges and weights of the graph.
        train: The nodes that trained it, ``[N]``.
        val: Those that chose the epoch, ``[N]``.
        ids: Hashes of the ids of all these, where ids are texts. By them the nodes are found
            again in a table with another order of rows, or with some rows changed.
    """

    digest: str
    train: Tensor
    val: Tensor
    ids: NDArray[np.uint32] | None = None

    @classmethod
    def of(cls, graph: Data, train: Tensor, val: Tensor) -> "SeenNodes":
        """These nodes of a graph that ``argnn.data.load`` gave."""
        train, val, hashes = train.cpu(), val.cpu(), _id_hashes(graph)
        ids = None if hashes is None else np.unique(hashes[(train | val).numpy()])
        return cls(content_digest_of(graph), train, val, ids)

    def in_graph(self, graph: Data) -> NDArray[np.bool_]:
        """Those nodes in a graph, ``[N]``: all of the same graph, else those with a known id."""
        if self.is_of(graph):
            return (self.train | self.val).numpy()
        hashes = _id_hashes(graph)
        if hashes is None or self.ids is None:
            return np.zeros(graph.x.size(0), dtype=np.bool_)
        return np.isin(hashes, self.ids)

    def is_of(self, graph: Data) -> bool:
        """Whether the nodes are those of this graph."""
        return len(self.train) == graph.x.size(0) and content_digest_of(graph) == self.digest

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values, with two bits for each node."""
        bits = {"train": _packed(self.train), "val": _packed(self.val)}
        ids = {} if self.ids is None else {"ids": _text(self.ids.astype("<u4"))}
        return {"graph": self.digest, "count": len(self.train), **bits, **ids}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SeenNodes":
        """Rebuild what :meth:`to_json` gave."""
        train, val = (_unpacked(values[part], values["count"]) for part in ("train", "val"))
        ids = _numbers(values["ids"], "<u4") if "ids" in values else None
        return cls(str(values["graph"]), train, val, ids)


def _id_hashes(graph: Data) -> NDArray[np.uint32] | None:
    """A number for the id of each node, ``[N]``; None where ids are numbers, or too many.

    Ids that are numbers are not used: in another graph the same number may be another node.
    """
    ids = graph.get("node_ids")
    if not ids or len(ids) > _MOST_IDS or not all(isinstance(each, str) for each in ids):
        return None
    return np.array(
        [xxhash.xxh32_intdigest(each.encode(errors="surrogatepass")) for each in ids],
        dtype=np.uint32,
    )


def _text(values: NDArray[Any]) -> str:
    return base64.b64encode(values.tobytes()).decode()


def _numbers(text: str, dtype: str) -> NDArray[Any]:
    return np.frombuffer(base64.b64decode(text, validate=True), dtype=dtype)


def _packed(mask: Tensor) -> str:
    return _text(np.packbits(mask.numpy()))


def _unpacked(bits: str, count: int) -> Tensor:
    packed = _numbers(bits, "u1")
    if len(packed) != -(-count // 8):
        raise ValueError(f"seen has {len(packed)} bytes for {count} nodes")
    return torch.from_numpy(np.unpackbits(packed, count=count).astype(np.bool_))


def content_digest_of(graph: Data) -> str:
    """One number for the features, edges and weights of a graph; labels do not change it."""
    parts = features_and_edges(graph).to_dict()
    return pieces_digest(
        {name: (part.dtype, part.shape, row_chunks(part.numpy())) for name, part in parts.items()}
    )
