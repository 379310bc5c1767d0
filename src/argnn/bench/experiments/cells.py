"""The cells of experiments: which there are, which are still to do, and the rows they leave."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from torch_geometric.data import Data

from argnn.bench.experiments.files import ALL, Experiment, Method
from argnn.bench.leaderboard.gather import score_of
from argnn.data.import_options import Columns
from argnn.errors import ConfigError, RunError, error_prefix
from argnn.files import fingerprint
from argnn.runs.machine import threads_for
from argnn.runs.parallel import Job, Watcher, run_jobs
from argnn.runs.prepare import Draft, Request, draft, load_graph, settled, worker_count
from argnn.runs.run import failed_row
from argnn.runs.summary import by_split, has_twins, statistic, without_twins
from argnn.store.results import FORMAT, ResultsFile, Row, encoded
from argnn.train.devices import resolve_device

#: A cell's results file and identity.
CellKey = tuple[Path, str]

#: Entries of a configuration that are no settings: where it ran, how its settings were found.
_CIRCUMSTANCES = ("threads", "device", "splits", "source", "trial")
_CELL_DIGITS = 16
_ATTEMPTS = 2


@dataclass(frozen=True)
class Cell:
    """One method on one split of one graph with one seed.

    Attributes:
        experiment: Name of the experiment.
        method: Label of the method.
        score: The main score.
        path: The results file.
        job: What to run.
    """

    experiment: str
    method: str
    score: str
    path: Path
    job: Job

    @cached_property
    def id(self) -> str:
        """The same for the same cell in every results file."""
        config = self.job.config
        values = {name: getattr(config, name) for name in ("task", "data", "directed", "seed")}
        values |= {"method": self.method, "split": self.job.split}
        if config.link is not None:
            values["ratio"] = config.link.ratio
        if config.columns:
            values["columns"] = config.columns
        return fingerprint(values)[:_CELL_DIGITS]

    @property
    def key(self) -> CellKey:
        """Tells the cells of a command apart, whose results may go to several files."""
        return self.path, self.id

    @cached_property
    def settings(self) -> str:
        """Changes with every setting that can change the result."""
        return fingerprint(settings_of(self.job.config.to_json()))

    @property
    def label(self) -> str:
        """The cell in words."""
        config = self.job.config
        graph = config.graph["name"] + (", directed" if config.directed else "")
        return f"{graph}, {self.method}, split {self.job.split}, seed {config.seed}"

    @property
    def cost(self) -> float:
        """A rough count of multiplications, to order the cells and to estimate the time left."""
        config = self.job.config
        facts, width = config.graph, config.options.get("hidden_channels", 64)
        layer = width * (facts["nodes"] * width + facts["edges"])
        first = facts["nodes"] * facts["features"] * width
        return float(config.train.epochs * (first + config.options.get("num_layers", 2) * layer))

    def row(self, outcome: Row) -> Row:
        """The complete row of a finished or failed job."""
        config = self.job.config
        row: Row = {
            "format": FORMAT,
            "cell": self.id,
            "experiment": self.experiment,
            "task": config.task,
            "data": config.data,
            "directed": config.directed,
            "method": self.method,
            "model": config.model,
            "preset": config.preset,
            "split": self.job.split,
            "seed": config.seed,
            "config": config.to_json(),
            "settings": self.settings,
        }
        now = datetime.now(UTC).isoformat(timespec="seconds")
        return {**row, **{k: v for k, v in outcome.items() if k not in row}, "finished": now}

    def is_to_do(self, row: Row | None, *, retry_failed: bool = False) -> bool:
        """Whether to run the cell, given the row that it has already, if any.

        A failed cell is left alone unless asked for, or unless other settings failed than would
        run now. A finished cell is done again only to add its missing oracle.

        Raises:
            RunError: A finished cell was run with other settings.
        """
        if row is None:
            return True
        same = row["settings"] == self.settings
        if "error" in row:
            return retry_failed or not same
        if not same:
            what = first_difference(row["config"], self.job.config.to_json())
            raise RunError(
                f"{self.path}: {self.label} was run with other settings ({what} now); choose "
                "another --out, so that results are not mixed"
            )
        return self.job.oracle and row["oracle"] is None and row["test"] is not None


def settings_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a stored configuration that decides the result."""
    return {name: value for name, value in config.items() if name not in _CIRCUMSTANCES}


@dataclass(frozen=True)
class Bench:
    """All cells of a command, finished or not.

    Attributes:
        cells: The cells; experiments with the same results file may share some.
        members: Keys of the cells of each experiment, by its name.
        graphs: Their graphs, by checksum.
        workers: How many run at the same time.
    """

    cells: list[Cell]
    members: dict[str, list[CellKey]]
    graphs: dict[str, Data]
    workers: int


