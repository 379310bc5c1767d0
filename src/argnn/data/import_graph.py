"""From tables to a graph, and to the schema by which the next graph is read in the same way."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import targets
from argnn.data.assemble import arranged_edges, without_weightless_edges
from argnn.data.columns import ColumnRule, EncodedColumns, Part, encoded_columns, is_no_word
from argnn.data.edge_times import read_times
from argnn.data.import_options import ImportOptions, no_features
from argnn.data.learned_columns import learned_rules
from argnn.data.node_ids import NodeId, ends_of_edges, nodes_of_edges, rows_of_nodes, shown
from argnn.data.schema import SCHEMA_VERSION, Schema
from argnn.data.structural_features import Structure, learned_structure, structural_features
from argnn.data.tables import GraphTables, Table, is_missing, listed
from argnn.data.target_values import (
    TARGET_TASKS,
    encoded_targets,
    label_columns,
    learned_targets,
    task_of_table,
)
from argnn.data.written_numbers import Writing, looks_like_number
from argnn.errors import DataError, Problems

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
    """Read tables, by the rules of ``schema``, of a graph that was read before, where there is one.

    The options say what columns mean, where the schema does not.
    """
    nodes, edges, notes = tables.nodes, tables.edges, list(tables.notes)
    if tables.directed and not options.directed:
        notes.append("the source has directions, which were dropped (directed keeps them)")
    if nodes is not None and not len(nodes):
        raise DataError(f"{nodes.origin}: there are no nodes")
    if schema is None:
        check_asked(tables, options)
    id_column = None if nodes is None else column_of_ids(nodes, options, schema)
    data, problems = Data(), Problems()
    with problems.noted():
        node_ids, data.edge_index, weight = _read_edges(tables, id_column, options, notes)
        data.update(weight)
        notes += without_weightless_edges(data, edges.origin)
    label, taken = None if schema is None else schema["label"], {id_column}
    if nodes is not None:
        label = read_label(data, nodes, options, schema, taken, notes, problems)
    rules = column_rules(tables, taken, options, schema, notes, problems)
    encoded = EncodedColumns() if nodes is None else encoded_columns(nodes, rules, problems)
    problems.tell()
    edge_index = data.edge_index
    directed = options.directed and not tables.undirected
    arranged = arranged_edges(edge_index, len(node_ids), directed)
    structure = structure_rule(options, schema, node_ids, directed, arranged)
    if structure is not None:
        x, names = structural_features(structure, arranged, node_ids, edges.origin)
        notes.append(f"{len(names)} features made from the edges ({structure['kind']})")
        encoded.parts.append((x, len(names)))
        encoded.names.extend(names)
    if not encoded.parts:
        raise no_features((nodes or edges).origin, notes)
    width = len(encoded.names)
    if schema is not None:
        check_width(width, schema, edges.origin)
    written = written_schema(options, width, id_column, rules, {}, structure, label)
    found = data, node_ids, encoded.names, dict(schema or written), notes + encoded.notes
    return ImportedGraph(*found, undirected=tables.undirected, parts=encoded.parts)


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
    return {
        "version": SCHEMA_VERSION,
        "directed": options.directed,
        "row_normalize": options.row_normalize,
        "num_features": width,
        "id": id_column,
        "weight": options.weight,
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


def check_asked(tables: GraphTables, options: ImportOptions) -> None:
    """Raise if a column that the user named is missing, before any other check."""
    nodes = tables.nodes
    if nodes is None:
        asked = {"node id": options.node_id, "labels": options.label, "groups": options.groups}
        for what, column in asked.items():
            if column is not None:
                origin = tables.edges.origin
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


def read_groups(data: Data, nodes: Table, column: str, taken: set[str | None]) -> str:
    """Read the groups for folds; gives their column, which is no feature then."""
    if column in taken:
        raise DataError(f"{nodes.origin}: column {column} cannot hold the groups, too")
    cells, place = nodes.columns[column].tolist(), partial(nodes.place, column=column)
    data.fold_groups = group_numbers(cells, labelled_nodes(data, len(nodes)), place)
    return column


def labelled_nodes(data: Data, num_nodes: int) -> Tensor:
    """The nodes with a class or with targets, ``[N]``; labels are checked later."""
    targets, y = data.get("targets"), data.get("y")
    if isinstance(targets, Tensor):
        return ~targets.isnan().any(1)
    usable = isinstance(y, Tensor) and y.shape == (num_nodes,)
    return y >= 0 if usable else torch.zeros(num_nodes, dtype=torch.bool)


def group_numbers(cells: Sequence[Any], labelled: Tensor, place: Callable[[int], str]) -> Tensor:
    """The number of each node's group, ``[N]``; labelled nodes must have one.

    Args:
        cells: The groups, words or numbers.
        labelled: The nodes with labels, ``[N]``.
        place: Where the cell of a row is, for error messages.
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
    return next(iter(nodes.columns))


