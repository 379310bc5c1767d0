"""How soon training gets near its final validation score, argnn beside all others.

    python scripts/time_to_accuracy.py run RUNS.jsonl --workers 8    # goes on where it was stopped
    python scripts/time_to_accuracy.py epochs RUNS.jsonl --graphs cora pubmed
    python scripts/time_to_accuracy.py tables RUNS.jsonl    # files of docs/results, a picture

A run is ``argnn train NAME --model MODEL --no-trial``: split 0, the settings that are stored for
the graph, a process of its own that may use two cores. Its clock starts when training does, with
the graph in memory and kernels compiled, and goes on through preparation, steps and validation.
Curvatures that a method reads count: none are on the disk. A run that is not done after the
limit is stopped; with a higher limit it starts anew.

``epochs`` compares an epoch with the stored settings of argnn with one of our own gcn of the same
width and depth, in turns.
"""

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from argnn.analysis.figures.style import DOTS_PER_INCH, PALETTE, figure_bytes, new_figure, styled
from argnn.bench.perf.run import cpu_model
from argnn.data import load
from argnn.folders import cache_root
from argnn.nn import MODELS
from argnn.runs.machine import versions
from argnn.runs.prepare import prepare
from argnn.runs.problems import problem_of
from argnn.runs.run import convergence_epoch
from argnn.runs.train_one import train_one
from argnn.settings.resolve import Request
from argnn.train import EpochRecord

ROOT = Path(__file__).parent.parent
#: Long ones first, so that no worker is left with one at the end.
GRAPHS = (
    *("pubmed", "squirrel", "actor", "chameleon", "citeseer", "cora"),
    *("wisconsin", "texas", "cornell"),
)
#: The order of tables and pictures.
NAMES = {
    name.lower(): name
    for name in ("Cora", "CiteSeer", "PubMed", "Actor", "Chameleon", "Squirrel")
    + ("Texas", "Cornell", "Wisconsin")
}
CORES = 2
#: Rivals with a colour in the picture: the strongest, and the fastest.
STRONG = ("gcn", "h2gcn", "gprgnn", "linkx", "mlp")
#: Seconds that a process may take for its imports and the graph.
STARTING = 60.0
#: Epochs of a run of ``epochs``; the first ones are not counted.
EPOCHS, FIRST = 60, 5
Row = dict[str, Any]


class LateError(Exception):
    """The limit of a run is over."""


def course(data: str, model: str, limit: float, overrides: Sequence[str] = ()) -> Row:
    """Number, seconds since the start and validation score of every epoch that is validated."""
    graph = load(data)
    # Also where there is a GPU: the cores are what is measured.
    asked = Request(data, model=model, no_trial=True, device="cpu", overrides=tuple(overrides))
    config = prepare(asked, graph=graph).config
    problem = problem_of(config, graph, 0)
    epochs, seconds, scores = list[int](), list[float](), list[float]()
    began = time.perf_counter()

    def on_epoch(record: EpochRecord) -> None:
        now = time.perf_counter() - began
        if record.val_score is not None:
            epochs.append(record.epoch)
            seconds.append(round(now, 5))
            scores.append(record.val_score)
        if now > limit:
            raise LateError

    done = True
    # Curvatures are kept in a folder that is empty at the start, as on the first day.
    with tempfile.TemporaryDirectory() as folder:
        os.environ["ARGNN_CACHE"] = folder
        try:
            train_one(config, problem.visible, problem.task, on_epoch=on_epoch)
        except LateError:
            done = False
    return {
        "done": done,
        "layers": config.spec.options.get("num_layers"),
        "channels": config.spec.options.get("hidden_channels"),
        "epochs": epochs,
        "seconds": seconds,
        "scores": scores,
    }


def print_course(data: str, model: str, limit: float, overrides: Sequence[str]) -> None:
    """What a process of :func:`alone` does: a short run that loads all kernels, then the run."""
    course(data, model, 0.0, overrides)
    print(json.dumps(course(data, model, limit, overrides)))


