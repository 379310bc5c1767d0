"""From what a user asked for to a complete configuration and a graph."""

import json
import logging
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from argnn.data import load, split_masks
from argnn.data.graph_store.opening import graph_digest
from argnn.data.import_options import Columns
from argnn.data.inspect import label_hint
from argnn.data.links import NUM_LINK_SPLITS, RATIOS, SPLITS_BY, parse_ratio
from argnn.data.loading import as_store
from argnn.errors import ConfigError, DataError, RunError
from argnn.nn import model_class
from argnn.runs.batch_sources import check_parts
from argnn.runs.machine import core_count, threads_for
from argnn.runs.pool import Pool, StopEarly, TellEpoch, graph_tensors, ignore, open_pool
from argnn.runs.problems import class_names, divided_links, pose_problem
from argnn.runs.ranks import rank_count
from argnn.runs.recipes import recipes_of
from argnn.runs.trial import TrialJob, rounds_for
from argnn.settings.options import Overrides
from argnn.settings.resolve import (
    AUTO,
    BaseSettings,
    Request,
    base_settings,
    data_name,
    is_directed,
    names_of,
    requested_changes,
    resolve,
    trial_start,
)
from argnn.settings.run_config import MAIN_SCORES, LinkConfig, RunConfig, check_split_by
from argnn.store.run_folder import RunFolder, open_run
from argnn.train.devices import resolve_device
from argnn.train.tasks import check_class_weight

__all__ = [
    "Draft", "Plan", "Request", "data_name", "draft", "graph_of_run", "prepare", "reopen",
    "settled", "settling", "stored_run",
]  # fmt: skip

logger = logging.getLogger(__name__)
_LARGEST_SEED = 2**63 - 1


@dataclass(frozen=True)
class Plan:
    """A complete configuration, its graph, and how many splits run at the same time."""

    config: RunConfig
    graph: Data
    workers: int


@dataclass(frozen=True)
class Draft:
    """A plan whose settings may still need a trial.

    The jobs are the trials of its splits, often none; ``settle`` makes the configuration from what
    they found.
    """

    plan: Plan
    jobs: list[TrialJob]
    settle: Callable[[Sequence[BaseSettings]], RunConfig]

    def settled(self, found: Sequence[BaseSettings]) -> Plan:
        """The plan with what the trials found."""
        return replace(self.plan, config=self.settle(found)) if self.jobs else self.plan


def draft(request: Request, graph: Data | None = None) -> Draft:
    """Check a request, load its graph, and find its settings as far as no trial is needed.

    A model with a trial has one on every split of a graph without stored settings: a node that
    is tested in one split may be trained on in another.

    A ``graph`` that is given is not loaded again.
    """
    _check_task(request)
    _check_weights(request)
    if request.recipes is not None and request.recipes < 1:
        raise ConfigError(f"--recipes must be at least 1 (got {request.recipes})")
    if not 0 <= request.seed <= _LARGEST_SEED:
        raise ConfigError(f"--seed must be from 0 to {_LARGEST_SEED} (got {request.seed})")
    # They are checked once without the graph, which may take long to load.
    changes = requested_changes(request)
    device = resolve_device(request.device, "--device")
    if rank_count() > 1 and ":" in device:
        raise ConfigError("with torchrun each process takes its own GPU: --device cuda")
    if rank_count() > 1 and device == "mps":
        raise ConfigError("--device mps: processes of torchrun cannot exchange tensors there")
    began = time.perf_counter()
    graph = load_graph(request.data, request) if graph is None else graph
    took = time.perf_counter() - began
    logger.debug("%s: %d nodes, read in %.1f s", request.data, graph.x.size(0), took)
    if request.task == AUTO:
        request = replace(request, task=graph.get("target_kind") or "node")
    base = base_settings(request)
    splits = chosen_splits(request.split, graph, request.task)
    workers = worker_count(request.workers, len(splits), device)
    settle = partial(
        resolve,
        request,
        changes,
        splits=splits,
        graph=graph_facts(graph),
        device=device,
        threads=threads_for(workers),
        columns=used_columns(request).recorded(graph.schema),
    )
    config = settle([base or trial_start(request)])
    logger.debug("settings: %s", json.dumps(config.to_json()))
    check_class_weight(config.train.class_weight, class_names(graph))
    check_parts(config)
    if config.link is not None:
        _check_link_splits(graph, splits, config.link)
    else:  # what is wrong with labels or targets is refused before anything is written
        for split in splits:
            pose_problem(graph, split, "cpu", in_parts=True).task.configured(config.train)
    jobs = _trial_jobs(config, request, changes, graph) if base is None else []
    return Draft(Plan(config, graph, workers), jobs, settle)


