"""Run one split: train, score the test set once, write the results and the model."""

import math
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.data import split_masks
from argnn.errors import FORESEEN, ConfigError
from argnn.nn import AbstractNodeModel
from argnn.runs.batch_sources import sees_parts
from argnn.runs.dashboard import Dashboard
from argnn.runs.machine import device_name, git_state, peak_mib, reset_peak, versions
from argnn.runs.problems import Judge, Problem, class_labels, problem_of
from argnn.runs.summary import selection_of_row
from argnn.runs.train_one import OnEpoch, TrainedModel, train_one
from argnn.settings.run_config import RunConfig
from argnn.store.model_folder import Checkpoint, read_folder, write_folder
from argnn.store.results import Row
from argnn.store.run_folder import RunFolder, read_checkpoint, write_checkpoint
from argnn.store.seen_nodes import SeenNodes
from argnn.train import Snapshot
from argnn.train.calibration import calibrate, calibration_error, probabilities
from argnn.train.devices import on_cuda

#: The share of its best validation score at which a run counts as converged.
CONVERGED = 0.99


def run_split(
    config: RunConfig,
    graph: Data,
    split: int,
    folder: RunFolder,
    on_epoch: OnEpoch | None = None,
    dashboard: bool = False,
) -> Row:
    """Train on one split, then score its test set: the only time its labels are read.

    An unfinished split is continued from its checkpoint, with the same bits as if it had never
    stopped.

    ``dashboard`` asks for TensorBoard events and a record of the metric.
    """
    trained, row, problem = _trained(config, graph, split, on_epoch, folder, dashboard=dashboard)
    _write_model(folder.model(split), config, graph, trained, problem, row)
    folder.finish(split, row)
    return row


def run_cell(
    config: RunConfig,
    graph: Data,
    split: int,
    on_epoch: OnEpoch | None = None,
    oracle: bool = False,
) -> Row:
    """Train and score one split as :func:`run_split` does, but keep nothing except its row.

    With ``oracle`` the row also says what choosing the epoch by test score would give.
    """
    _, row, _ = _trained(config, graph, split, on_epoch, None, oracle=oracle)
    del row["resumed_from_epoch"]
    return {"course": _course(row.pop("history")), **row}


def _trained(
    config: RunConfig,
    graph: Data,
    split: int,
    on_epoch: OnEpoch | None,
    folder: RunFolder | None,
    *,
    oracle: bool = False,
    dashboard: bool = False,
) -> tuple[TrainedModel, Row, Problem]:
    """The trained model of a split, its row, and what it was trained for.

    With a folder, an unfinished training is stored there, and continued.
    """
    saved = None if folder is None else _saved_state(folder.checkpoint(split), config)
    spent = 0.0 if saved is None else float(saved.values.get("seconds", 0.0))
    began = time.perf_counter()
    reset_peak()
    if on_cuda(config.device):
        torch.cuda.reset_peak_memory_stats(config.device)
    problem = problem_of(config, graph, split)
    observer = _Oracle(problem.judge) if oracle else None
    board = None
    if dashboard and sees_parts(config.train):
        raise ConfigError("a dashboard needs the whole graph at once: leave out --dashboard")
    if dashboard and folder is not None:
        board = Dashboard(folder, split, problem.visible, graph, config.train.epochs, on_epoch)

    def save(snapshot: Snapshot) -> None:
        values = {**snapshot.values, "seconds": spent + time.perf_counter() - began}
        if folder is not None:
            write_checkpoint(folder.checkpoint(split), snapshot.tensors, values, config.to_json())

    with nullcontext() if board is None else closing(board):
        trained = train_one(
            config,
            problem.visible,
            problem.task,
            split=split,
            on_epoch=on_epoch if board is None else board.epoch,
            save=None if folder is None else save,
            observe=observer if board is None else board,
            resume_from=saved,
        )
        if board is not None:
            board.finish(trained.model)
    model, result = trained.model, trained.result
    row = {
        **identity(config, split),
        "config": config.to_json(),
        **judged(problem.judge, model, trained.outputs(), config),
        **chosen_by(config, result.val_score, result.val_loss),
        "oracle": None if observer is None else observer.best,
        "chosen_epoch": result.best_epoch,
        "epochs_run": result.epochs_run,
        "stopped_by": result.stopped_by,
        "penalty_weights": result.penalty_weights,
        **({} if trained.curvature is None else {"curvature": trained.curvature}),
        "num_parameters": sum(parameter.numel() for parameter in model.parameters()),
        "seconds": spent + time.perf_counter() - began,
        "resumed_from_epoch": None if saved is None else len(saved.values["history"]),
        **_surroundings(config),
        "history": [asdict(record) for record in result.history],
    }
    return trained, row, problem


