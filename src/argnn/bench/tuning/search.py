"""Search the settings of a model by validation score: a fixed number of trials, nothing else.

Every model gets the same: its own search space, the configuration of its preset as the first
trial (settings that the package stores for known graphs are the result of another search),
the same sampler and pruner, and as many trials as asked for, each on the same splits. Finished,
pruned and failed trials all count. Test labels are erased before anything starts.

A trial is trained on one split after the other. After each but the last, Optuna's median pruner
compares its mean validation score so far with the finished trials' at the same point. Nothing is
pruned inside a split: early epochs would favour large learning rates.

With one worker a search is a function of its seed, wherever it was interrupted, on one machine
with the same versions and number of threads. With several the proposals depend on who finishes
first, and two searches may differ.
"""

import math
import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch_geometric.data import Data

from argnn.bench.tuning.study import SearchStudy, TrialRecord, open_study
from argnn.data import features_and_edges
from argnn.data.graph_store.opening import graph_digest
from argnn.data.import_options import Columns, column_options
from argnn.data.schema import Schema
from argnn.errors import ConfigError, RunError, naming
from argnn.files import require_writable
from argnn.runs.machine import git_state, threads_for
from argnn.runs.pool import Pool, graph_tensors, open_executor, open_pool
from argnn.runs.prepare import Request, prepare
from argnn.runs.problems import pose_problem, problem_of
from argnn.runs.run import failed_row
from argnn.runs.tables import SCORE_NAMES
from argnn.runs.train_one import OnEpoch, train_one
from argnn.settings.options import (
    parse_overrides,
    recorded_options,
    resolve_options,
    resolve_train,
)
from argnn.settings.run_config import RunConfig
from argnn.settings.search_space import (
    Params,
    changed_config,
    is_possible,
    search_space,
    usual_params,
)
from argnn.settings.tuned import (
    TrialCounts,
    TunedSettings,
    ValidationScore,
    read_tuned,
    write_tuned,
)
from argnn.train.selection import selection_of
from argnn.version import __version__
from argnn.wording import file_stem, option_words

if TYPE_CHECKING:
    from optuna import Trial as OptunaTrial

USUAL_SPLITS = 3

_FOLDER = Path("tuning")
#: Preset and task that names of files leave out.
_USUAL = ("default", "node")
_OF_THE_REQUEST = ("data", "task", "directed", "row_normalize", "model", "preset")
#: Training settings that belong to a run, not to a method.
_OF_THE_RUN = ("seed", "checkpoint_every")


@dataclass(frozen=True)
class Outcome:
    """What came of a job: a validation score and its epoch, or an error."""

    score: float = math.nan
    epoch: int = 0
    seconds: float = 0.0
    error: str | None = None
    traceback: str | None = None


@dataclass(frozen=True)
class SplitJob:
    """One split of a trial."""

    config: RunConfig
    trial: int
    params: Params
    split: int

    def run(self, graph: Data, on_epoch: OnEpoch | None = None) -> Outcome:
        """Train as ``argnn train`` does, but score nothing on the test set."""
        began = time.perf_counter()
        config = changed_config(self.config, self.params)
        problem = problem_of(config, graph, self.split)
        posed = (problem.visible, problem.task)
        result = train_one(config, *posed, split=self.split, on_epoch=on_epoch).result
        if not math.isfinite(result.val_score):
            raise RunError(f"the validation score of split {self.split} is {result.val_score}")
        return Outcome(result.val_score, result.best_epoch, time.perf_counter() - began)

    def failed(self, error: Exception, seconds: float) -> Outcome:
        """The error; with its traceback if it is one of the program."""
        row = failed_row(self.config, self.split, error)
        return Outcome(seconds=seconds, error=row["error"], traceback=row.get("traceback"))


