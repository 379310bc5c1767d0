"""From a name and plain options to a model, with errors that say which of them is wrong."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from argnn.errors import ConfigError
from argnn.nn import AbstractNodeModel, LinkModel, model_class

#: Model options beyond these are mistakes or traps; no method here has a use for them.
MAX_WIDTH = 2**16
MAX_OPTION = 1024


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
    in_channels: int = 1
    out_channels: int = 1

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
        pair = torch.tensor([[0, 1], [1, 0]])
        with seeded(0), torch.no_grad():
            model = self.build().eval()
            try:
                outputs = model(torch.eye(2, self.in_channels), pair)
                if isinstance(model, LinkModel):
                    model.pair_scores(outputs, pair)
            except (RuntimeError, TypeError, ValueError) as error:
                raise ConfigError(f"{self.model}: {' '.join(str(error).split())}") from error


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
    """Torch's random numbers from a seed; afterwards the caller's go on as if nothing was drawn."""
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices):
        torch.manual_seed(seed)
        yield
