"""Convert tables that do not fit into memory: lists of edges, CSV and Parquet folders.

The steps are those of ``argnn.data.import_graph`` and ``argnn.data.assemble``, and the rules are
the same functions. Edges are read in parts, columns of nodes one at a time.
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
from torch_geometric.data import Data

from argnn.data.adjacency import Adjacency
from argnn.data.assemble import (
    ROW_RULE,
    TooFewLabelsError,
    assemble,
    check_finite,
    edge_notes,
    row_normalized,
)
from argnn.data.columns import (
    EncodedColumns,
    Part,
    check_feature_count,
    encoded_columns,
    side_by_side,
)
from argnn.data.formats.parquet_files import ColumnsOnDisk, read_parquet_parts, write_texts
from argnn.data.formats.text_files import (
    SUFFIXES,
    NoIntegersError,
    edge_list_notes,
    read_csv_parts,
    read_edge_list_parts,
)
from argnn.data.graph_store.array_files import Tell, array_beside_memory, read_array, write_array
from argnn.data.graph_store.header import GraphFacts
from argnn.data.graph_store.node_rows import FoundNodes, Ids, IntegerRows, NodeRows, rows_of_table
from argnn.data.graph_store.opening import NODE_ARRAYS
from argnn.data.graph_store.writing import StoreWriter
from argnn.data.import_graph import (
    check_asked,
    column_of_ids,
    column_rules,
    edge_values,
    end_columns,
    read_label,
    written_schema,
)
from argnn.data.import_options import ImportOptions, no_features
from argnn.data.loading import made_feature_rule
from argnn.data.splits import Folds
from argnn.data.structural_features import (
    Structure,
    degree_features,
    learned_structure,
    made_width,
    structural_features,
)
from argnn.data.tables import GraphTables, Table
from argnn.errors import DataError, Problems, error_prefix, naming

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


class Streaming:
    """One conversion.

    Args:
        source: What is read.
        folder: The new store, which is empty.
        options: As of ``load``.
        memory: Bytes of memory for edges.
        tell: Is told what is done.
    """

    def __init__(
        self, source: StreamedSource, folder: Path, options: ImportOptions, memory: int, tell: Tell
    ) -> None:
        self.source, self.folder, self.options = source, folder, options
        self.memory, self.tell = memory, tell
        self.notes = list(source.notes)
        self._open = ExitStack()
        if options.features not in (None, *_STREAMED_FEATURES):
            raise DataError(
                f"{source.path}: {options.features} features cannot be made of a graph of this "
                f"size; choose {' or '.join(_STREAMED_FEATURES)}"
            )

    def run(self) -> None:
        """Write the store."""
        with self._open:
            self._run()

    def _run(self) -> None:
        nodes, options = self._nodes(), self.options
        first = self._first_part()
        if nodes is not None and not len(nodes):
            raise DataError(f"{nodes.origin}: there are no nodes")
        check_asked(GraphTables(first, nodes), options)
        if nodes is None and options.features is None:
            raise no_features(first.origin)  # before a large file is read to its end
        id_column = None if nodes is None else column_of_ids(nodes, options, None)
        problems = Problems()
        with problems.noted():
            writer, node_ids = self._read_edges(nodes, id_column)
        label, taken, data = None, {id_column}, Data()
        if nodes is not None:
            label = read_label(data, nodes, options, None, taken, self.notes, problems)
        tables = GraphTables(first, nodes)
        rules = column_rules(tables, taken, options, None, self.notes, problems)
        encoded = EncodedColumns() if nodes is None else self._encoded(nodes, rules, problems)
        problems.tell()
        edges = writer.sort_edges(self.tell)
        structure = self._structure()
        width = len(encoded.names) + made_width(structure)
        if structure is not None:
            kind = structure["kind"]
            self.notes.append(f"{made_width(structure)} features made from the edges ({kind})")
        if not width:
            raise no_features((nodes or first).origin, self.notes)
        self.notes += encoded.notes
        schema = written_schema(options, width, id_column, rules, {}, structure, label)
        made = self._write_features(writer, encoded.parts, structure, edges)
        said = self._assembled(data, edges, writer, schema)
        said["feature_names"] = encoded.names + made
        for left in [*self.folder.glob("part-*.npy"), self.folder / _TEXTS]:
            left.unlink(missing_ok=True)
        writer.finish(GraphFacts(**said), node_ids, self.tell)

    def _nodes(self) -> Table | None:
        path = self.source.nodes
        if path is None:
            return None
        self.tell(0, 0, f"reading {path.name}")
        if path.suffix == ".parquet":
            return Table(str(path), ColumnsOnDisk(path))
        texts = self.folder / _TEXTS
        with naming(texts):
            return write_texts(texts, read_csv_parts(path, _TEXT_AT_ONCE))

    def _first_part(self) -> Table:
        try:
            return next(self.source.parts(True))
        except NoIntegersError:
            return next(self.source.parts(False))

    def _writer(self, num_nodes: int) -> StoreWriter:
        writer = StoreWriter(
            self.folder,
            num_nodes,
            directed=self.options.directed,
            weighted=self.options.weight is not None,
            timed=self.options.time is not None,
            memory=self.memory,
        )
        return self._open.enter_context(writer)

    def _read_edges(self, nodes: Table | None, id_column: str | None) -> tuple[StoreWriter, Ids]:
        """All edges, and the ids of the nodes."""
        if nodes is not None and id_column is not None:
            is_plain = str(nodes.origin).endswith(".csv")
            rows = rows_of_table(nodes, id_column, is_plain=is_plain)
            return self._known_edges(rows, len(nodes)), rows.ids()
        # Files of integers are read fast; ids that are integers take little memory.
        for fast, integers in ((True, True), (False, True)):
            try:
                return self._found_edges(fast, integers)
            except NoIntegersError:
                self.notes = list(self.source.notes)
                (self.folder / _RAW).unlink()
        return self._found_edges(fast=False, integers=False)

    def _known_edges(self, rows: NodeRows, count: int) -> StoreWriter:
        """Edges between the nodes of a table."""
        writer, zeros = self._writer(count), 0
        for part, ends, values in self._parts(fast=isinstance(rows, IntegerRows)):
            found = rows.ends(part, ends)
            kept = values.pop("kept")
            zeros += len(kept) - int(kept.sum())
            writer.add_edges(*found[:, kept], **values)
        self._note_zeros(zeros)
        return writer

    def _found_edges(self, fast: bool, integers: bool) -> tuple[StoreWriter, Ids]:
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
        node_ids = nodes.ids()
        writer = self._writer(len(node_ids))
        with naming(path), path.open("rb") as file:
            while len(records := np.fromfile(file, record, _EDGES_AT_ONCE)):
                source, target = nodes.rows(records["ends"]).T
                writer.add_edges(source, target, **{name: records[name] for name in names})
        path.unlink()
        return writer, node_ids

    def _parts(self, fast: bool) -> Iterator[tuple[Table, tuple[str, str], dict[str, Any]]]:
        """Parts of the edges, the columns of their ends, and what else is asked for."""
        ends, first, done = None, None, 0
        for part in self.source.parts(fast):
            if ends is None:
                ends = end_columns(part, self.notes)
                if self.source.nodes is None:
                    self.notes.append("no table of nodes: the nodes are those of the edges")
                yield part, ends, self._values(part, ends, self.notes)
            elif first is None:
                yield part, ends, self._values(part, ends, [])
            else:
                yield part, ends, self._values(_joined(first, part), ends, [], skip=first)
            if self.options.time is not None and first is None and len(part):
                first = _beginning(part)
            done += len(part)
            self.tell(done, 0, "reading edges")

    def _values(
        self, part: Table, ends: tuple[str, str], notes: list[str], skip: Table | None = None
    ) -> dict[str, Any]:
        """Which edges are kept, and of these the weights and times that were asked for.

        The first rows, those of ``skip``, only tell which kind of times there are.
        """
        begin = 0 if skip is None else len(skip)
        found = edge_values(part, ends, self.options, notes)
        values: dict[str, Any] = {"kept": np.ones(len(part) - begin, dtype=bool)}
        if "edge_weight" in found:
            with np.errstate(over="ignore"):
                weight = found["edge_weight"].numpy()[begin:].astype(np.float32)
            values["kept"] = weight != 0
            values["weight"] = weight[values["kept"]]
            for row in np.flatnonzero(~np.isfinite(weight))[:1]:
                column = str(self.options.weight)
                raise part.error(begin + int(row), column, "a weight is too large")
        if "edge_time" in found:
            values["time"] = found["edge_time"].numpy()[begin:][values["kept"]]
        return values

    def _note_zeros(self, zeros: int) -> None:
        if zeros:
            self.notes.append(f"{zeros} edges of weight 0 left out")

    def _encoded(
        self, nodes: Table, rules: list[dict[str, Any]], problems: Problems
    ) -> EncodedColumns:
        """Features of the columns, which wait on the disk."""
        encoded = EncodedColumns()
        for done, rule in enumerate(rules):
            column = encoded_columns(nodes, [rule], problems, array_beside_memory)
            for values, width in column.parts:
                name = f"part-{len(encoded.parts)}"
                write_array(self.folder, name, values)
                encoded.parts.append((read_array(self.folder, name), width))
            encoded.names += column.names
            encoded.notes += column.notes
            check_feature_count(nodes, len(encoded.names))
            self.tell(done, len(rules), "columns")
        return encoded

    def _structure(self) -> Structure | None:
        """The rule of features from the edges; those that are possible need no ids."""
        options = self.options
        if options.features is None:
            return None
        return learned_structure(options.features, options.seed, [], options.directed, _NO_EDGES)

    def _write_features(
        self,
        writer: StoreWriter,
        parts: list[Part],
        structure: Structure | None,
        edges: Adjacency,
    ) -> list[str]:
        """All features, some nodes at a time; gives the names of those made from the edges."""
        count = writer.num_nodes
        for begin in range(0, count, _NODES_AT_ONCE):
            rows = slice(begin, min(count, begin + _NODES_AT_ONCE))
            own = np.empty((rows.stop - begin, 0), dtype=np.float32)
            if parts:
                own = side_by_side([(values[rows], width) for values, width in parts])
            x = own
            if structure is not None:
                x = np.concatenate([own, self._made(structure, edges, rows)], axis=1)
            with error_prefix(f"{self.source.path}:"):
                checked = check_finite(torch.from_numpy(x), begin)
                if self.options.row_normalize:
                    scaled = row_normalized(checked[:, : own.shape[1]], begin)
                    checked = torch.cat([scaled, checked[:, own.shape[1] :]], dim=1)
            writer.add_nodes(x=checked.numpy())
            self.tell(rows.stop, count, "features")
        if structure is None:
            return []
        return structural_features(structure, _NO_EDGES, [], str(self.source.path))[1]

    def _made(self, structure: Structure, edges: Adjacency, rows: slice) -> NDArray[np.float32]:
        if structure["kind"] == "random":
            if rows.start == 0:
                self._random = np.random.default_rng(structure["seed"])
            size = (rows.stop - rows.start, structure["size"])
            return self._random.standard_normal(size).astype(np.float32)
        degrees = {"in": edges.into, "both": edges.into, "out": edges.out or edges.into}
        counts = {
            side: torch.from_numpy(np.diff(degrees[side].start[rows.start : rows.stop + 1]))
            for side in structure["sides"]
        }
        return degree_features(counts)[0]

    def _assembled(
        self, data: Data, edges: Adjacency, writer: StoreWriter, schema: dict[str, Any]
    ) -> dict[str, Any]:
        """Check labels and masks, draw a split, and write them; gives what is said of the graph."""
        options, path = self.options, self.source.path
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
        graph.schema = schema
        graph.feature_rule = (ROW_RULE if options.row_normalize else graph.feature_rule) + (
            made_feature_rule(schema)
        )
        alone = np.diff(edges.into.start) == 0
        if edges.out is not None:
            alone &= np.diff(edges.out.start) == 0
        counts = (writer.self_loops, writer.merged, int(alone.sum()))
        # Without the edges all nodes seem to be alone.
        said = [note for note in graph.notes if note not in edge_notes(0, 0, writer.num_nodes)]
        graph.notes = self.notes + said + edge_notes(*counts)
        return {field.name: graph.get(field.name) for field in fields(GraphFacts)}


def _beginning(part: Table) -> Table:
    """The first row of a part."""
    columns = {name: cells[:1] for name, cells in part.columns.items()}
    return Table(part.origin, columns, None if part.lines is None else part.lines[:1], part.first)


def _joined(first: Table, part: Table) -> Table:
    """The first row of all before a part, so that both are compared."""
    columns = {
        name: np.concatenate([first.columns[name], cells]) for name, cells in part.columns.items()
    }
    lines = None
    if part.lines is not None and first.lines is not None:
        lines = [*first.lines, *part.lines]
    return Table(part.origin, columns, lines, part.first - len(first))
