"""networkx graphs with attributes."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from argnn.data.node_ids import id_cells
from argnn.data.tables import Cells, GraphTables, Table, object_cells


def is_networkx(source: object) -> bool:
    """Whether an object is a networkx graph, found without importing networkx."""
    modules = {kind.__module__.split(".")[0] for kind in type(source).__mro__}
    return "networkx" in modules and hasattr(source, "edges") and hasattr(source, "nodes")


def networkx_tables(graph: Any) -> GraphTables:
    """Nodes, edges and their attributes as tables; the attributes may differ from node to node."""
    directed = graph.is_directed()
    return GraphTables(
        edges=_table("edges", ("source", "target"), graph.edges(data=True)),
        nodes=_table("nodes", ("id",), graph.nodes(data=True)),
        undirected=not directed,
        directed=directed,
    )


def _table(what: str, names: tuple[str, ...], items: Iterable[tuple[Any, ...]]) -> Table:
    """One row per item: its ids under the given names, then its attributes."""
    *ids, rows = zip(*items, strict=True) if items else [()] * (len(names) + 1)
    columns = {name: id_cells(values) for name, values in zip(names, ids, strict=True)}
    return Table(f"networkx graph, {what}", columns | _columns(rows, taken=names))


def _columns(rows: Sequence[Mapping[Any, Any]], taken: tuple[str, ...]) -> dict[str, Cells]:
    """A column per attribute; where the name is taken, ``(data)`` is added to it."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        own = f"{name} (data)" if str(name) in taken else str(name)
        columns[own] = object_cells([_plain(row.get(name)) for row in rows])
    return columns


def _plain(value: Any) -> Any:
    """A numpy number or array, or a tensor, as plain Python values."""
    return value.tolist() if hasattr(value, "tolist") else value
