"""Layers, metric networks, penalties and models."""

from argnn.nn import generated_modules  # noqa: F401 - acts when it is imported
from argnn.nn.conv import ARConv
from argnn.nn.conv.message_forms import MESSAGE_FORMS
from argnn.nn.decoders import DECODERS, AbstractDecoder, LinkModel
from argnn.nn.metric import (
    METRIC_SHAPES,
    METRICS,
    ConstantMetric,
    FreeMetric,
    LearnedMetric,
    Metric,
    MetricNet,
    MetricShape,
    SharedMetric,
)
from argnn.nn.models import (
    ARGNN,
    GCN,
    MLP,
    MODELS,
    PRESETS,
    AbstractNodeModel,
    Formulation,
    is_model_name,
    model_class,
    model_name,
)
from argnn.nn.regularizers import (
    MagnitudeRegularizer,
    Regularizer,
    RicciRegularizer,
    SmoothnessRegularizer,
    total_penalty,
)

__all__ = [
    "ARGNN", "DECODERS", "GCN", "MESSAGE_FORMS", "METRICS", "METRIC_SHAPES", "MLP", "MODELS",
    "PRESETS", "ARConv", "AbstractDecoder", "AbstractNodeModel", "ConstantMetric", "Formulation",
    "FreeMetric", "LearnedMetric", "LinkModel", "MagnitudeRegularizer", "Metric", "MetricNet",
    "MetricShape", "Regularizer", "RicciRegularizer", "SharedMetric", "SmoothnessRegularizer",
    "is_model_name", "model_class", "model_name", "total_penalty",
]  # fmt: skip
