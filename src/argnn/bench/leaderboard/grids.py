"""The tables of a leaderboard before they are printed in some format: cells, marks and notes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from argnn.bench.leaderboard.compare import LEVEL
from argnn.bench.perf.tables import number
from argnn.runs.tables import SCORE_NAMES, per_cent
from argnn.settings.run_config import MAIN_SCORES

TASK_NAMES = {
    "node": "Node classification",
    "link": "Link prediction",
    "regression": "Node regression",
    "multilabel": "Labels of nodes",
}
ORACLE = "oracle (test-selected)"


@dataclass(frozen=True)
class Entry:
    """One place of a table.

    Its lines are joined where there is room. The mark is ``"best"``, ``"second"`` or ``"strong"``.
    """

    text: str
    mark: str | None = None


@dataclass(frozen=True)
class GridRow:
    """One row; ``quoted`` ones hold what others have published."""

    entries: tuple[Entry, ...] = ()
    quoted: bool = False


@dataclass(frozen=True)
class Grid:
    """A table.

    Attributes:
        title: What it shows.
        header: Names of the columns.
        rows: The rows; without any, only the notes are shown.
        notes: Sentences below it.
        legend: What the marks mean.
        joint: What stands between the lines of an entry that are written on one line.
        names: How many columns at the left hold names, not numbers.
        level: 1 for the table of a score, 2 for what belongs to the one before.
    """

    title: str
    header: GridRow = GridRow()
    rows: Sequence[GridRow] = ()
    notes: Sequence[str] = ()
    legend: Mapping[str, str] = field(default_factory=dict)
    joint: str = " "
    names: int = 1
    level: int = 1


def grids(document: Mapping[str, Any]) -> list[Grid]:
    """The tables of a document, in the order in which they are read."""
    found: list[Grid] = []
    for board in document["boards"]:
        found += [_score_grid(board), _paired_grid(board), _rank_grid(board)]
        if board["comparability"]:
            found.append(_comparability_grid(board))
    return [*found, *map(_cost_grid, document["efficiency"]), _origin_grid(document)]


def board_title(board: Mapping[str, Any]) -> str:
    """Task and score in words."""
    return f"{TASK_NAMES[board['task']]}, {SCORE_NAMES[board['score']]}"


def _row(*cells: str | Entry, quoted: bool = False) -> GridRow:
    entries = (Entry(cell) if isinstance(cell, str) else cell for cell in cells)
    return GridRow(tuple(entries), quoted)


class _Sources:
    """Letters for the sources and protocols of published figures; two letters after z."""

    def __init__(self, published: Sequence[Mapping[str, Any]]) -> None:
        keys = dict.fromkeys((entry["source"], entry["protocol"]) for entry in published)
        names = [*ascii_lowercase, *(a + b for a in ascii_lowercase for b in ascii_lowercase)]
        self.letters: dict[tuple[str, str], str] = dict(zip(keys, names, strict=False))

    def letter(self, entry: Mapping[str, Any]) -> str:
        return self.letters[entry["source"], entry["protocol"]]

    def label(self, entry: Mapping[str, Any]) -> str:
        return f"{entry['model']}, published [{self.letter(entry)}]"

    def notes(self) -> list[str]:
        return [f"[{letter}] {': '.join(key)}." for key, letter in self.letters.items()]


# --- the table of a score -----------------------------------------------------------------------


def _score_grid(board: Mapping[str, Any]) -> Grid:
    """Methods by data sets, published figures below the methods they belong to."""
    sources = _Sources(board["published"])
    header = (f"{column['name']}\n(n = {column['expected']})" for column in board["columns"])
    rule = (
        "Mean over n runs (splits x seeds) ± 95 % Student-t interval over splits, their seeds "
        f"averaged; {board['protocol']}."
    )
    gaps = "(k of n): only k of the n runs have a score; such means are not marked or ranked."
    complete = all(cell["complete"] for cell in board["cells"])
    remarks = _remarks(board, sources)
    return Grid(
        title=f"{board_title(board)}, %",
        header=_row("method", *header),
        rows=list(_score_rows(board, sources)),
        notes=(rule, *(() if complete else (gaps,)), *board["notes"], *sources.notes(), *remarks),
        legend={"best": "best", "second": "second best"},
    )


def _score_rows(board: Mapping[str, Any], sources: _Sources) -> Iterator[GridRow]:
    cells = {(cell["method"], cell["column"]): cell for cell in board["cells"]}
    columns = {column["name"]: column["without_twins"] for column in board["columns"]}
    for model in dict.fromkeys(method["model"] for method in board["methods"]):
        for method in board["methods"]:
            if method["model"] == model:
                name = method["name"]
                yield _row(name, *(_mean(cells[name, c], part) for c, part in columns.items()))
        for entry in board["published"]:
            if entry["model"] == model:
                values = (_quoted(entry["values"].get(column)) for column in columns)
                yield _row(sources.label(entry), *values, quoted=True)


def _mean(cell: Mapping[str, Any], is_part: bool) -> Entry | str:
    if cell["n"] == 0 and is_part and cell["runs"] > cell["failed"]:
        return "-"  # every test node has a twin, or an older version wrote the rows
    count = f"\n({cell['n']} of {cell['expected']})"
    if cell["n"] == 0:
        return ("failed" if cell["failed"] else "undefined" if cell["runs"] else "not run") + count
    return Entry(_with_interval(cell["mean"], cell) + count * (not cell["complete"]), cell["mark"])


def _quoted(value: Mapping[str, Any] | None) -> str:
    if value is None:
        return "-"
    deviation = "" if value["sd"] is None else f"\n(sd {per_cent(value['sd'])})"
    return _with_interval(value["value"], value) + deviation


def _with_interval(share: float, known: Mapping[str, Any]) -> str:
    interval = "" if known["interval"] is None else f"\n± {per_cent(known['interval'])}"
    return per_cent(share) + interval


def _remarks(board: Mapping[str, Any], sources: _Sources) -> list[str]:
    """What is special about published tables and about data sets in them."""
    remarks: dict[tuple[str, str], dict[str, None]] = {}
    for entry in board["published"]:
        about = [(column, value["remark"]) for column, value in entry["values"].items()]
        for subject, remark in [("whole table", entry["note"]), *about]:
            if remark:
                remarks.setdefault((subject, remark), {})[sources.letter(entry)] = None
    return [
        f"[{', '.join(letters)}] {subject}: {remark}."
        for (subject, remark), letters in remarks.items()
    ]


# --- comparisons --------------------------------------------------------------------------------


def _paired_grid(board: Mapping[str, Any]) -> Grid:
    """The reference method against every rival on every data set."""
    title = f"{board_title(board)}: paired tests"
    if not board["paired"]:
        reason = "there is no reference; --reference names one"
        if board["reference"] is not None:
            reason = f"{board['reference']} has no rival here"
        return Grid(title, notes=(f"No paired tests: {reason}.",), level=2)
    found = {(entry["rival"], entry["column"]): entry for entry in board["paired"]}
    columns = list(dict.fromkeys(column for _, column in found))
    rivals = [m["name"] for m in board["methods"] if any((m["name"], c) in found for c in columns)]
    notes = [
        f"{board['reference']} minus rival in points over their common splits, p-values of the "
        "exact Wilcoxon signed-rank test (W) and of the paired t-test (t), Holm-corrected over the "
        "rivals of a data set. Splits of one graph overlap, so the p-values are too small to be "
        "read as exact."
    ]
    if any(entry["pairs"] < 6 for entry in board["paired"]):
        notes.append("With fewer than 6 pairs the Wilcoxon test cannot go below 0.05.")
    return Grid(
        title=title,
        header=_row("rival", *columns),
        rows=[_row(name, *(_compared(found.get((name, c))) for c in columns)) for name in rivals],
        notes=notes,
        legend={"strong": f"W below {LEVEL} after correction"},
        joint=", ",
        level=2,
    )


def _compared(entry: Mapping[str, Any] | None) -> Entry | str:
    if entry is None:
        return "-"
    if entry["pairs"] == 0:
        return "no common run"
    difference = points(entry["difference"])
    count = f"{entry['pairs']} pair{'s' if entry['pairs'] > 1 else ''}"
    if entry["wilcoxon"] is None:
        return f"{difference}\nno test\n{count}"
    p = entry["wilcoxon"]["holm"]
    equal = "\nall equal" if entry["equal"] == entry["pairs"] else ""
    tests = f"W {p_text(p)}\nt {p_text(entry['t']['holm'])}"
    return Entry(f"{difference}\n{tests}\n{count}{equal}", "strong" if p < LEVEL else None)


def p_text(p: float) -> str:
    """A p-value with three decimals.

    Example:
        >>> p_text(0.0421), p_text(0.0004), p_text(1.0)
        ('0.042', '<0.001', '1.000')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def points(share: float, interval: float | None = None) -> str:
    """A difference of shares in per cent points, with its sign, and its interval if there is one.

    Example:
        >>> points(0.0123), points(-0.1, 0.02)
        ('+1.23', '-10.00 ± 2.00')
    """
    return f"{100 * share:+.2f}" + ("" if interval is None else f" ± {per_cent(interval)}")


