"""Figures for print: vector formats, colours for any colour vision."""

from argnn.analysis.figures.ablation import Bar, ablation_figure
from argnn.analysis.figures.embedding import hull_figure, map_figure
from argnn.analysis.figures.homophily import DataPoint, homophily_figure
from argnn.analysis.figures.metric import geometry_figure, metric_figure
from argnn.analysis.figures.style import FORMATS, save_figure
from argnn.analysis.figures.training import training_figure

__all__ = [
    "FORMATS", "Bar", "DataPoint", "ablation_figure", "geometry_figure", "homophily_figure",
    "hull_figure", "map_figure", "metric_figure", "save_figure", "training_figure",
]  # fmt: skip
