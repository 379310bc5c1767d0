"""Train several methods on one graph, each with settings that an equal trial has chosen.

Every method is a run in a folder of its own, as ``argnn train`` makes it. It is made as soon as
the trials of the method are over, so that a comparison that was stopped goes on from there.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.bench.experiments.cells import Cell, storable
from argnn.bench.tuning.search import USUAL_SPLITS
from argnn.errors import FORESEEN, ConfigError, RunError
from argnn.files import make_folder, read_checked, refuse_link, require_place, write_checked
from argnn.functional.neighborhood import edges_of
from argnn.nn import MODELS, model_name
from argnn.runs.parallel import Job, Watcher, run_splits
from argnn.runs.prepare import Draft, Plan, Request, draft, settling, stored_run, worker_count
from argnn.runs.problems import pose_problem
from argnn.runs.run import failed_row
from argnn.runs.train_one import precompute_curvature
from argnn.runs.trial import EpochCount
from argnn.settings.options import parse_overrides
from argnn.settings.run_config import MAIN_SCORES, RunConfig
from argnn.store.model_folder import read_folder
from argnn.store.results import ResultsFile, Row
from argnn.store.run_folder import RunFolder, create_run
from argnn.train import scores_and_metrics
from argnn.train.calibration import probabilities

#: How many recipes each method tries unless told otherwise.
USUAL_RECIPES = 6
#: The copy of the winner's run.
BEST = "best"

_RESULTS, _ABOUT = "results.jsonl", "comparison.json"
_IN_THE_RUN = ("history", "resumed_from_epoch")


@dataclass(frozen=True)
class ComparisonPlan:
    """What is compared, checked.

    ``drafts`` has the run of each method before its trials, ``about`` all that must not change
    between two parts of one comparison.
    """

    drafts: dict[str, Draft]
    out: Path
    workers: int
    ensemble: int | None
    about: dict[str, Any]

    @property
    def graph(self) -> Data:
        """The graph."""
        return next(iter(self.drafts.values())).plan.graph

    @property
    def config(self) -> RunConfig:
        """The configuration of the first method, for what all of them share."""
        return next(iter(self.drafts.values())).plan.config

    @property
    def results(self) -> Path:
        """The results file, for ``argnn table``."""
        return self.out / _RESULTS

    def budget(self) -> dict[str, Any]:
        """What each method has on each split: recipes and epochs of the trial, then of training."""
        job = next(iter(self.drafts.values())).jobs[0]
        train = {**job.recipes[0].train, **job.held.train}
        return {
            "recipes": self.about["recipes"],
            "trial_epochs": job.most_epochs(),
            "epochs": train["epochs"],
            "patience": train["patience"],
        }


@dataclass(frozen=True)
class MethodRun:
    """What came of a method.

    It has one row per split, with scores or an error, and no folder if a trial failed.
    """

    model: str
    config: RunConfig
    folder: RunFolder | None
    rows: list[Row]

    @property
    def finished(self) -> list[Row]:
        """The rows with scores."""
        return [row for row in self.rows if "error" not in row]

    def trials(self) -> list[dict[str, Any]]:
        """The trial of each split; none where it failed."""
        found = [self.config.for_split(split).trial for split in self.config.splits]
        return [trial for trial in found if trial is not None]


class ComparisonWatcher(Watcher, Protocol):
    """Is told how far a comparison is."""

    def tried(self, done: int, total: int) -> None:
        """So many epochs of all trials are over."""


def plan_comparison(
    request: Request,
    models: Sequence[str] | None,
    out: Path,
    *,
    splits: str | None = None,
    ensemble: int | None = None,
    graph: Data | None = None,
) -> ComparisonPlan:
    """Check a request for all methods, and load its graph; nothing is written.

    The request is what all methods share; its model and split are not read. ``out`` is a new
    folder, or that of the same comparison. Without ``splits`` the first three are taken, or all
    folds.
    """
    names = list(dict.fromkeys(map(model_name, models if models is not None else MODELS)))
    if not names:
        raise ConfigError("name at least one model")
    if ensemble is not None and not 2 <= ensemble <= len(names):
        raise ConfigError(
            f"--ensemble must be from 2 to the number of methods, {len(names)} (got {ensemble})"
        )
    if ensemble is not None and request.task == "link":
        raise ConfigError("--ensemble belongs to targets of nodes, not to --task link")
    for name in names:  # before the graph, which may take long to load
        parse_overrides(request.overrides, name)
    first = draft(replace(request, model=names[0], split=splits or "all", recipes=None), graph)
    every = splits or request.columns.folds
    chosen = first.plan.config.splits[: None if every else USUAL_SPLITS]
    request = replace(request, task=first.plan.config.task, split=",".join(map(str, chosen)))
    graph = first.plan.graph
    drafts = {name: draft(replace(request, model=name), graph) for name in names}
    config = first.plan.config
    about = {
        **{name: getattr(config, name) for name in ("data", "task", "directed", "row_normalize")},
        "seed": config.seed,
        "splits": list(chosen),
        "recipes": request.recipes,
        "settings": list(request.overrides),
        "links": [request.ratio, request.decoder, request.spanning_forest, request.split_by],
        "columns": config.columns,
        "graph": config.graph["digest"],
    }
    _check_out(out, about)
    count = sum(len(made.jobs) for made in drafts.values())
    workers = worker_count(request.workers, count, config.device)
    return ComparisonPlan(drafts, out, workers, ensemble, about)


def _check_out(out: Path, about: Mapping[str, Any]) -> None:
    """Raise unless a folder is free, or holds this comparison."""
    refuse_link(out)
    path = out / _ABOUT
    if path.exists():
        found = read_checked(path, ("about",))["about"]
        for name, value in about.items():
            if found.get(name) != value:
                raise ConfigError(
                    f"{out}: holds a comparison with other {name}; choose another --out"
                )
    elif out.is_dir() and any(out.iterdir()):
        raise RunError(f"{out}: the folder is not empty; choose another --out")
    elif out.exists() and not out.is_dir():
        raise RunError(f"{out}: not a folder; choose another --out")
    require_place(out)


def run_comparison(plan: ComparisonPlan, watcher: ComparisonWatcher) -> list[MethodRun]:
    """Try and train all methods, as far as that is not done yet; one that fails stops no other."""
    make_folder(plan.out)
    with ResultsFile(plan.results) as results:
        if not (plan.out / _ABOUT).exists():
            write_checked(plan.out / _ABOUT, {"about": plan.about})
        known = {row["cell"] for row in results.rows if "error" not in row}
        found = []
        for model, settled in _settled(plan, watcher).items():
            run = _trained(plan, model, settled, watcher)
            for row in run.rows:
                cell = _cell(plan, run, row["split"])
                if cell.id not in known:
                    content = {k: v for k, v in row.items() if k not in _IN_THE_RUN}
                    results.append(storable(cell, content))
            found.append(run)
    return found


def _settled(
    plan: ComparisonPlan, watcher: ComparisonWatcher
) -> dict[str, tuple[Plan, RunFolder] | Exception]:
    """Each method with its plan and the folder of its run, or with an error of its trial."""
    found: dict[str, tuple[Plan, RunFolder] | Exception] = {}
    names: dict[int, str] = {}
    todo: list[Draft] = []
    for model, made in plan.drafts.items():
        path = plan.out / model
        try:
            if RunFolder(path).config.exists():
                found[model] = _reopened(path, made)
                continue
            precompute_curvature(made.plan.config, plan.graph)
        except FORESEEN as error:
            found[model] = error
            continue
        names[id(made)] = model
        todo.append(made)
    counted = EpochCount([job for made in todo for job in made.jobs], watcher.tried)
    with closing(settling(todo, plan.workers, tell=counted)) as settled:
        for made, result in settled:
            model = names[id(made)]
            if isinstance(result, Exception):
                found[model] = result
            else:
                found[model] = result, create_run(plan.out / model, result.config.to_json())
    return {model: found[model] for model in plan.drafts}


def _reopened(path: Path, made: Draft) -> tuple[Plan, RunFolder]:
    """The run of a method whose trials are over."""
    folder, config = stored_run(path)
    wanted = made.plan.config
    for name in ("model", "data", "task", "seed", "splits", "graph"):
        if getattr(config, name) != getattr(wanted, name):
            raise RunError(f"{path}: is a run with other {name}; choose another --out")
    return replace(made.plan, config=config), folder


def _trained(
    plan: ComparisonPlan,
    model: str,
    settled: tuple[Plan, RunFolder] | Exception,
    watcher: ComparisonWatcher,
) -> MethodRun:
    usual = plan.drafts[model].plan.config
    if isinstance(settled, Exception):
        rows = [failed_row(usual, split, settled) for split in usual.splits]
        return MethodRun(model, usual, None, rows)
    chosen, folder = settled
    rows = run_splits(chosen, folder, watcher)
    return MethodRun(model, chosen.config, folder, rows)


def _cell(plan: ComparisonPlan, run: MethodRun, split: int) -> Cell:
    job = Job(run.config.for_split(split), split, None)
    score = MAIN_SCORES[run.config.task]
    return Cell("compare", run.model, score, plan.results, job)


def ensemble_rows(members: Sequence[MethodRun], graph: Data) -> list[Row]:
    """Scores of the members' mean, a row per split; each member as its own split trained it."""
    return [_ensemble_row(members, graph, split) for split in members[0].config.splits]