def _trial_jobs(
    config: RunConfig, request: Request, held: Overrides, graph: Data
) -> list[TrialJob]:
    """The trials of a draft, with all threads: bits must not depend on the number of workers."""
    config = replace(config, threads=threads_for(1))
    equal: dict[str, Any] = {}
    if (count := request.recipes) is not None:
        recipes, rounds = recipes_of(config, held, count), rounds_for(count)
        equal = {"recipes": recipes, "rounds": rounds, "count": count, "vary": False}
        equal["nodes_per_recipe"] = 1  # the user has asked for so many
    directed = is_directed(request)
    sizes = {} if config.link is not None else dict(enumerate(graph.val_mask.sum(0).tolist()))
    return [
        TrialJob(config, split, directed, held, validation_size=sizes.get(split), **equal)
        for split in config.splits
    ]


def prepare(request: Request, tell: TellEpoch = ignore, graph: Data | None = None) -> Plan:
    """Check a request, load its graph, and settle every setting, with a trial where needed.

    ``tell`` is told the epochs of the trial; see :class:`argnn.runs.pool.Pool`. It may raise
    :class:`~argnn.runs.pool.StopEarly`: then every trial ends with its best recipe so far.
    """
    return settled([draft(request, graph)], tell=tell)[0]


def settled(
    drafts: Sequence[Draft],
    workers: int | None = None,
    *,
    executor: str = "local",
    tell: TellEpoch = ignore,
) -> list[Plan]:
    """The plans of some drafts; their trials run in one pool.

    Without ``workers`` as many trials run at the same time as splits of the first draft would. The
    first trial that fails raises its error.
    """
    plans: dict[int, Plan] = {}
    with closing(settling(drafts, workers, executor=executor, tell=tell)) as found:
        for draft, plan in found:
            if isinstance(plan, Exception):
                raise plan
            plans[id(draft)] = plan
    return [plans[id(draft)] for draft in drafts]


def settling(
    drafts: Sequence[Draft],
    workers: int | None = None,
    *,
    executor: str = "local",
    tell: TellEpoch = ignore,
) -> Generator[tuple[Draft, Plan | Exception], None, None]:
    """Each draft with its plan as soon as that is known, or with the error of its first bad trial.

    The arguments are those of :func:`settled`.
    """
    yield from ((draft, draft.plan) for draft in drafts if not draft.jobs)
    owners = {id(job): draft for draft in drafts for job in draft.jobs}
    jobs = [job for draft in drafts for job in draft.jobs]
    if not jobs:
        return
    plans = [draft.plan for draft in drafts if draft.jobs]
    graphs = {plan.config.graph["digest"]: plan.graph for plan in plans}
    count = max(1, min(workers or drafts[0].plan.workers, len(jobs)))
    found: dict[int, BaseSettings] = {}
    failed: set[int] = set()
    with open_pool(graphs, count, executor, tell=tell) as pool:
        for job, result in _tried(pool, jobs):
            draft = owners[id(job)]
            if isinstance(result, Exception):
                if id(draft) not in failed:
                    yield draft, result
                failed.add(id(draft))
                continue
            found[id(job)] = result
            if all(id(job) in found for job in draft.jobs):
                yield draft, draft.settled([found[id(job)] for job in draft.jobs])


def _tried(pool: Pool, jobs: Sequence[TrialJob]) -> Iterator[tuple[TrialJob, Any]]:
    """The trials and what they chose; all end with the best so far where ``tell`` says so."""
    for job in jobs:
        pool.submit(job)
    left = len(jobs)
    while left:
        try:
            job, result = pool.next_done()
        except StopEarly:
            pool.stop_early()
            stopped = True
        else:
            left -= 1
            yield job, result
            stopped = isinstance(result, BaseSettings) and (result.trial or {})["stopped"]
        for job in pool.withdrawn() if stopped else ():
            left -= 1
            yield job, job.chosen([], stopped=True)


def reopen(config: RunConfig, data_root: str | None, workers: int | None) -> Plan:
    """Load the graph of a stored configuration, which must not have changed since."""
    resolve_device(config.device, "--device")
    request = Request(
        data=config.data,
        task=config.task,
        data_root=data_root,
        directed=config.directed,
        row_normalize=config.row_normalize,
        columns=_columns_of_record(config),
    )
    graph = load_graph(config.data, request)
    found = graph_facts(graph)
    changed = [name for name, value in config.graph.items() if found.get(name) != value]
    if changed:
        why = f"the graph has changed since the run began ({changed[0]})"
        raise RunError(f"{config.data}: {why}, or this version of argnn reads it in another way")
    return Plan(config, graph, worker_count(workers, len(config.splits), config.device))


def stored_run(path: Path) -> tuple[RunFolder, RunConfig]:
    """The folder of a run, and its configuration."""
    folder, stored = open_run(path)
    return folder, RunConfig.from_json(stored, str(folder.config))


def graph_of_run(config: RunConfig, data_root: str | None) -> Data:
    """The graph of a run for what is computed after it, on the CPU wherever it was trained."""
    return reopen(replace(config, device="cpu"), data_root, 1).graph


