"""New nodes of a known graph, and their edges: from files, tables or arrays to numbers."""

from collections import ChainMap
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.assemble import checked_edges, checked_weights
from argnn.data.edge_columns import EdgeColumns, end_columns
from argnn.data.formats import objects
from argnn.data.formats.parquet_files import read_parquet
from argnn.data.formats.text_files import read_csv
from argnn.data.import_graph import ImportedGraph, TableImport, column_of_ids
from argnn.data.import_options import WEIGHT_NAMES, ImportOptions
from argnn.data.limited_reading import read_limited
from argnn.data.node_ids import ends_of_edges, rows_by_id, rows_of_nodes, shown
from argnn.data.npz import load_npz
from argnn.data.schema import Schema
from argnn.data.tables import GraphTables, Table, is_missing, object_cells, plain_cells
from argnn.errors import DataError, error_prefix

_NODES, _EDGES = "new nodes", "new edges"
_ENDS = ("source", "target")
_READERS: dict[str, Callable[[Path], Table]] = {".csv": read_csv, ".parquet": read_parquet}


@dataclass(frozen=True)
class NewNodes:
    """New nodes that were read.

    Attributes:
        graph: The nodes without edges, with ``x``, ``node_ids`` and ``notes``. Features of a table
            are encoded by the ``schema``, which is given; those of arrays are as they were.
        edge_index: The new edges by rows of the joined graph, ``[2, E]``.
        edge_weight: Their weights, ``[E]``; None where the known graph has none. Edges of weight
            zero, which are none, are left out.
    """

    graph: Data
    edge_index: Tensor
    edge_weight: Tensor | None = None


def read_new_nodes(
    nodes: Any,
    edges: Any,
    known: dict[Hashable, int],
    num_known: int,
    schema: Schema,
    node_id: str | None = None,
    weighted: bool = False,
) -> NewNodes:
    """Read new nodes and their edges.

    Args:
        nodes: A table: the path of a ``.csv`` or ``.parquet`` file, a pandas table, or a list of
            dictionaries. Or numbers: the path of an ``.npz`` file with ``x`` and ``edge_index``, or
            features ``[M, F]``.
        edges: A table with the columns ``source`` and ``target``: the path of a file, a pandas
            table, or, beside a table of nodes, a list of pairs of ids. Beside arrays also rows of
            the joined graph, ``[2, E]``. None if there are no edges.
        known: Row of each node of the known graph, by its id.
        num_known: Number of known nodes.
        schema: How tables of this graph become features.
        node_id: Column of the ids; that of the schema if not given.
        weighted: Whether edges have weights: in the column of the schema, as the third of each
            triple, in ``edge_weight`` of an ``.npz`` file, or as ``(edge_index, edge_weight)``.
    """
    by_ids = _is_table(nodes)
    if isinstance(nodes, Mapping):
        raise DataError(f"{_NODES}: give a list of dictionaries, one for each node")
    if by_ids:
        graph = _table_graph(nodes, known, schema, node_id)
    else:
        graph, edges = _arrays(nodes, edges, weighted)
    total = num_known + graph.x.size(0)
    if weighted:
        graph.edge_weight = torch.empty(0)
    if graph.get("node_ids") is None:
        graph.node_ids = list(range(num_known, total))
    if edges is None:
        edges = (_no_edges(), torch.empty(0)) if weighted else _no_edges()
    elif by_ids or _is_table(edges):
        rows = ChainMap(rows_by_id(graph.node_ids, num_known), known)
        names = (schema.get("weight"), *WEIGHT_NAMES) if weighted else ()
        decimal = schema.get("weight_decimal")
        data = _read(edges, lambda: _ends(edges, rows, names, decimal)).data
        return _new(graph, data.edge_index, data.get("edge_weight"))
    with error_prefix(f"{nodes if isinstance(nodes, Path) else _EDGES}:"):
        edges, weight = _with_weights(edges) if weighted else (edges, None)
        ends = checked_edges(objects.arrays_data(graph.x, edges), total)
        return _new(graph, ends, None if weight is None else checked_weights(weight, ends))


def _new(graph: Data, edge_index: Tensor, weight: Tensor | None) -> NewNodes:
    if weight is None:
        return NewNodes(graph, edge_index)
    kept = weight != 0
    return NewNodes(graph, edge_index[:, kept], weight[kept])


def _with_weights(edges: Any) -> tuple[Any, Any]:
    """Arrays of edges and of their weights."""
    if not isinstance(edges, tuple) or len(edges) != 2:
        raise DataError("the graph has edge weights: give (edge_index, edge_weight)")
    return edges


def _no_edges() -> Tensor:
    return torch.empty(2, 0, dtype=torch.int64)


def _is_table(source: Any) -> bool:
    if isinstance(source, Path):
        return source.suffix.lower() != ".npz"
    records = isinstance(source, list) and len(source) > 0 and isinstance(source[0], Mapping)
    return records or objects.is_frame(source)


def _read(source: Any, read: Callable[[], ImportedGraph]) -> ImportedGraph:
    """The result of ``read``, with limits where it opens a file."""
    return read_limited(source, read) if isinstance(source, Path) else read()


