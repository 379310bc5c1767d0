"""The report on a graph as Rich tables."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from argnn.data.tables import printable

_MOST_ROWS = 30


def inspection_tables(report: Mapping[str, Any]) -> Iterator[Table]:
    """A table of facts, then one of classes and one of columns where there are any."""
    yield _facts(report)
    if report["classes"]:
        rows = [(c["name"], str(c["nodes"]), f"{100 * c['share']:.1f}") for c in report["classes"]]
        yield _table(("class", "nodes", "%"), rows)
    if report["columns"]:
        columns = [(row["column"], row["became"]) for row in report["columns"]]
        yield _table(("column", "became"), columns)


def _facts(report: Mapping[str, Any]) -> Table:
    degrees, components = report["degrees"], report["components"]
    spread = f"{degrees['min']} to {degrees['max']}"
    facts = {
        "nodes": str(report["nodes"]),
        "edges": f"{report['edges']} {'directed' if report['directed'] else 'undirected'}"
        + (", weighted" if report["weighted"] else ""),
        "features": str(report["features"]),
        "degrees": f"{spread}, median {degrees['median']:g}, mean {degrees['mean']:.2f}",
        "nodes without edges": str(report["isolated"]),
        "components": f"{components['count']}, the largest of {components['largest']} nodes",
        "homophily": _homophily(report["homophily"]),
        "unlabelled nodes": str(report["unlabelled"]),
        "splits": _splits(report["splits"], report["rules"]["splits"]),
    }
    table = _table(("", str(report["name"])), list(facts.items()))
    table.columns[0].no_wrap = True
    return table


def _homophily(shares: Mapping[str, float | None]) -> str:
    if shares["edge"] is None:
        return "-"
    node = "-" if shares["node"] is None else f"{shares['node']:.2f}"
    return f"{shares['edge']:.2f} of edges, {node} of nodes"


def _splits(splits: Mapping[str, int], rule: str) -> str:
    if not splits["count"]:
        return rule
    sizes = "/".join(str(splits[part]) for part in ("train", "val", "test"))
    return f"{splits['count']} ({rule}); {sizes} nodes in the first"


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    """Cells come from the user's file, so that nothing in them may act as markup."""
    table = Table()
    for place, name in enumerate(header):
        number = name in ("nodes", "%") and place > 0
        table.add_column(escape(name), justify="right" if number else "left")
    for row in rows[:_MOST_ROWS]:
        table.add_row(*(escape(printable(cell)) for cell in row))
    if len(rows) > _MOST_ROWS:
        table.add_row(f"... {len(rows) - _MOST_ROWS} more", *[""] * (len(header) - 1))
    return table
