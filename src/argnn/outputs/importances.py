"""Importances of the input columns of a finished run, as a table."""

from pathlib import Path
from typing import Any

from argnn.csv_cells import safe_cell
from argnn.data import split_masks
from argnn.errors import ConfigError
from argnn.estimators import load
from argnn.files import require_writable, write_output
from argnn.runs.prepare import graph_of_run, stored_run


def importances(
    run: Path,
    out: Path,
    *,
    split: int | None = None,
    repeats: int = 5,
    seed: int = 0,
    force: bool = False,
    data_root: str | None = None,
    verbose: bool | None = None,
) -> dict[str, Any]:
    """Shuffle each column of a run's graph, and write by how much its validation score falls.

    The options are those of the command; the result has the rows of the estimator's method.
    """
    require_writable(out, force)
    _, config = stored_run(run)
    if config.link is not None:
        raise ConfigError(f"{run}: importances are of models of nodes, and this one predicts links")
    estimator = load(run, split=split).set_params(verbose=verbose)
    graph = graph_of_run(config, data_root)
    _, val, _ = split_masks(graph, config.splits[0] if split is None else split)
    table = estimator.importances(
        graph, mask=val, repeats=repeats, most=graph.x.size(1), random_state=seed
    )
    table["column"] = table["column"].map(safe_cell)
    write_output(out, table.to_csv(index=False, lineterminator="\n").encode(), force=force)
    return {
        "out": str(out),
        "data": config.data,
        "model": config.model,
        "columns": table.to_dict("records"),
    }
