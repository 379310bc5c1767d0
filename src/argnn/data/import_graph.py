"""From tables to a graph, and to the schema by which the next graph is read in the same way."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import arranged_edges, assemble, without_weightless_edges
from argnn.data.columns import (
    ColumnRule,
    EncodedColumns,
    Part,
    encoded_columns,
    is_no_word,
    side_by_side,
)
from argnn.data.edge_columns import edge_columns
from argnn.data.import_options import ImportOptions, no_features
from argnn.data.learned_columns import learned_rules
from argnn.data.node_ids import NodeId, nodes_of_edges, rows_of_table, shown
from argnn.data.schema import SCHEMA_VERSION, Schema
from argnn.data.structural_features import (
    Structure,
    learned_structure,
    made_width,
    structural_features,
)
from argnn.data.tables import GraphTables, Table, is_missing
from argnn.data.targets import label_columns, learned_label, read_targets, target_columns
from argnn.errors import DataError, Problems

#: Names of a column of ids, in any case; without a column of these, the first column is meant.
_ID_NAME = re.compile(r"(?=.)(node)?[_ ]?(id)?", re.IGNORECASE)


@dataclass
class ImportedGraph:
    """A graph that was read; ``assemble`` checks it.

    Attributes:
        data: Features, edges, and where there are any, labels, masks and weights.
        node_ids: The user's name of each row.
        feature_names: Name of each feature.
        schema: How it was read, as plain JSON values.
        notes: What the user should know about the reading.
        undirected: Whether there are no directions to keep.
        parts: The features ``x`` of a table in a form that takes little memory.
    """

    data: Data
    node_ids: list[NodeId]
    feature_names: list[str]
    schema: dict[str, Any]
    notes: list[str] = field(default_factory=list)
    undirected: bool = False
    parts: list[Part] = field(default_factory=list)

    def assembled(self, origin: str, name: str, schema: Schema, **options: Any) -> Data:
        """The graph after all checks; for the options see :func:`argnn.data.assemble.assemble`."""
        if self.parts:
            self.data.x = torch.from_numpy(side_by_side(self.parts))
        return assemble(
            self.data,
            origin=origin,
            name=name,
            made_features=made_width(schema["structure"]),
            undirected_source=self.undirected,
            **options,
        )


class TableImport:
    """Reads tables, by the rules of a schema, of a graph that was read before, where there is one.

    The options say what columns mean, where the schema does not. Here all is kept in memory;
    ``argnn.data.graph_store.streaming`` replaces the methods that would keep too much.
    """

    def __init__(
        self, tables: GraphTables, options: ImportOptions, schema: Schema | None = None
    ) -> None:
        self.tables, self.options, self.schema = tables, options, schema
        self.nodes, self.edges, self.notes = tables.nodes, tables.edges, list(tables.notes)
        self.directed = options.directed and not tables.undirected
        self.data, self.problems = Data(), Problems()
        self.id_column: str | None = None
        #: Columns of nodes that are no features.
        self.taken: set[str | None] = set()

    def imported(self) -> ImportedGraph:
        """The graph."""
        nodes, options, schema, notes = self.nodes, self.options, self.schema, self.notes
        if self.tables.directed and not options.directed:
            notes.append("the source has directions, which were dropped (directed keeps them)")
        if nodes is not None and not len(nodes):
            raise DataError(f"{nodes.origin}: there are no nodes")
        if schema is None:
            self.check_asked()
        self.id_column = None if nodes is None else column_of_ids(nodes, options, schema)
        self.taken.add(self.id_column)
        node_ids: list[NodeId] = []
        with self.problems.noted():
            node_ids = self.read_edges()
        label = self._label()
        rules = self._column_rules()
        encoded = EncodedColumns() if nodes is None else self.encoded(nodes, rules)
        self.problems.tell()
        structure = self.add_structure(encoded, node_ids)
        if structure is not None:
            made = f"{made_width(structure)} features made from the edges"
            notes.append(f"{made} ({structure['kind']})")
        if not encoded.names:
            raise no_features((nodes or self.edges).origin, notes)
        width = len(encoded.names)
        if schema is not None:
            check_width(width, schema, self.edges.origin)
        written = written_schema(options, width, self.id_column, rules, {}, structure, label)
        found = self.data, node_ids, encoded.names, dict(schema or written), notes + encoded.notes
        return ImportedGraph(*found, undirected=self.tables.undirected, parts=encoded.parts)

    def check_asked(self) -> None:
        """Raise if a column that the user named is missing, before any other check."""
        nodes, options = self.nodes, self.options
        if nodes is None:
            asked = {"node id": options.node_id, "labels": options.label, "groups": options.groups}
            for what, column in asked.items():
                if column is not None:
                    origin = self.edges.origin
                    raise DataError(f"{origin}: no node table to look for the {what} '{column}' in")
            return
        for name in options.drop:
            nodes.require(name, "columns to drop")
        if options.groups is not None:
            nodes.require(options.groups, "groups")
        if options.label is not None and options.task == "node":
            nodes.require(options.label, "labels")
        elif options.label is not None:
            label_columns(nodes, options.label)

    def read_edges(self) -> list[NodeId]:
        """Put ends, weights and times of the edges into the data; gives the ids of the nodes."""
        nodes, edges, data = self.nodes, self.edges, self.data
        rows = None if nodes is None else rows_of_table(nodes, str(self.id_column))
        columns = edge_columns(edges, self.options, self.notes, has_nodes=nodes is not None)
        if rows is not None:
            node_ids, ends = rows.ids, rows.ends(edges, columns.ends)
        elif not len(edges):
            raise DataError(f"{edges.origin}: there are no edges, and no table of nodes")
        else:
            node_ids, ends = nodes_of_edges(edges, columns.ends)
        for name, values in columns.values(edges).items():
            data[name], data[name.replace("edge", "keep")] = torch.from_numpy(values), True
        data.edge_index = torch.from_numpy(ends)
        self.notes += without_weightless_edges(data, edges.origin)
        return node_ids.tolist() if isinstance(node_ids, np.ndarray) else list(node_ids)

    def _label(self) -> dict[str, Any] | None:
        """The rule of the targets; adds their columns to ``taken``, targets and splits to data."""
        nodes, options, schema, notes = self.nodes, self.options, self.schema, self.notes
        label: dict[str, Any] | None = None if schema is None else schema["label"]
        if nodes is None:
            return label
        with self.problems.noted():
            if schema is None:
                self.taken |= {options.label}  # should it be unusable, it is no feature
                label, columns = learned_label(nodes, options, self._feature_columns(nodes), notes)
                self.taken |= columns
            if label is not None:
                # A split that folds replace may be wrong, too.
                read_targets(self.data, nodes, label, bool(schema or options.folds), notes)
        if options.groups is not None:
            with self.problems.noted():
                self._read_groups(nodes, options.groups)
        return label

    def _read_groups(self, nodes: Table, column: str) -> None:
        """Read the groups for folds, whose column is no feature then."""
        if column in self.taken:
            raise DataError(f"{nodes.origin}: column {column} cannot hold the groups, too")
        cells, place = nodes.columns[column].tolist(), partial(nodes.place, column=column)
        labelled = labelled_nodes(self.data, len(nodes))
        self.data.fold_groups = group_numbers(cells, labelled, place)
        self.taken.add(column)

    def _column_rules(self) -> list[ColumnRule]:
        """How columns become features: all that are not taken, by the schema if there is one."""
        nodes, schema = self.nodes, self.schema
        if schema is not None:
            rules = list(schema["columns"] or [])
            if nodes is None and rules:
                raise DataError(
                    f"{self.edges.origin}: no table of nodes with a column "
                    f"'{rules[0]['name']}', which the model was trained with"
                )
            return rules
        if nodes is None:
            return []
        names, options = self._feature_columns(nodes), self.options.for_columns
        return learned_rules(nodes, names, self.notes, options, self.problems)

    def _feature_columns(self, nodes: Table) -> list[str]:
        taken = self.taken | {*self.options.drop, *target_columns(nodes)}
        return [name for name in nodes.columns if name not in taken]

    def encoded(self, nodes: Table, rules: list[ColumnRule]) -> EncodedColumns:
        """The features of the columns."""
        return encoded_columns(nodes, rules, self.problems)

    def add_structure(self, encoded: EncodedColumns, node_ids: list[NodeId]) -> Structure | None:
        """Add the features that are made from the edges; gives their rule, if there are any."""
        edges = arranged_edges(self.data.edge_index, len(node_ids), self.directed)
        structure = structure_rule(self.options, self.schema, node_ids, self.directed, edges)
        if structure is not None:
            encoded.add(*structural_features(structure, edges, node_ids, self.edges.origin))
        return structure


def written_schema(
    options: ImportOptions,
    width: int,
    id_column: str | None,
    columns: list[ColumnRule] | None,
    scaling: dict[str, Any],
    structure: Structure | None,
    label: dict[str, Any] | None,
) -> dict[str, Any]:
    """The schema of a graph that was read without one; see ``argnn.data.schema``."""
    tells = options.weight is not None and options.decimal is not None
    return {
        "version": SCHEMA_VERSION,
        "directed": options.directed,
        "row_normalize": options.row_normalize,
        "num_features": width,
        "id": id_column,
        "weight": options.weight,
        **({"weight_decimal": options.decimal} if tells else {}),
        "drop": list(options.drop),
        "columns": columns,
        **scaling,
        "structure": structure,
        "label": label,
    }


def structure_rule(
    options: ImportOptions,
    schema: Schema | None,
    node_ids: list[NodeId],
    directed: bool,
    edge_index: Tensor,
) -> Structure | None:
    """The rule of features from the edges: of the schema, else as asked for, else none."""
    if schema is not None:
        return schema["structure"]  # type: ignore[no-any-return]
    if options.features is None:
        return None
    kind, seed = options.features, options.seed
    return learned_structure(kind, seed, node_ids, directed, edge_index)


def check_width(width: int, schema: Schema, origin: str) -> None:
    """Raise unless there are as many features as in a schema."""
    if width != schema["num_features"]:
        raise DataError(
            f"{origin}: the model was trained with {schema['num_features']} features (got {width})"
        )


def labelled_nodes(data: Data, num_nodes: int) -> Tensor:
    """The nodes with a class or with targets, ``[N]``; labels are checked later."""
    targets, y = data.get("targets"), data.get("y")
    if isinstance(targets, Tensor):
        return ~targets.isnan().any(1)
    usable = isinstance(y, Tensor) and y.shape == (num_nodes,)
    return y >= 0 if usable else torch.zeros(num_nodes, dtype=torch.bool)


def group_numbers(cells: Sequence[Any], labelled: Tensor, place: Callable[[int], str]) -> Tensor:
    """The number of each node's group, ``[N]``; labelled nodes must have one.

    ``place`` says where the cell of a row is, for error messages.
    """
    numbers: dict[str, int] = {}
    words = (None if is_no_word(cell) else str(cell) for cell in cells)  # a cell may be a list
    groups = torch.tensor(
        [-1 if word is None else numbers.setdefault(word, len(numbers)) for word in words]
    )
    missing = ((groups < 0) & labelled).nonzero()
    if len(missing):
        row = int(missing[0])
        what = "is empty" if is_missing(cells[row]) else f"{shown(cells[row])} is no group"
        raise DataError(f"{place(row)}: {what}, and a labelled node needs a group")
    return groups


def column_of_ids(nodes: Table, options: ImportOptions, schema: Schema | None) -> str:
    """The column of the node ids: as asked for, else that of the schema, else a likely one."""
    if options.node_id is not None:
        return nodes.require(options.node_id, "node ids")
    for name in ((schema or {}).get("id"), "id"):
        if name in nodes.columns:
            return str(name)
    first = next(iter(nodes.columns))
    if schema is None:
        named = [name for name in nodes.columns if _ID_NAME.fullmatch(name)]
        return named[0] if len(named) == 1 else first
    if first in {rule["name"] for rule in (schema or {}).get("columns") or ()}:
        raise DataError(f"{nodes.origin}: no column of node ids, such as '{(schema or {})['id']}'")
    return first
