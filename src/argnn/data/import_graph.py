"""From tables to a graph, and to the schema by which the next graph is read in the same way."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import targets
from argnn.data.assemble import arranged_edges
from argnn.data.columns import ColumnRule, EncodedColumns, Part, encoded_columns, learned_rules
from argnn.data.import_options import ImportOptions, NoFeaturesError
from argnn.data.node_ids import NodeId, ends_of_edges, nodes_of_edges, rows_of_nodes, shown
from argnn.data.schema import SCHEMA_VERSION, Schema
from argnn.data.structural_features import learned_structure, structural_features
from argnn.data.tables import GraphTables, Table, is_missing, listed
from argnn.errors import DataError

_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"))
_WEIGHT = "weight"


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


def import_tables(
    tables: GraphTables, options: ImportOptions, schema: Schema | None = None
) -> ImportedGraph:
    """Read tables, by the rules of ``schema`` where there is one.

    Args:
        tables: What a format gave.
        options: What the columns mean, where the schema does not say it.
        schema: The schema of a graph that was read before.
    """
    reader = _TableReader(tables, options, schema)
    reader.read_nodes()
    reader.read_edges()
    reader.read_targets()
    reader.read_features()
    return reader.imported()


class _TableReader:
    """The steps of an import, and what they have found so far."""

    def __init__(self, tables: GraphTables, options: ImportOptions, schema: Schema | None) -> None:
        self.tables, self.options, self.schema = tables, options, schema
        self.notes = list(tables.notes)
        self.data = Data()
        self.label_rule: dict[str, Any] | None = None
        self.id_column: str | None = None
        self.node_ids: list[NodeId] = []
        self.rules: list[ColumnRule] = []
        self.names_of_nodes: list[str] = []  # columns that differ in every row
        if tables.directed and not options.directed:
            self.notes.append("the source has directions, which were dropped (directed keeps them)")

    def read_nodes(self) -> None:
        """The ids of the nodes, if there is a table of nodes."""
        nodes = self.tables.nodes
        if nodes is None:
            asked = {"node id": self.options.node_id, "labels": self.options.label}
            for what, column in asked.items():
                if column is not None and self.schema is None:
                    origin = self.tables.edges.origin
                    raise DataError(f"{origin}: no node table to look for the {what} '{column}' in")
            return
        if not len(nodes):
            raise DataError(f"{nodes.origin}: there are no nodes")
        if self.schema is None:
            _check_asked(nodes, self.options)
        self.id_column = _id_column(nodes, self.options, self.schema)
        self.node_ids, self.rows = rows_of_nodes(nodes, self.id_column)

    def read_edges(self) -> None:
        """Ends and, on request, weights of the edges."""
        edges = self.tables.edges
        ends, note = _end_columns(edges)
        self.notes += note
        if self.tables.nodes is None:
            if not len(edges):
                raise DataError(f"{edges.origin}: there are no edges, and no table of nodes")
            self.node_ids, edge_index = nodes_of_edges(edges, ends)
            self.notes.append("no table of nodes: the nodes are those of the edges")
        else:
            edge_index = ends_of_edges(edges, ends, self.rows)
        self.data.edge_index = torch.from_numpy(edge_index)
        self._read_weights(edges, ends)

    def _read_weights(self, edges: Table, ends: tuple[str, str]) -> None:
        weight = self.options.weight
        others = [name for name in edges.columns if name not in ends]
        if weight is not None:
            column = edges.require(weight, "edge weights")
            self.data.edge_weight = torch.from_numpy(_weights(edges, column))
            self.data.keep_weight = True
            others.remove(column)
        if _WEIGHT in others:
            self.notes.append(f"{edges.origin}: column {_WEIGHT} ignored (not asked for)")
            others.remove(_WEIGHT)
        if others:
            self.notes.append(f"{edges.origin}: columns left out: {listed(others)}")

    def read_targets(self) -> None:
        """Classes and splits."""
        nodes = self.tables.nodes
        if self.schema is not None:
            self.label_rule = self.schema["label"]
        elif nodes is not None:
            self._learn_classes(nodes)
        if nodes is None or self.label_rule is None:
            return
        labels, notes = targets.encoded_labels(nodes, self.label_rule)
        masks, mask_notes = self._masks(nodes, labels)
        self.notes += notes + mask_notes
        self.data.y = torch.from_numpy(labels)
        self.data.class_names = list(self.label_rule["classes"])
        for name, mask in masks.items():
            self.data[name] = torch.from_numpy(mask)

    def _masks(self, nodes: Table, labels: targets.Labels) -> tuple[targets.Masks, list[str]]:
        """The masks; where only prediction is asked for, unusable ones are left out."""
        try:
            return targets.read_masks(nodes, labels)
        except DataError as error:
            if self.schema is None:
                raise
            return {}, [f"the splits were not read ({error})"]

    def _learn_classes(self, nodes: Table) -> None:
        column, notes = targets.label_column(nodes, self.options.label)
        self.notes += notes
        if column is not None and self.options.label is None and targets.is_a_name(nodes, column):
            self.notes.append(f"column {column}: differs in every row, so a name and not the class")
            self.names_of_nodes = [column]
            column = None
        if column is not None:
            self.label_rule = targets.learned_classes(nodes, column)
        elif targets.target_columns(nodes):
            self.notes.append("there are no labels, so the splits were not read")

    def read_features(self) -> None:
        """Features of the columns, then those made from the edges."""
        encoded, directed = self._encoded_columns(), self._keeps_directions
        edge_index = arranged_edges(self.data.edge_index, len(self.node_ids), directed)
        structure = self._structure(edge_index)
        origin = self.tables.edges.origin
        if structure is not None:
            x, names = structural_features(structure, edge_index, self.node_ids, origin)
            encoded.parts.append((x, len(names)))
            encoded.names.extend(names)
            self.notes.append(f"{x.shape[1]} features made from the edges ({structure['kind']})")
        if not encoded.parts:
            raise NoFeaturesError((self.tables.nodes or self.tables.edges).origin)
        self.notes += encoded.notes
        self.feature_names, self.structure = encoded.names, structure
        self.parts = encoded.parts
        if self.schema is not None:
            check_width(len(encoded.names), self.schema, origin)

    @property
    def _keeps_directions(self) -> bool:
        return self.options.directed and not self.tables.undirected

    def _encoded_columns(self) -> EncodedColumns:
        nodes = self.tables.nodes
        if self.schema is not None:
            self.rules = list(self.schema["columns"] or [])
            if nodes is None and self.rules:
                raise DataError(
                    f"{self.tables.edges.origin}: no table of nodes with a column "
                    f"'{self.rules[0]['name']}', which the model was trained with"
                )
        elif nodes is not None:
            options = self.options
            names, most = self._feature_columns(nodes), options.max_categories
            self.rules, notes = learned_rules(
                nodes, names, standardize=options.standardize, max_categories=most
            )
            self.notes += notes
        return EncodedColumns() if nodes is None else encoded_columns(nodes, self.rules)

    def _feature_columns(self, nodes: Table) -> list[str]:
        taken = {self.id_column, *self.options.drop, *self.names_of_nodes}
        taken.update(targets.target_columns(nodes))
        if self.label_rule is not None:
            taken.add(self.label_rule["column"])
        return [name for name in nodes.columns if name not in taken]

    def _structure(self, edge_index: Tensor) -> dict[str, Any] | None:
        if self.schema is not None:
            stored: dict[str, Any] | None = self.schema["structure"]
            return stored
        if self.options.features is None:
            return None
        kind, seed = self.options.features, self.options.seed
        return learned_structure(kind, seed, self.node_ids, self._keeps_directions, edge_index)

    def imported(self) -> ImportedGraph:
        """The result of all steps."""
        schema = {
            "version": SCHEMA_VERSION,
            "directed": self.options.directed,
            "row_normalize": self.options.row_normalize,
            "num_features": len(self.feature_names),
            "id": self.id_column,
            "weight": self.options.weight,
            "drop": list(self.options.drop),
            "columns": self.rules,
            "structure": self.structure,
            "label": self.label_rule,
        }
        schema = schema if self.schema is None else dict(self.schema)
        known = self.data, self.node_ids, self.feature_names, schema, self.notes
        return ImportedGraph(*known, undirected=self.tables.undirected, parts=self.parts)


def check_width(width: int, schema: Schema, origin: str) -> None:
    """Raise unless there are as many features as in a schema."""
    if width != schema["num_features"]:
        raise DataError(
            f"{origin}: the model was trained with {schema['num_features']} features (got {width})"
        )


def _check_asked(nodes: Table, options: ImportOptions) -> None:
    """Raise if a column that the user named is missing, before any other check."""
    for name in options.drop:
        nodes.require(name, "columns to drop")
    if options.label is not None:
        nodes.require(options.label, "labels")


def _id_column(nodes: Table, options: ImportOptions, schema: Schema | None) -> str:
    if options.node_id is not None:
        return nodes.require(options.node_id, "node ids")
    for name in ((schema or {}).get("id"), "id"):
        if name in nodes.columns:
            return str(name)
    return next(iter(nodes.columns))


def _end_columns(edges: Table) -> tuple[tuple[str, str], list[str]]:
    """The columns of both ends of an edge."""
    for ends in _ENDS:
        if set(ends) <= set(edges.columns):
            return ends, []
    names = list(edges.columns)
    if len(names) < 2:
        raise DataError(f"{edges.origin}: an edge needs two columns, source and target")
    note = f"{edges.origin}: edges go from column {names[0]} to column {names[1]}"
    return (names[0], names[1]), [note]


def _weights(edges: Table, column: str) -> NDArray[np.float64]:
    weights = np.empty(len(edges))
    for row, cell in enumerate(edges.columns[column].tolist()):
        try:
            weights[row] = np.nan if is_missing(cell) else float(cell)
        except (TypeError, ValueError, OverflowError):
            weights[row] = np.nan
        if not np.isfinite(weights[row]):
            raise DataError(
                f"{edges.place(row, column)}: a weight must be a finite number (got {shown(cell)})"
            )
    return weights
