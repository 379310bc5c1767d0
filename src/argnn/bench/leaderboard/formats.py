"""Tables as Markdown, LaTeX, Rich, and as one long CSV table with a line per figure."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from argnn.bench.leaderboard.grids import Entry, Grid, GridRow
from argnn.csv_cells import csv_text
from argnn.tables import markdown_table, rich_table
from argnn.wording import one_line

_Marks = Mapping[str, tuple[str, str]]

_MARKDOWN_SPECIAL = str.maketrans({c: f"\\{c}" for c in "\\|*_`<>"})
_LATEX_SPECIAL = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        **{c: f"${c}$" for c in "<>|"},
        **{c: f"{{{c}}}" for c in "[]*"},  # after a line break these would be its options
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "±": r"$\pm$",
        "κ": r"$\kappa$",
    }
)
_MARKDOWN_MARKS = {"best": ("**", "**"), "strong": ("**", "**"), "second": ("<u>", "</u>")}
_LATEX_MARKS = {
    **dict.fromkeys(("best", "strong"), (r"\textbf{", "}")),
    "second": (r"\underline{", "}"),
}
_RICH_STYLES = {"best": "bold green", "strong": "bold", "second": "underline"}
#: Without colours a terminal shows no style, so the marks are written as well.
_STARS = {"best": "**", "second": "*", "strong": "*"}
#: Most columns of numbers in one table of a terminal, and most that have room for long entries.
_MOST_COLUMNS, _MOST_LONG = 7, 4


def markdown_text(text: str) -> str:
    r"""Text without a meaning in Markdown, on one line.

    Example:
        >>> print(markdown_text("a|b *c* d_e"))
        a\|b \*c\* d\_e
    """
    return one_line(text).translate(_MARKDOWN_SPECIAL)


def latex_text(text: str) -> str:
    r"""Text without a meaning in LaTeX, on one line.

    Example:
        >>> print(latex_text("50 % of x_1 & {y}"))
        50 \% of x\_1 \& \{y\}
    """
    return one_line(text).translate(_LATEX_SPECIAL)


def to_markdown(grids: Sequence[Grid]) -> str:
    """All tables as one Markdown text."""
    return "\n".join(line for grid in grids for line in _markdown(grid))


def _markdown(grid: Grid) -> list[str]:
    lines = [f"{'#' * (grid.level + 1)} {markdown_text(grid.title)}", ""]
    if grid.rows:
        cells = [_markdown_cells(row, grid.joint) for row in grid.rows]
        header = _markdown_cells(grid.header, " ")
        lines += [*markdown_table(header, cells, words=grid.names), ""]
    notes = [*_legend(grid, _MARKDOWN_MARKS), *(markdown_text(note) for note in grid.notes)]
    return [*lines, *(f"- {note}" for note in notes), ""]


def _markdown_cells(row: GridRow, joint: str) -> list[str]:
    return [joint.join(_parts(entry, markdown_text, _MARKDOWN_MARKS)) for entry in row.entries]


def _parts(entry: Entry, escape: Callable[[str], str], marks: _Marks) -> list[str]:
    """The lines of an entry; the mark is around the first, the number."""
    first, *rest = map(escape, entry.text.split("\n"))
    before, after = marks.get(entry.mark or "", ("", ""))
    return [f"{before}{first}{after}", *rest]


def _legend(grid: Grid, marks: _Marks) -> list[str]:
    words = {"best": "bold", "strong": "bold", "second": "underlined"}
    return _used(grid, {mark: f"{marks[mark][0]}{words[mark]}{marks[mark][1]}:" for mark in words})


def _used(grid: Grid, signs: Mapping[str, str]) -> list[str]:
    """What the marks of a table mean, as one sentence; none where it has no marks."""
    used = {entry.mark for row in grid.rows for entry in row.entries}
    known = [f"{signs[mark]} {meaning}" for mark, meaning in grid.legend.items() if mark in used]
    return ["; ".join(known) + "."] if known else []


def to_latex(grids: Sequence[Grid]) -> str:
    """All tables as LaTeX floats; they need the package booktabs."""
    return "\n".join(line for grid in grids for line in _latex(grid))


def _latex(grid: Grid) -> list[str]:
    notes = [*_legend(grid, _LATEX_MARKS), *(latex_text(note) for note in grid.notes)]
    if not grid.rows:
        return [f"% {grid.title}", *(f"% {one_line(note)}" for note in grid.notes), ""]
    alignment = "l" * grid.names + "r" * _num_numbers(grid)
    return [
        r"\begin{table*}[ht]",
        r"\centering\small\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{latex_text(grid.title)}}}",
        rf"\begin{{tabular}}{{{alignment}}}",
        r"\toprule",
        _ampersands(grid, grid.header, " "),
        r"\midrule",
        *(_ampersands(grid, row, grid.joint) for row in grid.rows),
        r"\bottomrule",
        r"\end{tabular}",
        r"\par\smallskip\begin{minipage}{\linewidth}\footnotesize",
        *notes,
        r"\end{minipage}",
        r"\end{table*}",
        "",
    ]


def _num_numbers(grid: Grid) -> int:
    """How many columns hold numbers."""
    return len(grid.header.entries) - grid.names


def _ampersands(grid: Grid, row: GridRow, joint: str) -> str:
    cells = [_parts(entry, latex_text, _LATEX_MARKS) for entry in row.entries]
    # Lines below each other, where there are too many columns for a page.
    stacked = _num_numbers(grid) > _MOST_LONG
    texts = [_stack(cell) if stacked and len(cell) > 1 else joint.join(cell) for cell in cells]
    return " & ".join(texts) + r" \\"


def _stack(lines: Sequence[str]) -> str:
    return r"\shortstack[r]{" + r" \\ ".join(lines) + "}"


def to_rich(grid: Grid) -> RenderableType:
    """A table and its notes for a terminal; a wide table comes in several parts."""
    notes = [
        Padding(Text(note, style="dim"), (0, 0, 0, 2), expand=False)
        for note in (*_used(grid, _STARS), *grid.notes)
    ]
    tables = _rich_tables(grid) if grid.rows else []
    return Group(Text(grid.title, style="bold"), *tables, *notes, Text(""))


def _rich_tables(grid: Grid) -> list[Table]:
    numbers = range(grid.names, len(grid.header.entries))
    size = math.ceil(len(numbers) / math.ceil(len(numbers) / _MOST_COLUMNS))
    starts = range(0, len(numbers), size)
    return [_rich_table(grid, numbers[start : start + size]) for start in starts]


def _rich_table(grid: Grid, numbers: range) -> Table:
    places = (*range(grid.names), *numbers)
    between = "\n" if len(numbers) > _MOST_LONG else grid.joint
    header = [Text(grid.header.entries[place].text) for place in places]
    table = rich_table(header, left=header[: grid.names])
    for column in table.columns:
        column.overflow = "fold"
    for row in grid.rows:
        entries = [_styled(row.entries[place], between) for place in places]
        table.add_row(*entries, style="dim" if row.quoted else None)
    return table


def _styled(entry: Entry, between: str) -> Text:
    first, *rest = entry.text.split("\n")
    mark = entry.mark or ""
    text = Text(f"{_STARS.get(mark, '')}{first}", style=_RICH_STYLES.get(mark, ""))
    for line in rest:
        text.append(f"{between}{line}", style="not bold not underline default")
    return text


_COLUMNS = (
    *("kind", "task", "score", "unit", "data", "method", "mean", "interval", "sd", "n"),
    *("expected", "failed", "mark", "reference", "pairs", "difference", "difference_interval"),
    *("wilcoxon_p", "wilcoxon_p_holm", "t_p", "t_p_holm", "average_rank"),
    *("oracle (test-selected)", "oracle_n", "validation_selected_same_runs"),
    *("source", "protocol"),
)
#: Units of the costs, measured and published ones.
_COSTS = {
    "seconds": "s",
    "seconds_per_epoch": "s",
    "epochs": "1",
    "parameters": "1",
    "peak_memory_mib": "MiB",
}
_PUBLISHED_COSTS = {"seconds_per_epoch": "s", "memory_gb": "GB"}
_DIGITS = 6


def to_csv(document: Mapping[str, Any]) -> str:
    """All figures; scores and differences in per cent, p-values as they are."""
    rows = chain(*map(_scores, document["boards"]), *map(_costs, document["efficiency"]))
    return csv_text([_COLUMNS, *([row.get(name) for name in _COLUMNS] for row in rows)])


def _scores(board: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    tests = {(entry["rival"], entry["column"]): entry for entry in board["paired"]}
    oracles = {(entry["method"], entry["column"]): entry for entry in board["comparability"]}
    about = {"task": board["task"], "score": board["score"], "unit": "%"}
    for cell in board["cells"]:
        key = (cell["method"], cell["column"])
        yield {
            **about,
            **cell,
            **_spread(cell, "mean"),
            "kind": "measured",
            "data": cell["column"],
            **(_test_fields(board["reference"], tests[key]) if key in tests else {}),
            "average_rank": board["ranks"].get("ranks", {}).get(cell["method"]),
            **(_oracle_fields(oracles[key]) if key in oracles else {}),
            "protocol": board["protocol"],
        }
    for entry in board["published"]:
        for column, value in entry["values"].items():
            yield {**_published(entry, column), **about, **_spread(value, "value")}


def _test_fields(reference: str | None, entry: Mapping[str, Any]) -> dict[str, Any]:
    p_values = {
        f"{test}_{name}": (entry[test] or {}).get(key)
        for test in ("wilcoxon", "t")
        for name, key in (("p", "p"), ("p_holm", "holm"))
    }
    return {
        "reference": reference,
        "pairs": entry["pairs"],
        "difference": _per_cent(entry["difference"]),
        "difference_interval": _per_cent(entry["interval"]),
        **p_values,
    }


def _oracle_fields(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "oracle (test-selected)": _per_cent(entry["oracle (test-selected)"]),
        "oracle_n": entry["n"],
        "validation_selected_same_runs": _per_cent(entry["validation_selected"]),
    }


def _costs(cost: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in cost["rows"]:
        for name, unit in _COSTS.items():
            about = {"task": cost["task"], "score": name, "unit": unit, "mean": row[name]}
            yield {**row, **about, "kind": "measured", "data": row["column"]}
    for entry in cost["published"]:
        for name, unit in _PUBLISHED_COSTS.items():
            about = {"task": cost["task"], "score": name, "unit": unit, "mean": entry[name]}
            yield {**_published(entry, entry["column"]), **about}


def _published(entry: Mapping[str, Any], column: str) -> dict[str, Any]:
    return {**entry, "kind": "published", "data": column, "method": entry["model"]}


def _spread(known: Mapping[str, Any], mean: str) -> dict[str, Any]:
    names = {"mean": mean, "interval": "interval", "sd": "sd"}
    return {name: _per_cent(known[key]) for name, key in names.items()}


def _per_cent(share: float | None) -> float | None:
    return None if share is None else round(100 * share, _DIGITS)
