"""What a notebook shows of a fitted estimator: a few facts, and a picture of its metric."""

from base64 import b64encode
from html import escape
from importlib.util import find_spec
from typing import Any

import torch

from argnn.analysis.layers import metric_kind
from argnn.nn.decoders import encoder_of
from argnn.runs.progress import live_score
from argnn.runs.summary import SELECTION
from argnn.runs.tables import SCORE_NAMES

#: Larger graphs have no picture: to draw it would take longer than a moment.
_MOST_NODES = 20_000
_DOTS_PER_INCH = 50
_METRICS = {
    "learned": "learned: every node has its own",
    "fixed": "fixed: all nodes have the same",
    "none": "none: the method has no metric",
}


def summary_html(estimator: Any) -> str:
    """Facts and picture, from what the estimator knows already."""
    rows = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(text)}</td></tr>"
        for name, text in _facts(estimator)
    )
    return f"<table>{rows}</table>{_picture(estimator)}"


def _facts(estimator: Any) -> list[tuple[str, str]]:
    graph, config = estimator.graph_facts_, estimator.settings_
    sizes = f"{graph['nodes']:,} nodes, {graph['edges']:,} edges, {graph['features']:,} features"
    name = config.train.select or SELECTION[estimator.task]
    score = live_score(config, estimator.val_score_)
    epochs = f"epoch {estimator.best_epoch_} of {estimator.n_iter_}"
    return [
        ("graph", f"{graph['name']}: {sizes}"),
        ("settings", f"{config.model}; {config.source}"),
        ("validation", f"{SCORE_NAMES[name]} {score}, {epochs}"),
        ("metric", _METRICS[metric_kind(encoder_of(estimator.model_))]),
    ]


def _picture(estimator: Any) -> str:
    """A heat map of the metrics that the fit has left; none where there is nothing to see."""
    metrics, graph = getattr(estimator, "metric_field_", []), getattr(estimator, "graph_", None)
    drawable = metrics and graph is not None and graph.num_nodes <= _MOST_NODES
    if not drawable or find_spec("matplotlib") is None:
        return ""
    from argnn.analysis.figures import metric_figure
    from argnn.analysis.figures.style import figure_bytes

    figure = metric_figure(graph, [torch.from_numpy(g) for g in metrics])
    image = b64encode(figure_bytes(figure, "png", _DOTS_PER_INCH)).decode()
    return f"<img alt='log g of each node and axis' src='data:image/png;base64,{image}'>"
