"""Which nodes of which graph a model has learned from, so that others can be told apart later."""

import base64
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
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
        nodes: Those nodes, ``[N]``.
    """

    digest: str
    nodes: NDArray[np.bool_]

    @classmethod
    def of(cls, graph: Data, nodes: Tensor) -> "SeenNodes":
        """These nodes of a graph that ``argnn.data.load`` gave."""
        return cls(content_digest_of(graph), nodes.cpu().numpy())

    def in_graph(self, graph: Data) -> NDArray[np.bool_]:
        """Those nodes where this is the graph; none, ``[N]``, where it is another one."""
        count = graph.x.size(0)
        found = len(self.nodes) == count and content_digest_of(graph) == self.digest
        return self.nodes if found else np.zeros(count, dtype=np.bool_)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON values, with a bit for each node."""
        bits = base64.b64encode(np.packbits(self.nodes).tobytes()).decode()
        return {"graph": self.digest, "count": len(self.nodes), "bits": bits}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "SeenNodes":
        """Rebuild what :meth:`to_json` gave."""
        packed = np.frombuffer(base64.b64decode(values["bits"], validate=True), dtype=np.uint8)
        if len(packed) != -(-values["count"] // 8):
            raise ValueError(f"seen has {len(packed)} bytes for {values['count']} nodes")
        nodes = np.unpackbits(packed, count=values["count"]).astype(np.bool_)
        return cls(str(values["graph"]), nodes)


def content_digest_of(graph: Data) -> str:
    """One number for the features, edges and weights of a graph; labels do not change it."""
    parts = features_and_edges(graph).to_dict()
    return pieces_digest(
        {name: (part.dtype, part.shape, row_chunks(part.numpy())) for name, part in parts.items()}
    )
