"""Where the settings between a preset and the user's own come from."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.data import DATASETS
from argnn.nn import MODELS
from argnn.runs.problems import pose_problem
from argnn.runs.threads import threads_for, using_threads
from argnn.settings.request import Request, data_name
from argnn.settings.stored import Settings, find_settings
from argnn.settings.tuned import read_tuned
from argnn.train import Trial, TrialReport, choose_switches
from argnn.train.trial import TRIAL_EPOCHS

OnTrial = Callable[[Trial], None]


@dataclass(frozen=True)
class Recipe:
    """Settings and where they come from.

    Attributes:
        options: Options of the model.
        train: Training settings.
        source: Where they come from, in words.
        decoder: For links, what scores the pairs; None leaves it to the model.
        trial: The short runs that chose them, where there were any.
    """

    options: Mapping[str, Any]
    train: Mapping[str, Any]
    source: str
    decoder: str | None = None
    trial: dict[str, Any] | None = None


def known_recipe(request: Request, model: str, preset: str) -> Recipe | None:
    """The recipe of a request, or nothing where only a trial on its graph can tell.

    Args:
        request: What the user asked for.
        model: The model's own name.
        preset: The preset's own name.
    """
    if request.settings_file is not None:
        return _tuned(request, model, preset)
    stored = None if request.fresh else _stored(request, model, preset)
    if stored is not None:
        options = {**_link_options(request, model), **stored.model}
        return Recipe(options, stored.train, stored.source, stored.decoder)
    if model != "argnn":
        return Recipe(_link_options(request, model), {}, "usual settings of a baseline")
    if preset != "default" or request.fresh or request.task == "link":
        return Recipe(_link_options(request, model), {}, f"preset {preset}")
    return None


def _tuned(request: Request, model: str, preset: str) -> Recipe:
    """What a file of ``argnn tune`` says, which must be about this model and task."""
    path = Path(str(request.settings_file))
    tuned = read_tuned(path)
    tuned.require(path, {"model": model, "preset": preset, "task": request.task})
    decoder = None if tuned.link is None else tuned.link["decoder"]
    return Recipe(tuned.options, tuned.train, tuned.source, decoder)


def _link_options(request: Request, model: str) -> dict[str, Any]:
    return MODELS[model].link_options if request.task == "link" else {}


def _stored(request: Request, model: str, preset: str) -> Settings | None:
    return find_settings(
        data_name(request.data),
        directed=is_directed(request),
        preset=preset,
        task=request.task,
        method=model,
    )


def is_directed(request: Request) -> bool:
    """Whether directions were asked for, and the graph can have any."""
    name = data_name(request.data)
    return request.directed and (name not in DATASETS or DATASETS[name].directed)


def trial_recipe(
    request: Request, graph: Data, split: int, device: str, on_trial: OnTrial | None
) -> Recipe:
    """Choose the switches of argnn by short runs on one split; they see no test label."""
    with using_threads(threads_for(1)):
        problem = pose_problem(graph, split, device)
        report = choose_switches(
            problem.visible,
            problem.task,
            graph.class_count,
            directed=is_directed(request),
            seed=request.seed,
            on_trial=on_trial,
        )
        facts = _trial_facts(report, split)
    source = f"chosen by {len(report.trials)} short runs on validation: {report.chosen.name}"
    return Recipe(report.chosen.model, report.chosen.train, source, trial=facts)


def _trial_facts(report: TrialReport, split: int) -> dict[str, Any]:
    return {
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
