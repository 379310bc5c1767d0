"""The switches of ARGNN, and the three presets that set them."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from argnn.checked import check_fields
from argnn.errors import ConfigError, require
from argnn.functional.edge_weights import NEIGHBOR_NORMS
from argnn.functional.neighborhood import DIRECTIONS, NORMALIZATIONS
from argnn.nn.conv.message_forms import MESSAGE_FORMS
from argnn.nn.metric import METRIC_INITS, METRIC_SHAPES, METRICS
from argnn.registry import resolve, suggestion

NORMS = ("none", "layer", "batch")
JUMPS = ("last", "cat", "max", "lstm")
HEADS = ("linear", "conv")

_CHOICES: dict[str, Collection[Any]] = {
    "modulation": MESSAGE_FORMS,
    "direction": DIRECTIONS,
    "normalization": NORMALIZATIONS,
    "neighbor_norm": NEIGHBOR_NORMS,
    "metric": METRICS,
    "metric_shape": METRIC_SHAPES,
    "metric_layers": (1, 2, 3),
    "metric_init": METRIC_INITS,
    "norm": NORMS,
    "jump": JUMPS,
    "head": HEADS,
}

#: Switches that are arguments of :class:`~argnn.nn.ARConv` of the same name.
_OF_CONV = (
    "modulation",
    "attention",
    "self_path",
    "direction",
    "normalization",
    "hops",
    "eps0",
    "neighbor_norm",
    "metric",
    "sending_metric",
)


@dataclass(frozen=True)
class Formulation:
    r"""All switches of :class:`~argnn.nn.ARGNN`.

    Attributes:
        encoder: Whether a linear layer maps the input features to the hidden width first.
        modulation: How the metric acts on messages: ``"operator"``, ``"scalar"`` or
            ``"interpolation"``, see :class:`~argnn.nn.ARConv`. Interpolation has no weights per
            layer: all layers share one metric network, and layer number :math:`l` has
            :math:`l` times its metric.
        attention: See :class:`~argnn.nn.ARConv`.
        self_path: Whether a node's own features enter its update. Without it, the read-out does not
            see the encoded input either.
        direction: See :class:`~argnn.nn.ARConv`.
        normalization: Constant edge weights: ``"sum"``, ``"sym"`` or ``"rw"``.
        hops: Powers of the adjacency that send messages in the operator form.
        eps0: Baseline of the modulation.
        neighbor_norm: See :func:`argnn.functional.edge_attention`.
        metric: Where the metric comes from: ``"fixed"``; a network that reads ``"features"``,
            ``"structure"``, ``"both"``, or the ``"message"`` (not in the scalar form), see
            :class:`~argnn.nn.MetricNet`; ``"shared"`` by groups of nodes; or ``"free"``, with
            parameters of each node. A free metric fits its training graph only.
        metric_shape: Which matrices it may be: ``"diagonal"``, ``"scalar"``, ``"block"``,
            ``"lowrank"`` or ``"full"``. A fixed metric is the same in every shape.
        metric_rank: Columns of the factor of ``"lowrank"``.
        metric_block: Channels of each block of ``"block"``.
        metric_groups: Groups of nodes of ``"shared"``.
        sending_metric: Whether a second metric of the same kind acts on what a node sends, in the
            operator form.
        metric_value: The metric where it is fixed.
        metric_layers: Depth of the metric network: 1, 2 or 3.
        metric_hidden: Width of the metric network.
        metric_init: ``"uniform"``, ``"ones"``, ``"degree"`` or ``"xavier"``.
        metric_start: Factor on the metric at the start.
        metric_spread: See :class:`~argnn.nn.MetricNet`.
        metric_floor: Smallest metric.
        metric_ceiling: Largest metric, or none.
        metric_sharpness: :math:`\beta` of the softplus.
        metric_clamp: Whether smaller metrics are raised to the floor, instead of adding it to all.
        metric_norm: Whether hidden layers of the metric network are layer-normalised.
        metric_closed: Whether the mean over neighbours in the metric network includes the node.
        norm: Normalisation of each layer's result: ``"none"``, ``"layer"`` or ``"batch"``.
        jump: What the read-out sees: the ``"last"`` layer, or all by ``"cat"``, ``"max"``,
            ``"lstm"``.
        head: ``"linear"``: scores come from a linear layer. ``"conv"``: from the last convolution.
        dropout: Dropout on the hidden features.
        input_dropout: Dropout on the input features.
        structure_features: Whether input and read-out get the structural descriptor as plain
            features. With a fixed metric, this is the control for a learned metric that reads it.
        adjacency_rows: Whether the rows of the adjacency matrix are an input beside the features.
            The model then has a weight for every node and fits its training graph only.
    """

    encoder: bool = True
    modulation: str = "operator"
    attention: bool = False
    self_path: bool = True
    direction: str = "undirected"
    normalization: str = "sym"
    hops: int = 1
    eps0: float = 0.0
    neighbor_norm: str = "own"
    metric: str = "both"
    metric_value: float = 0.5
    metric_layers: int = 2
    metric_hidden: int = 64
    metric_init: str = "ones"
    metric_start: float = 0.5
    metric_spread: float = 0.0
    metric_floor: float = 1e-6
    metric_ceiling: float | None = None
    metric_sharpness: float = 1.0
    metric_clamp: bool = False
    metric_norm: bool = False
    metric_closed: bool = False
    norm: str = "layer"
    jump: str = "cat"
    head: str = "linear"
    dropout: float = 0.5
    input_dropout: float = 0.5
    structure_features: bool = False
    adjacency_rows: bool = False
    metric_shape: str = "diagonal"
    metric_rank: int = 2
    metric_block: int = 8
    metric_groups: int = 16
    sending_metric: bool = False

    def __post_init__(self) -> None:
        check_fields(self)
        if self.metric in METRIC_SHAPES:
            raise ConfigError(
                f"metric says where a metric comes from, one of {', '.join(METRICS)}; "
                f"for the shape set metric_shape={self.metric}"
            )
        for name, choices in _CHOICES.items():
            value = getattr(self, name)
            require(value in choices, name, f"one of {', '.join(map(str, choices))}", value)
        for name in ("dropout", "input_dropout"):
            value = getattr(self, name)
            require(0 <= value < 1, name, "in [0, 1)", value)
        for name in ("metric_value", "metric_sharpness", "metric_floor"):
            value = getattr(self, name)
            require(0 < value < math.inf, name, "positive and finite", value)
        for name in ("hops", "metric_hidden", "metric_rank", "metric_block", "metric_groups"):
            require(getattr(self, name) >= 1, name, "positive", getattr(self, name))
        require(0 <= self.eps0 <= 1, "eps0", "in [0, 1]", self.eps0)
        require(
            0 <= self.metric_spread < math.inf, "metric_spread", "not negative", self.metric_spread
        )
        self._check_combinations()

    def _check_combinations(self) -> None:
        ceiling = math.inf if self.metric_ceiling is None else self.metric_ceiling
        bounds = (
            f"between twice metric_floor and metric_ceiling, {2 * self.metric_floor} and {ceiling}"
        )
        inside = 2 * self.metric_floor < self.metric_start < ceiling
        require(inside, "metric_start", bounds, self.metric_start)
        if self.hops > 1 and not MESSAGE_FORMS[self.modulation].many_hops:
            raise ConfigError("hops above 1 need modulation='operator'")
        if self.metric == "message" and MESSAGE_FORMS[self.modulation].on_edges:
            raise ConfigError(
                f"metric=message reads sums that modulation={self.modulation} weighs by the "
                "metric: it needs modulation=operator or interpolation"
            )
        if self.sending_metric and not MESSAGE_FORMS[self.modulation].may_send:
            raise ConfigError("sending_metric needs modulation='operator'")
        if not MESSAGE_FORMS[self.modulation].has_weights:
            fits = self.encoder and self.head == "linear" and self.eps0 == 0
            if not fits or self.direction == "both":
                raise ConfigError(
                    f"modulation={self.modulation} has no weights: it needs encoder=true, "
                    "head=linear, eps0=0 and a direction other than both"
                )
        if self.adjacency_rows and not self.encoder:
            raise ConfigError("adjacency_rows needs encoder=True")
        if self.head == "conv" and self.jump != "last":
            raise ConfigError("head='conv' reads scores off the last layer: it needs jump='last'")

    def conv_options(self) -> dict[str, Any]:
        """The arguments of each convolution besides its sizes."""
        switches = METRICS[self.metric].switches
        metric = {argument: getattr(self, switch) for switch, argument in switches.items()}
        return {**{name: getattr(self, name) for name in _OF_CONV}, "metric_options": metric}


#: ``paper``: the equations as printed. ``reference``: as in the authors' public code. ``default``:
#: what this project's own search on validation scores chose.
PRESETS: Mapping[str, Formulation] = {
    "paper": Formulation(
        encoder=False,
        modulation="scalar",
        attention=True,
        direction="in",
        normalization="sum",
        metric="features",
        metric_hidden=128,
        metric_init="xavier",
        metric_start=1.0,
        norm="none",
        jump="last",
        dropout=0.3,
        input_dropout=0.0,
    ),
    "reference": Formulation(
        modulation="scalar",
        attention=True,
        direction="in",
        normalization="sum",
        neighbor_norm="target",
        metric="features",
        metric_hidden=128,
        metric_init="ones",
        metric_start=0.35,  # softplus with sharpness 2 at its own zero: log(2) / 2
        metric_spread=1.0,
        metric_floor=1e-3,
        metric_ceiling=10.0,
        metric_sharpness=2.0,
        metric_clamp=True,
        metric_norm=True,
        metric_closed=True,
        norm="layer",
        jump="last",
        head="conv",
        dropout=0.3,
        input_dropout=0.0,
    ),
    "default": Formulation(),
}


def formulation(preset: str, overrides: Mapping[str, Any]) -> Formulation:
    """A preset with some switches changed; an unknown switch is an error."""
    known = {field.name for field in fields(Formulation)}
    for name in overrides:
        if name not in known:
            raise ConfigError(f"unknown option '{name}' of argnn; {suggestion(name, known)}")
    return replace(resolve(preset, PRESETS, "preset"), **overrides)
