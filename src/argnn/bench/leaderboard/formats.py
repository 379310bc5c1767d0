"""Tables as Markdown, LaTeX and Rich."""

import math
from collections.abc import Callable, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from argnn.bench.leaderboard.grids import Entry, Grid, GridRow
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
