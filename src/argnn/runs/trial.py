"""Choose the switches of ARGNN for a graph nobody has tuned: a short trial on validation.

Two rounds of short runs on one split. The first compares whole recipes, the second varies
the winner's metric and, on a directed graph, its edge directions. The budget is fixed:
at most :data:`MAX_TRIALS` runs of :data:`TRIAL_EPOCHS` epochs.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.errors import DivergenceError
from argnn.runs.train_one import train_one
from argnn.settings.options import resolve_options, resolve_train
from argnn.settings.resolve import BaseSettings
from argnn.settings.run_config import RunConfig
from argnn.train import Task

TRIAL_EPOCHS = 60
MAX_TRIALS = 9


@dataclass(frozen=True)
class Recipe:
    """A complete set of switches: arguments of the model and of the training."""

    name: str
    model: dict[str, Any] = field(default_factory=dict)
    train: dict[str, Any] = field(default_factory=dict)

    def varied(self, name: str, **model: Any) -> "Recipe":
        """The same recipe with some switches of the model changed."""
        return Recipe(f"{self.name}, {name}", {**self.model, **model}, self.train)


@dataclass(frozen=True)
class Trial:
    """One short run and its validation score, minus infinity where it diverged."""

    recipe: Recipe
    val_score: float
    val_loss: float
    seconds: float


@dataclass(frozen=True)
class TrialReport:
    """All short runs, and the recipe with the best validation score."""

    trials: list[Trial]

    @property
    def chosen(self) -> Recipe:
        """The winner; ties go to the smaller validation loss, then to the earlier run."""
        return max(self.trials, key=lambda trial: (trial.val_score, -trial.val_loss)).recipe


_WITH_SELF: dict[str, Any] = {"hidden_channels": 128, "num_layers": 2, "metric": "both"}
_WITHOUT_SELF: dict[str, Any] = {
    "hidden_channels": 64,
    "num_layers": 4,
    "metric": "structure",
    "self_path": False,
    "dropout": 0.0,
    "input_dropout": 0.0,
}
_UNREGULARIZED = {"lr": 0.01, "weight_decay": 0.0}

#: The first round: what the project's search found to matter most.
RECIPES: tuple[Recipe, ...] = (
    Recipe("self path, sym", {**_WITH_SELF, "normalization": "sym"}),
    Recipe("self path, rw", {**_WITH_SELF, "normalization": "rw"}),
    Recipe("self path, sum", {**_WITH_SELF, "normalization": "sum"}),
    Recipe("no self path, sym", {**_WITHOUT_SELF, "normalization": "sym"}, _UNREGULARIZED),
    Recipe("no self path, rw", {**_WITHOUT_SELF, "normalization": "rw"}, _UNREGULARIZED),
)


OnTrial = Callable[[Trial], None]


def choose_switches(
    config: RunConfig,
    visible: Data,
    task: Task,
    *,
    directed: bool,
    on_trial: OnTrial | None = None,
) -> TrialReport:
    """Run the trial.

    Args:
        config: Of argnn with its default preset; switches and training settings are tried.
        visible: Features and edges.
        task: Loss and validation score; carries no test label.
        directed: Whether the edges have directions worth trying.
        on_trial: Called after each short run.
    """
    trials: list[Trial] = []

    def run(recipe: Recipe) -> None:
        try:
            trials.append(_short_run(recipe, config, visible, task))
        except DivergenceError:  # a recipe that fails on this graph is not chosen
            trials.append(Trial(recipe, -math.inf, math.inf, 0.0))
        if on_trial is not None:
            on_trial(trials[-1])

    for recipe in RECIPES:
        run(recipe)
    for recipe in _variations(TrialReport(trials).chosen, directed):
        run(recipe)
    assert len(trials) <= MAX_TRIALS
    return TrialReport(trials)


def _variations(recipe: Recipe, directed: bool) -> list[Recipe]:
    other = "structure" if recipe.model["metric"] == "both" else "both"
    metrics = ["fixed", other] if recipe.model.get("self_path", True) else ["fixed"]
    varied = [recipe.varied(f"{metric} metric", metric=metric) for metric in metrics]
    if directed:
        varied += [recipe.varied(f"{d} edges", direction=d) for d in ("out", "both")]
    return varied


def _short_run(recipe: Recipe, config: RunConfig, visible: Data, task: Task) -> Trial:
    length = {"epochs": TRIAL_EPOCHS, "checkpoint_every": 0}
    short = replace(
        config,
        options=resolve_options("argnn", "default", recipe.model),
        train=resolve_train("argnn", "default", config.seed, recipe.train, length),
    )
    result = train_one(short, visible, task).result
    return Trial(recipe, result.val_score, result.val_loss, result.seconds)


def settings_by_trial(
    config: RunConfig,
    visible: Data,
    task: Task,
    *,
    split: int,
    directed: bool,
    on_trial: OnTrial | None = None,
) -> BaseSettings:
    """The settings that the trial chooses, with a record of its runs; see the other function."""
    report = choose_switches(config, visible, task, directed=directed, on_trial=on_trial)
    source = f"chosen by {len(report.trials)} short runs on validation: {report.chosen.name}"
    facts = {
        "split": split,
        "epochs": TRIAL_EPOCHS,
        "threads": torch.get_num_threads(),
        "chosen": report.chosen.name,
        "runs": [
            {
                **asdict(trial.recipe),
                # Null where the short run diverged: JSON has no infinity.
                "val_score": trial.val_score if math.isfinite(trial.val_score) else None,
                "val_loss": trial.val_loss if math.isfinite(trial.val_loss) else None,
                "seconds": trial.seconds,
            }
            for trial in report.trials
        ],
    }
    return BaseSettings(report.chosen.model, report.chosen.train, source, trial=facts)
