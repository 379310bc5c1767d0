"""Convert tables that do not fit into memory: lists of edges, CSV and Parquet folders.

The steps are those of :class:`argnn.data.import_graph.TableImport` and of
``argnn.data.assemble``. Edges are read in parts, columns of nodes one at a time.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from argnn.data.assemble import (
    ROW_RULE,
    TooFewLabelsError,
    assemble,
    check_finite,
    edge_notes,
    row_normalized,
)
from argnn.data.columns import (
    ColumnRule,
    EncodedColumns,
    Part,
    check_feature_count,
    encoded_columns,
    side_by_side,
)
from argnn.data.edge_columns import edge_columns
from argnn.data.formats.parquet_files import ColumnsOnDisk, read_parquet_parts, write_texts
from argnn.data.formats.text_files import (
    SUFFIXES,
    edge_list_notes,
    read_csv_parts,
    read_edge_list_parts,
)
from argnn.data.graph_store.array_files import array_beside_memory, read_array, write_array
from argnn.data.graph_store.header import GraphFacts
from argnn.data.graph_store.opening import NODE_ARRAYS
from argnn.data.graph_store.writing import StoreWriter
from argnn.data.import_graph import ImportedGraph, TableImport, structure_rule
from argnn.data.import_options import ImportOptions, no_features
from argnn.data.loading import made_feature_rule
from argnn.data.node_ids import (
    FoundNodes,
    IntegerRows,
    NodeId,
    NodeRows,
    NoIntegersError,
    rows_of_table,
)
from argnn.data.splits import Folds
from argnn.data.structural_features import Structure, degree_features, structural_features
from argnn.data.tables import GraphTables, Table
from argnn.errors import DataError, error_prefix, naming
from argnn.telling import Tell

#: Features from the edges that can be made of a graph that is not in memory.
_STREAMED_FEATURES = ("degree", "random")
#: Bytes of text, and rows of a Parquet file, that are read at once.
_TEXT_AT_ONCE, _ROWS_AT_ONCE = 8 << 20, 1 << 18
_EDGES_AT_ONCE, _NODES_AT_ONCE = 1 << 20, 1 << 16
_RAW, _TEXTS = "edges.raw", "nodes.parquet"
_NO_EDGES = torch.empty(2, 0, dtype=torch.int64)


@dataclass(frozen=True)
class StreamedSource:
    """Tables that are read in parts.

    Attributes:
        path: What the user named.
        parts: Gives the edges, part by part, every time that it is called; its argument says
            whether ids may be read as integers, which is fast.
        nodes: The file of the nodes, if there is one.
        notes: What to know about the source.
    """

    path: Path
    parts: Callable[[bool], Iterator[Table]]
    nodes: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all files."""
        inside = self.path.iterdir() if self.path.is_dir() else [self.path]
        return sum(file.stat().st_size for file in inside if file.is_file())


def streamed_source(path: Path) -> StreamedSource | None:
    """The tables of a path, if they can be read in parts."""
    if path.is_dir():
        found = [kind for kind in ("csv", "parquet") if os.path.lexists(path / f"edges.{kind}")]
        if len(found) != 1:
            return None
        edges, nodes = (path / f"{what}.{found[0]}" for what in ("edges", "nodes"))
        has_nodes = nodes if os.path.lexists(nodes) else None
        if found[0] == "csv":

            def texts(fast: bool) -> Iterator[Table]:
                return read_csv_parts(edges, _TEXT_AT_ONCE, integers=fast)

            return StreamedSource(path, texts, has_nodes)
        return StreamedSource(path, lambda _: read_parquet_parts(edges, _ROWS_AT_ONCE), has_nodes)
    if path.suffix.lower() not in SUFFIXES or not path.is_file():
        return None

    def lists(integers: bool) -> Iterator[Table]:
        return read_edge_list_parts(path, _TEXT_AT_ONCE, integers=integers)

    return StreamedSource(path, lists, notes=edge_list_notes(path))


def write_streamed(
    source: StreamedSource, folder: Path, options: ImportOptions, memory: int, tell: Tell
) -> None:
    """Write tables that are read in parts into a new store; ``memory`` is for edges, in bytes."""
    if options.features not in (None, *_STREAMED_FEATURES):
        raise DataError(
            f"{source.path}: {options.features} features cannot be made of a graph of this "
            f"size; choose {' or '.join(_STREAMED_FEATURES)}"
        )
    nodes = _nodes(source, folder, tell)
    tables = GraphTables(_first_part(source), nodes, notes=source.notes)
    with ExitStack() as open_files:
        _StreamedImport(tables, options, source, folder, memory, tell, open_files).write()


def _nodes(source: StreamedSource, folder: Path, tell: Tell) -> Table | None:
    path = source.nodes
    if path is None:
        return None
    tell(0, 0, f"reading {path.name}")
    if path.suffix == ".parquet":
        return Table(str(path), ColumnsOnDisk(path))
    texts = folder / _TEXTS
    with naming(texts):
        return write_texts(texts, read_csv_parts(path, _TEXT_AT_ONCE))


