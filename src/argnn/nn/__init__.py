"""Layers, metric networks, penalties and models."""

from argnn.nn.conv import ARConv
from argnn.nn.metric import ConstantMetric, MetricNet
from argnn.nn.models import ARGNN, GCN, MLP, MODELS, PRESETS, AbstractNodeModel, Formulation
from argnn.nn.regularizers import (
    MagnitudeRegularizer,
    Regularizer,
    RicciRegularizer,
    SmoothnessRegularizer,
    total_penalty,
)

__all__ = [
    "ARGNN",
    "GCN",
    "MLP",
    "MODELS",
    "PRESETS",
    "ARConv",
    "AbstractNodeModel",
    "ConstantMetric",
    "Formulation",
    "MagnitudeRegularizer",
    "MetricNet",
    "Regularizer",
    "RicciRegularizer",
    "SmoothnessRegularizer",
    "total_penalty",
]
