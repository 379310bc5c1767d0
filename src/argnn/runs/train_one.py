"""Train one model: what every command and every estimator calls."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor
from torch_geometric.data import Data

from argnn.nn import AbstractNodeModel
from argnn.runs.curvature import load_curvature
from argnn.settings.model_spec import seeded
from argnn.settings.run_config import RunConfig
from argnn.train import EpochRecord, FitResult, Snapshot, Task, fit

OnEpoch = Callable[[EpochRecord], None]
#: Gets the model, the epoch and the outputs at every validation; what it does cannot reach them.
Observer = Callable[[AbstractNodeModel, int, Tensor], None]


@dataclass(frozen=True)
class Trained:
    """A trained model.

    Attributes:
        model: The model with the weights of its best validation epoch.
        result: How the training went.
        curvature: How curvatures that the model reads were found; None for most models.
    """

    model: AbstractNodeModel
    result: FitResult
    curvature: dict[str, Any] | None


def train_one(
    config: RunConfig,
    visible: Data,
    task: Task,
    *,
    on_epoch: OnEpoch | None = None,
    save: Callable[[Snapshot], None] | None = None,
    observe: Observer | None = None,
    resume_from: Snapshot | None = None,
) -> Trained:
    """Build the model of a configuration and train it; the caller's random numbers stay.

    Args:
        config: Everything that decides the result.
        visible: Features and edges that the model may see, on ``config.device``.
        task: Loss and validation score; it holds no test label.
        on_epoch: Called with the record of every epoch.
        save: Called with what is needed to continue, every ``checkpoint_every`` epochs.
        observe: Called with the model, the epoch and its outputs at every validation.
        resume_from: What ``save`` got, to continue from there.
    """
    with seeded(config.seed):
        model = config.spec.build().to(config.device)
    curvature = load_curvature(config, visible)
    result = fit(
        model,
        visible,
        task,
        config.train,
        on_epoch=on_epoch,
        save=save,
        observe=None if observe is None else partial(observe, model),
        resume_from=resume_from,
    )
    return Trained(model, result, curvature)