def _course(history: Sequence[Mapping[str, Any]]) -> Row:
    """Three numbers about the course of a training, for rows that do not keep its history."""
    return {
        "converged_at": convergence_epoch(history),
        "first_loss": history[0]["loss"],
        "last_loss": history[-1]["loss"],
    }


def convergence_epoch(history: Sequence[Mapping[str, Any]]) -> int | None:
    """First epoch whose validation score reaches 99 % of the best one.

    Example:
        >>> scores = [0.5, 0.8, 0.995, 1.0]
        >>> convergence_epoch([{"epoch": n, "val_score": s} for n, s in enumerate(scores, 1)])
        3
    """
    known = [(row["epoch"], row["val_score"]) for row in history if row["val_score"] is not None]
    if not known:
        return None
    best = max(score for _, score in known)
    # A loss that is minimised is stored with a minus.
    enough = best - (1 - CONVERGED) * abs(best)
    return int(next(epoch for epoch, score in known if score >= enough))


class _Oracle:
    """Records the best test score over all epochs, by which the authors' code chooses the epoch.

    It has no effect on training. It shows how much of a published figure comes from that choice.
    """

    RULE = "best test score over epochs"
    best: Row | None

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self.highest, self.best = -math.inf, None

    def __call__(self, model: AbstractNodeModel, epoch: int, outputs: Tensor) -> None:
        score = self.judge.main_test_score(model, outputs)
        if score is not None and score > self.highest:
            self.highest = score
            scores = self.judge.scores(model, outputs, "test")
            self.best = {"rule": self.RULE, "epoch": epoch, "test": scores}


def _saved_state(path: Path, config: RunConfig) -> Snapshot | None:
    return Snapshot(*read_checkpoint(path, config.to_json())) if path.exists() else None


def identity(config: RunConfig, split: int) -> Row:
    """What a row is about."""
    names = ("task", "data", "directed", "model", "preset")
    return {**{name: getattr(config, name) for name in names}, "split": split, "seed": config.seed}


@torch.no_grad()
def judged(judge: Judge, model: AbstractNodeModel, outputs: Tensor, config: RunConfig) -> Row:
    """Scores of the chosen epoch on test and validation set, in the precision it had."""
    threshold = judge.threshold(outputs, config.train)
    return {
        "test": judge.scores(model, outputs, "test", threshold),
        **judge.twin_scores(outputs, threshold),
        "val": judge.scores(model, outputs, "val", threshold),
        **judge.class_scores(outputs, threshold),
        **(judge.tally(outputs) if "folds" in config.columns else {}),
        **({} if config.train.threshold is None else {"threshold": threshold}),
    }


def chosen_by(config: RunConfig, val_score: float, val_loss: float) -> Row:
    """The score that chose the epoch, where the user named one."""
    select = config.train.select
    if select is None:
        return {}
    value = val_loss if select == "loss" else val_score
    return {"selection": {"score": select, "val": value}}


