"""Options of a model and of its training, and the model that they describe."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import torch
from annotated_types import Ge, Le

from argnn.checked import checked, checked_value
from argnn.errors import ConfigError, error_prefix
from argnn.nn import MODELS, PRESETS, AbstractNodeModel, LinkModel, model_class
from argnn.registry import canonical_name, suggestion
from argnn.train import TrainConfig, train_config
from argnn.yaml_files import parsed_yaml, yaml_content

#: Larger options are refused: no method needs them, and a hostile file could fill the memory.
MAX_WIDTH = 2**16
MAX_OPTION = 1024
_WEIGHTS_FLAG = "--class-weight"
_Channels = Annotated[int, Ge(1), Le(2**24)]
#: Classes and specifications that were tried out in this process.
_TRIED: set[tuple[type[AbstractNodeModel], str]] = set()


@dataclass(frozen=True)
class ModelSpec:
    """Everything that decides which weights a model has.

    Attributes:
        model: A name that ``argnn.nn.model_class`` knows.
        options: Arguments of the model besides its outer sizes.
        decoder: For links, a name in ``argnn.nn.DECODERS``; None for classes.
        in_channels: Number of features.
        out_channels: Number of classes; for links it is not used.
    """

    model: str
    options: dict[str, Any] = field(default_factory=dict)
    decoder: str | None = None
    in_channels: _Channels = 1
    out_channels: _Channels = 1

    def build(self) -> AbstractNodeModel:
        """A model with fresh weights."""
        kind = model_class(self.model)
        is_link = self.decoder is not None
        # The embeddings of a link predictor are as wide as its layers, and so as its metric.
        outputs = self.options.get("hidden_channels", 1) if is_link else self.out_channels
        try:
            model = kind(in_channels=self.in_channels, out_channels=outputs, **self.options)
            return model if self.decoder is None else LinkModel(model, self.decoder)
        except ConfigError:
            raise
        except (RuntimeError, TypeError, ValueError, ArithmeticError) as error:
            raise ConfigError(f"{self.model}: {' '.join(str(error).split())}") from error

    def try_out(self) -> None:
        """Raise unless the model can be built and takes one step on a toy graph."""
        check_options(self.options)
        this = (model_class(self.model), repr(self))  # equal numbers of other types differ here
        if this in _TRIED:
            return
        pair = torch.tensor([[0, 1], [1, 0]])
        with seeded(0), torch.no_grad():
            model = self.build().eval()
            try:
                outputs = model(torch.eye(2, self.in_channels), pair)
                if isinstance(model, LinkModel):
                    model.pair_scores(outputs, pair)
            except (RuntimeError, TypeError, ValueError) as error:
                raise ConfigError(f"{self.model}: {' '.join(str(error).split())}") from error
        _TRIED.add(this)


def check_options(options: Mapping[str, Any]) -> None:
    """Raise unless all options are plain values of a sensible size."""
    for name, value in options.items():
        limit = MAX_WIDTH if name == "hidden_channels" else MAX_OPTION
        if value is not None and not isinstance(value, bool | int | float | str):
            raise ConfigError(f"option {name} must be a plain value (got {type(value).__name__})")
        if isinstance(value, int | float) and not -limit <= value <= limit:
            raise ConfigError(f"option {name} must be at most {limit} (got {value})")
        if isinstance(value, str) and len(value) > MAX_OPTION:
            raise ConfigError(f"option {name} is too long ({len(value)} characters)")
    width, depth = options.get("hidden_channels", 1), options.get("num_layers", 1)
    for name, size in (("hidden_channels", width), ("num_layers", depth)):
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ConfigError(f"{name} must be a positive whole number (got {size!r})")
    # None: as dropout, where the model has such a choice.
    shares = {"dropout": options.get("dropout", 0), "input_dropout": options.get("input_dropout")}
    for name, share in shares.items():
        if share is None and name == "input_dropout":
            continue
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share < 1:
            raise ConfigError(f"{name} must be in [0, 1) (got {share!r})")


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's random numbers inside a block, and restore their state after it."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield


CHECKPOINT_EVERY = 25
#: The patience where more epochs are asked for and no patience is given.
MANY_EPOCHS, PATIENCE = 500, 100
#: Options that came after results were stored, with the value that changes nothing. At that value
#: the record leaves them out: fingerprints of finished runs and cells stay what they were.
_LATER_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "argnn": {
        **{"structure_features": False, "adjacency_rows": False},
        **{"metric_shape": "diagonal", "metric_rank": 2, "metric_block": 8, "metric_groups": 16},
        "sending_metric": False,
    },
    **dict.fromkeys(
        ("graphsage", "hgcn", "q-gcn", "h2gcn", "curvdrop", "mlp", "linkx"), {"input_dropout": 0.0}
    ),
    **dict.fromkeys(
        ("gat", "hgat", "kappa-gcn", "gprgnn", "fagcn", "cusp", "gnrf"), {"input_dropout": None}
    ),
}


@dataclass(frozen=True)
class Overrides:
    """Single settings of the user, sorted by what they belong to."""

    options: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)


def parse_overrides(texts: Sequence[str], model: str) -> Overrides:
    """Sort and check texts such as ``train.lr=0.01``, ``model.dropout=0.3`` or ``dropout=0.3``.

    Example:
        >>> parse_overrides(["lr=1e-2", "model.dropout=0.3"], "gcn")
        Overrides(options={'dropout': 0.3}, train={'lr': 0.01})
    """
    known = {"model": model_class(model).option_types(), "train": _train_types()}
    found: dict[str, dict[str, Any]] = {"model": {}, "train": {}}
    for text in texts:
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise ConfigError(f"--set must read key=value (got '{text:.80}')")
        part, name = _placed(key.strip(), known, model)
        found[part][name] = checked_value(
            key.strip(), parsed_yaml(value, f"--set {text:.80}"), known[part][name]
        )
    return Overrides(options=found["model"], train=found["train"])


def _placed(key: str, known: Mapping[str, Mapping[str, Any]], model: str) -> tuple[str, str]:
    """Which part a key belongs to, and its name there."""
    prefix, dot, rest = key.partition(".")
    parts, name = ([prefix], rest) if dot else (list(known), key)
    if name == "seed":
        raise ConfigError("the seed is set with --seed")
    holders = [part for part in parts if name in known.get(part, {})]
    if len(holders) == 1:
        return holders[0], name
    if holders:
        both = " and ".join(f"{part}.{name}" for part in holders)
        raise ConfigError(f"setting '{name}' is ambiguous: there are {both}")
    elsewhere = [f"{part}.{name}" for part in known if name in known[part]]
    if elsewhere:
        raise ConfigError(f"unknown setting '{key}'; did you mean '{elsewhere[0]}'?")
    names = [f"{part}.{n}" if dot else n for part, table in known.items() for n in table]
    names = [n for n in names if not n.endswith("seed")]
    raise ConfigError(f"unknown setting '{key}' of {model}; {suggestion(key, names)}")


def _train_types() -> dict[str, Any]:
    return get_type_hints(TrainConfig)


def check_preset(model: str, preset: str) -> str:
    """The preset's own name; most models have the default one only."""
    name = canonical_name(preset, PRESETS, "preset")
    if name not in model_class(model).preset_sizes:
        owners = [owner for owner, kind in MODELS.items() if name in kind.preset_sizes]
        raise ConfigError(f"preset '{name}' belongs to {', '.join(owners)}; {model} has none")
    return name


