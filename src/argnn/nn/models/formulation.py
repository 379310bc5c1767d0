"""The switches of ARGNN, and the three presets that set them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from argnn.errors import ConfigError
from argnn.registry import resolve, suggestion

NORMS = ("none", "layer", "batch")
JUMPS = ("last", "cat", "max", "lstm")
HEADS = ("linear", "conv")


@dataclass(frozen=True)
class Formulation:
    r"""Which member of the family a model is.

    Attributes:
        encoder: Whether a linear layer maps the input features to the hidden width first.
        modulation: See :class:`~argnn.nn.ARConv`.
        attention: See :class:`~argnn.nn.ARConv`.
        self_path: Whether a node's own features enter its update. Where it is off, the encoded
            input is also left out of the read-out.
        direction: See :class:`~argnn.nn.ARConv`.
        normalization: Constant edge weights: ``"sum"``, ``"sym"`` or ``"rw"``.
        hops: Powers of the adjacency that send messages in the operator form.
        eps0: Baseline of the modulation.
        neighbor_norm: See :func:`argnn.functional.edge_attention`.
        metric: ``"fixed"``, ``"features"``, ``"structure"`` or ``"both"``.
        metric_value: The metric where it is fixed.
        metric_layers: Depth of the metric network: 1, 2 or 3.
        metric_hidden: Width of the metric network.
        metric_init: ``"uniform"``, ``"ones"``, ``"degree"`` or ``"xavier"``.
        metric_start: Factor on the metric at the start.
        metric_spread: See :class:`~argnn.nn.MetricNet`.
        metric_floor: Smallest metric.
        metric_ceiling: Largest metric, or none.
        metric_sharpness: :math:`\beta` of the softplus.
        metric_norm: Whether the metric network layer-normalises its hidden layers.
        metric_closed: Whether a node belongs to the neighbourhood its metric network averages.
        norm: Normalisation of each layer's result: ``"none"``, ``"layer"`` or ``"batch"``.
        jump: What the read-out sees: the ``"last"`` layer, or all by ``"cat"``, ``"max"``,
            ``"lstm"``.
        head: ``"linear"`` reads scores out with a linear layer, ``"conv"`` lets the last
            convolution produce them.
        dropout: Dropout on the hidden features.
        input_dropout: Dropout on the input features.
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
    metric_norm: bool = False
    metric_closed: bool = False
    norm: str = "layer"
    jump: str = "cat"
    head: str = "linear"
    dropout: float = 0.5
    input_dropout: float = 0.5

    def __post_init__(self) -> None:
        for name, choices in (("norm", NORMS), ("jump", JUMPS), ("head", HEADS)):
            if getattr(self, name) not in choices:
                raise ConfigError(f"{name} must be one of {choices} (got {getattr(self, name)!r})")
        for name in ("dropout", "input_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"{name} must be in [0, 1) (got {getattr(self, name)})")
        if self.metric_hidden < 1:
            raise ConfigError(f"metric_hidden must be positive (got {self.metric_hidden})")
        if self.head == "conv" and self.jump != "last":
            raise ConfigError("head='conv' reads scores off the last layer: it needs jump='last'")

    def metric_options(self) -> dict[str, Any]:
        """The arguments of the metric module."""
        if self.metric == "fixed":
            return {"value": self.metric_value}
        return {
            "hidden_channels": self.metric_hidden,
            "num_layers": self.metric_layers,
            "init": self.metric_init,
            "start": self.metric_start,
            "spread": self.metric_spread,
            "floor": self.metric_floor,
            "ceiling": self.metric_ceiling,
            "sharpness": self.metric_sharpness,
            "norm": self.metric_norm,
            "closed": self.metric_closed,
        }


#: ``paper``: the equations as printed. ``reference``: what the public code does. ``default``:
#: the family of the project's own validation-only search.
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
