"""Leave the model of a finished split as a folder that ``argnn.load`` opens."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.nn import AbstractNodeModel
from argnn.runs.problems import Problem
from argnn.runs.provenance import versions
from argnn.runs.summary import SELECTION
from argnn.settings.run_config import RunConfig
from argnn.store.model_card import model_card
from argnn.store.model_folder import Checkpoint, write_folder
from argnn.train import scores_and_metrics
from argnn.train.calibration import calibrate, calibration_error, probabilities


def write_model(
    path: Path,
    config: RunConfig,
    graph: Data,
    model: AbstractNodeModel,
    problem: Problem,
    row: Mapping[str, Any],
) -> None:
    """Calibrate the model of a split on its validation set, and write it.

    Args:
        path: The folder.
        config: What was run.
        graph: The graph that ``config`` describes.
        model: The trained model.
        problem: What it was trained for.
        row: The scores of the split.
    """
    calibration = _calibration(model, problem, config.train.precision)
    checkpoint = Checkpoint(
        spec=config.spec,
        classes=_classes(graph) if config.task == "node" else [],
        temperature=calibration["calibration"]["temperature"],
        threshold=row["val"]["threshold"] if config.task == "link" else 0.0,
        precision=config.train.precision,
        directed=config.directed,
        row_normalize=config.row_normalize,
        schema=problem.schema,
        params=_params(config),
        facts={**_facts(config, row), **calibration},
    )
    write_folder(path, checkpoint, model.state_dict(), model_card(checkpoint), overwrite=True)


@torch.no_grad()
def _calibration(model: AbstractNodeModel, problem: Problem, precision: str) -> dict[str, Any]:
    """The temperature from validation, and what it makes of the test set."""
    visible = problem.visible
    outputs, _ = scores_and_metrics(model.eval(), visible.x, visible.edge_index, precision)
    found = calibrate(*problem.judge.decisions(model, outputs, "val"))
    logits, labels = problem.judge.decisions(model, outputs, "test")
    tested = labels.numel() > 0
    test_ece = (
        calibration_error(probabilities(logits, found.temperature), labels) if tested else None
    )
    return {"calibration": asdict(found), "test_ece": test_ece}


def _classes(graph: Data) -> list[Any]:
    """Names of the classes, or their numbers where they have no names of their own."""
    names = graph.get("class_names")
    numbers = list(range(graph.class_count))
    if names is None or list(names) == [f"class {number}" for number in numbers]:
        return numbers
    return [str(name) for name in names]


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
    return {**params, **asdict(config.link)}


def _facts(config: RunConfig, row: Mapping[str, Any]) -> dict[str, Any]:
    scores = {part: row[part] for part in ("val", "test")}
    return {
        "graph": {name: value for name, value in config.graph.items() if name != "digest"},
        "split_rule": f"{config.graph['split_rule']}; split {row['split']}"
        if config.link is None
        else f"unordered pairs at {config.link.ratio}, split {row['split']}",
        "counts": {},
        "best_epoch": row["chosen_epoch"],
        "epochs_run": row["epochs_run"],
        "val_score": row["val"][SELECTION[config.task]],
        "scores": scores,
        "source": config.source,
        "train": config.train.to_json(),
        "versions": versions(),
    }