def _first_part(source: StreamedSource) -> Table:
    try:
        return next(source.parts(True))
    except NoIntegersError:
        return next(source.parts(False))


class _StreamedImport(TableImport):
    """Reads the edges of a source part by part; ``tables`` holds the first part only."""

    def __init__(
        self,
        tables: GraphTables,
        options: ImportOptions,
        source: StreamedSource,
        folder: Path,
        memory: int,
        tell: Tell,
        open_files: ExitStack,
    ) -> None:
        super().__init__(tables, options)
        self.source, self.folder, self.memory, self.tell = source, folder, memory, tell
        self.open_files = open_files

    def write(self) -> None:
        """Write the store."""
        graph = self.imported()
        self._write_features(graph.parts, graph.schema["structure"])
        facts = self._assembled(graph)
        for left in [*self.folder.glob("part-*.npy"), self.folder / _TEXTS]:
            left.unlink(missing_ok=True)
        self.writer.finish(facts, self.ids, self.tell)

    def check_asked(self) -> None:
        """Raise also if there will be no features, before a large file is read to its end."""
        super().check_asked()
        if self.nodes is None and self.options.features is None:
            raise no_features(self.edges.origin)

    def read_edges(self) -> list[NodeId]:
        """Give all edges to the writer; the ids of the nodes are kept, but not as a list."""
        nodes = self.nodes
        if nodes is not None and self.id_column is not None:
            is_plain = str(nodes.origin).endswith(".csv")
            rows = rows_of_table(nodes, self.id_column, is_plain=is_plain)
            self.ids = rows.ids
            self._known_edges(rows, len(nodes))
            return []
        # Files of integers are read fast; ids that are integers take little memory.
        for fast, integers in ((True, True), (False, True)):
            try:
                self._found_edges(fast, integers)
            except NoIntegersError:
                self.notes[:] = self.source.notes
                (self.folder / _RAW).unlink()
            else:
                return []
        self._found_edges(fast=False, integers=False)
        return []

    def _open_writer(self, num_nodes: int) -> None:
        writer = StoreWriter(
            self.folder,
            num_nodes,
            directed=self.directed,
            weighted=self.options.weight is not None,
            timed=self.options.time is not None,
            memory=self.memory,
        )
        self.writer = self.open_files.enter_context(writer)

    def _known_edges(self, rows: NodeRows, count: int) -> None:
        """Edges between the nodes of a table."""
        self._open_writer(count)
        zeros = 0
        for part, ends, values in self._parts(fast=isinstance(rows, IntegerRows)):
            found = rows.ends(part, ends)
            kept = values.pop("kept")
            zeros += len(kept) - int(kept.sum())
            self.writer.add_edges(*found[:, kept], **values)
        self._note_zeros(zeros)

    def _found_edges(self, fast: bool, integers: bool) -> None:
        """Edges between nodes that are known only when all were read; they wait on the disk."""
        nodes, zeros, count, path = FoundNodes(are_integers=integers), 0, 0, self.folder / _RAW
        record = np.dtype([("ends", "<i8", 2), ("weight", "<f4"), ("time", "<f8")])
        names: set[str] = set()
        with naming(path), path.open("xb") as file:
            for part, ends, values in self._parts(fast):
                found, count = nodes.add(part, ends), count + len(part)
                kept = values.pop("kept")
                zeros += len(kept) - int(kept.sum())
                records = np.zeros(int(kept.sum()), record)
                records["ends"] = found[:, kept].T
                for name, numbers in values.items():
                    records[name] = numbers
                names = set(values)
                file.write(records.data)
        if not count:
            raise DataError(f"{part.origin}: there are no edges, and no table of nodes")
        self._note_zeros(zeros)
        self.ids = nodes.ids()
        self._open_writer(len(self.ids))
        with naming(path), path.open("rb") as file:
            while len(records := np.fromfile(file, record, _EDGES_AT_ONCE)):
                source, target = nodes.rows(records["ends"]).T
                self.writer.add_edges(source, target, **{name: records[name] for name in names})
        path.unlink()

    def _parts(self, fast: bool) -> Iterator[tuple[Table, tuple[str, str], dict[str, Any]]]:
        """Parts of the edges, the columns of their ends, and what else is asked for."""
        columns, done = None, 0
        for part in self.source.parts(fast):
            if columns is None:
                has_nodes = self.nodes is not None
                columns = edge_columns(part, self.options, self.notes, has_nodes=has_nodes)
            yield part, columns.ends, self._values(part, columns.values(part))
            done += len(part)
            self.tell(done, 0, "reading edges")

    def _values(self, part: Table, found: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
        """Which edges are kept, and of these the weights and times that were asked for."""
        values: dict[str, Any] = {"kept": np.ones(len(part), dtype=bool)}
        if "edge_weight" in found:
            with np.errstate(over="ignore"):
                weight = found["edge_weight"].astype(np.float32)
            values["kept"] = weight != 0
            values["weight"] = weight[values["kept"]]
            for row in np.flatnonzero(~np.isfinite(weight))[:1]:
                raise part.error(int(row), str(self.options.weight), "a weight is too large")
        if "edge_time" in found:
            values["time"] = found["edge_time"][values["kept"]]
        return values

    def _note_zeros(self, zeros: int) -> None:
        if zeros:
            self.notes.append(f"{zeros} edges of weight 0 left out")

    def encoded(self, nodes: Table, rules: list[ColumnRule]) -> EncodedColumns:
        """Features of the columns, which wait on the disk."""
        encoded = EncodedColumns()
        for done, rule in enumerate(rules):
            column = encoded_columns(nodes, [rule], self.problems, array_beside_memory)
            for values, width in column.parts:
                name = f"part-{len(encoded.parts)}"
                write_array(self.folder, name, values)
                encoded.parts.append((read_array(self.folder, name), width))
            encoded.names += column.names
            encoded.notes += column.notes
            check_feature_count(nodes, len(encoded.names))
            self.tell(done, len(rules), "columns")
        return encoded

    def add_structure(self, encoded: EncodedColumns, node_ids: list[NodeId]) -> Structure | None:
        """The rule of features from the edges, which are made later; those here need no ids."""
        self.sorted_edges = self.writer.sort_edges(self.tell)
        structure = structure_rule(self.options, None, node_ids, self.directed, _NO_EDGES)
        if structure is not None:
            encoded.names += structural_features(structure, _NO_EDGES, [], "")[1]
        return structure

    def _write_features(self, parts: list[Part], structure: Structure | None) -> None:
        """All features, some nodes at a time."""
        count = self.writer.num_nodes
        for begin in range(0, count, _NODES_AT_ONCE):
            rows = slice(begin, min(count, begin + _NODES_AT_ONCE))
            own = np.empty((rows.stop - begin, 0), dtype=np.float32)
            if parts:
                own = side_by_side([(values[rows], width) for values, width in parts])
            x = own
            if structure is not None:
                x = np.concatenate([own, self._made(structure, rows)], axis=1)
            with error_prefix(f"{self.source.path}:"):
                checked = check_finite(torch.from_numpy(x), begin)
                if self.options.row_normalize:
                    scaled = row_normalized(checked[:, : own.shape[1]], begin)
                    checked = torch.cat([scaled, checked[:, own.shape[1] :]], dim=1)
            self.writer.add_nodes(x=checked.numpy())
            self.tell(rows.stop, count, "features")

    def _made(self, structure: Structure, rows: slice) -> NDArray[np.float32]:
        if structure["kind"] == "random":
            if rows.start == 0:
                self._random = np.random.default_rng(structure["seed"])
            size = (rows.stop - rows.start, structure["size"])
            return self._random.standard_normal(size).astype(np.float32)
        into, out = self.sorted_edges.into, self.sorted_edges.out
        degrees = {"in": into, "both": into, "out": out or into}
        counts = {
            side: torch.from_numpy(np.diff(degrees[side].start[rows.start : rows.stop + 1]))
            for side in structure["sides"]
        }
        return degree_features(counts)[0]

    def _assembled(self, imported: ImportedGraph) -> GraphFacts:
        """Check labels and masks, draw a split, and write them; gives what is said of the graph."""
        options, path, data, writer = self.options, self.source.path, imported.data, self.writer
        data.x, data.edge_index = torch.zeros(writer.num_nodes, 1), _NO_EDGES
        if options.weight is not None:
            data.edge_weight, data.keep_weight = torch.empty(0), True
        if options.time is not None:
            data.edge_time, data.keep_time = torch.empty(0), True
        about = partial(assemble, data, origin=str(path), name=path.stem, directed=options.directed)
        if options.folds is not None:
            about = partial(about, folds=Folds(options.folds, options.groups))
        try:
            graph = about()
        except TooFewLabelsError:
            graph = about(draw_split=False)
        for name in NODE_ARRAYS:
            if name != "x" and graph.get(name) is not None:
                write_array(self.folder, name, graph[name].numpy())
        graph.schema, graph.feature_names = imported.schema, imported.feature_names
        graph.feature_rule = (ROW_RULE if options.row_normalize else graph.feature_rule) + (
            made_feature_rule(imported.schema)
        )
        edges = self.sorted_edges
        alone = np.diff(edges.into.start) == 0
        if edges.out is not None:
            alone &= np.diff(edges.out.start) == 0
        counts = (writer.self_loops, writer.merged, int(alone.sum()))
        # Without the edges all nodes seem to be alone.
        said = [note for note in graph.notes if note not in edge_notes(0, 0, writer.num_nodes)]
        graph.notes = imported.notes + said + edge_notes(*counts)
        return GraphFacts(**{field.name: graph.get(field.name) for field in fields(GraphFacts)})
