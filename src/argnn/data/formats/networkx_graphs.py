"""networkx graphs with attributes."""

from collections.abc import Container, Iterable, Mapping
from typing import Any

from argnn.data.node_ids import id_cells
from argnn.data.tables import Cells, GraphTables, Table, object_cells

_ORIGIN = "networkx graph"


def is_networkx(source: object) -> bool:
    """Whether an object is a networkx graph, found without importing networkx."""
    modules = {kind.__module__.split(".")[0] for kind in type(source).__mro__}
    return "networkx" in modules and hasattr(source, "edges") and hasattr(source, "nodes")


def networkx_tables(graph: Any) -> GraphTables:
    """Nodes, edges and their attributes as tables; the attributes may differ from node to node."""
    nodes, attributes = _separated(graph.nodes(data=True))
    ends, edge_attributes = _separated(
        ((source, target), values) for source, target, values in graph.edges(data=True)
    )
    edges = {
        "source": id_cells([source for source, _ in ends]),
        "target": id_cells([target for _, target in ends]),
    }
    return GraphTables(
        edges=Table(f"{_ORIGIN}, edges", edges | _columns(edge_attributes, taken=edges)),
        nodes=Table(
            f"{_ORIGIN}, nodes", {"id": id_cells(nodes)} | _columns(attributes, taken=("id",))
        ),
        undirected=not graph.is_directed(),
        directed=graph.is_directed(),
    )


def _separated(pairs: Iterable[tuple[Any, Mapping[Any, Any]]]) -> tuple[list[Any], list[Any]]:
    keys, values = [], []
    for key, value in pairs:
        keys.append(key)
        values.append(value)
    return keys, values


def _columns(rows: list[Mapping[Any, Any]], taken: Container[str]) -> dict[str, Cells]:
    """A column per attribute; one with the name of a column that is taken gets another."""
    columns = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        own = f"{name} (data)" if str(name) in taken else str(name)
        columns[own] = object_cells([_plain(row.get(name)) for row in rows])
    return columns


def _plain(value: Any) -> Any:
    """A numpy number or array, or a tensor, as plain Python values."""
    return value.tolist() if hasattr(value, "tolist") else value
