"""Open a graph store: arrays are mapped into memory, so that only what is used is read."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary
from torch_geometric.data import Data

from argnn.data.adjacency import Adjacency, Rows
from argnn.data.graph_store.array_files import (
    CHUNK,
    array_beside_memory,
    leave_memory,
    read_array,
    read_chunks,
    row_chunks,
    sha256_of,
)
from argnn.data.graph_store.header import ARRAYS, ID_TEXTS, Header, file_of, plain_size, read_header
from argnn.data.node_ids import NodeId
from argnn.data.splits import MASK_NAMES
from argnn.errors import DataError
from argnn.files import pieces_digest, tensors_digest
from argnn.telling import Tell, be_silent

#: An edge list of fewer edges is in memory, 2 GiB at most.
EDGES_IN_MEMORY = 2**27
#: Arrays of a store that are tensors of a graph as they are.
NODE_ARRAYS = ("x", "y", *MASK_NAMES, "targets", "geometry", "region")
#: Which store gave a tensor, and under which name. A changed graph has other tensors.
_GIVEN = WeakTensorKeyDictionary()


@dataclass(frozen=True)
class GraphStore:
    """A graph on the disk.

    Attributes:
        path: Its folder.
        header: Sizes, checksums, and what is said about the graph.
    """

    path: Path
    header: Header

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.header.nodes

    @property
    def num_edges(self) -> int:
        """Number of edges; those of an undirected graph count in both directions."""
        return self.header.edges

    @property
    def directed(self) -> bool:
        """Whether directions were kept when the store was made."""
        return bool(self.header.graph.schema["directed"])

    def has(self, array: str) -> bool:
        """Whether there is an array of this name."""
        return file_of(array) in self.header.files

    def array(self, name: str) -> NDArray[Any]:
        """An array of the store, read when it is used."""
        return read_array(self.path, name, self.header.files[file_of(name)])

    @cached_property
    def adjacency(self) -> Adjacency:
        """The edges by node, read when they are used."""
        return Adjacency(self._rows("into"), self._rows("out") if self.has("out_start") else None)

    def _rows(self, side: str) -> Rows:
        weight = self.array(f"{side}_weight") if self.has(f"{side}_weight") else None
        return Rows(self.array(f"{side}_start"), self.array(f"{side}_other"), weight)

    @property
    def by_source(self) -> Rows:
        """The edges in the order of ``edge_index``: by source, then by target."""
        return self.adjacency.out or self.adjacency.into

    def node_ids(self) -> list[NodeId]:
        """The user's names of the nodes."""
        if self.has("node_ids"):
            return self.array("node_ids").tolist()  # type: ignore[no-any-return]
        if ID_TEXTS not in self.header.files:
            return list(range(self.num_nodes))
        path = self.path / ID_TEXTS
        try:
            ids = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise DataError(f"{path}: damaged, not JSON") from error
        if len(ids) != self.num_nodes or not all(isinstance(node, str | int) for node in ids):
            raise DataError(f"{path}: damaged, must hold {self.num_nodes} texts or numbers")
        return ids  # type: ignore[no-any-return]

    def edge_index(self) -> Tensor:
        """All edges, ``[2, E]``, as :func:`argnn.data.load` gives them; many are on the disk."""
        rows = self.by_source
        self.check_rows(rows)
        make = np.empty if self.num_edges < EDGES_IN_MEMORY else array_beside_memory
        edges = make((2, self.num_edges), np.int64)
        for begin, source, target in _pieces(rows):
            edges[0, begin : begin + len(source)] = source
            edges[1, begin : begin + len(target)] = target
        leave_memory(edges)
        return torch.from_numpy(edges)

    def check_rows(self, rows: Rows) -> None:
        """Raise unless edges end at nodes, and those of each node stand together."""
        start, other = np.asarray(rows.start), rows.other
        if start[0] != 0 or start[-1] != len(other) or bool((np.diff(start) < 0).any()):
            raise DataError(f"{self.path}: damaged, the edges of the nodes do not fit together")
        for part in _passed(other):
            if part.min() < 0 or part.max() >= self.num_nodes:
                raise DataError(f"{self.path}: damaged, an edge ends at a node that is not there")

    def graph(self, *, weight: bool = True, time: bool = True) -> Data:
        """The graph as :func:`argnn.data.load` gives it; features are read when they are used.

        Args:
            weight: Give the weights of the edges, where there are any.
            time: Give the times of the edges, where there are any.
        """
        said = self.header.graph
        tensors = {
            name: torch.from_numpy(self.array(name)) for name in NODE_ARRAYS if self.has(name)
        }
        tensors["edge_index"] = self.edge_index()
        if weight and self.by_source.weight is not None:
            tensors["edge_weight"] = torch.from_numpy(self.by_source.weight)
        if time and self.has("edge_time"):
            tensors["edge_time"] = torch.from_numpy(self.array("edge_time"))
        y, count = tensors["y"], len(said.class_names)
        if len(y) and not -1 <= int(y.min()) <= int(y.max()) < max(1, count):
            raise DataError(f"{self.path}: damaged, y must hold numbers from -1 to {count - 1}")
        for name in () if "targets" in tensors else MASK_NAMES:
            if bool((tensors[name] & (y < 0).unsqueeze(1)).any()):
                raise DataError(f"{self.path}: damaged, {name} selects a node without a label")
        for name, tensor in tensors.items():
            _GIVEN[tensor] = self, name
        # Copies: what is done to a graph does not change its store.
        facts = {name: value for name, value in asdict(said).items() if value is not None}
        return Data(**tensors, **facts, class_count=count, node_ids=self.node_ids())