@dataclass(frozen=True)
class Search:
    """What is searched, complete.

    The graph has no test labels, the space has the default among its choices, and the command is
    that which asks for the search.
    """

    config: RunConfig
    graph: Data
    space: dict[str, list[Any]]
    trials: int
    command: tuple[str, ...]

    @property
    def default(self) -> Params:
        """The searched settings of the default configuration."""
        return usual_params(self.config, self.space)

    def is_possible(self, params: Params) -> bool:
        """Whether these settings go together."""
        return is_possible(self.config, params)

    @property
    def select(self) -> str:
        """The validation score that chooses; of a loss, the smallest."""
        return selection_of(self.config.task, self.config.train.select)

    @property
    def score_name(self) -> str:
        """That score in words."""
        return SCORE_NAMES[self.select]

    @property
    def stem(self) -> str:
        """Name of the search's files, without an ending."""
        config = self.config
        special = [name for name in (config.preset, config.task) if name not in _USUAL]
        special += ["directed"] if config.directed else []
        return "-".join([file_stem(config.graph["name"]), config.model, *special])

    def about(self) -> dict[str, Any]:
        """Everything that must not change between two parts of one search."""
        config = self.config
        return {
            **{name: getattr(config, name) for name in _OF_THE_REQUEST},
            "splits": list(config.splits),
            "seed": config.seed,
            "epochs": config.train.epochs,
            "search space": self.space,
            "options": recorded_options(config.model, config.options),
            "training settings": config.train.to_json(),
            "link settings": None if config.link is None else asdict(config.link),
            # Searches of an earlier version, which had none, go on.
            **({"columns": config.columns} if config.columns else {}),
            "graph": graph_digest(graph_tensors(self.graph)),
        }


def plan_search(request: Request, trials: int, *, splits: str | None = None) -> Search:
    """Check a request, load its graph without test labels, and settle what is searched.

    A setting that the user fixes with an override is left out of the search.

    The request's ``workers`` are trials that run at the same time; its ``split`` is not read.
    Without ``splits`` the first three are taken, of folds the first.
    """
    if find_spec("optuna") is None:
        raise ConfigError("argnn tune needs optuna: pip install 'argnn[bench]'")
    if trials < 1:
        raise ConfigError(f"--trials must be at least 1 (got {trials})")
    plan = prepare(replace(request, split=splits or "all", fresh=True))
    config = plan.config
    config = replace(
        config,
        splits=config.splits[: None if splits else _usual_splits(request)],
        threads=threads_for(request.workers or 1),
        train=replace(config.train, checkpoint_every=0),
    )
    space = search_space(config, parse_overrides(request.overrides, config.model))
    if not space:
        raise ConfigError(f"--set leaves nothing of {config.model} to search")
    graph = without_test_labels(plan.graph, config)
    for split in config.splits:  # what is wrong with the graph is not a failed trial
        pose_problem(graph, split, "cpu", config.link)
    return Search(
        config=config,
        graph=graph,
        space=space,
        trials=trials,
        command=_command(request, config, plan.graph.schema, trials, splits),
    )


def _usual_splits(request: Request) -> int:
    """One fold: what validates another one is tested in the first."""
    return USUAL_SPLITS if request.columns.folds is None else 1


def without_test_labels(graph: Data, config: RunConfig) -> Data:
    """The graph with the labels of training and validation nodes of the chosen splits only.

    Link splits take no labels; their test pairs are told apart where a split is drawn.
    """
    chosen = list(config.splits) if config.task != "link" else []
    seen = (graph.train_mask | graph.val_mask)[:, chosen].any(1)
    y = graph.y if config.task == "link" else torch.where(seen, graph.y, -1)
    targets = {}
    if graph.get("targets") is not None:
        targets = {name: graph[name] for name in ("target_names", "target_kind")}
        targets["targets"] = torch.where(seen.unsqueeze(1), graph.targets, torch.nan)
    return Data(
        **features_and_edges(graph).to_dict(),
        **({"edge_time": graph.edge_time} if "edge_time" in graph else {}),
        y=y,
        train_mask=graph.train_mask,
        val_mask=graph.val_mask,
        test_mask=torch.zeros_like(graph.test_mask),
        name=graph.name,
        class_count=graph.class_count,
        **targets,
        schema=graph.get("schema"),
    )