def alone(data: str, model: str, limit: float, overrides: Sequence[str] = ()) -> Row:
    """A course in a process of its own, which inherits the cores of the calling thread.

    The process stops itself after an epoch, and is stopped where not even the first one ends.
    """
    words = ["one", data, model, "--limit", f"{limit:g}", "--overrides", *overrides]
    kernels = os.environ.get("NUMBA_CACHE_DIR") or str(cache_root())
    threads = {"OMP_NUM_THREADS": str(CORES), "NUMBA_CACHE_DIR": kernels}
    found = {"graph": data, "model": model, "limit": limit} | about()
    nothing: Row = {"done": False, "epochs": [], "seconds": [], "scores": []}
    try:
        process = subprocess.run(
            [sys.executable, __file__, *words],
            env=os.environ | threads,
            capture_output=True,
            text=True,
            timeout=STARTING + 2 * limit,
        )
    except subprocess.TimeoutExpired:
        return found | nothing
    if process.returncode:
        return found | nothing | {"error": process.stderr.strip().rpartition("\n")[2]}
    return found | json.loads(process.stdout.splitlines()[-1])


def about() -> Row:
    """Where and when a run is made."""
    known = versions()
    return {
        "cpu": cpu_model(),
        "versions": f"argnn {known['argnn']}, torch {known['torch']}",
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
    }


def on_own_cores(jobs: Iterable[Callable[[], Any]], workers: int) -> None:
    """Call the jobs in threads that have two cores each, which their processes inherit.

    Raises:
        SystemExit: There are not enough cores.
        Exception: What a job raised.
    """
    cores = sorted(os.sched_getaffinity(0))
    if workers < 1 or CORES * workers > len(cores):
        sys.exit(f"--workers {workers}: there are {len(cores)} cores, and a run takes {CORES}")
    free: SimpleQueue[list[int]] = SimpleQueue()
    for n in range(workers):
        free.put(cores[CORES * n : CORES * (n + 1)])
    with ThreadPoolExecutor(
        workers, initializer=lambda: os.sched_setaffinity(0, free.get())
    ) as pool:
        for future in [pool.submit(job) for job in jobs]:
            future.result()


def run(
    path: Path, limit: float, graphs: Sequence[str], models: Sequence[str], workers: int
) -> None:
    """Run what the file does not have yet, or only up to a lower limit."""
    known = {
        (row["graph"], row["model"])
        for row in read(path)
        if row["kind"] == "run" and (row["done"] or "error" in row or row["limit"] >= limit)
    }

    def one(graph: str, model: str) -> None:
        row = alone(graph, model, limit) | {"kind": "run", "workers": workers}
        add(path, row)
        second = to_final(row)
        what = row.get("error") or (f"not done, {len(row['epochs'])} epochs" if second is None
                                    else f"{second:.2f} s to 99 %")  # fmt: skip
        print(f"{graph} {model}: {what}", flush=True)

    left = [(graph, model) for graph in graphs for model in models if (graph, model) not in known]
    on_own_cores([partial(one, graph, model) for graph, model in left], workers)


def epochs(path: Path, limit: float, graphs: Sequence[str], repeats: int, workers: int) -> None:
    """An epoch with the stored settings beside one of gcn with the same width and depth."""

    def one(graph: str) -> None:
        size: Row = {}
        for model in ("argnn", "gcn") * repeats:
            names = {"num_layers": "layers", "hidden_channels": "channels"}
            same = [f"{k}={size[v]}" for k, v in names.items()] if model == "gcn" else []
            size = alone(graph, model, limit, [*same, f"epochs={EPOCHS}", "patience=0"])
            if "error" in size:
                raise RuntimeError(f"{graph} {model}: {size['error']}")
            add(path, size | {"kind": "epochs", "workers": workers})
            print(f"{graph} {model}: {epoch_ms(size):.2f} ms", flush=True)

    on_own_cores([partial(one, graph) for graph in graphs], workers)


