"""The demonstration: argnn beside a GCN on two embedded graphs, and the page of one run."""

import importlib.util
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from argnn.errors import ConfigError, RunError
from argnn.files import require_folder, require_writable, write_output
from argnn.outputs.analyze import analyze
from argnn.runs.machine import core_count
from argnn.runs.parallel import Job, SilentWatcher, Watcher, run_jobs
from argnn.runs.prepare import Draft, Plan, Request, draft, settled
from argnn.runs.run import trained_model
from argnn.runs.summary import SELECTION, protocol, summary
from argnn.runs.tables import comparison_cells
from argnn.store.model_folder import FILES
from argnn.store.results import Row
from argnn.store.run_folder import RunFolder, write_config

GRAPHS = ("mixed", "digits")
MODELS = ("argnn", "gcn")
TASK = "node"
SPLITS = (0, 1)

#: What a reader has to know before comparing the two models.
NOTE = (
    "mixed is planted: its labels depend on the local geometry, which a GCN hardly sees; "
    "digits is real, and there the two are close. The GCN has its usual settings."
)

_MARK, _PICTURE, _PAGE = ".argnn-demo", "geometry.png", "report.html"


@dataclass(frozen=True)
class DemoReport:
    """What the demonstration found and where it was written."""

    results: list[dict[str, Any]]
    num_splits: int
    protocol: str
    picture: Path
    page: Path


def run_demo(
    out: Path, watcher: Watcher | None = None, overrides: Sequence[str] = ()
) -> DemoReport:
    """Train both models on both graphs, and write the report.

    In the folder of an earlier demonstration, its files are written anew, and all other files
    stay. ``overrides`` are settings of both models, such as ``epochs=5``.
    """
    for package in ("matplotlib", "igraph"):
        if importlib.util.find_spec(package) is None:
            raise ConfigError(f"the picture needs {package}: pip install 'argnn[plot]'")
    from argnn.analysis.figures import geometry_figure
    from argnn.analysis.figures.style import figure_bytes

    _require_ours(out)
    plans = settled([_draft(data, model, overrides) for data in GRAPHS for model in MODELS])
    _remove_ours(out)
    folders = [_folder(out, plan) for plan in plans]
    rows = _run(plans, folders, watcher or SilentWatcher())
    results = [
        {"data": plan.config.data, "model": plan.config.model, "summary": summary(found)}
        for plan, found in zip(plans, rows, strict=True)
    ]
    picture, page = out / _PICTURE, out / _PAGE
    figure = geometry_figure(plans[0].graph, trained_model(folders[0], SPLITS[0]))
    write_output(picture, figure_bytes(figure, "png"), force=True)
    analyze(folders[0].root, page, force=True, beside=_comparison(results))
    how = protocol(TASK, SELECTION[TASK])
    return DemoReport(results, len(SPLITS), how, picture, page)


def _draft(data: str, model: str, overrides: Sequence[str]) -> Draft:
    split = ",".join(str(split) for split in SPLITS)
    return draft(Request(data, model=model, split=split, device="cpu", overrides=tuple(overrides)))


def _require_ours(out: Path) -> None:
    """Raise unless ``out`` is free or was written by a demonstration."""
    taken = out.exists() or out.is_symlink()
    if taken and (not out.is_dir() or out.is_symlink()):
        raise RunError(f"{out}: not a folder; choose another --out")
    if taken and any(out.iterdir()) and not (out / _MARK).is_file():
        raise RunError(f"{out}: holds files that argnn demo did not write; choose another --out")
    for path in _ours(out):
        for folder in path.relative_to(out).parents:
            require_folder(out / folder)
        require_writable(path, force=True)
    for path in out.glob("runs/*/split-*/model/*"):
        if path.name not in FILES:
            raise RunError(f"{path}: no part of a model; move it, as the folder will be replaced")


def _ours(out: Path) -> Iterator[Path]:
    """Every file that a demonstration makes, besides the mark."""
    yield from (out / _PICTURE, out / _PAGE)
    for run in (_run_folder(out, data, model) for data in GRAPHS for model in MODELS):
        yield from (run.config, run.scores, run.log)
        for split in SPLITS:
            yield from (run.result(split), run.checkpoint(split))
            yield from (run.model(split) / name for name in FILES)


def _remove_ours(out: Path) -> None:
    """Remove what an earlier demonstration made, and mark the folder as one of ours."""
    try:
        for path in _ours(out):
            path.unlink(missing_ok=True)
        out.mkdir(parents=True, exist_ok=True)
        (out / _MARK).touch()
    except OSError as error:
        raise RunError(f"cannot write the folder {out} ({error.strerror})") from error


def _run_folder(out: Path, data: str, model: str) -> RunFolder:
    return RunFolder(out / "runs" / f"{data}-{model}")


def _folder(out: Path, plan: Plan) -> RunFolder:
    folder = _run_folder(out, plan.config.data, plan.config.model)
    write_config(folder, plan.config.to_json())
    return folder


def _run(plans: Sequence[Plan], folders: Sequence[RunFolder], watcher: Watcher) -> list[list[Row]]:
    """All splits of all plans in one set of workers; one list of rows per plan."""
    jobs = [
        Job(plan.config.for_split(split), split, folder)
        for plan, folder in zip(plans, folders, strict=True)
        for split in SPLITS
    ]
    graphs = {plan.config.graph["digest"]: plan.graph for plan in plans}
    found: dict[tuple[str, str, int], Row] = {}
    for job, row in run_jobs(jobs, graphs, core_count(), watcher):
        if "error" in row:
            raise RunError(f"split {row['split']} of {row['data']} failed: {row['error']}")
        watcher.finished(job, row)
        found[job.config.data, job.config.model, job.split] = row
    rows = [
        [found[plan.config.data, plan.config.model, split] for split in SPLITS] for plan in plans
    ]
    for folder, part in zip(folders, rows, strict=True):
        folder.write_scores(summary(part), part)
    return rows


def _comparison(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The table of all models, for the overview of the page."""
    header, *lines = comparison_cells(results)
    caption = f"Test scores in per cent, means over {len(SPLITS)} splits. {NOTE}"
    return {"comparison": {"caption": caption, "header": header, "lines": lines}}