def _rank_grid(board: Mapping[str, Any]) -> Grid:
    """Average ranks, or why there are none."""
    ranks, title = board["ranks"], f"{board_title(board)}: average ranks"
    left_out = f"Left out, not complete for every method: {'; '.join(ranks['left_out'])}."
    last = [left_out] if ranks["left_out"] else []
    if ranks["message"]:
        return Grid(title, notes=(f"No ranks: {ranks['message']}.", *last), level=2)
    test = ranks["friedman"]
    groups = "; ".join(", ".join(group) for group in ranks["alike"]) or "none"
    return Grid(
        title=title,
        header=_row("method", "average rank"),
        rows=[_row(name, f"{rank:.2f}") for name, rank in ranks["ranks"].items()],
        notes=(
            f"1 is best; over {len(ranks['columns'])} data sets: {'; '.join(ranks['columns'])}.",
            f"Friedman test: statistic {test['statistic']:.2f}, p {p_text(test['p'])}. "
            f"Nemenyi critical difference at {ranks['level']}: "
            f"{ranks['critical_difference']:.2f}. Groups within it: {groups}.",
            *_same_graph(board),
            *last,
        ),
        level=2,
    )


def _same_graph(board: Mapping[str, Any]) -> list[str]:
    """Ranks count data sets as independent; two forms of one graph are not."""
    forms: dict[str, list[str]] = {}
    for column in board["columns"]:
        if column["name"] in board["ranks"]["columns"]:
            forms.setdefault(column["data"], []).append(column["name"])
    shared = [" and ".join(names) for names in forms.values() if len(names) > 1]
    return [f"Not independent, as of one graph: {'; '.join(shared)}."] if shared else []