def plan_bench(
    targets: Sequence[tuple[Experiment, Path]],
    *,
    workers: int | None = None,
    device: str = "auto",
    data_root: str | None = None,
    executor: str = "local",
    tell: Callable[[str], None] | None = None,
) -> Bench:
    """Load the graphs of some experiments, settle all settings, and list the cells.

    The number of threads of a cell follows from the number of cells and workers, finished or
    not: a bench that goes on computes the same bits as one that was never stopped.

    Args:
        targets: Experiments, and the results file of each.
        workers: How many cells run at the same time; as many as there are cores if not given.
        device: ``"auto"``, ``"cpu"``, ``"cuda"``, one GPU such as ``"cuda:1"``, or ``"mps"``.
        data_root: Folder of the raw benchmark files.
        executor: Where short trials run; as of :func:`argnn.runs.pool.open_pool`.
        tell: Is told what is being prepared.
    """
    device = resolve_device(device, "--device")
    shelf: dict[tuple[str, str, bool, Columns], Data] = {}
    found: dict[CellKey, Cell] = {}
    members: dict[str, list[CellKey]] = {}
    graphs: dict[str, Data] = {}
    drafts: list[tuple[Experiment, Path, str, Draft]] = []
    for experiment, path in targets:
        for request, method in _requests(experiment, device, data_root):
            if tell is not None:
                tell(f"{Path(request.data).stem}, {method.label}")
            choice = (experiment.task, request.data, request.directed, request.columns)
            if choice not in shelf:
                shelf[choice] = load_graph(request.data, request)
            graph = shelf[choice]
            for seed in experiment.seeds_for(graph.x.size(0)):
                with error_prefix(f"experiment {experiment.name}:"):
                    made = draft(replace(request, seed=seed), graph)
                drafts.append((experiment, path, method.label, made))
    trials = sum(len(made.jobs) for *_, made in drafts)
    if trials and tell is not None:
        tell(f"short trials: {trials}")
    at_once = worker_count(workers, trials, device)
    plans = settled([made for *_, made in drafts], at_once, executor=executor)
    for (experiment, path, label, _), plan in zip(drafts, plans, strict=True):
        config = plan.config
        graphs[config.graph["digest"]] = plan.graph
        for split in config.splits:
            job = Job(config.for_split(split), split, None, experiment.oracle)
            cell = Cell(experiment.name, label, experiment.score, path, job)
            _add(cell, found)
            members.setdefault(experiment.name, []).append(cell.key)
    count = worker_count(workers, len(found), device)
    threads = threads_for(count)
    cells = [
        replace(cell, job=replace(cell.job, config=replace(cell.job.config, threads=threads)))
        for cell in found.values()
    ]
    return Bench(cells, members, graphs, count)


def _requests(
    experiment: Experiment, device: str, data_root: str | None
) -> Iterator[tuple[Request, Method]]:
    splits = ALL if experiment.splits is None else ",".join(map(str, experiment.splits))
    for data in experiment.data:
        for method in experiment.methods:
            request = Request(
                data=data.name,
                model=method.model,
                preset=method.preset,
                split=splits,
                device=device,
                overrides=method.overrides,
                data_root=data_root,
                directed=data.directed,
                columns=data.columns,
                task=experiment.task,
                ratio=experiment.ratio,
                decoder=method.decoder,
                spanning_forest=experiment.spanning_forest,
                settings_file=method.settings_for(data),
                no_trial=not experiment.trial,
            )
            yield request, method


def _add(cell: Cell, found: dict[CellKey, Cell]) -> None:
    """Add a cell; two experiments may share one if its settings are the same in both."""
    other = found.setdefault(cell.key, cell)
    if other.settings != cell.settings:
        what = first_difference(other.job.config.to_json(), cell.job.config.to_json())
        raise ConfigError(
            f"{cell.label}: {what} in {other.experiment} and in {cell.experiment}; "
            "give the methods different labels, or the experiments different --out"
        )
    if cell.job.oracle and not other.job.oracle:
        found[cell.key] = replace(other, job=replace(other.job, oracle=True))


def first_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first setting in which two configurations differ, in words."""
    old, new = _flat(settings_of(before)), _flat(settings_of(now))
    for name in [*new, *old]:
        if name not in old or name not in new or old[name] != new[name]:
            return f"{name} is {_value(old, name)} and {_value(new, name)}"
    return "the settings differ"


def _value(values: Mapping[str, Any], name: str) -> str:
    return json.dumps(values[name]) if name in values else "missing"


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings with dotted names, as JSON gives them back."""
    flat: dict[str, Any] = {}
    for name, value in json.loads(json.dumps(values)).items():
        nested = isinstance(value, dict)
        flat.update(_flat(value, f"{prefix}{name}.") if nested else {f"{prefix}{name}": value})
    return flat


