"""``argnn.compare``: all methods on one graph, and the winner as a model."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from torch_geometric.data import Data

from argnn.bench.comparison import board
from argnn.bench.comparison.methods import (
    BEST,
    USUAL_RECIPES,
    ComparisonPlan,
    ComparisonWatcher,
    ensemble_rows,
    plan_comparison,
    run_comparison,
)
from argnn.data import load as load_data
from argnn.data.import_options import Columns
from argnn.errors import ConfigError, RunError
from argnn.estimators import load as load_model
from argnn.files import place_folder
from argnn.folders import scratch_folder
from argnn.registry import suggestion
from argnn.runs.progress import ComparisonProgress, console_for
from argnn.settings.resolve import AUTO, IN_MEMORY, Request, data_name
from argnn.store.run_folder import default_run_path
from argnn.waiting import short_waits
from argnn.wording import file_stem

_WIDTH = 120
#: What else may be said about all methods: fields of a request.
_SHARED = (
    "task", "seed", "device", "workers", "data_root", "directed", "row_normalize", "ratio",
    "decoder", "spanning_forest", "split_by", "ignore_weights",
)  # fmt: skip


@dataclass(frozen=True, repr=False)
class Comparison:
    """What a comparison found.

    Attributes:
        out: Its folder: one run for each method, ``best``, ``results.jsonl``.
        rows: The leaderboard as plain JSON values, best validation score first.
        select: The validation score that chose epochs and winner.
        score: The test score that is shown.
        budget: What each method was given.
        sentences: What there is to say about it.
        winner: Name of the best method.
        members: The methods of the ensemble; empty without one.
    """

    out: Path
    rows: list[dict[str, Any]]
    select: str
    score: str
    budget: dict[str, Any]
    sentences: list[str]
    winner: str
    members: tuple[str, ...] = ()

    @property
    def leaderboard(self) -> Any:
        """The leaderboard as a pandas table, or as a list of rows where pandas is missing."""
        rows = [
            {
                "method": row["method"],
                "winner": row["winner"],
                **{f"{part}_{self.name_of(part)}": row[part]["mean"] for part in ("val", "test")},
                "test_interval": row["test"]["interval"],
                "splits": row["finished"],
                "epochs": row["trial_epochs"] + row["epochs"],
                "seconds": row["trial_seconds"] + row["seconds"],
                "recipe": "; ".join(dict.fromkeys(row["recipes"])),
                "error": row["error"],
            }
            for row in self.rows
        ]
        if find_spec("pandas") is None:
            return rows
        import pandas

        return pandas.DataFrame(rows)

    def name_of(self, part: str) -> str:
        """The score of a part, ``"val"`` or ``"test"``."""
        return self.select if part == "val" else self.score

    @property
    def best(self) -> Any:
        """The winner as a fitted estimator, with its model of the first split."""
        return load_model(self.out / BEST)

    def ensemble_proba(self, graph: Any) -> NDArray[np.float64]:
        """Mean of the probabilities that the ensemble's models of the first split give.

        Args:
            graph: Whatever ``predict_proba`` of an estimator takes.
        """
        if not self.members:
            raise ConfigError("there is no ensemble: say ensemble=K, the number of its methods")
        models = [load_model(self.out / name) for name in self.members]
        if not hasattr(models[0], "predict_proba"):
            raise ConfigError("an ensemble of numbers has no probabilities")
        mean: NDArray[np.float64] = np.mean([m.predict_proba(graph) for m in models], axis=0)
        return mean

    def document(self) -> dict[str, Any]:
        """Everything as JSON values."""
        return {
            "out": str(self.out),
            "winner": self.winner,
            "best": str(self.out / BEST),
            "select": self.select,
            "score": self.score,
            "budget": self.budget,
            "sentences": self.sentences,
            "leaderboard": self.rows,
        }

    def print_to(self, console: Console) -> None:
        """Print the leaderboard."""
        console.print(board.leaderboard_table(self.rows, self.select, self.score))
        for sentence in self.sentences:
            console.print(sentence, markup=False, soft_wrap=True)

    def __repr__(self) -> str:
        console = Console(file=StringIO(), width=_WIDTH, highlight=False)
        self.print_to(console)
        return str(console.file.getvalue()).rstrip()  # type: ignore[attr-defined]


def compare(
    data: Any,
    models: str | Sequence[str] | None = None,
    *,
    recipes: int = USUAL_RECIPES,
    splits: str | Sequence[int] | None = None,
    ensemble: int | None = None,
    out: str | Path | None = None,
    settings: Sequence[str] = (),
    verbose: bool | None = None,
    load_options: Mapping[str, Any] | None = None,
    **request: Any,
) -> Comparison:
    """Compare methods on a graph, each with the same small budget; the best is kept as a model.

    On each split a method tries some recipes for a few epochs: its usual settings and draws from
    its search space, or the recipes of argnn. The best on validation is trained. The winner is
    the method with the best mean validation score; test scores choose nothing.

    Args:
        data: A name, a path, or a graph in memory that :func:`argnn.data.load` takes.
        models: Names of the methods, also as one text with commas; see ``argnn models``. All if
            not given.
        recipes: How many recipes each method tries.
        splits: Numbers of splits, or ``"all"``; the first three, or all folds, if not given.
        ensemble: Also average the predictions of so many of the best methods.
        out: Folder of the comparison; a new one in ``runs`` if not given. One that was stopped
            goes on where it is given again.
        settings: Texts such as ``"train.lr=0.01"``, for all methods.
        verbose: Whether to show how far it is: bars on a terminal and in a notebook, elsewhere a
            line for each split that is over. None shows bars where somebody is watching, and
            nothing elsewhere.
        load_options: Further arguments of :func:`argnn.data.load`; those about columns for a path.
        **request: ``task``, ``seed``, ``device``, ``workers``, ``data_root``, ``directed``,
            ``row_normalize``, ``ignore_weights``; for links also ``ratio``, ``decoder``,
            ``spanning_forest`` and ``split_by``. They are explained in
            ``argnn.settings.resolve.Request``.

    Example:
        >>> from tempfile import TemporaryDirectory
        >>> quick = {"recipes": 1, "splits": [0], "settings": ["epochs=2"], "workers": 1}
        >>> with TemporaryDirectory() as folder:
        ...     found = compare("mixed", ["gcn", "mlp"], out=f"{folder}/new", **quick)
        ...     print(found.winner == found.best.settings_.model)
        True
    """
    for name in request.keys() - set(_SHARED):
        raise ConfigError(f"compare has no argument '{name}'; {suggestion(name, _SHARED)}")
    is_named = isinstance(data, str | Path)
    wanted = Request(
        data=str(data) if is_named else IN_MEMORY,
        recipes=recipes,
        overrides=tuple(settings),
        columns=_columns(load_options or {}) if is_named else _folds(load_options or {}),
        **{"task": AUTO, **request},
    )
    graph = None if is_named else _loaded(data, wanted, load_options or {})
    name = Path(str(data)).stem if graph is None else graph.name
    chosen = splits if splits is None or isinstance(splits, str) else ",".join(map(str, splits))
    models = models.split(",") if isinstance(models, str) else models
    folder = default_run_path(name, "compare", "default") if out is None else Path(out)
    plan = plan_comparison(wanted, models, folder, splits=chosen, ensemble=ensemble, graph=graph)
    with short_waits(), ComparisonProgress(console_for(verbose)) as watcher:
        return compared(plan, watcher)


def default_out(data: str) -> Path:
    """The folder of a comparison that names none: the same for the same graph."""
    return Path("runs") / f"{file_stem(Path(data_name(data)).stem)}-compare"


def compared(plan: ComparisonPlan, watcher: ComparisonWatcher) -> Comparison:
    """Run a comparison, and keep a copy of its winner."""
    runs = board.ranked(run_comparison(plan, watcher))
    winner = runs[0]
    if winner.folder is None or not winner.finished:
        raise RunError(f"no method finished; {winner.model}: {winner.rows[0]['error']}")
    _copy(winner.folder.root, plan.out / BEST)
    select = board.selection(winner)
    rows = [board.board_row(run, winner=run is winner) for run in runs]
    whole = [run for run in runs if len(run.finished) == len(run.rows)]
    members = whole[: plan.ensemble] if plan.ensemble else []
    if len(members) > 1:
        mean = board.ensemble_row(members, ensemble_rows(members, plan.graph))
        rows = board.with_ensemble(rows, mean, select)
    sentences = [board.budget_sentence(plan.budget())]
    if len(winner.finished) > 1:
        sentences.append(board.interval_sentence(len(winner.finished)))
    sentences.append(board.winner_sentence(winner))
    if len(whole) > 1:
        sentences.append(board.difference_sentence(*whole[:2]))
    return Comparison(
        out=plan.out,
        rows=rows,
        select=select,
        score=board.shown_score(winner),
        budget=plan.budget(),
        sentences=sentences,
        winner=winner.model,
        members=tuple(run.model for run in members) if len(members) > 1 else (),
    )


def _columns(options: Mapping[str, Any]) -> Columns:
    known = {field.name for field in fields(Columns)}
    for name in options.keys() - known:
        raise ConfigError(f"load_options of a path has no '{name}'; {suggestion(name, known)}")
    return Columns.from_given(options)


def _folds(options: Mapping[str, Any]) -> Columns:
    """What is to be known of the columns of a graph that is loaded already."""
    return Columns(folds=options.get("folds"), groups=options.get("groups"))


def _loaded(data: Any, request: Request, options: Mapping[str, Any]) -> Data:
    return load_data(
        data,
        directed=request.directed,
        row_normalize=request.row_normalize,
        task="node" if request.task == "link" else request.task,
        **options,
    )


def _copy(run: Path, path: Path) -> None:
    """Copy a run folder to a path, where an older copy may be."""
    with scratch_folder(path.parent) as scratch:
        new = scratch / "new"
        shutil.copytree(run, new)
        place_folder(new, path, scratch / "older")
