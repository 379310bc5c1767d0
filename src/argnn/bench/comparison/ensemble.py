"""The mean prediction of several methods, judged as one."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.bench.comparison.methods import MethodRun
from argnn.functional.neighborhood import edges_of
from argnn.runs.problems import pose_problem
from argnn.store.model_folder import read_folder
from argnn.store.results import Row
from argnn.train import scores_and_metrics
from argnn.train.calibration import probabilities


def ensemble_rows(members: Sequence[MethodRun], graph: Data) -> list[Row]:
    """Scores of the members' mean, a row per split; each member as its own split trained it."""
    return [_row(members, graph, split) for split in members[0].config.splits]


@torch.no_grad()
def _row(members: Sequence[MethodRun], graph: Data, split: int) -> Row:
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
