"""Layers, metric networks, penalties and models."""

from argnn.nn import generated_modules  # noqa: F401 - acts when it is imported
from argnn.nn.conv import ARConv
from argnn.nn.decoders import DECODERS, AbstractDecoder, LinkModel
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
    "DECODERS",
    "GCN",
    "MLP",
    "MODELS",
    "PRESETS",
    "ARConv",
    "AbstractDecoder",
    "AbstractNodeModel",
    "ConstantMetric",
    "Formulation",
    "LinkModel",
    "MagnitudeRegularizer",
    "MetricNet",
    "Regularizer",
    "RicciRegularizer",
    "SmoothnessRegularizer",
    "total_penalty",
]