def _read_edges(
    tables: GraphTables, id_column: str | None, options: ImportOptions, notes: list[str]
) -> tuple[list[NodeId], Tensor, dict[str, Any]]:
    """The ids of the nodes, the ends of the edges ``[2, E]``, on request weights and times."""
    nodes, edges = tables.nodes, tables.edges
    if nodes is not None and id_column is not None:
        node_ids, rows = rows_of_nodes(nodes, id_column)
        ends = end_columns(edges, notes)
        edge_index = ends_of_edges(edges, ends, rows)
    else:
        ends = end_columns(edges, notes)
        if not len(edges):
            raise DataError(f"{edges.origin}: there are no edges, and no table of nodes")
        node_ids, edge_index = nodes_of_edges(edges, ends)
        notes.append("no table of nodes: the nodes are those of the edges")
    return node_ids, torch.from_numpy(edge_index), edge_values(edges, ends, options, notes)


def edge_values(
    edges: Table, ends: tuple[str, str], options: ImportOptions, notes: list[str]
) -> dict[str, Any]:
    """On request the weights and times of edges; what is left out is noted."""
    weight, time = options.weight, options.time
    others = [name for name in edges.columns if name not in (*ends, weight, time)]
    asked: dict[str, Any] = {}
    if weight is not None:
        values = _weights(edges, edges.require(weight, "edge weights"), options.decimal)
        asked |= {"edge_weight": torch.from_numpy(values), "keep_weight": True}
    if time is not None:
        moments = read_times(edges, edges.require(time, "times of edges"))
        asked |= {"edge_time": torch.from_numpy(moments), "keep_time": True}
    if _WEIGHT in others:
        notes.append(f"{edges.origin}: column {_WEIGHT} ignored (not asked for)")
        others.remove(_WEIGHT)
    if others:
        notes.append(f"{edges.origin}: columns left out: {listed(others)}")
    return asked


def end_columns(edges: Table, notes: list[str]) -> tuple[str, str]:
    """The columns of both ends of an edge."""
    for ends in _ENDS:
        if set(ends) <= set(edges.columns):
            return ends
    names = list(edges.columns)
    if len(names) < 2:
        raise DataError(f"{edges.origin}: an edge needs two columns, source and target")
    notes.append(f"{edges.origin}: edges go from column {names[0]} to column {names[1]}")
    return names[0], names[1]


def _weights(edges: Table, column: str, decimal: str | None) -> NDArray[np.float64]:
    """Finite numbers; edges come in parts, so that only the user can say which decimals they have.

    Args:
        edges: The table.
        column: Of the weights.
        decimal: The sign before decimals, a point if not given.
    """
    weights, way = np.empty(len(edges)), None if decimal is None else Writing(decimal)
    for row, cell in enumerate(edges.columns[column].tolist()):
        try:
            read = way.read if way is not None and isinstance(cell, str) else float
            weights[row] = np.nan if is_missing(cell) else read(cell)
        except (TypeError, ValueError, OverflowError):
            weights[row] = np.nan
        if not np.isfinite(weights[row]):
            hint = "; --decimal , reads it" if way is None and looks_like_number(cell) else ""
            wrong = f"a weight must be a finite number (got {shown(cell)}){hint}"
            raise edges.error(row, column, wrong)
        if weights[row] < 0:
            raise edges.error(row, column, f"a weight must not be negative (got {shown(cell)})")
    return weights


