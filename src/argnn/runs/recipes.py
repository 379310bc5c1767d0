"""The recipes that a trial on a graph without stored settings compares, and their variations."""

from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from argnn.nn import model_class
from argnn.settings.options import Overrides
from argnn.settings.run_config import RunConfig
from argnn.settings.search_space import (
    Params,
    is_possible,
    search_space,
    shuffled,
    sorted_params,
    usual_params,
)


@dataclass(frozen=True)
class Recipe:
    """A complete set of switches: arguments of the model and of the training."""

    name: str
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)

    def varied(self, name: str, **model: Any) -> "Recipe":
        """The same recipe with some switches of the model changed."""
        return Recipe(f"{self.name}, {name}", {**self.model, **model}, self.train)

    def holding(self, held: Overrides) -> "Recipe":
        """The same recipe with the settings of the user."""
        return Recipe(self.name, {**self.model, **held.options}, {**self.train, **held.train})


#: Long runs, ended by patience: some graphs need many epochs, and most do not.
_LENGTH = {"epochs": 1000, "patience": 100}
_PLAIN = {"lr": 0.01, "weight_decay": 0.0, **_LENGTH}
_SHALLOW = {"hidden_channels": 128, "num_layers": 2, "metric": "both"}
_WITHOUT_SELF = {
    "num_layers": 4,
    "metric": "structure",
    "self_path": False,
    "dropout": 0.0,
    "input_dropout": 0.0,
}
_DEEP = {"metric": "both", "jump": "last", "input_dropout": 0.0}

_SUM = Recipe("self path, sum", {**_SHALLOW, "normalization": "sum"}, _LENGTH)
_RW = Recipe("self path, rw", {**_SHALLOW, "normalization": "rw"}, _LENGTH)
_ONE_LAYER = Recipe("one layer", {**_SHALLOW, "num_layers": 1, "dropout": 0.7}, _LENGTH)
_TEN_STEPS = Recipe("ten steps", {**_SHALLOW, "num_layers": 1, "hops": 10, "norm": "none"}, _LENGTH)
_DEEPEST = Recipe(
    "deepest",
    {**_DEEP, "num_layers": 12, "hidden_channels": 64, "norm": "batch", "dropout": 0.2},
    _PLAIN,
)
_DEEPER = Recipe(
    "deep",
    {**_DEEP, "num_layers": 8, "hidden_channels": 128, "norm": "batch", "dropout": 0.5},
    {"weight_decay": 5e-4, **_LENGTH},
)
_OTHERS: tuple[Recipe, ...] = (
    Recipe("self path, sym", {**_SHALLOW, "normalization": "sym"}, _LENGTH),
    Recipe(
        "self path, less dropout",
        {**_SHALLOW, "dropout": 0.5, "input_dropout": 0.0},
        {"lr": 0.01, "weight_decay": 5e-4, **_LENGTH},
    ),
    Recipe(
        "wide",
        {**_DEEP, "num_layers": 2, "hidden_channels": 512, "norm": "layer", "dropout": 0.5},
        {"lr": 1e-3, "weight_decay": 5e-4, **_LENGTH},
    ),
    Recipe(
        "no self path, sym",
        {**_WITHOUT_SELF, "hidden_channels": 128, "norm": "batch", "normalization": "sym"},
        _PLAIN,
    ),
)


def _with_rows(*recipes: Recipe) -> tuple[Recipe, ...]:
    return tuple(recipe.varied("adjacency rows", adjacency_rows=True) for recipe in recipes)


#: Where the halving starts. The first are a good small set; the very first, which is taken without
#: a trial, has no adjacency rows. ``scripts/try_recipes.py`` has measured these and others.
RECIPES: tuple[Recipe, ...] = (
    _SUM,
    _TEN_STEPS,
    *_with_rows(_SUM),
    _DEEPEST,
    *_with_rows(_ONE_LAYER),
    _RW,
    _ONE_LAYER,
    _DEEPER,
    *_OTHERS,
    *_with_rows(_RW, *_OTHERS),
)


#: This one is chosen where others are hardly better; the first, if this one is not tried.
STANDING = _TEN_STEPS.name


def recipes_of(config: RunConfig, held: Overrides, count: int) -> tuple[Recipe, ...]:
    """At least so many recipes of any method, if its search space is large enough.

    First those of its own trial, or its usual settings; then random ones from its search space.
    """
    kind, model = model_class(config.model), config.model
    options = kind.link_options if config.link is not None else {}
    has_recipes = kind.has_trial and config.link is None
    first = RECIPES if has_recipes else (Recipe("usual settings", dict(options), _LENGTH),)
    space = search_space(config, held)
    usual = usual_params(config, space)
    possible = (
        params
        for params in shuffled(space, f"{config.seed} recipes")
        if params != usual and is_possible(config, params)
    )
    drawn = []
    for params in islice(possible, count):
        changes = sorted_params(params, model)
        train = {**changes.train, **_LENGTH}
        drawn.append(Recipe(_words(params, usual), {**options, **changes.options}, train))
    return (*first, *drawn)


def _words(params: Params, usual: Params) -> str:
    """The settings that differ from the usual ones, in words."""
    return ", ".join(f"{name} {value}" for name, value in params.items() if value != usual[name])


def variations(recipe: Recipe, directed: bool) -> list[Recipe]:
    """The recipe with other metrics, and on a directed graph with other directions."""
    own, with_self = recipe.model["metric"], recipe.model.get("self_path", True)
    # Without a self path, a metric that reads features would bring the node's own features back.
    metrics = ("fixed", "structure", "both") if with_self else ("fixed", "structure")
    varied = [recipe.varied(f"{name} metric", metric=name) for name in metrics if name != own]
    if directed:
        varied += [recipe.varied(f"{name} edges", direction=name) for name in ("out", "both")]
    return varied
