"""Choose the settings of a method for a graph: a trial on validation.

Successive halving on one split: all recipes train for some epochs, and only those with the best
validation scores go on. For ARGNN on a graph without stored settings (:data:`ROUNDS`), the metric
of the winner is varied in the end and, on a directed graph, the direction of its messages. To
compare methods, each has as many recipes (:func:`~argnn.runs.recipes.recipes_of`) and as many
epochs (:func:`rounds_for`). The user's own settings hold in every run.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data

from argnn.errors import ConfigError, DivergenceError
from argnn.runs.batch_sources import sees_parts
from argnn.runs.layerwise import LARGE_STATE
from argnn.runs.pool import StopEarly
from argnn.runs.problems import problem_of
from argnn.runs.recipes import RECIPES, STANDING, Recipe, variations
from argnn.runs.train_one import OnEpoch, train_one
from argnn.settings.options import Overrides, resolve_options, resolve_train
from argnn.settings.resolve import BaseSettings
from argnn.settings.run_config import RunConfig
from argnn.telling import TellCount
from argnn.train import EpochRecord, Snapshot, Task
from argnn.train.selection import selection_of

Tried = TypeVar("Tried")

#: After so many epochs in all, so many recipes are left.
ROUNDS: tuple[tuple[int, int], ...] = ((15, 7), (50, 3), (150, 1))
#: Of equal trials, the first round has so many epochs, and each keeps one of so many recipes.
_FIRST_ROUND, _KEPT = 20, 3
#: With fewer validation nodes for each recipe, the best of many would be chosen by chance.
NODES_PER_RECIPE = 5
#: What stands gives way to what is better by so many validation nodes: a smaller lead is chance.
LEAD = 3
#: Rows of the adjacency matrix are tried if they need at most so many weights.
MAX_ROW_WEIGHTS = 2**25


@dataclass(frozen=True)
class Trial:
    """A recipe and its validation score so far, minus infinity where it diverged.

    ``lead`` is by how much another score must be better, where the recipe stands.
    """

    recipe: Recipe
    val_score: float
    val_loss: float
    epochs: int
    seconds: float
    snapshot: Snapshot | None = field(default=None, repr=False)
    lead: float = 0.0

    @property
    def key(self) -> tuple[float, float]:
        """A larger one is better: the score with its lead, then the smaller loss."""
        return (self.val_score + self.lead, -self.val_loss)


def rounds_for(count: int) -> tuple[tuple[int, int], ...]:
    """The rounds of equal trials with so many recipes: a third goes on, for three times as long.

    Example:
        >>> rounds_for(6), rounds_for(20)
        (((20, 2), (60, 1)), ((20, 7), (60, 3), (180, 1)))
    """
    rounds: list[tuple[int, int]] = []
    epochs, left = _FIRST_ROUND, count
    while not rounds or left > 1:
        left = math.ceil(left / _KEPT)
        rounds.append((epochs, left))
        epochs *= _KEPT
    return tuple(rounds)


@dataclass(frozen=True)
class TrialJob:
    """The trial of one split, as a job of a pool.

    Attributes:
        config: With the usual settings; options and training settings are tried.
        split: Number of the split.
        directed: Whether the edges have directions worth trying.
        held: Settings of the user, which every run has.
        recipes: Where the halving starts.
        rounds: After so many epochs in all, so many recipes are left.
        count: How many recipes start: the first that fit to graph and user. All, if not given.
        vary: Whether the winner is varied in the end.
        nodes_per_recipe: Fewer recipes are tried where there are fewer validation nodes for each.
        validation_size: Number of validation nodes, for the budget; None if it is not known yet.
    """

    config: RunConfig
    split: int
    directed: bool
    held: Overrides = Overrides()
    recipes: tuple[Recipe, ...] = field(default_factory=lambda: RECIPES)
    rounds: tuple[tuple[int, int], ...] = field(default_factory=lambda: ROUNDS)
    count: int | None = None
    vary: bool = True
    nodes_per_recipe: int = field(default_factory=lambda: NODES_PER_RECIPE)
    validation_size: int | None = None

    def wanted_rounds(self) -> list[tuple[int, int]]:
        """The rounds, with no more epochs than the user wants."""
        most = self.held.train.get("epochs", math.inf)
        return [(min(epochs, most), left) for epochs, left in self.rounds]

    def candidates(self, num_nodes: int, validation_size: int | None) -> list[Recipe]:
        """Where the halving starts, on a graph with so many nodes."""
        most = None if validation_size is None else validation_size // self.nodes_per_recipe
        return _compatible(self, self.recipes, num_nodes)[: self.count][:most]

    def most_epochs(self) -> int:
        """The budget: no trial has more epochs. Without a self path there are fewer variations."""
        try:
            candidates = self.candidates(self.config.graph.get("nodes", 0), self.validation_size)
        except ConfigError:  # which the trial will raise
            return 0
        if len(candidates) < 2:
            return 0
        total, done, count = 0, 0, len(candidates)
        for epochs, left in self.wanted_rounds():
            total, done, count = total + count * (epochs - done), epochs, min(count, left)
        varied = (len(self.finalists(recipe)) - 1 for recipe in candidates)
        return total + (done * max(varied) if self.vary else 0)

    def finalists(self, winner: Recipe) -> list[Recipe]:
        """The winner and its variations, as far as the user's settings leave them different."""
        return _compatible(self, [winner, *variations(winner, self.directed)])

    def run(self, graph: Data, on_epoch: OnEpoch | None = None) -> BaseSettings:
        """The settings that the trial chooses; it sees no test label.

        ``on_epoch`` may raise ``StopEarly``: then the best recipe so far is chosen.
        """
        problem = problem_of(self.config, graph, self.split)
        halving = Halving(self, problem.visible, problem.task, on_epoch)
        try:
            halving.run()
        except StopEarly:
            return self.chosen(halving.trials, stopped=True)
        return self.chosen(halving.trials)

    def failed(self, error: Exception, seconds: float) -> Exception:
        """The error: without settings there is nothing to run."""
        return error

    def settings(self, visible: Data, task: Task, on_epoch: OnEpoch | None = None) -> BaseSettings:
        """The settings that the trial chooses for a problem that is posed already."""
        halving = Halving(self, visible, task, on_epoch)
        halving.run()
        return self.chosen(halving.trials)

    def chosen(self, trials: Sequence[Trial], stopped: bool = False) -> BaseSettings:
        """Settings of the best recipe, or of the first if none was tried, with a record of all."""
        best = best_of(trials) if trials else self.recipes[0].holding(self.held)
        spent = sum(trial.epochs for trial in trials)
        source = f"chosen on validation from {len(trials)} recipes in {spent} epochs: {best.name}"
        if stopped:
            source = f"{best.name}: the best of {len(trials)} recipes when the user ended the trial"
        if not trials:
            why = "ended by the user" if stopped else "too few validation nodes, or one recipe"
            source = f"{best.name}, without a trial ({why})"
        facts = {
            "split": self.split,
            "epochs": spent,
            "threads": torch.get_num_threads(),
            "chosen": best.name,
            "score": selection_of(self.config.task, self.held.train.get("select")),
            "stopped": stopped,
            "metric": _worth_of_metric(best, trials),
            "runs": [_recorded(trial) for trial in trials],
        }
        return BaseSettings(best.model, best.train, source, trial=facts)