def _command(
    request: Request, config: RunConfig, schema: Schema, trials: int, splits: str | None
) -> tuple[str, ...]:
    """A command that asks for a search, without what does not change its result."""
    usual = Request(data=request.data)
    options: dict[str, Any] = {"model": config.model, "trials": trials}
    options |= {"task": config.task} if config.task != usual.task else {}
    for name in ("preset", "seed", "ratio", "decoder", "split_by"):
        value = getattr(request, name)
        options |= {name: value} if value != getattr(usual, name) else {}
    options["split"] = splits
    options |= {n: getattr(request, n) for n in ("directed", "row_normalize", "spanning_forest")}
    options |= column_options(config.columns, schema)
    changes = [word for text in request.overrides for word in ("--set", text)]
    return ("argnn", "tune", config.data, *option_words(options), *changes)


class TrialWatcher(Protocol):
    """Is told how far a search is."""

    def began(self, records: Sequence[TrialRecord], total: int) -> None:
        """These trials were there already; there will be so many."""

    def finished(self, record: TrialRecord) -> None:
        """A trial is over."""


@dataclass
class _RunningTrial:
    """A trial under way."""

    trial: "OptunaTrial"
    outcomes: list[Outcome] = field(default_factory=list)

    def state(self, num_splits: int) -> str | None:
        """Optuna's name for how the last outcome ended the trial, or None if it goes on."""
        if self.outcomes[-1].error is not None:
            return "FAIL"
        scores = [outcome.score for outcome in self.outcomes]
        self.trial.report(sum(scores) / len(scores), step=len(scores))
        if len(scores) == num_splits:
            return "COMPLETE"
        return "PRUNED" if self.trial.should_prune() else None

    def facts(self) -> dict[str, Any]:
        """What is kept of it."""
        scored = [outcome for outcome in self.outcomes if outcome.error is None]
        return {
            "scores": [outcome.score for outcome in scored],
            "epochs": [outcome.epoch for outcome in scored],
            "seconds": sum(outcome.seconds for outcome in self.outcomes),
            "error": self.outcomes[-1].error,
            "traceback": self.outcomes[-1].traceback,
        }


def run_search(
    search: Search,
    journal: Path,
    watcher: TrialWatcher | None = None,
    *,
    executor: str = "local",
    workers: int | None = None,
    address: str | None = None,
) -> list[TrialRecord]:
    """Run the trials of a search that are not in its journal yet.

    Returns:
        All trials, in order: as many as were asked for, or fewer if there are no more
        configurations.
    """
    config = search.config
    graphs = {config.graph["digest"]: search.graph}
    with (
        naming(journal),
        open_executor(executor, workers, address, config.threads) as slots,
        open_pool(graphs, slots or 1, executor) as pool,
        open_study(journal, search, parallel=pool.workers > 1) as study,
    ):
        total = min(search.trials, study.size)
        if watcher is not None:
            watcher.began(study.records()[:total], total)
        try:
            for record in _run_trials(search, study, pool, total):
                if watcher is not None:
                    watcher.finished(record)
        except KeyboardInterrupt:
            study.give_up_running(died=False)
            raise
        return study.records()[:total]