def read_label(
    data: Data,
    nodes: Table,
    options: ImportOptions,
    schema: Schema | None,
    taken: set[str | None],
    notes: list[str],
    problems: Problems,
) -> dict[str, Any] | None:
    """The rule of the targets; adds their columns to ``taken``, targets and splits to ``data``."""
    label: dict[str, Any] | None = None if schema is None else schema["label"]
    with problems.noted():
        if schema is None:
            taken |= {options.label}  # should it be unusable, it is no feature
            others = _feature_columns(nodes, taken, options)
            label, columns = learned_label(nodes, options, others, notes)
            taken |= columns
        if label is not None:
            # A split that folds replace may be wrong, too.
            read_targets(data, nodes, label, bool(schema or options.folds), notes)
    if options.groups is not None:
        with problems.noted():
            taken.add(read_groups(data, nodes, options.groups, taken))
    return label


def learned_label(
    nodes: Table, options: ImportOptions, others: Sequence[str], notes: list[str]
) -> tuple[dict[str, Any] | None, set[str | None]]:
    """The rule of the targets, and the columns that are no features for it."""
    asked, task = options.label, options.task
    if task == "auto":
        task = task_of_table(nodes, asked, options.decimal, others)
    if task in TARGET_TASKS:
        rule = learned_targets(nodes, asked, task, notes, options.decimal, others)
        if options.task == "auto":
            notes.append(f"column {listed(rule['columns'])}: read for --task {task}")
        return rule, set(rule["columns"])
    label, column = targets.learned_label(nodes, asked, notes)
    return label, {column}


def read_targets(
    data: Data, nodes: Table, label: dict[str, Any], only_predicts: bool, notes: list[str]
) -> None:
    """Targets and splits; where only prediction is asked for, unusable splits are left out."""
    if "kind" in label:
        values = encoded_targets(nodes, label, notes)
        if values is None:
            return
        data.targets, data.target_names = values, list(label["names"])
        data.target_kind = label["kind"]
        labels = np.where(values.isnan().any(1).numpy(), -1, 0)
    else:
        labels = targets.encoded_labels(nodes, label, notes)
        data.y, data.class_names = torch.from_numpy(labels), list(label["classes"])
    try:
        masks = targets.read_masks(nodes, labels, notes)
    except DataError as error:
        if not only_predicts:
            raise
        masks = {}
        notes.append(f"the splits were not read ({error})")
    for name, mask in masks.items():
        data[name] = torch.from_numpy(mask)


def column_rules(
    tables: GraphTables,
    taken: set[str | None],
    options: ImportOptions,
    schema: Schema | None,
    notes: list[str],
    problems: Problems,
) -> list[ColumnRule]:
    """How columns become features: all that are not taken, by the schema where there is one."""
    nodes = tables.nodes
    if schema is not None:
        rules = list(schema["columns"] or [])
        if nodes is None and rules:
            raise DataError(
                f"{tables.edges.origin}: no table of nodes with a column "
                f"'{rules[0]['name']}', which the model was trained with"
            )
        return rules
    if nodes is None:
        return []
    names = _feature_columns(nodes, taken, options)
    return learned_rules(nodes, names, notes, options.for_columns, problems)


def _feature_columns(nodes: Table, taken: set[str | None], options: ImportOptions) -> list[str]:
    taken = taken | {*options.drop, *targets.target_columns(nodes)}
    return [name for name in nodes.columns if name not in taken]
