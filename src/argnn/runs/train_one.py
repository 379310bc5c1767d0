"""Train one model: what every command and every estimator calls.

A model that uses Ollivier-Ricci curvature has an option ``ricci`` that says how it is found. Those
of a large graph take minutes, so they are kept on disk. The file only saves time: its name is a
checksum of the edges and of the method.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from argnn.files import cache_file, from_cache, tensors_digest, to_cache
from argnn.functional.neighborhood import Edges, edges_of, neighborhood
from argnn.functional.ollivier import (
    MAX_CELLS,
    is_estimated,
    keep_pair_curvature,
    pair_curvature,
)
from argnn.nn import AbstractNodeModel
from argnn.runs.batch_sources import batch_source
from argnn.runs.machine import core_count, step_memory_kept, using_threads
from argnn.runs.problems import pose_problem
from argnn.runs.ranks import TrainOrder, leading, rank_count
from argnn.settings.run_config import RunConfig
from argnn.telling import TellCount
from argnn.train import EpochRecord, FitResult, Snapshot, Task, fit, scores_and_metrics
from argnn.train.batches import BatchSource, WholeGraph
from argnn.train.devices import current_device

OnEpoch = Callable[[EpochRecord], None]
#: Gets the model, the epoch and the outputs at every validation; what it does cannot reach them.
Observer = Callable[[AbstractNodeModel, int, Tensor], None]


@dataclass(frozen=True)
class TrainedModel:
    """A trained model.

    Attributes:
        model: The model with the weights of its best validation epoch.
        result: How the training went.
        curvature: How curvatures that the model reads were found; None for most models.
        outputs: Gives the outputs of the model on the whole graph, ``[N, C]``, computed once.
    """

    model: AbstractNodeModel
    result: FitResult
    curvature: dict[str, Any] | None
    outputs: Callable[[], Tensor]


def train_one(
    config: RunConfig,
    visible: Data,
    task: Task,
    *,
    split: int | None = None,
    on_epoch: OnEpoch | None = None,
    save: Callable[[Snapshot], None] | None = None,
    observe: Observer | None = None,
    resume_from: Snapshot | None = None,
) -> TrainedModel:
    """Build the model of a configuration and train it; the caller's random numbers stay.

    Args:
        config: Everything that decides the result.
        visible: Features and edges that the model may see, on ``config.device``.
        task: Loss and validation score; it holds no test label.
        split: Number of the split, by which other processes of ``torchrun`` find the same problem.
        on_epoch: Called with the record of every epoch.
        save: Called with what is needed to continue, every ``checkpoint_every`` epochs.
        observe: Called with the model, the epoch and its outputs at every validation.
        resume_from: What ``save`` got, to continue from there.
    """
    model = config.fresh_model().to(config.device)
    curvature = load_curvature(config, visible)
    with (
        current_device(config.device),
        leading(_order(config, split, resume_from)),
        step_memory_kept() as step_done,
    ):
        batches = batch_source(config, visible, task)

        def epoch_done(record: EpochRecord) -> None:
            if isinstance(batches, WholeGraph):  # parts are there to take little memory
                step_done()
            if on_epoch is not None:
                on_epoch(record)

        result = fit(
            model,
            visible,
            task,
            config.train,
            batches=batches,
            on_epoch=epoch_done,
            save=save,
            observe=None if observe is None else partial(observe, model),
            resume_from=resume_from,
        )
        outputs = cache(partial(_outputs, model, visible, config, batches))
        if rank_count() > 1:  # all processes have to take part
            outputs()
    return TrainedModel(model, result, curvature, outputs)


def _order(config: RunConfig, split: int | None, resume_from: Snapshot | None) -> TrainOrder | None:
    snapshot = None if resume_from is None else (resume_from.tensors, resume_from.values)
    return None if split is None else TrainOrder(config.to_json(), split, snapshot)


@torch.no_grad()
def _outputs(
    model: AbstractNodeModel, visible: Data, config: RunConfig, batches: BatchSource
) -> Tensor:
    def forward(x: Tensor, edge_index: Edges) -> tuple[Tensor, list[Tensor]]:
        return scores_and_metrics(model, x, edge_index, config.train.precision)

    return batches.outputs(model.eval(), forward, visible.x, edges_of(visible))


# Raise it when the values of a method change, and files are made anew.
_FORMAT = 1
_ALPHA = 0.5


def precompute_curvature(
    config: RunConfig, graph: Data, on_progress: TellCount | None = None
) -> None:
    """Compute what the splits of a run need and is not on disk yet, with all cores."""
    # Splits of nodes share their edges; every split of links has its own.
    splits = config.splits if config.task == "link" else config.splits[:1]
    if "ricci" in config.options:
        with using_threads(core_count()):
            for split in splits:
                visible = pose_problem(graph, split, "cpu", config.link).visible
                load_curvature(config, visible, on_progress)


def load_curvature(
    config: RunConfig, visible: Data, on_progress: TellCount | None = None
) -> dict[str, Any] | None:
    """Have the curvatures that a model needs ready with the edges that it sees.

    Gives how they were found, for the record; None for a model without curvatures.
    """
    if "ricci" not in config.options:
        return None
    method, nodes = config.options["ricci"], visible.x.size(0)
    edges = neighborhood(edges_of(visible), nodes).wide
    path = curvature_file(edges, nodes, method)

    def use(tensors: dict[str, Tensor], facts: dict[str, Any]) -> dict[str, Any]:
        keep_pair_curvature(edges, nodes, tensors["curvature"], _ALPHA, method)
        return facts

    facts = from_cache(path, use)
    if facts is None:
        began = time.perf_counter()
        values = pair_curvature(edges, nodes, _ALPHA, method, on_progress)
        estimated = int(is_estimated(edges, nodes, method).sum())
        facts = {
            "method": method,
            "exact": values.numel() - estimated,
            "estimated": estimated,
            "seconds": time.perf_counter() - began,
        }
        to_cache(path, {"curvature": values}, facts, "curvatures are")
    return facts


def curvature_file(edge_index: Edges, num_nodes: int, method: str) -> Path:
    """Where curvatures of edges are kept; direction, order and repeats do not matter."""
    hood = neighborhood(edge_index, num_nodes)
    parts = {"pairs": hood.pairs}
    if hood.pair_weight is not None:
        parts["weight"] = hood.pair_weight
    content = {
        "format": _FORMAT,
        "pairs": tensors_digest(parts),
        "alpha": _ALPHA,
        "method": method,
        "max_cells": MAX_CELLS,
    }
    return cache_file("curvature", content)
