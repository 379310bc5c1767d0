"""The table of one score."""

from collections.abc import Mapping
from typing import Any

from argnn.bench.leaderboard.grid import Entry, Grid, GridRow, board_title, letters, text
from argnn.runs.tables import per_cent


def score_grid(board: Mapping[str, Any]) -> Grid:
    """Methods by data sets, published figures below the methods they belong to."""
    cells = {(cell["method"], cell["column"]): cell for cell in board["cells"]}
    columns = [column["name"] for column in board["columns"]]
    parts = [column["name"] for column in board["columns"] if column["without_twins"]]
    marks = letters(board["published"])
    rows: list[GridRow] = []
    for model in dict.fromkeys(method["model"] for method in board["methods"]):
        for method in board["methods"]:
            if method["model"] == model:
                name = method["name"]
                means = (_mean(cells[name, column], column in parts) for column in columns)
                rows.append(GridRow((text(name), *means)))
        for entry in board["published"]:
            if entry["model"] == model:
                label = f"{model}, published [{marks[entry['source'], entry['protocol']]}]"
                values = (_quoted(entry["values"].get(column)) for column in columns)
                rows.append(GridRow((text(label), *values), quoted=True))
    header = (text(column["name"], f"(n = {column['expected']})") for column in board["columns"])
    rule = (
        "Mean over n runs (splits x seeds) ± 95 % Student-t interval over splits, their seeds "
        f"averaged; {board['protocol']}."
    )
    return Grid(
        title=f"{board_title(board)}, %",
        header=(text("method"), *header),
        rows=tuple(rows),
        notes=(rule, *_gap_notes(board), *board["notes"], *_source_notes(board, marks)),
        legend={"best": "best", "second": "second best"},
    )


def _mean(cell: Mapping[str, Any], is_part: bool) -> Entry:
    if cell["n"] == 0 and is_part and cell["runs"] > cell["failed"]:
        return text("-")  # every test node has a twin, or an older version wrote the rows
    if cell["n"] == 0:
        reason = "failed" if cell["failed"] else "undefined" if cell["runs"] else "not run"
        return text(reason, f"(0 of {cell['expected']})")
    lines = [per_cent(cell["mean"])]
    if cell["interval"] is not None:
        lines.append(f"± {per_cent(cell['interval'])}")
    if not cell["complete"]:
        lines.append(f"({cell['n']} of {cell['expected']})")
    return text(*lines, mark=cell["mark"])


def _quoted(value: Mapping[str, Any] | None) -> Entry:
    if value is None:
        return text("-")
    lines = [per_cent(value["value"])]
    if value["interval"] is not None:
        lines.append(f"± {per_cent(value['interval'])}")
    if value["sd"] is not None:
        lines.append(f"(sd {per_cent(value['sd'])})")
    return text(*lines)


def _gap_notes(board: Mapping[str, Any]) -> list[str]:
    if all(cell["complete"] for cell in board["cells"]):
        return []
    return ["(k of n): only k of the n runs have a score; such means are not marked or ranked."]


def _source_notes(board: Mapping[str, Any], marks: Mapping[tuple[str, str], str]) -> list[str]:
    """Sources and protocols by their letters, then what is special about tables and data sets."""
    notes = [f"[{letter}] {source}: {protocol}." for (source, protocol), letter in marks.items()]
    remarks: dict[tuple[str, str], list[str]] = {}
    for entry in board["published"]:
        letter = marks[entry["source"], entry["protocol"]]
        about = [(column, value["remark"]) for column, value in entry["values"].items()]
        for subject, remark in [("whole table", entry["note"]), *about]:
            if remark and letter not in remarks.setdefault((subject, remark), []):
                remarks[subject, remark].append(letter)
    return notes + [
        f"[{', '.join(found)}] {subject}: {remark}." for (subject, remark), found in remarks.items()
    ]