def _run_trials(
    search: Search, study: SearchStudy, pool: Pool, total: int
) -> Iterator[TrialRecord]:
    """Run trials until there are as many as wanted; gives each when it is over."""
    splits = search.config.splits
    running: dict[int, _RunningTrial] = {}

    def submit(under_way: _RunningTrial) -> None:
        trial, split = under_way.trial, splits[len(under_way.outcomes)]
        pool.submit(SplitJob(search.config, trial.number, trial.user_attrs["params"], split))

    left = total - len(study.records())
    while left > 0:
        while len(running) < min(pool.workers, left):
            trial = study.begin_trial()
            if trial is None:
                left = len(running)
            else:
                running[trial.number] = _RunningTrial(trial)
                submit(running[trial.number])
        if not running:
            return
        job, outcome = pool.next_done()
        under_way = running[job.trial]
        under_way.outcomes.append(outcome)
        state = under_way.state(len(splits))
        if state is None:
            submit(under_way)
        else:
            del running[job.trial]
            left -= 1
            yield study.end_trial(under_way.trial, state, under_way.facts())


def best_trials(records: Sequence[TrialRecord]) -> list[TrialRecord]:
    """The finished trials, best first; ties go to the earlier one."""
    scored = [(record.value, record) for record in records if record.value is not None]
    return [record for _, record in sorted(scored, key=lambda pair: (-pair[0], pair[1].number))]


def counts(records: Sequence[TrialRecord]) -> dict[str, int]:
    """How many trials finished, were pruned and failed."""
    states = [record.state for record in records]
    return {state: states.count(state) for state in ("finished", "pruned", "failed")}


def tuned_settings(search: Search, records: Sequence[TrialRecord]) -> TunedSettings:
    """What the search chose, as it is written: what differs from the preset, or was searched."""
    best = next(iter(best_trials(records)), None)
    if best is None or best.value is None:
        last = f", the last with: {records[-1].error}" if records else ""
        raise RunError(f"none of the {len(records)} trials finished{last}")
    config = changed_config(search.config, best.params)
    model, preset, space = config.model, config.preset, search.space
    options = resolve_options(model, preset)
    train = asdict(resolve_train(model, preset, config.seed))
    settings = {k: v for k, v in asdict(config.train).items() if k not in _OF_THE_RUN}
    return TunedSettings(
        **{name: getattr(config, name) for name in _OF_THE_REQUEST},
        options={k: v for k, v in config.options.items() if k in space or v != options[k]},
        train={k: v for k, v in settings.items() if k in space or v != train[k]},
        source=_source(search, records, best),
        validation=ValidationScore(search.score_name, best.value, list(config.splits), config.seed),
        trials=TrialCounts(search.trials, **counts(records)),
        link=config.link,
        columns=Columns.from_record(config.columns) if config.columns else None,
    )


def _source(search: Search, records: Sequence[TrialRecord], best: TrialRecord) -> str:
    state, splits = git_state(), ",".join(map(str, search.config.splits))
    commit = state["git_commit"]
    code = f"argnn {__version__}" if commit is None else f"commit {commit[:12]}"
    code += " with changes" if state["git_changed"] else ""
    return (
        f"trial {best.number}, best of {len(records)} by mean validation {search.score_name} "
        f"over splits {splits}; {shlex.join(search.command)}, seed {search.config.seed}, {code}; "
        f"trial 0: {search.config.source}"
    )


def check_out(path: Path, search: Search, force: bool = False) -> bool:
    """Whether the result may replace what is there: with ``force``, or an older one of the kind."""
    require_writable(path, force=True)
    if force or not path.exists():
        return force
    try:
        names = ("data", "task", "model", "preset")
        read_tuned(path).require(path, {name: getattr(search.config, name) for name in names})
    except ConfigError as error:
        raise ConfigError(f"{error}; choose another --out, or replace it with --force") from error
    return True


def write_result(
    path: Path, search: Search, records: Sequence[TrialRecord], *, force: bool = False
) -> TunedSettings:
    """Write what the search chose; ``force`` says what :func:`check_out` found."""
    tuned = tuned_settings(search, records)
    write_tuned(path, tuned, force=force)
    return tuned


def default_paths(search: Search) -> tuple[Path, Path]:
    """Journal and result, where the user names none."""
    return _FOLDER / f"{search.stem}.journal", _FOLDER / f"{search.stem}.yaml"
