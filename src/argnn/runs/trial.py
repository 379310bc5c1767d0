"""Choose the switches of ARGNN for a graph without stored settings: a short trial on validation.

Two rounds of short runs on one split. The first compares whole recipes, the second varies
the winner's metric and, on a directed graph, its edge directions. The budget is fixed:
at most :data:`MAX_TRIALS` runs of :data:`TRIAL_EPOCHS` epochs.
"""

import math
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.errors import DivergenceError
from argnn.runs.problems import pose_problem
from argnn.runs.train_one import OnEpoch, train_one
from argnn.settings.options import resolve_options, resolve_train
from argnn.settings.resolve import BaseSettings
from argnn.settings.run_config import RunConfig
from argnn.train import EpochRecord, Task

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


@dataclass(frozen=True)
class TrialJob:
    """The trial of one split, as a job of a pool.

    Attributes:
        config: Of a model with a trial and its default preset; options and training settings
            are tried.
        split: Number of the split.
        directed: Whether the edges have directions worth trying.
        epochs: Of each short run.
    """

    config: RunConfig
    split: int
    directed: bool
    epochs: int

    def run(self, graph: Data, on_epoch: OnEpoch | None = None) -> BaseSettings:
        """The settings that the short runs choose; they see no test label."""
        problem = pose_problem(graph, self.split, self.config.device)
        return self.settings(problem.visible, problem.task, on_epoch)

    def failed(self, error: Exception, seconds: float) -> Exception:
        """The error: without settings there is nothing to run."""
        return error

    def settings(self, visible: Data, task: Task, on_epoch: OnEpoch | None = None) -> BaseSettings:
        """The settings that the short runs choose, with a record of all of them.

        Args:
            visible: Features and edges.
            task: Loss and validation score; it holds no test label.
            on_epoch: Is told the epochs of all short runs, counted through.
        """
        report = choose_switches(self, visible, task, on_epoch)
        source = f"chosen by {len(report.trials)} short runs on validation: {report.chosen.name}"
        facts = {
            "split": self.split,
            "epochs": self.epochs,
            "threads": torch.get_num_threads(),
            "chosen": report.chosen.name,
            "runs": [_recorded(trial) for trial in report.trials],
        }
        return BaseSettings(report.chosen.model, report.chosen.train, source, trial=facts)


def _recorded(trial: Trial) -> dict[str, Any]:
    """A short run as JSON, which has no infinity: null where it diverged."""
    scores = {"val_score": trial.val_score, "val_loss": trial.val_loss}
    finite = {name: value if math.isfinite(value) else None for name, value in scores.items()}
    return {**asdict(trial.recipe), **finite, "seconds": trial.seconds}


def choose_switches(
    job: TrialJob, visible: Data, task: Task, on_epoch: OnEpoch | None = None
) -> TrialReport:
    """Run the trial; the arguments are those of :meth:`TrialJob.settings`."""
    trials: list[Trial] = []

    def tell(record: EpochRecord) -> None:
        if on_epoch is not None:
            on_epoch(replace(record, epoch=len(trials) * job.epochs + record.epoch))

    def run(recipe: Recipe) -> None:
        try:
            trials.append(_short_run(recipe, job, visible, task, tell))
        except DivergenceError:  # a recipe that fails on this graph is not chosen
            trials.append(Trial(recipe, -math.inf, math.inf, 0.0))

    for recipe in RECIPES:
        run(recipe)
    for recipe in _variations(TrialReport(trials).chosen, job.directed):
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


def _short_run(
    recipe: Recipe, job: TrialJob, visible: Data, task: Task, on_epoch: OnEpoch
) -> Trial:
    config, length = job.config, {"epochs": job.epochs, "checkpoint_every": 0}
    short = replace(
        config,
        options=resolve_options(config.model, config.preset, recipe.model),
        train=resolve_train(config.model, config.preset, config.seed, recipe.train, length),
    )
    result = train_one(short, visible, task, on_epoch=on_epoch).result
    return Trial(recipe, result.val_score, result.val_loss, result.seconds)