class EpochCount:
    """Adds up the epochs of some trials; tells how many of all are over."""

    def __init__(self, jobs: Sequence[TrialJob], tell: TellCount) -> None:
        self.tell, self.total = tell, sum(job.most_epochs() for job in jobs)
        self.done: dict[tuple[str, int], int] = {}

    def __call__(self, job: TrialJob, epoch: int, loss: float, val_score: float) -> None:
        """A trial has finished an epoch."""
        self.done[job.config.model, job.split] = epoch
        self.tell(min(sum(self.done.values()), self.total), self.total)


def _recorded(trial: Trial) -> dict[str, Any]:
    """A run as JSON, which has no infinity: null where it diverged."""
    known = {**asdict(trial.recipe), "epochs": trial.epochs, "seconds": trial.seconds}
    return {**known, "val_score": _finite(trial.val_score), "val_loss": _finite(trial.val_loss)}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _worth_of_metric(chosen: Recipe, trials: Sequence[Trial]) -> dict[str, Any] | None:
    """The metric of the choice, its score, and that of the same recipe with the other kind.

    Several kinds are learned: theirs is the best score. None where the recipes name no metric.
    """
    if "metric" not in chosen.model:
        return None
    best: dict[str, float | None] = {"learned": None, "fixed": None}
    alike = [
        trial for trial in _finalists(trials) if _but_metric(trial.recipe) == _but_metric(chosen)
    ]
    # The choice comes last: of several learned kinds, its own score counts.
    for trial in sorted(alike, key=lambda trial: (trial.recipe == chosen, trial.val_score)):
        kind = "fixed" if trial.recipe.model.get("metric") == "fixed" else "learned"
        best[kind] = _finite(trial.val_score)
    return {"chosen": chosen.model["metric"], **best}


