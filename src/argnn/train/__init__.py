"""Training: settings, tasks and the loop. Data comes as arguments; no file is opened."""

from argnn.train.batches import Batch, BatchSource, WholeGraph
from argnn.train.config import OPTIMIZERS, TRAIN_PRESETS, TrainConfig, train_config
from argnn.train.devices import scores_and_metrics
from argnn.train.loop import EpochRecord, FitResult, Snapshot, fit
from argnn.train.negatives import NegativeSampler
from argnn.train.scores import (
    ClassScores,
    LinkScores,
    NodeScores,
    best_threshold,
    class_scores,
    decided,
    link_scores,
    node_scores,
)
from argnn.train.selection import SELECTIONS
from argnn.train.tasks import LinkPrediction, NodeClassification, Task, Validation

__all__ = [
    "OPTIMIZERS", "SELECTIONS", "TRAIN_PRESETS", "Batch", "BatchSource", "ClassScores",
    "EpochRecord", "FitResult", "LinkPrediction", "LinkScores", "NegativeSampler",
    "NodeClassification", "NodeScores", "Snapshot", "Task", "TrainConfig", "Validation",
    "WholeGraph", "best_threshold", "class_scores", "decided", "fit", "link_scores", "node_scores",
    "scores_and_metrics", "train_config",
]  # fmt: skip