def _comparability_grid(board: Mapping[str, Any]) -> Grid:
    """How much of a published figure is the choice of the epoch by test score."""
    origins: dict[str, dict[str, None]] = {}  # of published figures, with their methods
    for entry in board["comparability"]:
        if entry["source"] is not None:
            origin = f"{entry['source']}: {entry['protocol']}"
            origins.setdefault(origin, {})[entry["method"]] = None
    ours = ("validation-selected", "oracle\n(test-selected)", "oracle minus\nvalidation")
    return Grid(
        title=f"{board_title(board)}: comparability, %",
        header=_row("data", "method", "n", *ours, "published", "published\nminus oracle"),
        rows=[_comparable(entry) for entry in board["comparability"]],
        notes=(
            f"{ORACLE}: what the same n runs would print if the epoch were chosen by its test "
            f"{SCORE_NAMES[MAIN_SCORES[board['task']]]}, as the method's public code does. It is "
            "no result of ours.",
            *(f"Published, {', '.join(names)}: {origin}." for origin, names in origins.items()),
        ),
        names=2,
        level=2,
    )


def _comparable(entry: Mapping[str, Any]) -> GridRow:
    oracle, published = entry[ORACLE], entry["published"]
    who = (entry["column"], entry["method"], str(entry["n"]))
    ours = (per_cent(entry["validation_selected"]), per_cent(oracle), points(entry["selection"]))
    rest = "-" if published is None else points(published - oracle)
    return _row(*who, *ours, per_cent(published), rest)


# --- costs and origin ---------------------------------------------------------------------------


def _cost_grid(cost: Mapping[str, Any]) -> Grid:
    """Time, memory and size of every method on every data set."""
    costs = ("seconds\nper run", "seconds\nper epoch", "epochs", "parameters", "peak memory,\nMiB")
    sources = _Sources(cost["published"])
    rows: list[GridRow] = []
    for column in dict.fromkeys(row["column"] for row in cost["rows"]):
        rows += [_cost(row) for row in cost["rows"] if row["column"] == column]
        published = [entry for entry in cost["published"] if entry["column"] == column]
        rows += [_quoted_cost(entry, sources.label(entry)) for entry in published]
    rule = (
        "Means over finished runs, memory the largest. Wall clock as it was, other runs on the "
        "same machine included; seconds per epoch are seconds of a run over its epochs. Memory "
        "is that of the process on a CPU, and of the device on a GPU."
    )
    return Grid(
        title=f"{TASK_NAMES[cost['task']]}, efficiency",
        header=_row("data", "method", "n", *costs, "device"),
        rows=rows,
        notes=(rule, *sources.notes()),
        names=2,
    )


def _cost(row: Mapping[str, Any]) -> GridRow:
    parameters = "-" if row["parameters"] is None else f"{row['parameters']:,.0f}"
    times = (number(row[name]) for name in ("seconds", "seconds_per_epoch", "epochs"))
    memory, devices = number(row["peak_memory_mib"]), ", ".join(row["devices"])
    return _row(row["column"], row["method"], str(row["n"]), *times, parameters, memory, devices)


def _quoted_cost(entry: Mapping[str, Any], label: str) -> GridRow:
    memory = "-" if entry["memory_gb"] is None else f"{entry['memory_gb']} GB"
    seconds = number(entry["seconds_per_epoch"])
    return _row(entry["column"], label, "-", "-", seconds, "-", "-", memory, "-", quoted=True)


def _origin_grid(document: Mapping[str, Any]) -> Grid:
    """Where the rows come from, as notes."""
    files = f" of {', '.join(document['files'])}" if "files" in document else ""
    failed = f", {document['failed']} of them failed" if document["failed"] else ""
    makers = [
        f"{maker['rows']} rows by argnn {maker['version'] or '?'} at commit "
        f"{(maker['git_commit'] or 'unknown')[:10]}{' (changed)' if maker['git_changed'] else ''} "
        f"on {maker['device'] or 'an unknown device'}."
        for maker in document["made_by"]
    ]
    return Grid("Origin", notes=(f"{document['rows']} rows{files}{failed}.", *makers))