def _but_metric(recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    return ({**recipe.model, "metric": None}, recipe.train)


def best_of(trials: Sequence[Trial]) -> Recipe:
    """The best of those with the most epochs; ties go to the smaller loss, then to the earlier.

    Scores after different numbers of epochs do not compare, and what stands has its lead.
    """
    return max(_finalists(trials), key=lambda trial: trial.key).recipe


def _finalists(trials: Sequence[Trial]) -> list[Trial]:
    """Those with the most epochs that did not diverge, or all where all did."""
    sound = [trial for trial in trials if trial.val_score > -math.inf] or trials
    most = max((trial.epochs for trial in sound), default=0)
    return [trial for trial in sound if trial.epochs == most]


class Halving:
    """A trial: successive halving, then variations of the winner."""

    def __init__(
        self, job: TrialJob, visible: Data, task: Task, on_epoch: OnEpoch | None = None
    ) -> None:
        self.job, self.visible, self.task, self.on_epoch = job, visible, task, on_epoch
        self.spent = 0
        self._standing: set[str] = set()
        self._last: dict[str, Trial] = {}

    @property
    def trials(self) -> list[Trial]:
        """What is known of every recipe so far."""
        return list(self._last.values())

    def run(self) -> None:
        """Try everything."""
        left = self.job.candidates(self.visible.x.size(0), self.task.validation_size)
        if len(left) < 2:
            return
        names = [recipe.name for recipe in left]
        self._standing = {STANDING if STANDING in names else names[0]}
        for epochs, count in self.job.wanted_rounds():
            ranked = sorted((self._trained(recipe, epochs) for recipe in left), key=_order)
            kept = going_on(ranked, count, lambda trial: trial.recipe.model)
            left = [trial.recipe for trial in kept]
            for trial in ranked:
                if trial.recipe not in left:  # nobody will continue it
                    self._last[trial.recipe.name] = replace(trial, snapshot=None)
        if not self.job.vary:
            return
        winner = left[0]
        self._standing.add(winner.name)
        self._last[winner.name] = self._with_lead(self._last[winner.name])
        for recipe in self.job.finalists(winner):
            self._trained(recipe, epochs)

    def _with_lead(self, trial: Trial) -> Trial:
        """With a lead for what stands, in the end also the winner, where the score is a share."""
        score = selection_of(self.job.config.task, self.job.held.train.get("select"))
        stands = trial.recipe.name in self._standing and score not in ("loss", "r2")
        return replace(trial, lead=LEAD / self.task.validation_size if stands else 0.0)

    def _trained(self, recipe: Recipe, epochs: int) -> Trial:
        """Train a recipe up to some epoch, from where it stopped."""
        old = self._last.get(recipe.name, Trial(recipe, -math.inf, math.inf, 0, 0.0))
        if old.epochs < epochs:
            self._last[recipe.name] = self._with_lead(self._continued(old, epochs))
            self.spent += epochs - old.epochs
        return self._last[recipe.name]

    def _continued(self, old: Trial, epochs: int) -> Trial:
        job, recipe, saved = self.job, old.recipe, list[Snapshot]()
        length = {"epochs": epochs, "checkpoint_every": epochs, "patience": 0}
        config = replace(
            job.config,
            options=resolve_options(job.config.model, job.config.preset, recipe.model),
            train=resolve_train(
                job.config.model, job.config.preset, job.config.seed, recipe.train, length
            ),
        )

        def tell(record: EpochRecord) -> None:
            if self.on_epoch is not None:
                self.on_epoch(replace(record, epoch=self.spent + record.epoch - old.epochs))

        try:
            result = train_one(
                config,
                self.visible,
                self.task,
                split=job.split,
                on_epoch=tell,
                save=saved.append,
                resume_from=old.snapshot,
            ).result
        except DivergenceError:  # a recipe that fails on this graph is not chosen
            return Trial(recipe, -math.inf, math.inf, epochs, old.seconds)
        seconds = old.seconds + result.seconds
        last = saved[-1] if saved else None  # none where the training ended early
        return Trial(recipe, result.val_score, result.val_loss, epochs, seconds, last)


def going_on(
    ranked: Sequence[Tried], count: int, options: Callable[[Tried], Mapping[str, Any]]
) -> list[Tried]:
    """The best; where several go on, one with and one without adjacency rows are among them.

    Recipes with adjacency rows learn fast and lead early, also where others win in the end.

    Args:
        ranked: What was tried, the best first.
        count: How many go on.
        options: Gives the options of the model that was tried.
    """
    kept = list(ranked[:count])
    for rows in (False, True):
        kind = [each for each in ranked if bool(options(each).get("adjacency_rows")) == rows]
        if count > 1 and kind and kind[0] not in kept:
            kept[-1] = kind[0]
    return kept


def _order(trial: Trial) -> tuple[float, float]:
    score, loss = trial.key
    return (-score, -loss)


def _compatible(job: TrialJob, recipes: Sequence[Recipe], num_nodes: int = 0) -> list[Recipe]:
    """The recipes with the user's settings, without repeats and what does not go together."""
    found: list[Recipe] = []
    known: list[tuple[Any, ...]] = []
    error: ConfigError | None = None
    for recipe in (recipe.holding(job.held) for recipe in recipes):
        rows = recipe.model.get("adjacency_rows") and "adjacency_rows" not in job.held.options
        if rows and num_nodes * recipe.model["hidden_channels"] > MAX_ROW_WEIGHTS:
            continue
        # Within so many hops of a part there is mostly the whole graph.
        far = recipe.model.get("hops", 1) > 1 and "hops" not in job.held.options
        width = recipe.model.get("hidden_channels", 1)
        if far and (sees_parts(job.config.train) or num_nodes * width >= LARGE_STATE):
            continue
        try:
            options = resolve_options(job.config.model, job.config.preset, recipe.model)
        except ConfigError as problem:
            error = error or problem
            continue
        if (options, recipe.train) not in known:
            known.append((options, recipe.train))
            found.append(recipe)
    if error is not None and not found:
        raise error
    return found