def _arrays(nodes: Any, edges: Any, weighted: bool) -> tuple[Data, Any]:
    """New nodes as arrays, and their edges, which may be in the same file."""
    if isinstance(nodes, Path):
        found = _read(nodes, lambda: ImportedGraph(load_npz(nodes), [], [], {})).data
        if found.get("x") is None:
            raise DataError(f"{nodes}: x is missing, the features of the new nodes")
        if edges is None:
            edges = found.edge_index
            if weighted and found.get("edge_weight") is None:
                raise DataError(f"{nodes}: edge_weight is missing, the weights of the new edges")
            edges = (edges, found.edge_weight) if weighted else edges
        x, origin = found.x, str(nodes)
    else:
        x, origin = objects.arrays_data(nodes, _no_edges()).x, _NODES
    if x.dim() != 2 or not len(x):
        raise DataError(f"{origin}: x must have shape [nodes, features] (got {list(x.shape)})")
    return Data(x=x, edge_index=_no_edges(), name=origin), edges


def _table(source: Any, what: str) -> Table:
    """The table that a file or an object holds."""
    if isinstance(source, Path):
        reader = _READERS.get(source.suffix.lower())
        if reader is None:
            raise DataError(f"{source}: {what} are read from .csv or .parquet files")
        return reader(source)
    if objects.is_frame(source):
        return objects.frame_table(source, what)
    names = dict.fromkeys(str(name) for row in source for name in row)
    cells = {name: plain_cells([row.get(name) for row in source]) for name in names}
    return Table(what, cells)


def _table_graph(
    nodes: Any, known: dict[Hashable, int], schema: Schema, node_id: str | None
) -> Data:
    """The nodes of a table, encoded by the schema."""
    imported = _read(nodes, lambda: _encoded(_table(nodes, _NODES), known, schema, node_id))
    origin = str(nodes) if isinstance(nodes, Path) else _NODES
    graph = Data(x=imported.data.get("x"), edge_index=_no_edges(), name=origin)
    if imported.parts:
        imported.data = Data(edge_index=_no_edges())
        options = {"row_normalize": schema["row_normalize"], "draw_split": False}
        graph = imported.assembled(origin, origin, schema, **options)
        graph.schema = dict(schema)
    if imported.node_ids:
        graph.node_ids = imported.node_ids
    graph.notes = imported.notes
    return graph


def _encoded(
    nodes: Table, known: dict[Hashable, int], schema: Schema, node_id: str | None
) -> ImportedGraph:
    if not len(nodes):
        raise DataError(f"{nodes.origin}: there are no nodes")
    has_columns = schema["columns"] is not None
    options = ImportOptions(node_id=node_id)
    column = column_of_ids(nodes, options, schema) if has_columns else node_id or "id"
    if column in nodes.columns:
        for key, row in rows_of_nodes(nodes, column)[1].items():
            if key in known:
                raise nodes.error(row, column, f"node {shown(key)} is in the graph already")
    if has_columns:
        no_edges = Table(_EDGES, {name: object_cells([]) for name in _ENDS})
        return TableImport(GraphTables(no_edges, nodes), options, schema).imported()
    ids = rows_of_nodes(nodes, column)[0] if column in nodes.columns else []
    names = [name for name in nodes.columns if name != column]
    x = np.array([_numbers(nodes, name) for name in names]).T
    return ImportedGraph(Data(x=torch.from_numpy(x)), ids, names, {})


def _numbers(table: Table, column: str) -> list[float]:
    """A column of a graph of arrays, whose features are numbers."""
    numbers = []
    for row, cell in enumerate(table.columns[column].tolist()):
        try:
            numbers.append(float("nan" if is_missing(cell) else cell))
        except (TypeError, ValueError):
            numbers.append(np.nan)
        if not np.isfinite(numbers[-1]):
            raise table.error(row, column, f"a feature must be a finite number (got {shown(cell)})")
    return numbers


def _ends(
    edges: Any,
    rows: Mapping[Hashable, int],
    weight_names: Sequence[str | None],
    decimal: str | None,
) -> ImportedGraph:
    """The ends of edges by rows of the joined graph, as the edges of a graph.

    ``weight_names`` are those that the column of weights may have; none if edges have no weights.
    """
    is_table = isinstance(edges, Path) or _is_table(edges)
    table = _table(edges, _EDGES) if is_table else _listed_edges(edges, bool(weight_names))
    ends = end_columns(table, [])
    data = Data(edge_index=torch.from_numpy(ends_of_edges(table, ends, rows)))
    if weight_names:
        wanted = [name for name in weight_names if name is not None]
        column = next((name for name in wanted if name in table.columns), wanted[0])
        read = EdgeColumns(ends, ImportOptions(weight=column, decimal=decimal)).values(table)
        data.edge_weight = checked_weights(read["edge_weight"], data.edge_index)
    return ImportedGraph(data, [], [], {})


def _listed_edges(edges: Any, weighted: bool) -> Table:
    """A list of pairs of ids, or of pairs with a weight, as a table."""
    rows = edges.tolist() if hasattr(edges, "tolist") else list(edges)
    names = (*_ENDS, *WEIGHT_NAMES[:1]) if weighted else _ENDS
    expected = "two ids and a weight" if weighted else "a pair of ids"
    for number, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(names):
            raise DataError(f"{_EDGES}, row {number}: an edge is {expected} (got {shown(row)})")
    return Table(_EDGES, {n: plain_cells([r[at] for r in rows]) for at, n in enumerate(names)})
