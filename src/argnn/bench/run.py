"""Run one split: train, score the test nodes once, write the results."""

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.bench.config import RunConfig, build_model
from argnn.bench.inputs import training_inputs
from argnn.bench.provenance import device_name, git_state, peak_memory_mib, versions
from argnn.data import split_masks
from argnn.errors import ArgnnError, RunError
from argnn.io import (
    RunFolder,
    fingerprint,
    read_checkpoint,
    read_json,
    read_tensors,
    write_checkpoint,
    write_json,
    write_tensors,
)
from argnn.nn import AbstractNodeModel
from argnn.train import (
    EpochRecord,
    FitResult,
    Snapshot,
    fit,
    node_scores,
    scores_and_metrics,
)

Row = dict[str, Any]
OnEpoch = Callable[[EpochRecord], None]

_ROW_KEYS = ("split", "test", "val", "chosen_epoch", "history")


def run_split(
    config: RunConfig,
    graph: Data,
    split: int,
    folder: RunFolder,
    on_epoch: OnEpoch | None = None,
) -> Row:
    """Train on one split, then score its test nodes: the only time their labels are read.

    An unfinished split is continued from its checkpoint, with the same bits as if it had never
    stopped.

    Args:
        config: What to run.
        graph: The graph that ``config`` describes.
        split: Number of the split.
        folder: Where weights, result and checkpoints go.
        on_epoch: Called after each epoch.
    """
    began = time.perf_counter()
    torch.manual_seed(config.seed)
    visible, task = training_inputs(graph, split, config.device)
    model = _fresh_model(config, graph).to(config.device)
    saved = _saved_state(config, split, folder)
    spent = 0.0 if saved is None else float(saved.values.get("seconds", 0.0))

    def save(snapshot: Snapshot) -> None:
        values = {**snapshot.values, "seconds": spent + time.perf_counter() - began}
        path = folder.checkpoint(split)
        write_checkpoint(path, snapshot.tensors, values, fingerprint(config.to_json()))

    result = fit(
        model, visible, task, config.train, on_epoch=on_epoch, save=save, resume_from=saved
    )
    row = {
        **_identity(config, split),
        "config": config.to_json(),
        **_scores(model, visible, graph, split, config.train.precision),
        **_course(result),
        "seconds": spent + time.perf_counter() - began,
        "resumed_from_epoch": None if saved is None else len(saved.values["history"]),
        **_surroundings(config),
        "history": [asdict(record) for record in result.history],
    }
    write_tensors(folder.weights(split), model.state_dict(), _model_facts(config, graph))
    write_json(folder.result(split), row)
    folder.checkpoint(split).unlink(missing_ok=True)
    return row


def _fresh_model(config: RunConfig, graph: Data) -> AbstractNodeModel:
    return build_model(config.model, config.options, graph.x.size(1), graph.class_count)


def _saved_state(config: RunConfig, split: int, folder: RunFolder) -> Snapshot | None:
    path = folder.checkpoint(split)
    if not path.exists():
        return None
    return Snapshot(*read_checkpoint(path, fingerprint(config.to_json())))


def _identity(config: RunConfig, split: int) -> Row:
    return {
        "data": config.data,
        "model": config.model,
        "preset": config.preset,
        "split": split,
        "seed": config.seed,
    }


@torch.no_grad()
def _scores(
    model: AbstractNodeModel, visible: Data, graph: Data, split: int, precision: str
) -> Row:
    """Scores of the chosen epoch on test and validation nodes, in the precision it had."""
    scores, _ = scores_and_metrics(model.eval(), visible.x, visible.edge_index, precision)
    logits = scores.cpu()
    _, val, test = split_masks(graph, split)
    return {"test": _node_scores(logits, graph.y, test), "val": _node_scores(logits, graph.y, val)}


def _node_scores(logits: Tensor, y: Tensor, mask: Tensor) -> Row | None:
    if not mask.any():
        return None
    scores = asdict(node_scores(logits[mask], y[mask]))
    return {**scores, "absent_classes": list(scores["absent_classes"])}


def _course(result: FitResult) -> Row:
    return {
        "chosen_epoch": result.best_epoch,
        "epochs_run": result.epochs_run,
        "stopped_by": result.stopped_by,
        "penalty_weights": result.penalty_weights,
    }


def _surroundings(config: RunConfig) -> Row:
    facts: Row = {"peak_memory_mib": peak_memory_mib()}
    if config.device == "cuda":
        facts["peak_device_memory_mib"] = torch.cuda.max_memory_allocated() / 2**20
    return {
        **facts,
        "device": device_name(config.device),
        "threads": torch.get_num_threads(),
        "versions": versions(),
        **git_state(),
    }


def _model_facts(config: RunConfig, graph: Data) -> Row:
    """What is needed to rebuild the model, and nothing that depends on test labels."""
    return {
        "model": config.model,
        "options": config.options,
        "in_channels": graph.x.size(1),
        "out_channels": graph.class_count,
    }


def trained_model(folder: RunFolder, split: int) -> AbstractNodeModel:
    """The model of a finished split, with its weights."""
    path = folder.weights(split)
    tensors, facts = read_tensors(path)
    try:
        model = build_model(
            facts["model"], facts["options"], facts["in_channels"], facts["out_channels"]
        )
        model.load_state_dict(tensors)
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise RunError(f"{path}: does not fit the model it names ({error})") from error
    return model.eval()


def finished_row(folder: RunFolder, split: int) -> Row | None:
    """The row of a split that was finished before, or nothing."""
    path = folder.result(split)
    return read_json(path, _ROW_KEYS) if path.exists() else None


def failed_row(config: RunConfig, split: int, error: Exception) -> Row:
    """The row of a split that ended with an error; a traceback only for what nobody foresaw."""
    row = {**_identity(config, split), "error": f"{type(error).__name__}: {error}"}
    if not isinstance(error, ArgnnError):
        row["traceback"] = "".join(traceback.format_exception(error))
    return row


def short_row(row: Mapping[str, Any]) -> Row:
    """A row without what the run folder holds elsewhere: configuration and history."""
    return {key: value for key, value in row.items() if key not in ("config", "history")}
