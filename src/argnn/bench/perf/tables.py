"""The measurements as Rich tables."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from argnn.tables import rich_table

_RECORDED = ("recorded step ms\n[10 %, 90 %]", "recorded x\nPyG GCN", "recorded x\nbest GCN")


def number(value: float | None) -> str:
    """Three digits that matter, without an exponent.

    Example:
        >>> number(0.01234), number(1.234), number(123.4), number(12345.0), number(None)
        ('0.0123', '1.23', '123', '12345', '-')
    """
    if value is None:
        return "-"
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def with_spread(found: Mapping[str, Any] | None) -> str:
    """Median and quantiles, in milliseconds."""
    if found is None or "error" in found:
        return "-"
    return f"{number(found['median_ms'])} [{number(found['q10_ms'])}, {number(found['q90_ms'])}]"


def graph_title(graph: Mapping[str, Any]) -> str:
    """A graph in words."""
    return (
        f"{graph['kind']} graph, {graph['nodes']:,} nodes, {graph['edges']:,} edges, "
        f"largest degree {graph['max_degree']:,}"
    )


def row_table(measurement: Mapping[str, Any]) -> Table:
    """Time and memory of every row; in brackets the 10 % and 90 % quantiles."""
    recorded = any(row.get("recorded") for row in measurement["rows"])
    header = (
        "model",
        "forward ms\n[10 %, 90 %]",
        "step ms\n[10 %, 90 %]",
        "step x\nPyG GCN",
        "step x\nbest GCN",
        "x faster\nthan plain",
        "extra peak\nMiB",
        "memory x\nPyG GCN",
        "repeats",
        *(_RECORDED if recorded else ()),
    )
    rows = [
        (
            row["label"],
            with_spread(row["forward"]),
            _failure(row) if "error" in row else with_spread(row["step"]),
            number(row["step_vs_gcn"]),
            number(row["step_vs_best_gcn"]),
            number(row["speedup_over_plain"]),
            number(row["memory"]["extra_peak_mib"]) if row["memory"] else "-",
            number(row["memory_vs_gcn"]),
            str(row["step"]["repeats"]) if row["step"] else "-",
            *(_recorded_cells(row) if recorded else ()),
        )
        for row in measurement["rows"]
    ]
    return rich_table(header, rows, left=header[:1], title=graph_title(measurement["graph"]))


def _recorded_cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    ratios = (number(row[f"recorded_vs_{which}"]) for which in ("gcn", "best_gcn"))
    return with_spread(row["recorded"]), *ratios


def _failure(row: Mapping[str, Any]) -> str:
    return "out of memory" if row["out_of_memory"] else "failed"


def edge_table(measurement: Mapping[str, Any]) -> Table:
    """The fused edge part of one layer beside a plain copy."""
    copy = {"name": "copy", **measurement["copy"], "share_of_copy": 1.0}
    rows = [
        (
            part["name"],
            with_spread(part),
            number(part["bytes"] / 1e6),
            number(part["gb_per_s"]),
            number(100 * part["share_of_copy"]),
            str(part["repeats"]),
        )
        for part in (copy, *measurement["edge_part"]["parts"])
    ]
    title = "edge part of one layer, fused; useful bytes beside a plain copy"
    header = ("part", "ms [10 %, 90 %]", "MB", "GB/s", "% of copy", "repeats")
    return rich_table(header, rows, left=header[:1], title=title)


def scaling_table(measurements: Sequence[Mapping[str, Any]]) -> Table:
    """Step time and time per edge over the sizes."""
    names = [row["name"] for row in measurements[0]["rows"]]
    header = ["graph", "nodes", "edges"]
    header += [f"{name}\n{unit}" for name in names for unit in ("step ms", "ns per edge")]
    rows = []
    for found in measurements:
        graph = found["graph"]
        cells = [graph["kind"], f"{graph['nodes']:,}", f"{graph['edges']:,}"]
        for row in found["rows"]:
            step = row["step"]["median_ms"] if row["step"] else None
            cells += [number(step), number(row["ns_per_edge"])]
        rows.append(cells)
    title = "one training step, fused kernels beside two GCNs"
    return rich_table(header, rows, left=header[:1], title=title)


def first_steps(measurement: Mapping[str, Any]) -> str:
    """How long the first step of every row took, compilation included."""
    known = [
        f"{row['label']} {number(row['first_step_seconds'])}"
        for row in measurement["rows"]
        if row["first_step_seconds"] is not None
    ]
    return "First step in seconds, compilation and graph preparation included: " + "; ".join(known)


def failures(measurements: Sequence[Mapping[str, Any]]) -> list[tuple[str, Mapping[str, Any]]]:
    """Everything that could not be measured: what it is, and its error fields."""
    found: list[tuple[str, Mapping[str, Any]]] = []
    for measurement in measurements:
        part = measurement["edge_part"]
        if part is not None and "error" in part:
            found.append(("edge part", part))
        for row in measurement["rows"]:
            if "error" in row:
                found.append((row["label"], row))
            for what, part in (("memory", row["memory"]), ("recorded step", row.get("recorded"))):
                if part and "error" in part:
                    found.append((f"{what} of {row['label']}", part))
    return found