def _surroundings(config: RunConfig) -> Row:
    facts: Row = {"peak_memory_mib": peak_mib()}
    if on_cuda(config.device):
        facts["peak_device_memory_mib"] = torch.cuda.max_memory_allocated(config.device) / 2**20
    return {
        **facts,
        "device": device_name(config.device),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        **git_state(),
    }


def trained_model(folder: RunFolder, split: int) -> AbstractNodeModel:
    """The model of a finished split, with its weights."""
    return read_folder(folder.model(split))[1].eval()


def failed_row(config: RunConfig, split: int, error: Exception) -> Row:
    """The row of a split that ended with an error; with a traceback only for unexpected errors."""
    row = {**identity(config, split), "error": f"{type(error).__name__}: {error}"}
    if not isinstance(error, FORESEEN):
        row["traceback"] = "".join(traceback.format_exception(error))
    return row


def _write_model(
    path: Path,
    config: RunConfig,
    graph: Data,
    trained: TrainedModel,
    problem: Problem,
    row: Mapping[str, Any],
) -> None:
    """Write the model of a split; classes and links are calibrated on its validation set."""
    calibration: dict[str, Any] = {"calibration": None}
    classes: list[Any] = []
    if problem.target is None:
        calibration = _calibration(trained, problem)
        classes = class_labels(graph) if config.task == "node" else []
    elif problem.target.kind == "multilabel":
        classes = problem.target.names
    checkpoint = Checkpoint(
        spec=config.spec,
        classes=classes,
        temperature=(calibration["calibration"] or {"temperature": 1.0})["temperature"],
        threshold=row["val"]["threshold"] if config.task == "link" else row.get("threshold", 0.0),
        precision=config.train.precision,
        directed=config.directed,
        row_normalize=config.row_normalize,
        schema=problem.schema,
        target=problem.target,
        params=_params(config),
        facts={**_facts(config, row), **calibration, **_seen(config, graph, row["split"])},
    )
    state = trained.model.state_dict()
    write_folder(path, checkpoint, state, overwrite=True)


def _seen(config: RunConfig, graph: Data, split: int) -> dict[str, Any]:
    """The nodes whose labels were used in training; None for links."""
    if config.link is not None:
        return {}
    train, val, _ = split_masks(graph, split)
    return {"seen": SeenNodes.of(graph, train, val).to_json()}


@torch.no_grad()
def _calibration(trained: TrainedModel, problem: Problem) -> dict[str, Any]:
    """The temperature from validation, and the calibration errors before and after."""
    model, outputs = trained.model, trained.outputs()
    found = calibrate(*problem.judge.decisions(model, outputs, "val"))
    logits, labels = problem.judge.decisions(model, outputs, "test")
    test_ece = None
    if labels.numel():
        test_ece = calibration_error(probabilities(logits, found.temperature), labels)
    return {"calibration": asdict(found), "test_ece": test_ece}


def _params(config: RunConfig) -> dict[str, Any]:
    """Parameters of an estimator that would train in the same way."""
    train = {name: value for name, value in config.train.to_json().items() if name != "seed"}
    params: dict[str, Any] = {
        "model": config.model,
        "preset": config.preset,
        "model_options": config.options,
        "train_options": train,
        "row_normalize": config.row_normalize,
        "random_state": config.seed,
    }
    if config.link is None:
        return {**params, "directed": config.directed, "trial": False}
    return {**params, **config.link.to_json()}


def _facts(config: RunConfig, row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "graph": {name: value for name, value in config.graph.items() if name != "digest"},
        "split_rule": f"{config.graph['split_rule']}; split {row['split']}"
        if config.link is None
        else f"{config.link.rule}, split {row['split']}",
        "counts": {},
        **({"rare_class": row["classes"]["rare"]} if config.task == "node" else {}),
        "best_epoch": row["chosen_epoch"],
        "epochs_run": row["epochs_run"],
        "val_score": selection_of_row(row)[1],
        "scores": {part: row[part] for part in ("val", "test")},
        "source": config.source,
        "train": config.train.to_json(),
        "versions": versions(),
    }