def open_store(path: Path | str) -> GraphStore:
    """Open a store after a check of its header, and of type, shape and length of every file.

    Raises:
        DataError: A file is missing, cut, a link, or not as the header says. What files hold is
            compared with their checksums by ``argnn inspect`` only.
    """
    path = Path(path).expanduser()
    store = GraphStore(path, read_header(path))
    for name, facts in store.header.files.items():
        if name != ID_TEXTS:
            store.array(name.removesuffix(".npy"))
        elif plain_size(path / name) != facts.size:
            raise DataError(f"{path / name}: damaged, must have {facts.size} bytes")
    return store


def check_store(store: GraphStore, tell: Tell = be_silent) -> None:
    """Read all files, and raise unless they have their checksums and fit together."""
    total, done = sum(facts.size for facts in store.header.files.values()), 0
    for name, facts in store.header.files.items():

        def count(size: int, name: str = name) -> None:
            nonlocal done
            done += size
            tell(done, total, name)

        path = store.path / name
        if sha256_of(path, count) != facts.sha256:
            raise DataError(f"{path}: damaged, its content does not match its checksum")
    store.check_rows(store.adjacency.into)
    if store.adjacency.out is not None:
        store.check_rows(store.adjacency.out)


def store_of(graph: Data) -> GraphStore | None:
    """The store whose edges, with weights where there are any, a graph has; None if changed."""
    found = _GIVEN.get(graph.edge_index)
    if found is None:
        return None
    store: GraphStore = found[0]
    weight = graph.get("edge_weight")
    if store.by_source.weight is None:
        return store if weight is None else None
    same = weight is not None and _GIVEN.get(weight) == (store, "edge_weight")
    return store if same else None


def adjacency_of(graph: Data) -> Adjacency:
    """The edges of a graph by node; from the disk where it came from a store and is unchanged."""
    store = store_of(graph)
    if store is not None:
        return store.adjacency
    return Adjacency.from_edges(graph.edge_index, graph.num_nodes, graph.get("edge_weight"))


def graph_digest(tensors: Mapping[str, Tensor]) -> str:
    """One number for the exact content of a graph's tensors; that of a store is known."""
    found = {name: _GIVEN.get(tensor) for name, tensor in tensors.items()}
    stores = {id(given[0]): given[0] for given in found.values() if given is not None}
    if len(stores) == 1 and all(given and given[1] == name for name, given in found.items()):
        (store,) = stores.values()
        if set(tensors) == digested_names(store):
            return str(store.header.content)
    return tensors_digest(tensors)


def digested_names(store: GraphStore) -> set[str]:
    """The tensors that the checksum of a store's content is of."""
    names = {name for name in NODE_ARRAYS if store.has(name)} - {"geometry", "region"}
    names |= {"edge_index"} | ({"edge_time"} if store.has("edge_time") else set())
    return names | ({"edge_weight"} if store.by_source.weight is not None else set())


def content_digest(folder: Path, names: Iterable[str], rows: Rows) -> str:
    """The checksum of a graph's tensors, read from the disk part by part.

    ``names`` are arrays of nodes, and perhaps ``edge_time``; ``rows`` are the edges by source.
    """
    parts: dict[str, tuple[torch.dtype, Any, Any]] = {}
    for name in names:
        values = torch.from_numpy(read_array(folder, name))
        parts[name] = values.dtype, values.shape, read_chunks(folder, name)
    edges = (piece for side in (1, 2) for piece in (part[side] for part in _pieces(rows)))
    parts["edge_index"] = torch.int64, (2, len(rows.other)), edges
    if rows.weight is not None:
        parts["edge_weight"] = torch.float32, rows.weight.shape, _passed(rows.weight)
    return pieces_digest(parts)


def _passed(values: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """A mapped array part by part; parts do not stay in memory."""
    for part in row_chunks(values):
        yield part
        leave_memory(values)


def _pieces(rows: Rows) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
    """Edges part by part: place of the first, nodes, and the nodes at the other ends."""
    count, total = len(rows.start) - 1, len(rows.other)
    begin, first = 0, 0
    while begin < total:
        end = min(total, begin + CHUNK)
        last = min(count, int(np.searchsorted(rows.start, end, side="left")))
        within = np.clip(rows.start[first : last + 1], begin, end)
        nodes = np.repeat(np.arange(first, last, dtype=np.int64), np.diff(within))
        yield begin, nodes, np.asarray(rows.other[begin:end], dtype=np.int64)
        leave_memory(rows.other)
        begin, first = end, max(0, last - 1)


def known_arrays(folder: Path) -> list[str]:
    """The arrays that are in a folder, in the order of the table."""
    return [name for name in ARRAYS if (folder / file_of(name)).exists()]