def epoch_ms(row: Row) -> float:
    """Milliseconds of an epoch with its validation, the mean of all but the first."""
    spent, numbers = row["seconds"], row["epochs"]
    first = next(n for n, number in enumerate(numbers) if number >= FIRST)
    return float(1e3 * (spent[-1] - spent[first]) / (numbers[-1] - numbers[first]))


def add(path: Path, row: Row) -> None:
    """Write a line at once: what was measured stays when the machine goes."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def read(path: Path) -> list[Row]:
    """The lines of a file; none where it does not exist."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def to_final(row: Row) -> float | None:
    """Seconds until a run first has 99 % of its best score; None where it was stopped."""
    if not row["done"]:
        return None
    scored = zip(row["epochs"], row["scores"], strict=True)
    first = convergence_epoch([{"epoch": n, "val_score": score} for n, score in scored])
    return float(row["seconds"][row["epochs"].index(first)])


def tables(path: Path, root: Path = ROOT / "docs") -> None:
    """Write files of docs/results and the picture for what the file has."""
    rows = read(path)
    runs = {(row["graph"], row["model"]): row for row in rows if row["kind"] == "run"}
    if runs:
        write_runs(runs, root)
    spans = [row for row in rows if row["kind"] == "epochs"]
    if spans:
        write_epochs(spans, root)