def load_graph(data: str, request: Request) -> Data:
    """The graph of a request; classes can only be learned from one with labels."""
    graph = load(
        data,
        root=request.data_root,
        directed=request.directed,
        row_normalize=request.row_normalize,
        task="node" if request.task == "link" else request.task,
        **used_columns(request).given(),
    )
    if request.task != "link" and graph.class_count < 2 and graph.get("targets") is None:
        if graph.class_count:
            [name] = graph.class_names
            raise DataError(f"{data}: there is only one class, {name}: nothing can be learned")
        raise DataError(f"{data}: the graph has no labels to train on{label_hint(graph)}")
    return graph


def used_columns(request: Request) -> Columns:
    """What the user says about columns, without a column of weights that is to be ignored."""
    return replace(request.columns, weight=None) if request.ignore_weights else request.columns


def _columns_of_record(config: RunConfig) -> Columns:
    columns = Columns.from_record(config.columns)
    # Numbers in a store are as they were converted, also where an old record says nothing.
    return replace(columns, standardize=None) if as_store(config.data) is not None else columns


def chosen_splits(text: str, graph: Data, task: str = "node") -> tuple[int, ...]:
    """The splits that a text means: ``"all"``, one number, or several with commas.

    Splits of nodes come with the graph. Those of links are drawn, and their numbers are seeds.
    """
    if text.strip().lower() == "all":
        return tuple(range(NUM_LINK_SPLITS if task == "link" else graph.train_mask.size(1)))
    try:
        splits = sorted({int(part) for part in text.split(",")})
    except ValueError as error:
        raise ConfigError(f"--split must be a number or all (got '{text}')") from error
    for split in splits:
        if task != "link":
            split_masks(graph, split)
        elif split < 0:
            raise ConfigError(f"--split must not be negative (got {split})")
    return tuple(splits)


def worker_count(asked: int | None, num_splits: int, device: str) -> int:
    """How many splits run at the same time; one by one on a GPU unless asked otherwise."""
    if asked is not None and asked < 1:
        raise ConfigError(f"--workers must be at least 1 (got {asked})")
    if rank_count() > 1:  # all processes train one split together
        return 1
    usual = core_count() if device == "cpu" else 1
    return max(1, min(num_splits, asked or usual))


def graph_facts(graph: Data) -> dict[str, Any]:
    """Sizes, rules and checksum of a graph, for the record."""
    targets = graph.get("targets")
    return {
        "name": graph.name,
        "nodes": graph.x.size(0),
        "edges": graph.edge_index.size(1),
        "features": graph.x.size(1),
        "classes": graph.class_count,
        **({} if targets is None else {"targets": targets.size(1)}),
        "edge_rule": graph.edge_rule,
        "feature_rule": graph.feature_rule,
        "split_rule": graph.split_rule,
        "digest": graph_digest(graph_tensors(graph)),
    }


def _check_task(request: Request) -> None:
    if request.task not in (*MAIN_SCORES, AUTO):
        raise ConfigError(f"--task must be one of {', '.join(MAIN_SCORES)} (got '{request.task}')")
    if request.task == "link":
        parse_ratio(request.ratio or RATIOS[0])
        if request.directed:
            raise ConfigError("--directed belongs to --task node: pairs of links have no direction")
        if request.columns.folds is not None:
            raise ConfigError("--folds divides nodes; of links every --split is drawn anew")
        _check_times(request)
        return
    if request.columns.time is not None:
        raise ConfigError("--time belongs to --task link")
    for name in ("ratio", "decoder", "spanning_forest", "split_by"):
        if getattr(request, name) not in (None, False):
            raise ConfigError(f"--{name.replace('_', '-')} belongs to --task link")


def _check_times(request: Request) -> None:
    """Raise unless times and a split by time are given together."""
    check_split_by(request.split_by or SPLITS_BY[0])
    if request.split_by == "time" and request.spanning_forest:
        raise ConfigError("--spanning-forest would put new edges into training: leave it out")
    if request.split_by == "time" and request.columns.time is None:
        raise ConfigError("--split-by time needs --time COLUMN, the edge column of time stamps")
    if request.split_by != "time" and request.columns.time is not None:
        raise ConfigError("--time belongs to --split-by time")


def _check_weights(request: Request) -> None:
    """Raise where the user names weights that the model would not use."""
    model, _ = names_of(request)
    asked = request.columns.weight is not None and not request.ignore_weights
    if asked and not model_class(model).takes_edge_weight:
        raise ConfigError(
            f"{model} does not use edge weights: leave out --weight, or say --ignore-weights"
        )


def _check_link_splits(graph: Data, splits: Sequence[int], link: LinkConfig) -> None:
    """Raise where links cannot be divided, before anything is written."""
    try:
        for split in splits:
            divided_links(graph, split, link)
    except DataError as error:
        raise DataError(f"{graph.name}: {error}") from error