@torch.no_grad()
def _ensemble_row(members: Sequence[MethodRun], graph: Data, split: int) -> Row:
    problem = pose_problem(graph, split, "cpu")
    visible, judge, config = problem.visible, problem.judge, members[0].config
    found = []
    for member in members:
        assert member.folder is not None
        checkpoint, model = read_folder(member.folder.model(split))
        edges = edges_of(visible)
        raw, _ = scores_and_metrics(model.eval(), visible.x, edges, checkpoint.precision)
        found.append(_predicted(raw.float(), config.task, checkpoint.temperature))
    outputs = _outputs(torch.stack(found).mean(0), config.task)
    threshold = judge.threshold(outputs, config.train)
    return {
        "split": split,
        "seed": config.seed,
        "task": config.task,
        **{part: judge.scores(model, outputs, part, threshold) for part in ("test", "val")},
        **judge.twin_scores(outputs, threshold),
        **judge.class_scores(outputs, threshold),
    }


def _predicted(raw: Tensor, task: str, temperature: float) -> Tensor:
    """What is averaged: calibrated probabilities of classes, those of labels, or numbers."""
    if task == "node":
        return probabilities(raw, temperature)
    return torch.sigmoid(raw.double()) if task == "multilabel" else raw.double()


def _outputs(mean: Tensor, task: str) -> Tensor:
    """Raw scores whose probabilities are the mean ones."""
    if task == "node":
        return mean.clamp_min(torch.finfo(mean.dtype).tiny).log()
    return torch.logit(mean, eps=1e-12) if task == "multilabel" else mean
