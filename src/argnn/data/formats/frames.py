"""pandas tables of edges and nodes."""

from typing import Any

import numpy as np

from argnn.data.tables import Cells, GraphTables, Table, object_cells
from argnn.errors import DataError


def is_frame(source: object) -> bool:
    """Whether an object is a pandas table, found without importing pandas."""
    kind = type(source)
    return kind.__name__ == "DataFrame" and kind.__module__.split(".")[0] == "pandas"


def frame_tables(edges: Any, nodes: Any = None) -> GraphTables:
    """Both tables; rows are counted from 0, and the index is ignored."""
    return GraphTables(
        edges=_table(edges, "edges table"),
        nodes=None if nodes is None else _table(nodes, "nodes table"),
    )


def _table(frame: Any, origin: str) -> Table:
    names = [str(name) for name in frame.columns]
    if len(set(names)) < len(names) or not names:
        raise DataError(f"{origin}: every column needs a name of its own")
    columns = {name: _cells(frame.iloc[:, place]) for place, name in enumerate(names)}
    return Table(origin, columns)


def _cells(series: Any) -> Cells:
    """A numpy array of numbers if pandas has one, else of plain objects."""
    if isinstance(series.dtype, np.dtype) and series.dtype.kind in "iufb":
        return series.to_numpy()  # type: ignore[no-any-return]
    return object_cells(series.astype(object).tolist())