def write_runs(runs: dict[tuple[str, str], Row], root: Path) -> None:
    """Times, scores, and the picture."""
    models = [model for model in MODELS if any(model == other for _, other in runs)]
    graphs = [graph for graph in NAMES if any(graph == other for other, _ in runs)]
    header = ["method", *(NAMES[graph] for graph in graphs)]

    def table(cell: Callable[[Row], str]) -> list[list[str]]:
        return [[m, *(cell(runs[g, m]) if (g, m) in runs else "" for g in graphs)] for m in models]

    rows = list(runs.values())
    write(
        root / "results" / "time-to-accuracy.csv",
        [header, *table(time_cell)],
        rows,
        "run",
        "seconds until the validation accuracy of split 0 is first at 99 % of its best; one run "
        "each; over: stopped at this limit",
    )
    write(
        root / "results" / "time-to-accuracy-scores.csv",
        [header, *table(score_cell)],
        rows,
        "run",
        "best validation accuracy of the same runs in %; brackets: stopped at the limit",
    )
    (root / "images" / "time-to-accuracy.png").write_bytes(
        figure_bytes(picture(runs), "png", DOTS_PER_INCH // 2)
    )


def time_cell(row: Row) -> str:
    """Seconds with two digits that count."""
    second = to_final(row)
    if "error" in row:
        return "failed"
    if second is None:
        return f"over {row['limit']:g}"
    return f"{second:.2f}" if second < 1 else f"{second:.1f}" if second < 10 else f"{second:.0f}"


def score_cell(row: Row) -> str:
    """The best validation accuracy in per cent."""
    if not row["scores"]:
        return "-"
    best = f"{100 * max(row['scores']):.1f}"
    return best if row["done"] else f"({best})"


def write_epochs(rows: Sequence[Row], root: Path) -> None:
    """An epoch of argnn beside one of gcn, and the ratio of their medians."""
    cells = []
    for graph in (name for name in NAMES if any(row["graph"] == name for row in rows)):
        own = [row for row in rows if row["graph"] == graph]
        ms = {
            model: statistics.median(epoch_ms(row) for row in own if row["model"] == model)
            for model in ("argnn", "gcn")
        }
        size = [str(own[0][name]) for name in ("layers", "channels")]
        ratio = f"{ms['argnn'] / ms['gcn']:.2f}"
        cells.append([NAMES[graph], *size, *(f"{value:.1f}" for value in ms.values()), ratio])
    header = ["graph", "layers", "channels", "argnn, ms", "gcn, ms", "argnn / gcn"]
    repeats = len([row for row in rows if row["graph"] == rows[0]["graph"]]) // 2
    note = f"with validation; medians of {repeats} runs of {EPOCHS} epochs that take turns"
    write(root / "results" / "stored-epochs.csv", [header, *cells], rows, "epochs", note)


def write(
    path: Path, lines: Sequence[Sequence[str]], rows: Sequence[Row], what: str, note: str
) -> None:
    """Write a file of docs/results."""
    most = max(row.get("workers", 1) for row in rows)
    cpu = " and ".join(sorted({str(row["cpu"]) for row in rows}))
    beside = f", {most} runs at the same time" if most > 1 else ""
    about = {
        "command": f"python scripts/time_to_accuracy.py {what} RUNS.jsonl",
        "machine": f"{CORES} cores of {cpu}{beside}",
        "versions": "; ".join(sorted({row["versions"] for row in rows})),
        "date": max(row["date"] for row in rows),
        "note": note,
    }
    with path.open("w", newline="", encoding="utf-8") as file:
        file.writelines(f"# {name}: {value}\n" for name, value in about.items())
        csv.writer(file, lineterminator="\n").writerows(lines)


@styled
def picture(runs: dict[tuple[str, str], Row]) -> Any:
    """The best validation accuracy so far over seconds, one panel for each graph."""
    figure = new_figure(9.5, 8.0)
    panels = figure.subplots(3, 3).ravel()
    colors = {"argnn": "#000000", **dict(zip(STRONG, PALETTE, strict=False))}
    for panel, (graph, name) in zip(panels, NAMES.items(), strict=True):
        for model in (model for model in MODELS if (graph, model) in runs):
            row = runs[graph, model]
            best = [100 * max(row["scores"][: n + 1]) for n in range(len(row["scores"]))]
            strong = model in colors
            panel.plot(
                row["seconds"],
                best,
                drawstyle="steps-post",
                color=colors.get(model, "#c8c8c8"),
                linewidth=2.2 if model == "argnn" else 1.3 if strong else 0.9,
                zorder=3 if model == "argnn" else 2 if strong else 1,
            )
        panel.set_title(name)
        panel.set_xscale("log")
    for label, color in {**colors, "the others": "#c8c8c8"}.items():
        panels[0].plot([], [], color=color, label=label)
    figure.supxlabel("seconds of training", fontsize=9)
    figure.supylabel("best validation accuracy so far, %", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    kinds = parser.add_subparsers(dest="what", required=True)
    for what in ("run", "epochs", "tables"):
        kind = kinds.add_parser(what)
        kind.add_argument("path", type=Path)
        if what == "tables":
            continue
        kind.add_argument("--limit", type=float, default=60.0, help="seconds of a run")
        kind.add_argument("--workers", type=int, default=1, help="runs at the same time")
        kind.add_argument("--graphs", nargs="+", choices=GRAPHS, default=GRAPHS, metavar="GRAPH")
        if what == "run":
            kind.add_argument(
                "--models", nargs="+", choices=[*MODELS], default=[*MODELS], metavar="MODEL"
            )
        else:
            kind.add_argument("--repeats", type=int, default=5)
    one = kinds.add_parser("one")
    one.add_argument("data")
    one.add_argument("model")
    one.add_argument("--limit", type=float)
    one.add_argument("--overrides", nargs="*")
    asked = parser.parse_args()
    if asked.what == "one":
        print_course(asked.data, asked.model, asked.limit, asked.overrides)
    elif asked.what == "tables":
        tables(asked.path)
    elif asked.what == "epochs":
        epochs(asked.path, asked.limit, asked.graphs, asked.repeats, asked.workers)
    else:
        run(asked.path, asked.limit, asked.graphs, asked.models, asked.workers)


if __name__ == "__main__":
    main()
