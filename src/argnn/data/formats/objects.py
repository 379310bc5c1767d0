"""Graphs in memory: pandas tables, networkx graphs, arrays and sparse matrices."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch import Tensor
from torch_geometric.data import Data

from argnn.data.tables import Cells, GraphTables, Table, check_unique, object_cells, plain_cells
from argnn.errors import DataError

_LARGEST_DENSE = 8 << 30


def is_frame(source: object) -> bool:
    """Whether an object is a pandas table, found without importing pandas."""
    kind = type(source)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pandas"


def frame_tables(edges: Any, nodes: Any = None) -> GraphTables:
    """Both tables; rows are counted from 0, and the index is ignored."""
    edge_table = frame_table(edges, "edges table")
    return GraphTables(edge_table, None if nodes is None else frame_table(nodes, "nodes table"))


def frame_table(frame: Any, origin: str) -> Table:
    """A pandas table; ``origin`` is for error messages."""
    names = [str(name).strip() for name in frame.columns]  # as in CSV files
    check_unique(names, origin)
    columns = {name: _cells(frame.iloc[:, place]) for place, name in enumerate(names)}
    return Table(origin, columns)


def _cells(series: Any) -> Cells:
    """A numpy array of numbers if pandas has one, else of plain objects."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iufb":
        return series.to_numpy()  # type: ignore[no-any-return]
    return plain_cells(series.astype(object).tolist())


def is_networkx(source: object) -> bool:
    """Whether an object is a networkx graph, found without importing networkx."""
    modules = {kind.__module__.split(".")[0] for kind in type(source).__mro__}
    return "networkx" in modules and hasattr(source, "edges") and hasattr(source, "nodes")


def networkx_tables(graph: Any) -> GraphTables:
    """Nodes, edges and their attributes as tables; the attributes may differ from node to node."""
    directed = graph.is_directed()
    return GraphTables(
        edges=_attribute_table("edges", ("source", "target"), graph.edges(data=True)),
        nodes=_attribute_table("nodes", ("id",), graph.nodes(data=True)),
        undirected=not directed,
        directed=directed,
    )


def _attribute_table(what: str, names: tuple[str, ...], items: Iterable[tuple[Any, ...]]) -> Table:
    """One row per item: its ids under the given names, then a column per attribute.

    Where the name of an attribute is taken, ``(data)`` is added to it.
    """
    *ids, rows = zip(*items, strict=True) if items else [()] * (len(names) + 1)
    columns = {}
    for name, values in zip(names, ids, strict=True):
        columns[name] = object_cells([v if isinstance(v, str | int) else str(v) for v in values])
    for name in dict.fromkeys(name for row in rows for name in row):
        plain = str(name).strip()
        own = f"{plain} (data)" if plain in names else plain
        columns[own] = plain_cells([_plain(row.get(name)) for row in rows])
    return Table(f"networkx graph, {what}", columns)


def _plain(value: Any) -> Any:
    """A numpy number or array, or a tensor, as plain Python values."""
    return value.tolist() if hasattr(value, "tolist") else value


def adjacency_data(adjacency: Any, x: Any = None) -> tuple[Data, list[str]]:
    """A graph whose edge from i to j is the entry in row i and column j.

    Args:
        adjacency: Sparse ``[N, N]``; entries of 0 are no edges.
        x: Features ``[N, F]``, dense or sparse.
    """
    if adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1] or not adjacency.shape[0]:
        raise DataError(
            f"adjacency matrix: must be square and not empty (got {list(adjacency.shape)})"
        )
    entries = adjacency.tocoo(copy=True)
    entries.sum_duplicates()  # what the same entry, given several times, means in scipy
    present = entries.data != 0
    ends = np.stack([entries.row[present], entries.col[present]]).astype(np.int64)
    weight = entries.data[present]
    if weight.dtype.kind not in "biuf":
        raise DataError(f"adjacency matrix: must hold real numbers (got {weight.dtype})")
    data = Data(edge_index=torch.from_numpy(ends), num_nodes=adjacency.shape[0])
    if x is not None:
        data.x = _dense_features(x)
        if data.x.dim() == 2 and data.x.size(0) != adjacency.shape[0]:
            raise DataError(
                f"features have {data.x.size(0)} rows, but the adjacency matrix has "
                f"{adjacency.shape[0]}"
            )
    notes = []
    if bool((weight != 1).any()):
        data.edge_weight = torch.from_numpy(weight.astype(np.float64))
        notes.append("adjacency matrix: entries other than 1 are weights")
    return data, notes


def arrays_data(x: Any, edge_index: Any) -> Data:
    """A graph of features ``[N, F]`` and edges ``[2, E]``."""
    edges = edge_index if isinstance(edge_index, Tensor) else _numeric(edge_index, "edge_index")
    return Data(x=_dense_features(x), edge_index=torch.as_tensor(edges))


def _dense_features(x: Any) -> Tensor:
    """Features as a dense tensor, unless that would fill the memory."""
    if isinstance(x, Tensor):
        return x.to_dense() if x.layout != torch.strided else x
    if issparse(x):
        if 4 * int(np.prod(x.shape)) > _LARGEST_DENSE:
            raise DataError(
                f"x: {list(x.shape)} features do not fit into the memory once they are dense"
            )
        return torch.from_numpy(np.asarray(x.astype(np.float32).toarray()))
    return torch.from_numpy(_numeric(x, "x"))


def _numeric(value: Any, name: str) -> NDArray[Any]:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise DataError(f"{name}: rows must be of equal length") from error
    if array.dtype.kind not in "biuf":
        raise DataError(f"{name}: must hold numbers (got {array.dtype})")
    if array.dtype.kind == "f":
        return array.astype(np.float64)
    return array if array.dtype.kind == "b" else array.astype(np.int64)
