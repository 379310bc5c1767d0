"""Paired tests, ranks, and the comparability report of one score."""

from collections.abc import Mapping, Sequence
from typing import Any

from argnn.bench.leaderboard.compare import LEVEL
from argnn.bench.leaderboard.grid import (
    Entry,
    Grid,
    GridRow,
    board_title,
    p_text,
    points,
    text,
    texts,
)
from argnn.runs.tables import SCORE_NAMES, per_cent
from argnn.settings.run_config import MAIN_SCORES

ORACLE = "oracle (test-selected)"


def paired_grid(board: Mapping[str, Any]) -> Grid:
    """The reference method against every rival on every data set."""
    title = f"{board_title(board)}: paired tests"
    if board["reference"] is None:
        return Grid(title, notes=("No paired tests: the reference method has no rows.",), level=2)
    if not board["paired"]:
        reason = f"No paired tests: {board['reference']} has no rival here."
        return Grid(title, notes=(reason,), level=2)
    found = {(entry["rival"], entry["column"]): entry for entry in board["paired"]}
    columns = list(dict.fromkeys(entry["column"] for entry in board["paired"]))
    rivals = [m["name"] for m in board["methods"] if any((m["name"], c) in found for c in columns)]
    rows = tuple(
        GridRow((text(rival), *(_compared(found.get((rival, column))) for column in columns)))
        for rival in rivals
    )
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
        header=texts("rival", *columns),
        rows=rows,
        notes=tuple(notes),
        legend={"strong": f"W below {LEVEL} after correction"},
        joint=", ",
        level=2,
    )


def _compared(entry: Mapping[str, Any] | None) -> Entry:
    if entry is None:
        return text("-")
    if entry["pairs"] == 0:
        return text("no common run")
    difference = points(entry["difference"])
    count = f"{entry['pairs']} pair{'s' if entry['pairs'] > 1 else ''}"
    if entry["wilcoxon"] is None:
        return text(difference, "no test", count)
    p = entry["wilcoxon"]["holm"]
    tests = [f"W {p_text(p)}", f"t {p_text(entry['t']['holm'])}", count]
    if entry["equal"] == entry["pairs"]:
        tests.append("all equal")
    return text(difference, *tests, mark="strong" if p < LEVEL else None)


def rank_grid(board: Mapping[str, Any]) -> Grid:
    """Average ranks, or why there are none."""
    ranks = board["ranks"]
    title = f"{board_title(board)}: average ranks"
    left_out = (
        (f"Left out, not complete for every method: {'; '.join(ranks['left_out'])}.",)
        if ranks["left_out"]
        else ()
    )
    if ranks["message"]:
        return Grid(title, notes=(f"No ranks: {ranks['message']}.", *left_out), level=2)
    test = ranks["friedman"]
    groups = "; ".join(", ".join(group) for group in ranks["alike"]) or "none"
    return Grid(
        title=title,
        header=texts("method", "average rank"),
        rows=tuple(GridRow(texts(name, f"{rank:.2f}")) for name, rank in ranks["ranks"].items()),
        notes=(
            f"1 is best; over {len(ranks['columns'])} data sets: {'; '.join(ranks['columns'])}.",
            f"Friedman test: statistic {test['statistic']:.2f}, p {p_text(test['p'])}. "
            f"Nemenyi critical difference at {ranks['level']}: "
            f"{ranks['critical_difference']:.2f}. Groups within it: {groups}.",
            *_same_graph(board),
            *left_out,
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


def comparability_grid(board: Mapping[str, Any]) -> Grid:
    """How much of a published figure is the choice of the epoch by test score."""
    entries = board["comparability"]
    ours = ("validation-selected", "oracle\n(test-selected)", "oracle minus\nvalidation")
    return Grid(
        title=f"{board_title(board)}: comparability, %",
        header=texts("data", "method", "n", *ours, "published", "published\nminus oracle"),
        rows=tuple(GridRow(_comparable(entry)) for entry in entries),
        notes=(
            f"{ORACLE}: what the same n runs would print if the epoch were chosen by its test "
            f"{SCORE_NAMES[MAIN_SCORES[board['task']]]}, as the method's public code does. It is "
            "no result of ours.",
            *_protocol_notes(entries),
        ),
        names=2,
        level=2,
    )


def _comparable(entry: Mapping[str, Any]) -> tuple[Entry, ...]:
    oracle, published = entry[ORACLE], entry["published"]
    rest = "-" if published is None else points(published - oracle)
    return texts(
        entry["column"],
        entry["method"],
        str(entry["n"]),
        per_cent(entry["validation_selected"]),
        per_cent(oracle),
        points(entry["selection"]),
        per_cent(published),
        rest,
    )


def _protocol_notes(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """How each published figure came about, by the methods it is shown for."""
    methods: dict[str, dict[str, None]] = {}
    for entry in entries:
        if entry["source"] is not None:
            origin = f"{entry['source']}: {entry['protocol']}"
            methods.setdefault(origin, {})[entry["method"]] = None
    return [f"Published, {', '.join(names)}: {origin}." for origin, names in methods.items()]
