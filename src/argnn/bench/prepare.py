"""From what a user asked for to a complete configuration and a graph."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data

from argnn.bench.config import (
    Overrides,
    RunConfig,
    check_preset,
    parse_overrides,
    resolve_device,
    resolve_options,
    resolve_train,
)
from argnn.bench.inputs import training_inputs
from argnn.bench.settings import find_settings
from argnn.bench.threads import core_count, threads_for, using_threads
from argnn.data import DATASETS, load, split_masks
from argnn.errors import ConfigError, DataError, RunError
from argnn.io import tensors_digest
from argnn.nn import MODELS
from argnn.registry import canonical_name
from argnn.train import Trial, TrialReport, choose_switches
from argnn.train.trial import TRIAL_EPOCHS

_LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Request:
    """What a user asked for, before anything was looked up.

    Attributes:
        data: Name of a data set, or the path of a file.
        model: Name of a model.
        preset: Name of a preset.
        split: A number, several with commas, or ``"all"``.
        seed: Seed of weights and dropout.
        device: ``"auto"``, ``"cpu"`` or ``"cuda"``.
        overrides: Texts such as ``train.lr=0.01``; later ones win.
        data_root: Folder of the raw benchmark files.
        directed: Keep the directions of the edges.
        row_normalize: Scale each row of the features to sum one.
        workers: How many splits run at the same time; as many as there are cores if not given.
    """

    data: str
    model: str = "argnn"
    preset: str = "default"
    split: str = "0"
    seed: int = 0
    device: str = "auto"
    overrides: tuple[str, ...] = ()
    data_root: str | None = None
    directed: bool = False
    row_normalize: bool = False
    workers: int | None = None


@dataclass(frozen=True)
class Plan:
    """A complete configuration, its graph, and how many splits run at the same time."""

    config: RunConfig
    graph: Data
    workers: int


@dataclass(frozen=True)
class _Recipe:
    """Settings between preset and overrides, and where they come from."""

    options: Mapping[str, Any]
    train: Mapping[str, Any]
    source: str
    trial: dict[str, Any] | None = None


def prepare(request: Request, on_trial: Callable[[Trial], None] | None = None) -> Plan:
    """Check a request, load its graph, and settle every setting.

    For argnn on a graph without stored settings the switches are chosen by a short trial on
    the first requested split; it sees no test label.

    Args:
        request: What the user asked for.
        on_trial: Called after each short run of a trial.
    """
    model = canonical_name(request.model, MODELS, "model")
    preset = check_preset(model, request.preset)
    overrides = parse_overrides(request.overrides, model)
    if not 0 <= request.seed <= _LARGEST_SEED:
        raise ConfigError(f"--seed must be from 0 to {_LARGEST_SEED} (got {request.seed})")
    # Overrides are checked once without the graph: a trial must not end in a typing mistake.
    resolve_options(model, preset, overrides.options)
    resolve_train(model, preset, request.seed, overrides.train)
    device = resolve_device(request.device)
    graph = load_graph(request.data, request)
    splits = chosen_splits(request.split, graph)
    workers = worker_count(request.workers, len(splits), device)
    recipe = _recipe(request, model, preset, graph, splits[0], device, on_trial)
    config = RunConfig(
        data=data_name(request.data),
        model=model,
        preset=preset,
        directed=request.directed,
        row_normalize=request.row_normalize,
        seed=request.seed,
        device=device,
        threads=threads_for(workers),
        splits=splits,
        options=resolve_options(model, preset, recipe.options, overrides.options),
        train=resolve_train(model, preset, request.seed, recipe.train, overrides.train),
        source=recipe.source + _override_note(overrides),
        graph=graph_facts(graph),
        trial=recipe.trial,
    )
    return Plan(config, graph, workers)


def reopen(config: RunConfig, data_root: str | None, workers: int | None) -> Plan:
    """Load the graph of a stored configuration, which must not have changed since."""
    resolve_device(config.device)
    request = Request(
        data=config.data,
        data_root=data_root,
        directed=config.directed,
        row_normalize=config.row_normalize,
    )
    graph = load_graph(config.data, request)
    found = graph_facts(graph)
    changed = [name for name, value in config.graph.items() if found.get(name) != value]
    if changed:
        raise RunError(f"{config.data}: the graph has changed since the run began ({changed[0]})")
    return Plan(config, graph, worker_count(workers, len(config.splits), config.device))


def load_graph(data: str, request: Request) -> Data:
    """The graph of a request, which must have labels."""
    graph = load(
        data,
        root=request.data_root,
        directed=request.directed,
        row_normalize=request.row_normalize,
    )
    if graph.class_count < 1:
        raise DataError(f"{data}: the graph has no labels to train on")
    return graph


def chosen_splits(text: str, graph: Data) -> tuple[int, ...]:
    """The splits that a text means: ``"all"``, one number, or several with commas."""
    if text.strip().lower() == "all":
        return tuple(range(graph.train_mask.size(1)))
    try:
        splits = sorted({int(part) for part in text.split(",")})
    except ValueError as error:
        raise ConfigError(f"--split must be a number or all (got '{text}')") from error
    for split in splits:
        split_masks(graph, split)
    return tuple(splits)


def worker_count(asked: int | None, num_splits: int, device: str) -> int:
    """How many splits run at the same time; one by one on a GPU unless asked otherwise."""
    if asked is not None and asked < 1:
        raise ConfigError(f"--workers must be at least 1 (got {asked})")
    usual = 1 if device == "cuda" else core_count()
    return max(1, min(num_splits, asked or usual))


def graph_facts(graph: Data) -> dict[str, Any]:
    """Sizes, rules and checksum of a graph, for the record."""
    names = ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask")
    return {
        "name": graph.name,
        "nodes": graph.x.size(0),
        "edges": graph.edge_index.size(1),
        "features": graph.x.size(1),
        "classes": graph.class_count,
        "edge_rule": graph.edge_rule,
        "feature_rule": graph.feature_rule,
        "split_rule": graph.split_rule,
        "digest": tensors_digest({name: graph[name] for name in names}),
    }


def data_name(data: str) -> str:
    """A registered name in its own spelling, or a path that also holds from another folder."""
    try:
        return canonical_name(data, DATASETS, "data set")
    except ConfigError:
        return str(Path(data).expanduser().resolve())


def _override_note(overrides: Overrides) -> str:
    names = [*overrides.options, *overrides.train]
    return f"; set by the user: {', '.join(names)}" if names else ""


def _recipe(
    request: Request,
    model: str,
    preset: str,
    graph: Data,
    split: int,
    device: str,
    on_trial: Callable[[Trial], None] | None,
) -> _Recipe:
    if model != "argnn":
        return _Recipe({}, {}, "usual settings of a baseline")
    name = data_name(request.data)
    directed = request.directed and (name not in DATASETS or DATASETS[name].directed)
    stored = find_settings(name, directed=directed, preset=preset)
    if stored is not None:
        return _Recipe(stored.model, stored.train, stored.source)
    if preset != "default":
        return _Recipe({}, {}, f"preset {preset}")
    with using_threads(threads_for(1)):
        report = _trial(request, graph, split, device, directed, on_trial)
        facts = _trial_facts(report, split)
    source = f"chosen by {len(report.trials)} short runs on validation: {report.chosen.name}"
    return _Recipe(report.chosen.model, report.chosen.train, source, facts)


def _trial(
    request: Request,
    graph: Data,
    split: int,
    device: str,
    directed: bool,
    on_trial: Callable[[Trial], None] | None,
) -> TrialReport:
    visible, task = training_inputs(graph, split, device)
    return choose_switches(
        visible,
        task,
        graph.class_count,
        directed=directed,
        seed=request.seed,
        on_trial=on_trial,
    )


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
