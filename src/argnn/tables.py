"""Tables of text, for a terminal and for Markdown: the one place that lays out columns."""

from collections.abc import Collection, Iterable, Sequence

from rich.console import RenderableType
from rich.table import Table


def rich_table(
    header: Sequence[RenderableType],
    rows: Iterable[Sequence[RenderableType]] = (),
    *,
    left: Collection[RenderableType] = (),
    title: str | None = None,
) -> Table:
    """A table for a terminal.

    Args:
        header: Names of the columns.
        rows: Their cells.
        left: The columns of words, which begin at the left; numbers end at the right.
        title: What stands above it.
    """
    table = Table(title=title, title_justify="left")
    for name in header:
        table.add_column(name, justify="left" if name in left else "right")
    for row in rows:
        table.add_row(*row)
    return table


def markdown_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, words: int | None = None
) -> list[str]:
    r"""The lines of a table in Markdown.

    Args:
        header: Names of the columns.
        rows: Their cells, in which nothing is escaped.
        words: How many columns at the left hold words; the others are numbers, which end at the
            right. Not given: the reader's program aligns them.

    Example:
        >>> print("\n".join(markdown_table(("graph", "nodes"), [("cora", 2708)], words=1)))
        | graph | nodes |
        | --- | ---: |
        | cora | 2708 |
    """
    left = len(header) if words is None else words
    rule = ["---"] * left + ["---:"] * (len(header) - left)
    return [f"| {' | '.join(map(str, cells))} |" for cells in (header, rule, *rows)]
