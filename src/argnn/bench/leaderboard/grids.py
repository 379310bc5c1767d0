"""All tables of a leaderboard."""

from collections.abc import Mapping
from typing import Any

from argnn.bench.leaderboard.comparison_grids import comparability_grid, paired_grid, rank_grid
from argnn.bench.leaderboard.cost_grid import cost_grid
from argnn.bench.leaderboard.grid import Grid
from argnn.bench.leaderboard.score_grid import score_grid


def grids(document: Mapping[str, Any]) -> list[Grid]:
    """The tables of a document, in the order in which they are read."""
    found: list[Grid] = []
    for board in document["boards"]:
        found += [score_grid(board), paired_grid(board), rank_grid(board)]
        if board["comparability"]:
            found.append(comparability_grid(board))
    costs = [cost_grid(cost) for cost in document["efficiency"]]
    return [*found, *costs, _origin_grid(document)]


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
