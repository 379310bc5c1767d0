"""The search space of a model: the values of each setting, and configurations drawn from them."""

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from argnn.errors import ConfigError
from argnn.nn import model_class
from argnn.settings.options import Overrides, parse_overrides, resolve_options
from argnn.settings.run_config import RunConfig

#: A value of every searched setting.
Params = dict[str, Any]

_MOST_DRAWS = 10_000


def search_space(config: RunConfig, fixed: Overrides) -> dict[str, list[Any]]:
    """The values to search for each setting of the model; that of ``config`` is always among them.

    Args:
        config: The usual configuration.
        fixed: Settings of the user, which are left out.
    """
    space: dict[str, list[Any]] = {}
    for name, values in model_class(config.model).search_space.items():
        if name in fixed.options or name in fixed.train:
            continue
        choices = [_checked(name, value, config.model) for value in values]
        usual = _value(config, name)
        space[name] = choices if usual in choices else [*choices, usual]
    return space


def usual_params(config: RunConfig, space: Mapping[str, Sequence[Any]]) -> Params:
    """The searched settings of the usual configuration."""
    return {name: _value(config, name) for name in space}


def shuffled(space: Mapping[str, Sequence[Any]], seed: str) -> Iterator[Params]:
    """Members of a space in random order, each at most once.

    Example:
        >>> sorted(draw["lr"] for draw in shuffled({"lr": [0.1, 0.2], "dropout": [0.5]}, "0"))
        [0.1, 0.2]
    """
    size = math.prod(len(values) for values in space.values())
    for place in random.Random(seed).sample(range(size), min(size, _MOST_DRAWS)):
        params, rest = {}, place
        for name, values in space.items():
            rest, choice = divmod(rest, len(values))
            params[name] = values[choice]
        yield params


def sorted_params(params: Mapping[str, Any], model: str) -> Overrides:
    """Searched settings, placed and checked as those of a user are."""
    return parse_overrides([f"{k}={json.dumps(v)}" for k, v in params.items()], model)


def changed_config(config: RunConfig, params: Params) -> RunConfig:
    """A configuration with searched settings changed."""
    changes = sorted_params(params, config.model)
    options = resolve_options(config.model, config.preset, config.options, changes.options)
    return replace(config, options=options, train=replace(config.train, **changes.train))


def is_possible(config: RunConfig, params: Params) -> bool:
    """Whether these settings go together."""
    try:
        changed = changed_config(config, params)
        if changed.link is not None:
            changed.spec.try_out()
    except ConfigError:
        return False
    return True


def _checked(name: str, value: Any, model: str) -> Any:
    found = sorted_params({name: value}, model)
    return {**found.options, **found.train}[name]


def _value(config: RunConfig, name: str) -> Any:
    return config.options[name] if name in config.options else getattr(config.train, name)
