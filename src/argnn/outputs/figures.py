"""Draw all figures of stored runs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from typing_extensions import TypedDict

from argnn.analysis import Layer, learned_layers
from argnn.analysis import figures as plots
from argnn.analysis.figures import Bar, DataPoint
from argnn.analysis.figures.style import DOTS_PER_INCH, FORMATS, check_formats, figure_bytes
from argnn.checked import checked
from argnn.data import split_masks
from argnn.errors import ConfigError, RunError, error_prefix
from argnn.files import require_folder, require_writable, write_output
from argnn.nn.decoders import encoder_of
from argnn.runs.prepare import graph_of_run, stored_run
from argnn.runs.problems import observed_graph
from argnn.runs.run import trained_model
from argnn.runs.summary import INTERVAL, SCORES, by_split, run_scores, statistic
from argnn.store.results import Row, read_rows
from argnn.store.run_folder import EpochValues
from argnn.telling import Tell, be_silent
from argnn.wording import file_stem

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Figures that every run gets, by the ending of their file names.
RUN_FIGURES = ("map", "hull", "metric", "training")


@dataclass(frozen=True)
class _Run:
    """The parts of a run that figures need."""

    name: str
    graph: Data
    layers: list[Layer]
    row: Row
    geometry: list[Row]
    trained: Tensor | None
    model: str


#: A function that draws each figure, by its name.
_Figures = dict[str, Callable[[], "Figure"]]


def draw_figures(
    runs: Sequence[Path],
    out: Path,
    *,
    results: Sequence[Path] = (),
    split: int | None = None,
    formats: Sequence[str] = FORMATS,
    dpi: int = DOTS_PER_INCH,
    force: bool = False,
    data_root: str | None = None,
    tell: Tell = be_silent,
) -> dict[str, list[Any]]:
    """Draw every figure of some runs, and those that compare them.

    All runs are read before the first file is written, so that a damaged run leaves no files.

    The options are those of the command. The result has the files, notes on what could not be
    drawn, and the points of the homophily figure.
    """
    check_formats(formats)
    if not runs and not results:
        raise ConfigError("name at least one run folder, or a results file")
    require_folder(out)
    bars = _bars(results)
    opened = [_opened(path, name, split, data_root) for path, name in _named(runs)]
    points = [DataPoint.of(run.name, run.graph, run.layers[-1]) for run in opened if run.layers]
    figures = _planned(opened, points, bars)
    paths = {(name, kind): out / f"{name}.{kind}" for name in figures for kind in formats}
    for path in paths.values():
        require_writable(path, force)
    for done, (name, draw) in enumerate(figures.items()):
        tell(done, len(figures), name)
        figure = draw()
        for kind in formats:
            write_output(paths[name, kind], figure_bytes(figure, kind, dpi), force=force)
    return {
        "files": [str(path) for path in paths.values()],
        "notes": [
            f"{run.name}: {run.model} learns no metric: no {', '.join(RUN_FIGURES[:3])}"
            for run in opened
            if not run.layers
        ],
        "points": [
            {key: None if value != value else value for key, value in asdict(point).items()}  # NaN
            for point in points
        ],
    }


def _planned(runs: Sequence[_Run], points: Sequence[DataPoint], bars: Sequence[Bar]) -> _Figures:
    figures: _Figures = {}
    for run in runs:
        figures |= _of_run(run)
    if points:
        figures["homophily"] = lambda: plots.homophily_figure(points)
    if bars:
        score = f"Test {SCORES['node'][0].upper()}"
        figures["ablation"] = lambda: plots.ablation_figure(bars, score, INTERVAL)
    return figures


def _of_run(run: _Run) -> _Figures:
    def training() -> "Figure":
        best = run.row["chosen_epoch"]
        return plots.training_figure(run.row["history"], run.geometry, best_epoch=best)

    figures: _Figures = {}
    if run.layers:
        graph, last, jobs = run.graph, run.layers[-1], torch.get_num_threads()
        figures = {
            "map": lambda: plots.map_figure(graph, last, trained=run.trained, jobs=jobs),
            "hull": lambda: plots.hull_figure(graph, last, jobs=jobs),
            "metric": lambda: plots.metric_figure(graph, [layer.g for layer in run.layers]),
        }
    return {f"{run.name}-{name}": draw for name, draw in {**figures, "training": training}.items()}


class _DrawnRow(TypedDict):
    """What a row must hold to be drawn."""

    history: list[EpochValues]
    chosen_epoch: int


# --- reading ----------------------------------------------------------------------------------


def _named(paths: Sequence[Path]) -> list[tuple[Path, str]]:
    """Every folder with a unique name that can be part of a file name."""
    names: list[str] = []
    for path in paths:
        base = file_stem(path.resolve().name)
        name, count = base, 1
        while name in names:
            count += 1
            name = f"{base}-{count}"
        names.append(name)
    return list(zip(paths, names, strict=True))


def _opened(path: Path, name: str, split: int | None, data_root: str | None) -> _Run:
    folder, config = stored_run(path)
    splits = config.splits if split is None else (split,)
    finished = [number for number in splits if folder.result(number).exists()]
    if not finished:
        which = "no split" if split is None else f"split {split} is not"
        raise RunError(f"{path}: {which} finished; continue with argnn train --resume {path}")
    split = finished[0]
    row = folder.finished_row(split)
    assert row is not None
    with error_prefix(f"{folder.result(split)}: damaged,", RunError):
        checked(row, _DrawnRow)
    model = trained_model(folder, split)
    graph = graph_of_run(config, data_root)
    seen = observed_graph(graph, split, config.link)
    return _Run(
        name=name,
        graph=seen,
        layers=learned_layers(encoder_of(model), seen),
        row=row,
        geometry=folder.read_geometry(split),
        trained=split_masks(graph, split)[0] if config.link is None else None,
        model=config.model,
    )


def _bars(paths: Sequence[Path]) -> list[Bar]:
    """Mean and interval of the leading score for every method and data set of node rows."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in [row for path in paths for row in read_rows(path)]:
        if row["task"] == "node" and row.get("test") is not None:
            groups.setdefault((row["data"], row["method"]), []).append(row)
    if paths and not groups:
        raise RunError(f"{paths[0]}: holds no finished row of node classification")
    score = SCORES["node"][0]
    found = {key: statistic(by_split(run_scores(rows, score))) for key, rows in groups.items()}
    return [
        Bar(data, method, known["mean"], known["interval"], known["n"])
        for (data, method), known in found.items()
    ]
