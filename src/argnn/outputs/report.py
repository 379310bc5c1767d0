"""``argnn.report``: the page of ``argnn analyze`` from an estimator in memory."""

import copy
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from argnn.analysis.explorer import document, page
from argnn.estimators.base import GraphEstimator
from argnn.estimators.node_estimator import NodeEstimator
from argnn.files import require_writable, write_output
from argnn.outputs.analyze import run_subject
from argnn.runs.machine import device_name, versions
from argnn.runs.problems import pose_problem
from argnn.runs.run import chosen_by, identity, judged
from argnn.settings.run_config import RunConfig
from argnn.store.results import Row


class WrittenPage(type(Path())):  # type: ignore[misc] # the class of the system's paths
    """The path of a page; a notebook shows a link to it, and the page itself."""

    def _repr_html_(self) -> str:
        address = escape(self.as_posix(), quote=True)
        frame = f'<iframe src="{address}" width="100%" height="640"></iframe>'
        return f'<a href="{address}" target="_blank">{address}</a><br>{frame}'


def report(
    estimator: GraphEstimator,
    out: str | Path = "report.html",
    graph: Any = None,
    *,
    force: bool = False,
    seed: int = 0,
) -> Path:
    """Write the page of ``argnn analyze`` about a fitted estimator, whole or not at all.

    Args:
        estimator: A fitted :class:`ARGNNClassifier`, :class:`ARGNNRegressor` or
            :class:`ARGNNLinkPredictor`.
        out: The page to write.
        graph: Whatever its ``fit`` takes; the graph of ``fit`` where not given. A model from disk
            does not know that one.
        force: Whether an existing file may be replaced.
        seed: Fixes drawing and rewiring.

    Returns:
        The path of the page. A notebook shows it with the page.
    """
    out = WrittenPage(out)
    require_writable(out, force)
    shown = estimator.told(graph)
    estimator = copy.copy(estimator)
    estimator.model_ = copy.deepcopy(estimator.model_).cpu()
    config = replace(estimator.settings_, data=str(shown.name), device="cpu", splits=(0,))
    rows = {0: _row(estimator, shown, config)}
    subject = run_subject(out, config, estimator, shown, 0, rows, seed)
    write_output(out, page(document(subject)), force=force)
    return out


def _row(estimator: GraphEstimator, shown: Data, config: RunConfig) -> Row:
    """The row of results that ``argnn train`` would have written."""
    return {
        **identity(config, 0),
        **_scores(estimator, shown, config),
        **chosen_by(config, estimator.val_score_, -estimator.val_score_),
        "chosen_epoch": estimator.best_epoch_,
        "epochs_run": estimator.n_iter_,
        "seconds": getattr(estimator, "fit_seconds_", 0.0),
        "device": device_name(estimator.settings_.device),
        "versions": versions(),
        "history": getattr(estimator, "history_", []),
    }


def _scores(estimator: GraphEstimator, shown: Data, config: RunConfig) -> Row:
    """The scores on the parts of the training; where these are not known, those of the fit."""
    if isinstance(estimator, NodeEstimator) and bool(shown.train_mask.any()):
        judge = pose_problem(shown, 0, "cpu").judge
        return judged(judge, estimator.model_, estimator.outputs(shown), config)
    known = {
        part: {name.replace("_at_", "@"): value for name, value in scores.items()}
        for part, scores in estimator.scores_.items()
        if scores
    }
    return {"test": known.get("test"), "val": known["val"]}
