"""Write a graph store: a graph in memory, or nodes and edges that come part by part."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from argnn.data.adjacency import Adjacency, Rows
from argnn.data.graph_store.array_files import (
    ArrayWriter,
    array_facts,
    read_array,
    row_chunks,
    sha256_of,
    write_array,
)
from argnn.data.graph_store.header import (
    ARRAYS,
    HEADER,
    ID_TEXTS,
    STORE_VERSION,
    FileFacts,
    GraphFacts,
    Header,
    file_of,
)
from argnn.data.graph_store.opening import NODE_ARRAYS, content_digest, known_arrays
from argnn.data.graph_store.sorting import EdgeSorter, Records
from argnn.data.node_ids import Ids
from argnn.errors import naming
from argnn.telling import Tell, be_silent

#: Bytes of memory for edges that wait to be sorted.
MEMORY = 256 << 20
_IDS_AT_ONCE = 1 << 16


def write_graph(folder: Path, graph: Data, tell: Tell = be_silent) -> None:
    """Write a graph that ``load`` gave into an empty folder."""
    edges = graph.edge_index
    adjacency = Adjacency.from_edges(edges, graph.x.size(0), graph.get("edge_weight"))
    write_rows(folder, "into", adjacency.into)
    if adjacency.out is not None:
        write_rows(folder, "out", adjacency.out)
    for name in (*NODE_ARRAYS, "edge_time"):
        if graph.get(name) is not None:
            write_array(folder, name, graph[name].numpy())
    said = {field.name: graph.get(field.name) for field in fields(GraphFacts)}
    finish(folder, GraphFacts(**said), graph.node_ids, tell)


def write_rows(folder: Path, side: str, rows: Rows) -> None:
    """Write the edges of all nodes, into them or out of them."""
    write_array(folder, f"{side}_start", rows.start)
    write_array(folder, f"{side}_other", rows.other)
    if rows.weight is not None:
        write_array(folder, f"{side}_weight", rows.weight)


def finish(folder: Path, said: GraphFacts, node_ids: Ids, tell: Tell = be_silent) -> None:
    """Write the ids of the nodes and the header, which make a folder of arrays a store."""
    _write_ids(folder, node_ids)
    arrays = {name: read_array(folder, name) for name in known_arrays(folder)}
    side = "out" if "out_start" in arrays else "into"
    by_source = Rows(*(arrays.get(f"{side}_{part}") for part in ("start", "other", "weight")))  # type: ignore[arg-type]
    tell(0, 0, "checksum of the graph")
    digested = [name for name in (*NODE_ARRAYS, "edge_time") if name in arrays]
    kept = [name for name in digested if name not in ("geometry", "region")]
    content = content_digest(folder, kept, by_source)
    names = [file_of(name) for name in arrays]
    names += [ID_TEXTS] if (folder / ID_TEXTS).exists() else []
    total, done, files = sum((folder / name).stat().st_size for name in names), 0, {}

    def count(size: int) -> None:
        nonlocal done
        done += size
        tell(done, total, "checksums")

    for name in arrays:
        files[file_of(name)] = array_facts(folder, name, count)
    if ID_TEXTS in names:
        path = folder / ID_TEXTS
        files[ID_TEXTS] = FileFacts(path.stat().st_size, sha256_of(path, count))
    nodes, edges = len(arrays["y"]), len(by_source.other)
    header = Header(STORE_VERSION, nodes, edges, content, files, said)
    with naming(folder / HEADER):
        (folder / HEADER).write_bytes(header.to_json())


def _write_ids(folder: Path, node_ids: Ids) -> None:
    """Ids that are the numbers of the rows need no file."""
    if isinstance(node_ids, range):
        return
    if not isinstance(node_ids, np.ndarray) and all(
        isinstance(node, int) and abs(node) < 2**63 for node in node_ids
    ):
        node_ids = np.asarray(node_ids, dtype=np.int64)
    if isinstance(node_ids, np.ndarray):
        if not np.array_equal(node_ids, np.arange(len(node_ids))):
            write_array(folder, "node_ids", node_ids)
        return
    path = folder / ID_TEXTS
    with naming(path), path.open("w", encoding="ascii") as file:
        for begin in range(0, len(node_ids), _IDS_AT_ONCE):
            lines = map(json.dumps, node_ids[begin : begin + _IDS_AT_ONCE])
            file.write(("[" if begin == 0 else ",\n") + ",\n".join(lines))
        file.write("]\n")


class StoreWriter:
    """Writes nodes and edges that come part by part into an empty folder, in bounded memory.

    Edges are sorted, self-loops and duplicates left out, as :func:`argnn.data.load` does.
    ``memory`` is for edges, in bytes; besides, some numbers for each node are kept.
    """

    def __init__(
        self,
        folder: Path,
        num_nodes: int,
        *,
        directed: bool = False,
        weighted: bool = False,
        timed: bool = False,
        memory: int = MEMORY,
    ) -> None:
        self.folder, self.num_nodes, self.directed = folder, num_nodes, directed
        self.weighted, self.memory = weighted, memory
        self.self_loops = 0
        self._sorter = EdgeSorter(folder, num_nodes, weighted=weighted, timed=timed, memory=memory)
        self._sorters = [self._sorter]
        self._arrays: dict[str, ArrayWriter] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        for sorter in self._sorters:
            sorter.close()
        for writer in self._arrays.values():
            writer.abandon()

    def add_edges(
        self,
        source: NDArray[np.integer[Any]],
        target: NDArray[np.integer[Any]],
        weight: NDArray[np.float32] | None = None,
        time: NDArray[np.float64] | None = None,
    ) -> None:
        """Take edges, by the rows of their nodes; of a weighted graph all need a weight."""
        kept = source != target
        self.self_loops += len(kept) - int(kept.sum())
        values = (None if each is None else each[kept] for each in (weight, time))
        ends = (each[kept].astype(np.int64) for each in (source, target))
        self._sorter.add(*ends, *values, both=not self.directed)

    def add_nodes(self, **arrays: NDArray[Any]) -> None:
        """Take the next nodes: ``x``, ``y``, masks ``[n, S]``; always the same names."""
        for name, rows in arrays.items():
            if name not in self._arrays:
                dtype = ARRAYS[name][0][0]
                self._arrays[name] = ArrayWriter(self.folder, name, dtype, rows.shape[1:])
            self._arrays[name].add(rows)

    def sort_edges(self, tell: Tell = be_silent) -> Adjacency:
        """Write the edges; none can be added afterwards. Gives them as they are on the disk."""
        total, again = self._sorter.given * (1 if self.directed else 2), None
        if self.directed or self.weighted:
            again = self._second_sorter()
        side = "into" if again is None else "out"
        self._write_side(side, _told(self._sorter.sorted(), tell, total), again)
        if again is not None:
            self._write_side("into", _told(again.sorted(), tell, total), None)
            again.folder.rmdir()
            if self._is_symmetric():
                for part in ("start", "other", "weight"):
                    (self.folder / file_of(f"out_{part}")).unlink(missing_ok=True)
        return Adjacency(self._rows("into"), self._rows("out"))  # type: ignore[arg-type]

    def _second_sorter(self) -> EdgeSorter:
        """For the other direction, where that may be different."""
        folder = self.folder / "again"
        folder.mkdir()
        weighted, memory = self.weighted, self.memory
        sorter = EdgeSorter(folder, self.num_nodes, weighted=weighted, timed=False, memory=memory)
        self._sorters.append(sorter)
        return sorter

    @property
    def merged(self) -> int:
        """How many duplicates there were, in the directions in which edges were given."""
        return self._sorter.given - self._sorter.distinct

    def _write_side(self, side: str, parts: Iterable[Records], again: EdgeSorter | None) -> None:
        nodes = self.num_nodes
        start = np.zeros(nodes + 1, dtype=np.int64)
        kind = np.int32 if nodes < 2**31 else np.int64
        writers = {"key": ArrayWriter(self.folder, f"{side}_other", kind)}
        self._arrays |= {f"{side}_other": writers["key"]}
        for records in parts:
            names = records.dtype.names or ()
            if not len(records):
                continue
            source, target = np.divmod(records["key"], nodes)
            low, high = int(source[0]), int(source[-1]) + 1
            start[low + 1 : high + 1] += np.bincount(source - low, minlength=high - low)
            writers["key"].add(target)
            for name in ("weight", "time"):
                if name in names:
                    array = "edge_time" if name == "time" else f"{side}_{name}"
                    if name not in writers:
                        writers[name] = ArrayWriter(self.folder, array, ARRAYS[array][0][0])
                        self._arrays[array] = writers[name]
                    writers[name].add(records[name])
            if again is not None:
                weight = records["weight"] if "weight" in names else None
                again.add(target, source, weight, both=False)
        if self.weighted and "weight" not in writers:
            write_array(self.folder, f"{side}_weight", np.empty(0, np.float32))
        for writer in writers.values():
            writer.close()
            del self._arrays[writer.name]
        write_array(self.folder, f"{side}_start", start.cumsum())

    def _rows(self, side: str) -> Rows | None:
        if not (self.folder / file_of(f"{side}_start")).exists():
            return None
        start, other = (read_array(self.folder, f"{side}_{part}") for part in ("start", "other"))
        weight = read_array(self.folder, f"{side}_weight") if self.weighted else None
        return Rows(start, other, weight)

    def _is_symmetric(self) -> bool:
        """Whether edges into nodes are the same as those out of them."""
        into, out = self._rows("into"), self._rows("out")
        assert into is not None and out is not None  # noqa: PT018
        pairs: list[tuple[NDArray[Any], NDArray[Any]]]
        pairs = [(into.start, out.start), (into.other, out.other)]
        if into.weight is not None and out.weight is not None:
            pairs.append((into.weight, out.weight))
        return all(
            np.array_equal(a, b)
            for first, second in pairs
            for a, b in zip(row_chunks(first), row_chunks(second), strict=True)
        )

    def finish(self, said: GraphFacts, node_ids: Ids | None = None, tell: Tell = be_silent) -> None:
        """Write the header after edges and nodes; without ids, nodes have the numbers of rows."""
        for writer in self._arrays.values():
            writer.close()
        ids = range(self.num_nodes) if node_ids is None else node_ids
        finish(self.folder, said, ids, tell)


def _told(parts: Iterable[Records], tell: Tell, total: int) -> Iterator[Records]:
    done = 0
    for part in parts:
        done += len(part)
        tell(min(done, total), total, "sorting edges")
        yield part