def resolve_options(model: str, preset: str, *layers: Mapping[str, Any]) -> dict[str, Any]:
    """The complete options of a model; later layers win over earlier ones and over the preset."""
    types = model_class(model).option_types()
    options: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name not in types:
                hint = suggestion(name, types)
                raise ConfigError(f"unknown option '{name}' of {model}; {hint}")
            options[name] = checked_value(name, value, types[name])
    options = model_class(model).completed_options(preset, options)
    # Only the model knows which values go together.
    ModelSpec(model, options, in_channels=2, out_channels=2).try_out()
    return options


def recorded_options(model: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Complete options without those that came later and change nothing."""
    later = _LATER_OPTIONS.get(model, {})
    return {
        name: value for name, value in options.items() if name not in later or value != later[name]
    }


def completed_options(model: str, recorded: Mapping[str, Any]) -> dict[str, Any]:
    """What :func:`recorded_options` was given: defaults may have changed since."""
    later = _LATER_OPTIONS.get(model, {})
    return {**recorded, **{name: later[name] for name in later if name not in recorded}}


def resolve_train(model: str, preset: str, seed: int, *layers: Mapping[str, Any]) -> TrainConfig:
    """The complete training settings; later layers win over earlier ones and over the preset."""
    types = _train_types()
    merged: dict[str, Any] = {"checkpoint_every": CHECKPOINT_EVERY, "seed": seed}
    merged.update(model_class(model).usual_train)
    for layer in layers:
        for name, value in layer.items():
            merged[name] = checked_value(name, value, types[name]) if name in types else value
    if merged.get("epochs", 0) > MANY_EPOCHS:
        merged.setdefault("patience", PATIENCE)
    return train_config(preset, merged)


def parsed_class_weight(text: str) -> str | dict[str, float]:
    """``"balanced"``, or weights from ``fraud=30,ok=1``, a YAML mapping, or a YAML or JSON file.

    Example:
        >>> parsed_class_weight("fraud=30,ok=1")
        {'fraud': 30.0, 'ok': 1.0}
    """
    if text == "balanced":
        return text
    inline, path = text.lstrip().startswith("{"), Path(text)
    if not inline and "=" in text and not path.is_file():
        return _class_weights(text)
    if not inline and not path.is_file():
        raise ConfigError(
            f"{_WEIGHTS_FLAG} must be balanced, class=weight,..., or a file (got '{text:.80}')"
        )
    origin = f"{_WEIGHTS_FLAG} {text:.80}"
    document = parsed_yaml(text if inline else yaml_content(path), origin)
    if isinstance(document, dict):  # classes may be numbers
        document = {str(name): weight for name, weight in document.items()}
    with error_prefix(f"{origin}:"):
        return checked(document, dict[str, float])


def _class_weights(text: str) -> dict[str, float]:
    weights: dict[str, float] = {}
    for part in text.split(","):
        name, _, weight = part.rpartition("=")
        name = name.strip()
        if name in weights:
            raise ConfigError(f"{_WEIGHTS_FLAG}: class '{name:.80}' has two weights")
        try:
            weights[name] = float(weight)
            if not math.isfinite(weights[name]):
                raise ValueError(weight)
        except ValueError as error:
            raise ConfigError(f"{_WEIGHTS_FLAG}: '{part:.80}' must read class=weight") from error
    return weights
