"""``argnn table``: from rows of results files to tables, tests and diagrams."""

from argnn.bench.leaderboard.board import check_names, leaderboard
from argnn.bench.leaderboard.formats import to_csv, to_latex, to_markdown, to_rich
from argnn.bench.leaderboard.gather import merged
from argnn.bench.leaderboard.grids import grids

__all__ = [
    "check_names",
    "grids",
    "leaderboard",
    "merged",
    "to_csv",
    "to_latex",
    "to_markdown",
    "to_rich",
]