class CellWatcher(Watcher, Protocol):
    """Is told how far a bench is."""

    def begin(self, todo: Sequence[Cell], skipped: int, workers: int) -> None:
        """These cells will run; others were skipped."""


def run_bench(
    bench: Bench, watcher: CellWatcher, *, executor: str = "local", retry_failed: bool = False
) -> dict[CellKey, Row]:
    """Run all cells that are not finished yet; each leaves its row as soon as it is over.

    A cell whose worker dies, mostly for want of memory, runs once more after the others.

    Returns:
        The last row of every cell.
    """
    with ExitStack() as stack:
        paths = dict.fromkeys(cell.path for cell in bench.cells)
        files = {path: stack.enter_context(ResultsFile(path)) for path in paths}
        latest = {(path, row["cell"]): row for path, file in files.items() for row in file.rows}
        todo = [
            cell
            for cell in sorted(bench.cells, key=lambda cell: -cell.cost)
            if cell.is_to_do(latest.get(cell.key), retry_failed=retry_failed)
        ]
        watcher.begin(todo, len(bench.cells) - len(todo), bench.workers)
        by_job = {id(cell.job): cell for cell in todo}
        jobs = [cell.job for cell in todo]
        needed = {job.config.graph["digest"] for job in jobs}
        graphs = {digest: graph for digest, graph in bench.graphs.items() if digest in needed}
        running = run_jobs(
            jobs, graphs, bench.workers, watcher, executor=executor, attempts=_ATTEMPTS
        )
        with closing(running) as outcomes:
            for job, outcome in outcomes:
                cell = by_job[id(job)]
                row = storable(cell, outcome)
                files[cell.path].append(row)
                latest[cell.key] = row
                watcher.finished(job, row)
    return {cell.key: latest[cell.key] for cell in bench.cells}


def storable(cell: Cell, outcome: Row) -> Row:
    """The row of a cell; one that cannot be stored, as it holds NaN, is a failure."""
    row = cell.row(outcome)
    try:
        encoded(row)
    except RunError as error:
        return cell.row(failed_row(cell.job.config, cell.job.split, error))
    return row


def outcomes(rows: Sequence[Row], score: str) -> list[dict[str, Any]]:
    """For each method and graph: the mean of a test score, and how many cells have ended how."""
    names = ("method", "data", "directed")
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    found = []
    for key, group in groups.items():
        finished = [row for row in group if "error" not in row]
        outcome = {
            **dict(zip(names, key, strict=True)),
            "score": score,
            "test": _over_splits(finished, score),
            "finished": len(finished),
            "failed": len(group) - len(finished),
        }
        if any(has_twins(row) for row in finished):
            others = [{**row, "test": without_twins(row)} for row in finished]
            outcome["test_without_twins"] = _over_splits(others, score)
        found.append(outcome)
    return found


def _over_splits(rows: Sequence[Row], score: str) -> dict[str, Any]:
    values = {(row["split"], row["seed"]): score_of(row, score) for row in rows}
    return statistic(by_split({run: value for run, value in values.items() if value is not None}))


class Pace:
    """Estimates the time left from seconds per unit of cost, by method where a cell is finished.

    Args:
        cells: What is to do.
        workers: How many cells run at the same time.
    """

    def __init__(self, cells: Sequence[Cell], workers: int) -> None:
        self.workers = workers
        self._left = {id(cell): cell for cell in cells}
        self._shares: dict[int, float] = {}
        self._seconds: defaultdict[str, float] = defaultdict(float)
        self._cost: defaultdict[str, float] = defaultdict(float)

    def moved(self, cell: Cell, share: float) -> None:
        """A running cell has done a share of its epochs."""
        self._shares[id(cell)] = share

    def finished(self, cell: Cell, seconds: float | None) -> None:
        """A cell is over; a failed one has no seconds and is not counted."""
        self._left.pop(id(cell), None)
        if seconds is not None:
            self._seconds[cell.method] += seconds
            self._cost[cell.method] += cell.cost

    def seconds_left(self) -> float | None:
        """The estimate, or None as long as nothing is known."""
        cost = sum(self._cost.values())
        if not self._left or not cost:
            return None if self._left else 0.0
        usual = sum(self._seconds.values()) / cost
        rests = []
        for key, cell in self._left.items():
            known = self._cost.get(cell.method)
            rate = self._seconds[cell.method] / known if known else usual
            rests.append(rate * cell.cost * (1 - self._shares.get(key, 0.0)))
        # With any number of workers, the longest cell has to finish.
        return max(sum(rests) / self.workers, max(rests))
