"""Training: configuration, tasks and the loop. Data comes as arguments; no file is opened."""

from argnn.train.config import TRAIN_PRESETS, TrainConfig, train_config
from argnn.train.loop import EpochRecord, FitResult, Snapshot, fit
from argnn.train.precision import scores_and_metrics
from argnn.train.scores import NodeScores, node_scores
from argnn.train.tasks import NodeClassification, Task, Validation
from argnn.train.trial import Recipe, Trial, TrialReport, choose_switches

__all__ = [
    "TRAIN_PRESETS",
    "EpochRecord",
    "FitResult",
    "NodeClassification",
    "NodeScores",
    "Recipe",
    "Snapshot",
    "Task",
    "TrainConfig",
    "Trial",
    "TrialReport",
    "Validation",
    "choose_switches",
    "fit",
    "node_scores",
    "scores_and_metrics",
    "train_config",
]
